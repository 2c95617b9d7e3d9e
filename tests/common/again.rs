//! A test that runs once more in a process of its own, with an environment of its own.

use std::process::Command;

/// This program with the test of that name alone (`module::test`), to which arguments and an environment are added.
pub fn again(test: &str) -> Command {
    let mut again = Command::new(std::env::current_exe().expect("the path of this program"));
    again.args(["--exact", test, "--nocapture"]);
    again
}

/// Runs such a program to its end and prints the test's reason for skipping, if it has one.
///
/// # Panics
/// The test did not pass, or there is none of its name.
pub fn passes(mut again: Command) {
    let end = again.output().expect("this program runs again");
    let (out, err) = (String::from_utf8_lossy(&end.stdout), String::from_utf8_lossy(&end.stderr));
    if let Some((_, reason)) = out.lines().find_map(|l| l.split_once("skipped: ")) {
        println!("skipped: {reason}");
    }
    assert!(end.status.success() && out.contains("1 passed"), "{out}\n{err}");
}
