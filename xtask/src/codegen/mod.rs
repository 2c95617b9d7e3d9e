//! `cargo xtask codegen`: code that is made from declarations and committed. The protobuf code comes from the `.proto` files, the
//! methods and functions of Rust and the stubs of Python from the texts of the functions, the optimizers of Python from those of Rust, the C header of ops in libraries from its
//! structs.

mod functions;
mod header;
mod optimizers;
mod protos;
mod python;
mod rust_form;

use crate::root;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

/// Every generated file as (path in the repository, text). Nothing is written.
fn generated() -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let mut files = protos::generated()?;
    files.extend(functions::generated()?);
    files.extend(header::generated()?);
    files.extend(python::generated()?);
    files.push(optimizers::generated()?);
    Ok(files)
}

/// Generated files that are there and that no declaration makes any more.
fn left_over(files: &[(String, String)]) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut left = vec![];
    for entry in fs::read_dir(root().join(functions::FOLDER))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !files.iter().any(|(path, _)| *path == format!("{}/{name}", functions::FOLDER)) {
            left.push(root().join(functions::FOLDER).join(name));
        }
    }
    Ok(left)
}

/// Writes what has changed.
pub fn run() -> Result<(), Box<dyn Error>> {
    let files = generated()?;
    for (path, text) in &files {
        let full = root().join(path);
        if fs::read_to_string(&full).is_ok_and(|committed| committed == *text) {
            continue;
        }
        fs::write(&full, text).map_err(|e| format!("{}: {e}", full.display()))?;
        println!("wrote {path}");
    }
    for path in left_over(&files)? {
        fs::remove_file(&path)?;
        println!("removed {}", path.display());
    }
    println!("{}", functions::counts()?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_code_is_what_the_declarations_say() {
        let files = generated().expect("the declarations are well formed");
        for (path, fresh) in &files {
            let committed = fs::read_to_string(root().join(path)).unwrap_or_default();
            assert!(committed == *fresh, "{path} has drifted: run `cargo xtask codegen`");
        }
        assert_eq!(left_over(&files).expect("the folder can be read"), Vec::<PathBuf>::new());
    }
}
