//! Scripts that are run by another user than the one who built them, and folders that nobody else can write to.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use crate::common::*;

/// A user without files.
const NOBODY: u32 = 65534;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Writes a script that is older than any build that begins now.
fn script(folder: &Folder, text: &str) {
    let path = folder.write("hello.rs", text);
    let modified = path.metadata().unwrap().modified().unwrap();
    wait_for("the clock", LONG, || (SystemTime::now() > modified + Duration::from_millis(50)).then_some(()));
}

/// oflaunch of the script by the other user, with a cargo that notes its target directory, builds a library that is empty and a
/// shell script.
fn by_nobody(folder: &Folder, prepare: impl FnOnce(&mut Command)) -> Output {
    let cargo = folder.sh(
        "cargo-of-nobody",
        "echo $CARGO_TARGET_DIR >$XDG_CACHE_HOME/called; mkdir -p $CARGO_TARGET_DIR/debug
if [ \"$1\" = build ]; then
    touch $CARGO_TARGET_DIR/debug/liboflow.rlib
    echo '{\"target\": {\"name\": \"oflow\", \"kind\": [\"lib\"]}, \"filenames\": [\"'$CARGO_TARGET_DIR'/debug/liboflow.rmeta\"]}'
    exit
fi
while [ \"$1\" != --bin ]; do shift; done
printf '#!/bin/sh\\necho of nobody\\n' >$CARGO_TARGET_DIR/debug/$2; chmod +x $CARGO_TARGET_DIR/debug/$2",
    );
    let mut command = oflaunch(folder);
    command.args(["-n", "1", "--profile", "dev", "hello.rs"]).uid(NOBODY).gid(NOBODY).env("CARGO", cargo);
    command.env("XDG_CACHE_HOME", folder.path().join("cache")).env("TMPDIR", folder.path().join("cache"));
    prepare(&mut command);
    command.output().unwrap()
}

#[test]
fn a_script_is_run_by_a_user_who_cannot_write_where_it_was_built() {
    let folder = Folder::new();
    let tool = Path::new(env!("CARGO_BIN_EXE_oflaunch"));
    allow(folder.path(), 0o755);
    let other = Command::new(tool).arg("--version").uid(NOBODY).gid(NOBODY).output();
    if !other.is_ok_and(|o| o.status.success()) {
        eprintln!("no other user can be, or reach {}: not tested", tool.display());
        return;
    }
    let cache = folder.path().join("cache");
    fs::create_dir(&cache).unwrap();
    chown(&cache, Some(NOBODY), Some(NOBODY)).unwrap();

    // Built by its owner, under a umask that would let everybody write.
    script(&folder, "fn main() {\n    println!(\"of its owner\");\n}\n");
    folder.sh("open", &format!("umask 000; exec '{}' -n 1 --profile dev hello.rs", tool.display()));
    let output = Command::new("./open").current_dir(folder.path()).env("TMPDIR", folder.path()).output().unwrap();
    assert_eq!((code(&output), stdout(&output).as_str()), (0, "of its owner\n"), "{}", stderr(&output));
    let plan = stdout(&run(&folder, &["-n", "1", "--profile", "dev", "--dry-run", "hello.rs"]));
    let built = PathBuf::from(plan.lines().find_map(|l| l.strip_prefix("run:")).unwrap().trim());
    let package = built.parent().unwrap().parent().unwrap().join("scripts").join(built.file_name().unwrap());
    for path in [&package, &package.join("Cargo.toml"), &built] {
        assert_eq!(mode(path) & 0o022, 0, "{}: {:o}", path.display(), mode(path));
    }
    // Who can open a lock can hold it.
    assert_eq!(mode(&package.join("lock")), 0o600);

    // What is up to date is run as it is, by a user without a compiler.
    let output = by_nobody(&folder, |command| {
        command.env_remove("XDG_CACHE_HOME").env_remove("HOME").env("PATH", "/usr/bin:/bin");
    });
    assert_eq!((code(&output), stdout(&output).as_str()), (0, "of its owner\n"), "{}", stderr(&output));
    assert!(!cache.join("called").exists());

    // What has changed is built in a folder of the user's own.
    script(&folder, "fn main() {\n    println!(\"changed\");\n}\n");
    let output = by_nobody(&folder, |_| {});
    let text = stderr(&output);
    assert_eq!((code(&output), stdout(&output).as_str()), (0, "of nobody\n"), "{text}");
    let target = fs::read_to_string(cache.join("called")).unwrap();
    let target = Path::new(target.trim());
    assert!(target.starts_with(cache.join("oflow")), "{}", target.display());
    assert_eq!((fs::metadata(target).unwrap().uid(), mode(target) & 0o022), (NOBODY, 0));
    let told = format!("this user cannot write where oflaunch was built; scripts are built in {}", target.display());
    assert!(text.contains(&told), "{text}");

    // What is fresh is run without a build, but not where somebody else could have put it.
    let above = folder.path().join("above");
    let planted = above.join("cache");
    fs::create_dir_all(&planted).unwrap();
    chown(&planted, Some(NOBODY), Some(NOBODY)).unwrap();
    let from_there = || {
        by_nobody(&folder, |command| {
            command.env("XDG_CACHE_HOME", &planted);
        })
    };
    assert_eq!(stdout(&from_there()), "of nobody\n");
    let own = fs::read_dir(planted.join("oflow")).unwrap().next().unwrap().unwrap().path();
    assert_eq!((mode(&planted.join("oflow")), mode(&own)), (0o700, 0o700));
    fs::remove_file(planted.join("called")).unwrap();
    allow(&above, 0o777);
    let output = from_there();
    let text = stderr(&output);
    assert_eq!((code(&output), stdout(&output).as_str()), (1, ""), "{text}");
    let why = format!("{}, on the way to ", above.display());
    assert!(text.contains(&why) && text.contains("can be written to by other users (mode 777)"), "{text}");
    assert!(!planted.join("called").exists());

    // Where there is no such folder, a sentence says so.
    let output = by_nobody(&folder, |command| {
        command.env_remove("XDG_CACHE_HOME").env_remove("HOME");
    });
    let text = stderr(&output);
    assert_eq!(code(&output), 1, "{text}");
    assert!(text.contains("this user cannot write to") && text.contains("set XDG_CACHE_HOME"), "{text}");
    let output = by_nobody(&folder, |command| {
        command.env_remove("XDG_CACHE_HOME").env("HOME", "/nonexistent");
    });
    let text = stderr(&output);
    assert_eq!(code(&output), 1, "{text}");
    assert!(text.contains(" or /nonexistent/.cache/oflow/target-") && text.contains("set XDG_CACHE_HOME"), "{text}");
    let _gone = fs::remove_dir_all(&package);
    let _gone = fs::remove_file(&built);
}
