//! Environment variables that cargo sets for the programs that it runs, and an inner cargo must not see.
//!
//! Apart from the other modules because `faults/` compiles this file too.

use std::process::Command;

/// Variables that cargo sets for a program that it runs.
const OUTER: &[&str] = &["CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "CARGO_TARGET_TMPDIR", "OUT_DIR"];
const OUTER_PREFIXES: &[&str] = &["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"];

/// Removes the variables of an outer cargo from the environment of an inner one.
///
/// `cargo run` and `cargo test` tell a program which package it is. To build scripts of dependencies these would be changed
/// inputs, and they and all that needs them would be built again, at each change between the two.
pub fn forget(cargo: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_told) {
            cargo.env_remove(name);
        }
    }
}

fn is_told(name: &str) -> bool {
    OUTER.contains(&name) || OUTER_PREFIXES.iter().any(|p| name.starts_with(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inner_cargo_is_not_told_of_the_package_of_the_outer_one() {
        // The test itself is run by cargo, which tells it of its package.
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
        let mut cargo = Command::new("cargo");
        forget(&mut cargo);
        let removed = |name: &str| cargo.get_envs().any(|(n, value)| n == name && value.is_none());
        assert!(removed("CARGO_PKG_NAME") && removed("CARGO_MANIFEST_DIR"));
        assert!(!removed("CARGO") && !removed("PATH"));
    }
}
