//! `op-abi/include/oflow_op.h`, made of the structs in `op-abi/src/abi.rs` and `calls.rs`.

use crate::root;
use cbindgen::{Builder, Config, DocumentationStyle, Language, Style};
use std::error::Error;

const HEADER: &str = "op-abi/include/oflow_op.h";
const STRUCTS: [&str; 2] = ["op-abi/src/abi.rs", "op-abi/src/calls.rs"];

/// The header as (path in the repository, text).
pub(super) fn generated() -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let config = Config {
        language: Language::C,
        style: Style::Type,
        cpp_compat: true,
        include_guard: Some("OFLOW_OP_H".into()),
        no_includes: true,
        sys_includes: ["stdbool.h", "stddef.h", "stdint.h"].map(String::from).to_vec(),
        usize_is_size_t: true,
        documentation_style: DocumentationStyle::C99,
        header: Some(
            "// The interface of oflow for ops in shared libraries. A library exports oflow_op_library (oflow_library_fn).\n\
             // Generated from op-abi/src/abi.rs by `cargo xtask codegen`; in C++ use oflow_op.hpp."
                .into(),
        ),
        ..Config::default()
    };
    let mut builder = Builder::new().with_config(config);
    for file in STRUCTS {
        builder = builder.with_src(root().join(file));
    }
    for name in ["oflow_library", "oflow_host", "oflow_library_fn"] {
        builder = builder.include_item(name);
    }
    let mut text = vec![];
    builder.generate()?.write(&mut text);
    Ok(vec![(HEADER.to_string(), String::from_utf8(text)?)])
}
