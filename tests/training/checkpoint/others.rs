//! Other users of the machine: locks that they cannot take, links that are not followed, folders that they may write to, and
//! the modes of what oflow makes. Tests with a second user need root and are skipped without.

use super::full::again;
use oflow::checkpoint::{Checkpoint, CheckpointManager, CheckpointOptions, list};
use oflow::prelude::*;
use oflow::run_ranks;
use oflow_tests::bag::Bag;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// `nobody` on most systems.
const OTHER: u32 = 65534;

fn bag(value: f64) -> Result<Bag> {
    Ok(Bag(vec![full([30, 4], value, (&Placement::all(Device::Cpu)?, sbp![S(0)]))?]))
}

fn save(dir: &Path, step: u64, keep: usize) -> Result<()> {
    run_ranks(2, |_| CheckpointManager::new(dir, CheckpointOptions { keep }).save(step, &[("x", &bag(step as f64)?)]))
        .map(drop)
}

fn resume(dir: &Path) -> Result<Option<u64>> {
    let load = || CheckpointManager::new(dir, CheckpointOptions::default()).load_latest(&mut [("x", &mut bag(0.0)?)]);
    run_ranks(3, |_| load()).map(|steps| steps[0])
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("only root can act as a second user: not tested");
    }
    root
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Everything in a folder, and the folder.
fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut all = vec![dir.to_path_buf()];
    let mut next = 0;
    while let Some(path) = all.get(next).cloned() {
        next += 1;
        if path.is_dir() {
            all.extend(fs::read_dir(path).unwrap().map(|e| e.unwrap().path()));
        }
    }
    all
}

/// A process of another user that takes exclusive locks of all files that it can open, and keeps them.
struct Locker(Child);

impl Locker {
    fn new(dir: &Path) -> Locker {
        let script =
            "n=3; for f in $(find \"$1\" -type f -readable); do n=$((n+1)); eval \"exec $n<$f\" && flock -n $n; done
            echo locked; cat";
        let mut child = Command::new("bash")
            .args(["-c", script, "bash"])
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .uid(OTHER)
            .gid(OTHER)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "locked\n");
        Locker(child)
    }
}

impl Drop for Locker {
    fn drop(&mut self) {
        let _may_be_gone = self.0.kill();
        let _may_be_gone = self.0.wait();
    }
}

#[test]
fn another_user_cannot_lock_a_job_out() {
    if !is_root() || !Command::new("flock").arg("--version").output().is_ok_and(|o| o.status.success()) {
        return;
    }
    let tmp = tempfile::tempdir().unwrap();
    set_mode(tmp.path(), 0o755);
    let dir = tmp.path().join("c");
    save(&dir, 1, 1).unwrap();
    let locker = Locker::new(&dir);
    assert_eq!(resume(&dir).unwrap(), Some(1));
    save(&dir, 2, 1).unwrap();
    assert_eq!(list(&dir).unwrap().len(), 1, "the one before could be removed");
    drop(locker);
    let _locker = Locker::new(&dir);
    assert_eq!(resume(&dir).unwrap(), Some(2));
    Checkpoint::open(&dir).unwrap().verify().unwrap();
}

