//! Disks that are full, limits, and folders that are not to be written: an error on every rank, no half checkpoint, and the
//! one before as it was.

use oflow::ErrorKind;
use oflow::checkpoint::{Checkpoint, CheckpointManager, CheckpointOptions};
use oflow::prelude::*;
use oflow::run_ranks;
use oflow_tests::bag::Bag;
use std::path::Path;
use std::process::Command;

/// Names of what is in a folder.
fn names(dir: &Path) -> Vec<String> {
    let mut all: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    all
}

/// Saves something small, then something that does not fit, and that lies on rank 1 alone.
fn save_too_much(dir: &Path, want: &str, behind: bool) {
    run_ranks(3, |_| {
        let mut m = CheckpointManager::new(dir, CheckpointOptions::default());
        let all = Placement::all(Device::Cpu)?;
        let one = Placement::new(Device::Cpu, &[1], &[1])?;
        let small = Bag(vec![full([64], 7.0, (&all, sbp![B]))?]);
        m.save(1, &[("x", &small)])?;
        let big = Bag(vec![zeros([4 << 20], (&one, sbp![B]))?]);
        let e = match behind {
            true => {
                m.save_async(2, &[("x", &big)])?;
                m.wait().unwrap_err()
            }
            false => m.save(2, &[("x", &big)]).unwrap_err(),
        };
        assert_eq!(e.kind(), ErrorKind::Storage);
        let text = e.to_string();
        assert!(text.starts_with("the checkpoint of step 2 was not written: rank 1: cannot write"), "{text}");
        assert!(text.contains(want), "{text}");
        // The one before is there, and the next one can be saved.
        let mut back = Bag(vec![zeros([64], (&all, sbp![S(0)]))?]);
        assert_eq!(m.load_latest(&mut [("x", &mut back)])?, Some(1));
        assert_eq!(back.0[0].to_vec::<f32>()?, vec![7.0; 64]);
        m.save(3, &[("x", &small)])
    })
    .unwrap();
    assert_eq!(names(dir), [".lock", "latest", "step-000001", "step-000003"]);
    Checkpoint::open(dir).unwrap().verify().unwrap();
}

/// Runs a test of this file again in a process of its own, which a command prepares.
pub fn again(test: &str, prepare: &[&str], dir: &Path) -> bool {
    let exe = std::env::current_exe().unwrap();
    let out = Command::new(prepare[0])
        .args(&prepare[1..])
        .arg(exe)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("OFLOW_TEST_FULL", dir)
        .output()
        .unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success() && text.contains("1 passed") || text.contains("cannot prepare"), "{text}");
    out.status.success()
}

#[test]
fn a_limit_of_file_sizes() {
    if let Some(dir) = std::env::var_os("OFLOW_TEST_FULL") {
        save_too_much(Path::new(&dir).join("a").as_ref(), "File too large", false);
        return save_too_much(Path::new(&dir).join("b").as_ref(), "raise the limit of file sizes", true);
    }
    let tmp = tempfile::tempdir().unwrap();
    let limit = "ulimit -f 2048; exec \"$@\"";
    assert!(again("checkpoint::full::a_limit_of_file_sizes", &["sh", "-c", limit, "sh"], tmp.path()));
}

#[test]
fn a_full_disk() {
    if let Some(dir) = std::env::var_os("OFLOW_TEST_FULL") {
        save_too_much(Path::new(&dir).join("a").as_ref(), "No space left on device", false);
        std::fs::remove_dir_all(Path::new(&dir).join("a")).unwrap();
        return save_too_much(Path::new(&dir).join("b").as_ref(), "free some space", true);
    }
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().display().to_string();
    let mount = "mount -t tmpfs -o size=4m none \"$1\" || { echo cannot prepare; exit 1; }; shift; exec \"$@\"";
    if !again("checkpoint::full::a_full_disk", &["unshare", "-Urm", "sh", "-c", mount, "sh", &dir], tmp.path()) {
        eprintln!("no small disk can be made here: not tested");
    }
}

#[test]
fn a_folder_that_cannot_be_made() {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("file");
    std::fs::write(&file, "").unwrap();
    run_ranks(2, |_| {
        let x = Bag(vec![zeros([4], (&Placement::all(Device::Cpu)?, sbp![B]))?]);
        let mut m = CheckpointManager::new(file.join("in"), CheckpointOptions::default());
        let e = m.save(1, &[("x", &x)]).unwrap_err().to_string();
        assert!(e.starts_with("the checkpoint of step 1 was not written: rank 0: cannot make the folder"), "{e}");
        Ok(())
    })
    .unwrap();
}
