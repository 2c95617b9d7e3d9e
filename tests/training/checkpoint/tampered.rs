//! Folders of checkpoints that somebody else has changed: files that are not what they were, and pointers to what is lost. A
//! resumed job is told so; it neither waits nor starts at step 0 without a word.

use oflow::ErrorKind;
use oflow::checkpoint::{CheckpointManager, CheckpointOptions};
use oflow::prelude::*;
use oflow::run_ranks;
use oflow_tests::bag::Bag;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// Longer than any of these takes.
const LIMIT: Duration = Duration::from_secs(60);

fn bag(value: f64) -> Result<Bag> {
    Ok(Bag(vec![full([30, 4], value, (&Placement::all(Device::Cpu)?, sbp![S(0)]))?]))
}

fn save(dir: &Path, step: u64) {
    run_ranks(2, |_| {
        CheckpointManager::new(dir, CheckpointOptions::default()).save(step, &[("x", &bag(step as f64)?)])
    })
    .unwrap();
}

/// Resumes on three ranks.
fn resume(dir: &Path) -> Result<Option<u64>> {
    let (done, outcome) = mpsc::channel();
    let dir = dir.to_path_buf();
    std::thread::spawn(move || {
        let all = run_ranks(3, |_| {
            let mut bag = bag(0.0)?;
            let step =
                CheckpointManager::new(&dir, CheckpointOptions::default()).load_latest(&mut [("x", &mut bag)])?;
            assert_eq!(bag.0[0].to_vec::<f32>()?, vec![step.unwrap_or(0) as f32; 120]);
            Ok(step)
        });
        let _the_test_may_have_given_up = done.send(all.map(|steps| steps[0]));
    });
    outcome.recv_timeout(LIMIT).expect("it waits for ever")
}

/// Resumes, and checks that all ranks refuse with that text and say what can be done.
fn refused(dir: &Path, text: &str) {
    let e = match resume(dir) {
        Ok(step) => panic!("resumed from {step:?} instead of: {text}"),
        Err(e) => e,
    };
    assert_eq!(e.kind(), ErrorKind::Storage, "{e}");
    assert!(e.to_string().contains(text), "{e}\ninstead of {text}");
    assert!(e.help_text().is_some(), "{e}");
}

#[test]
fn a_manifest_of_another_step_is_refused() {
    let tmp = tempfile::tempdir().unwrap();
    let (dir, at) = (tmp.path(), |name: &str| tmp.path().join(name));
    [2, 5].into_iter().for_each(|step| save(dir, step));
    // An older state under the name of the latest.
    fs::rename(at("step-000005"), at("kept")).unwrap();
    fs::rename(at("step-000002"), at("step-000005")).unwrap();
    refused(dir, "step-000005 is of step 2");
    // A copy under a name of its own can be opened.
    fs::rename(at("step-000005"), at("best")).unwrap();
    assert_eq!(oflow::checkpoint::Checkpoint::open(at("best")).unwrap().step(), 2);
    fs::rename(at("kept"), at("step-000005")).unwrap();
    assert_eq!(resume(dir).unwrap(), Some(5));
}

/// Puts something else in the place of a file.
fn replace(path: &Path, kind: &str) {
    fs::remove_file(path).unwrap();
    match kind {
        "a FIFO" => mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
        "a folder" => fs::create_dir(path).unwrap(),
        _ => symlink("/dev/zero", path).unwrap(),
    }
}

#[test]
fn what_is_no_regular_file_is_neither_read_nor_waited_for() {
    for name in
        ["latest", "step-000003/manifest.json", "step-000003/rank-00001.safetensors", "step-000003/rank-00001.crc32"]
    {
        for kind in ["a FIFO", "a folder", "a device"] {
            let tmp = tempfile::tempdir().unwrap();
            save(tmp.path(), 1);
            save(tmp.path(), 3);
            replace(&tmp.path().join(name), kind);
            refused(tmp.path(), &format!("{name} is not a regular file but {kind}"));
        }
    }
}

#[test]
fn a_manifest_of_20_gb_is_not_read() {
    let tmp = tempfile::tempdir().unwrap();
    save(tmp.path(), 3);
    let manifest = fs::File::options().write(true).open(tmp.path().join("step-000003/manifest.json")).unwrap();
    manifest.set_len(20 << 30).unwrap();
    refused(tmp.path(), "manifest.json has 21474836480 bytes, more than the 1073741824 that are read");
}

#[test]
fn a_checkpoint_that_lost_its_manifest_is_not_skipped() {
    let tmp = tempfile::tempdir().unwrap();
    let (dir, at) = (tmp.path(), |name: &str| tmp.path().join(name));
    save(dir, 3);
    let whole: Vec<PathBuf> = ["manifest.json", "moved"].iter().map(|n| at("step-000003").join(n)).collect();
    fs::rename(&whole[0], &whole[1]).unwrap();
    refused(dir, "latest names step-000003, which has no manifest.json");
    // It is not skipped for an older one either.
    fs::rename(&whole[1], &whole[0]).unwrap();
    save(dir, 4);
    fs::remove_file(at("step-000004/manifest.json")).unwrap();
    refused(dir, "latest names step-000004, which has no manifest.json");
    // The way out that the message gives.
    fs::rename(at("step-000004"), at("lost")).unwrap();
    fs::remove_file(at("latest")).unwrap();
    assert_eq!(resume(dir).unwrap(), Some(3));
    // Without the pointer, and nothing else is left.
    fs::remove_file(&whole[0]).unwrap();
    refused(dir, "step-000003 has no manifest.json");
    fs::rename(at("step-000003"), at("lost-too")).unwrap();
    assert_eq!(resume(dir).unwrap(), None);
}

#[test]
fn a_checkpoint_that_is_gone_is_not_taken_for_none() {
    let tmp = tempfile::tempdir().unwrap();
    let (dir, at) = (tmp.path(), |name: &str| tmp.path().join(name));
    save(dir, 3);
    fs::rename(at("step-000003"), at("moved")).unwrap();
    refused(dir, "latest names step-000003, which is not there");
    fs::remove_file(at("latest")).unwrap();
    assert_eq!(resume(dir).unwrap(), None);
    // People delete what they do not want to resume from: then the checkpoint before counts.
    fs::rename(at("moved"), at("step-000003")).unwrap();
    save(dir, 4);
    fs::remove_dir_all(at("step-000004")).unwrap();
    assert_eq!(resume(dir).unwrap(), Some(3));
}

/// A job that dies between pointing to a checkpoint and naming it leaves a pointer to nothing.
#[test]
fn a_job_that_died_in_the_middle_of_a_commit_is_resumed() {
    let tmp = tempfile::tempdir().unwrap();
    let (dir, at) = (tmp.path(), |name: &str| tmp.path().join(name));
    save(dir, 3);
    fs::rename(at("step-000003"), at(".saving-step-000003")).unwrap();
    assert_eq!(resume(dir).unwrap(), None, "its first save was not complete");
    save(dir, 5);
    assert_eq!(resume(dir).unwrap(), Some(5));
}