#[test]
fn a_second_job_is_told_who_writes() {
    let tmp = tempfile::tempdir().unwrap();
    run_ranks(1, |_| {
        let mut first = CheckpointManager::new(tmp.path(), CheckpointOptions::default());
        first.save(1, &[("x", &bag(1.0)?)])?;
        let e = save(tmp.path(), 2, 3).unwrap_err().to_string();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let want = format!("another job (process {} on {host}) writes checkpoints to ", std::process::id());
        assert!(e.contains(&want), "{e}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn links_in_the_place_of_files_are_not_followed() {
    let tmp = tempfile::tempdir().unwrap();
    let (dir, victim) = (tmp.path().join("c"), tmp.path().join("victim"));
    for make in [
        |victim: &Path, at: &Path| symlink(victim, at).unwrap(),
        |victim: &Path, at: &Path| fs::hard_link(victim, at).unwrap(),
        |_: &Path, at: &Path| mknodat(CWD, at, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
    ] {
        fs::write(&victim, "precious").unwrap();
        set_mode(&victim, 0o640);
        fs::create_dir(&dir).unwrap();
        make(&victim, &dir.join(".lock"));
        let e = save(&dir, 1, 3).unwrap_err();
        assert!(e.to_string().contains("/.lock ") && e.help_text().is_some_and(|h| h.contains("delete it")), "{e}");
        fs::remove_file(dir.join(".lock")).unwrap();
        // These are replaced.
        for name in ["latest", ".latest.new"] {
            make(&victim, &dir.join(name));
        }
        save(&dir, 1, 3).unwrap();
        let file = tmp.path().join("x.safetensors");
        make(&victim, &tmp.path().join("x.safetensors.part"));
        run_ranks(1, |_| oflow::save_file(&file, &[("x", &ones([2], Device::Cpu)?)])).unwrap();
        assert_eq!(
            (fs::read_to_string(&victim).unwrap().as_str(), victim.metadata().unwrap().mode() & 0o777),
            ("precious", 0o640)
        );
        assert!(file.symlink_metadata().unwrap().is_file());
        fs::remove_file(&victim).unwrap();
        fs::remove_file(&file).unwrap();
        fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn folders_that_others_may_write_to_are_refused_unless_told() {
    if let Some(dir) = std::env::var_os("OFLOW_TEST_FULL") {
        return save(Path::new(&dir), 2, 3).unwrap();
    }
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("c");
    let refused = |want: &str| {
        let e = save(&dir, 1, 3).unwrap_err();
        assert!(e.to_string().contains(want), "{e}\ninstead of {want}");
        assert!(e.help_text().is_some_and(|h| h.contains("OFLOW_TRUST_FOLDERS=1")), "{e}");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "nothing is made there");
        let told = ["env", "OFLOW_TRUST_FOLDERS=1"];
        assert!(again("checkpoint::others::folders_that_others_may_write_to_are_refused_unless_told", &told, &dir));
        fs::remove_dir_all(&dir).unwrap();
        fs::create_dir(&dir).unwrap();
    };
    fs::create_dir(&dir).unwrap();
    set_mode(&dir, 0o777);
    refused("can be written to by other users (mode 777)");
    set_mode(&dir, 0o1777);
    save(&dir, 1, 3).unwrap();
    fs::remove_dir_all(&dir).unwrap();
    fs::create_dir(&dir).unwrap();
    // The group of one user, as many systems have it, is not others.
    set_mode(&dir, 0o775);
    let meta = dir.metadata().unwrap();
    if meta.uid() == meta.gid() {
        save(&dir, 1, 3).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        fs::create_dir(&dir).unwrap();
    }
    if !is_root() {
        return;
    }
    chown(&dir, None, Some(OTHER)).unwrap();
    set_mode(&dir, 0o775);
    refused("can be written to by other users (mode 775)");
    chown(&dir, Some(OTHER), None).unwrap();
    refused("belongs to user 65534, and this process runs as user 0");
    // A lock that another user has put into a folder for all.
    set_mode(&dir, 0o1777);
    fs::write(dir.join(".lock"), "").unwrap();
    chown(dir.join(".lock"), Some(OTHER), None).unwrap();
    let e = save(&dir, 1, 3).unwrap_err().to_string();
    assert!(e.contains("/.lock belongs to user 65534"), "{e}");
}

#[test]
fn nothing_that_is_made_can_be_written_to_by_others() {
    if let Some(dir) = std::env::var_os("OFLOW_TEST_FULL") {
        let at = |name: &str| Path::new(&dir).join(name);
        save(&at("a/b/c"), 1, 3).unwrap();
        save(&at("a/b/c"), 2, 3).unwrap();
        assert_eq!(resume(&at("a/b/c")).unwrap(), Some(2));
        let options = oflow::checkpoint::ConvertOptions { section: "x".into(), ..Default::default() };
        for (from, to) in [("a/b/c", "d/model.safetensors"), ("a/b/c", "e/hf"), ("e/hf", "f/step-000000")] {
            fs::create_dir_all(at("d")).unwrap();
            set_mode(&at("d"), 0o755);
            oflow::checkpoint::convert(&at(from), &at(to), &options).unwrap();
        }
        return;
    }
    for (umask, mode) in [("000", 0o755), ("022", 0o755), ("027", 0o750), ("077", 0o700)] {
        let tmp = tempfile::tempdir().unwrap();
        let prepare = format!("umask {umask}; exec \"$@\"");
        let test = "checkpoint::others::nothing_that_is_made_can_be_written_to_by_others";
        assert!(again(test, &["sh", "-c", &prepare, "sh"], tmp.path()));
        let made = &tree(tmp.path())[1..];
        assert!(made.len() > 20, "{made:?}");
        for path in made.iter().filter(|p| !p.ends_with("d")) {
            let (found, name) = (path.metadata().unwrap().mode() & 0o7777, path.file_name().unwrap().to_str().unwrap());
            let want = match name {
                ".lock" | ".reading" => 0o600,
                _ if path.is_dir() => mode,
                _ => mode & 0o666,
            };
            assert_eq!(format!("{found:o}"), format!("{want:o}"), "{} under umask {umask}", path.display());
        }
    }
}
