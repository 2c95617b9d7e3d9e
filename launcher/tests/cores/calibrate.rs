//! `oflow calibrate` on this host, as a user runs it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{Folder, code, run, stderr, stdout};
use oflaunch::model::{InForce, read};
use oflow::boxing::Model;

fn calibrate(folder: &Folder, args: &[&str], vars: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oflow"));
    command.arg("calibrate").args(args).current_dir(folder.path()).stdin(Stdio::null());
    command.env_remove("HOME").env_remove("XDG_CONFIG_HOME").env_remove("OFLOW_MODEL").envs(vars.iter().copied());
    command.output().unwrap()
}

fn model(file: &Path) -> Model {
    read(file).unwrap().model()
}

#[test]
fn two_ranks_measure_and_the_next_job_uses_it() {
    let folder = Folder::new();
    let home = folder.path().to_str().unwrap();
    let output = calibrate(&folder, &["-n", "2", "--json"], &[("HOME", home)]);
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
    let file = folder.path().join(".config/oflow/model.json");
    let answer: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(answer["file"], file.to_str().unwrap());
    assert_eq!(answer["calibration"]["nproc"], 2);
    assert!(answer["calibration"]["other_work"].is_number());
    let (measured, fixed) = (model(&file), Model::default());
    assert_ne!(measured.same_host, fixed.same_host);
    assert_ne!(measured.per_kib_copied_ps, fixed.per_kib_copied_ps);
    assert_eq!((measured.network, measured.nvlink, measured.hosts), (fixed.network, fixed.nvlink, 0.into()));
    // Every algorithm was carried out, over sizes from bytes to megabytes.
    let points = answer["points"].as_array().unwrap();
    for name in
        ["all_reduce_one_phase", "all_reduce_two_phase", "all_gather", "reduce_scatter", "all_to_all", "exchange"]
    {
        let of = |p: &&serde_json::Value| p["kind"]["wire"] == name;
        let sizes: Vec<u64> = points.iter().filter(of).map(|p| p["wire"].as_u64().unwrap()).collect();
        assert!(sizes.len() >= 3 && sizes.iter().max() > sizes.iter().min(), "{name}: {sizes:?}");
        assert!(answer["fit"].as_array().unwrap().iter().any(|q| q["kind"]["wire"] == name), "{name}");
    }
    for (i, rate) in measured.same_host.rates.iter().enumerate() {
        assert!(rate.latency_ps > 0 && rate.per_kib_ps > 0, "{i}: {rate:?}");
    }
    let mut job = Command::new(env!("CARGO_BIN_EXE_oflaunch"));
    job.args(["-n", "2", "--dry-run", "true"])
        .env_remove("OFLOW_MODEL")
        .env_remove("XDG_CONFIG_HOME")
        .env("HOME", home);
    let text = stdout(&job.output().unwrap());
    assert!(text.contains(&format!("costs: {}, measured with 2 ranks on ", file.display())), "{text}");
    assert!(stdout(&run(&folder, &["--dry-run", "true"])).contains("costs: default constants (OFLOW_MODEL=default)"));
}

#[test]
fn one_rank_measures_copies_and_says_so() {
    let folder = Folder::new();
    let output = calibrate(&folder, &["-n", "1", "--out", "one.json"], &[]);
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
    let text = stdout(&output);
    assert!(text.starts_with("1 rank on ") && text.contains("\n  local step "), "{text}");
    assert!(
        text.contains("with one rank only copies are measured: communication keeps the default constants"),
        "{text}"
    );
    assert!(text.ends_with("\nwritten to one.json; oflaunch uses it under OFLOW_MODEL=one.json\n"), "{text}");
    let file = folder.path().join("one.json");
    assert_eq!(model(&file).same_host, Model::default().same_host);
    assert_ne!(model(&file).local_ps, Model::default().local_ps);
    assert!(matches!(read(&file).unwrap(), InForce::Measured(_, c) if c.nproc == 1));
}

#[test]
fn nowhere_to_write() {
    let folder = Folder::new();
    let output = calibrate(&folder, &["-n", "1"], &[]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).starts_with("oflow: no home directory to write to is known\n  help: `--out FILE`"));
    // A file where a folder should be: told before anything is measured.
    folder.write("file", "");
    let output = calibrate(&folder, &["-n", "1", "--out", "file/model.json"], &[]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).starts_with("oflow: cannot write file/model.json: "), "{}", stderr(&output));
    let output = calibrate(&folder, &["--measure"], &[]);
    assert_eq!((code(&output), stderr(&output).as_str()), (1, "oflow: --measure is for `oflow calibrate` itself\n"));
}
