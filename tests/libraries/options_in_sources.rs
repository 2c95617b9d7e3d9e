//! Options of a build that stand at the top of a source.

use super::{cache, options, vec};
use oflow::libraries::{Library, build_and_load};
use oflow::prelude::*;
use oflow_tests::cpp::cpp;
use std::path::Path;

fn built(name: &str, text: &str) -> Result<Library> {
    let file = cache().join(name);
    std::fs::write(&file, text).unwrap();
    build_and_load(&[Path::new(&file)], options())
}

/// An op that multiplies by `FACTOR`, which only an option defines, behind `top`.
fn text(top: &str) -> String {
    format!(
        "// An op.\n\n/* More\n   of it. */\n{top}\n#include \"oflow_op.hpp\"\n#include <math.h>\n#include \"part.h\"\n\
         static void run(const oflow::Call &c) {{\n\
           for (int64_t i = 0; i < c.output(0).size(); ++i)\n\
             c.output(0).data<float>()[i] = float(FACTOR * PART) * c.input(0).data<float>()[i];\n\
         }}\n\
         OFLOW_LIBRARY(optioned) {{ library.op(\"times(x: f32) -> y\").gradient(\"none\").cpu(run); }}\n"
    )
}

fn times() -> f64 {
    oflow::call("optioned.times", &[vec(&[1.0]).into()], &[]).unwrap().remove(0).item().unwrap()
}

#[test]
fn a_source_names_its_options() {
    if !cpp() {
        return;
    }
    // Relative folders are those beside the source.
    std::fs::create_dir_all(cache().join("parts")).unwrap();
    std::fs::write(cache().join("parts/part.h"), "#define PART 2\n").unwrap();
    // Quotes hold spaces.
    let top =
        |factor: u32| text(&format!("// oflow: flags = -O2 \"-DFACTOR=({factor} + 0)\" -Iparts\n// oflow: link = -lm"));
    let first = built("optioned.cc", &top(3)).unwrap();
    assert_eq!(times(), 6.0);
    assert_eq!(built("optioned.cc", &top(3)).unwrap().hash(), first.hash());
    // They are part of what a build is known by.
    assert_ne!(built("optioned.cc", &top(5)).unwrap().hash(), first.hash());
    assert_eq!(times(), 10.0);
    // A library that is named is linked.
    let e = built("unfound.cc", &text("// oflow: flags = -DFACTOR=1 -Iparts\n// oflow: link = -lno_such_library"));
    let e = e.unwrap_err().to_string();
    assert!(e.contains("no_such_library"), "{e}");
}

#[test]
fn an_option_that_cannot_be_read_names_file_and_line() {
    for (name, text, says) in [
        ("wrong.cc", "\n// oflow: flags -O2\n", "wrong.cc:2: the build option 'flags -O2' has no '='"),
        ("wrong.cc", "// oflow: flags =\n", "wrong.cc:1: the build option 'flags' says nothing"),
        ("wrong.cc", "// oflow: flag = -O2\n", "unknown build option 'flag'"),
        (
            "wrong.cc",
            "int x;\n// oflow: flags = -O2\n",
            "wrong.cc:2: the build option '// oflow: flags = -O2' stands behind code",
        ),
        ("wrong.cc", "// oflow: flags = O2\n", "'O2' is not an option: options start with '-'"),
        ("wrong.cc", "// oflow: flags = \"-O2\n", "has a quote that does not end"),
        ("wrong.c", "// oflow: link = -O2\n", "'-O2' is not an option of a linker"),
        ("wrong.cc", "// oflow: dependency = half = \"2\"\n", "'dependency' is for Rust"),
        ("wrong.rs", "// oflow: flags = -O2\n", "'flags' is for C, C++ and CUDA"),
        ("wrong.cu", "// oflow: flags = -O2\n", "'flags' is for nvcc, and this file is compiled at its first use"),
    ] {
        let e = built(name, text).unwrap_err().to_string();
        assert!(e.contains(says), "{text}: {e}");
    }
    // A dependency of Rust that is no line of a manifest is cargo's error.
    let e = built("wrong.rs", "// oflow: dependency = half\noflow_op::library! { nothing }\n").unwrap_err().to_string();
    assert!(e.contains("wrong.rs does not compile"), "{e}");
}
