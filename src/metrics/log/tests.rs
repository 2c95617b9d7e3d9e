use super::*;
use crate::context::{no_grad, run_ranks};
use crate::error::ErrorKind;
use crate::functional::{arange, from_vec, full, ones};
use crate::graph::{Graph, GraphOptions};
use crate::placement::{Device, Placement};
use crate::sbp;
use crate::tensor::Tensor;
use oflow_kernels::{Complex, DType};
use serde_json::{Value, json};
use std::fs::read_to_string;
use std::path::Path;

fn only(format: Format) -> LogOptions {
    LogOptions { formats: vec![format], ..LogOptions::default() }
}

/// The lines of a log, without times.
fn lines(path: &Path) -> Vec<Value> {
    let text = read_to_string(path.with_extension("jsonl")).unwrap();
    let line = |line: &str| {
        let mut object: Value = serde_json::from_str(line).unwrap();
        assert!(object.as_object_mut().unwrap().remove("time").unwrap().as_f64().unwrap() > 1.7e9);
        object
    };
    text.lines().map(line).collect()
}

fn csv(path: &Path) -> Vec<String> {
    let text = read_to_string(path.with_extension("csv")).unwrap();
    let line = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        [&cells[..1], &cells[2..]].concat().join(",")
    };
    text.lines().map(line).collect()
}

fn number(x: f32) -> Tensor {
    full([], x, Device::Cpu).unwrap()
}

#[test]
fn global_tensors_of_all_layouts_are_written_once_and_nothing_is_sent_before_a_flush() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("run");
    run_ranks(4, |world| {
        let all = Placement::all(Device::Cpu)?.mesh(&[("a", 2), ("b", 2)])?;
        let log = Log::new(&path, only(Format::Jsonl))?;
        let last = Placement::new(Device::Cpu, &[3, 1], &[2])?;
        for step in 0..12 {
            let x = ones([8, 4], (&all, sbp![S(0), S(1)]))?.mul(step as f64)?;
            let sum = x.sum(())?;
            let elsewhere = full([1, 1], step as f32, (&last, sbp![S(0)]))?;
            let kept = from_vec(vec![step as i64], [1], (&all, sbp![B, B]))?.cast(DType::BF16)?;
            crate::take_comm_trace();
            log.log(step, &[("sum", &sum), ("on 3 and 1", &elsewhere), ("b", &kept), ("rank", &world.rank())])?;
            let sent = crate::take_comm_trace();
            // Step 10 is 10 steps after the first that is not written.
            assert_eq!(sent.is_empty(), step != 10, "step {step}");
        }
        // Others may be ahead of the rank that writes.
        assert!(world.rank() != 0 || lines(&path).len() == 10);
        log.flush()?;
        crate::take_comm_trace();
        log.flush()?;
        assert!(crate::take_comm_trace().is_empty());
        Ok(())
    })
    .unwrap();
    let expected: Vec<Value> =
        (0..12).map(|s| json!({"step": s, "sum": f64::from(s) * 32.0, "on 3 and 1": f64::from(s), "b": f64::from(s), "rank": 0.0})).collect();
    assert_eq!(lines(&path), expected);
}

#[test]
fn a_value_is_that_of_the_call_whatever_is_written_later() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("run");
    run_ranks(2, |_| {
        let all = Placement::all(Device::Cpu)?;
        let log = Log::new(&path, only(Format::Jsonl))?;
        let (local, global) = (number(1.0), full([], 1f32, (&all, sbp![B]))?);
        let weight = number(3.0).requires_grad_(true)?;
        let view = arange(4, Device::Cpu)?;
        let element = view.narrow(0, 2, 1)?;
        log.log(0, &[("local", &local), ("global", &global), ("weight", &weight), ("element", &element)])?;
        local.add_(1.0)?;
        global.add_(1.0)?;
        view.add_(5)?;
        let _no_grad = no_grad();
        weight.mul_(2.0)?;
        log.log(1, &[("local", &local), ("global", &global), ("weight", &weight), ("element", &element)])?;
        log.flush()
    })
    .unwrap();
    let expected = [
        json!({"step": 0, "local": 1.0, "global": 1.0, "weight": 3.0, "element": 2.0}),
        json!({"step": 1, "local": 2.0, "global": 2.0, "weight": 6.0, "element": 7.0}),
    ];
    assert_eq!(lines(&path), expected);
}

#[test]
fn a_logged_tensor_does_not_hold_its_graph() {
    let tmp = tempfile::tempdir().unwrap();
    let log = Log::new(tmp.path().join("run"), only(Format::Jsonl)).unwrap();
    let big = ones([1 << 16], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let before = crate::memory_stats(Device::Cpu).unwrap().live;
    {
        let loss = big.exp().unwrap().sum(()).unwrap();
        log.log(0, &[("loss", &loss)]).unwrap();
    }
    assert!(crate::memory_stats(Device::Cpu).unwrap().live < before + 4096);
}

#[test]
fn numbers_of_one_rank_may_be_logged_by_some_ranks_alone() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("run");
    run_ranks(2, |world| {
        let all = Placement::all(Device::Cpu)?;
        let log = Log::new(&path, LogOptions { flush_every: 2, ..only(Format::Jsonl) })?;
        for step in 0..5 {
            if world.rank() == 0 {
                log.log(step, &[("lr", &0.5), ("skipped", &false)])?;
            }
            if world.rank() == 1 && step % 2 == 1 {
                log.log(step, &[("only of rank 1", &1)])?;
            }
            if step % 3 == 0 {
                log.log(step, &[("loss", &full([], 2f64, (&all, sbp![B]))?)])?;
            }
        }
        log.flush()
    })
    .unwrap();
    let row = |s: usize| match s % 3 {
        0 => json!({"step": s, "lr": 0.5, "skipped": 0.0, "loss": 2.0}),
        _ => json!({"step": s, "lr": 0.5, "skipped": 0.0}),
    };
    assert_eq!(lines(&path), (0..5).map(row).collect::<Vec<_>>());
}

#[test]
fn numbers_of_all_ranks_are_taken_together_where_asked_for() {
    for (how, expected) in [("mean", 1.5), ("sum", 3.0), ("max", 2.0), ("min", 1.0), ("first", 1.0)] {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("run");
        run_ranks(2, |world| {
            let all = Placement::all(Device::Cpu)?;
            let log = Log::new(&path, LogOptions { over_ranks: how.parse()?, ..only(Format::Jsonl) })?;
            let own = number(world.rank() as f32 + 1.0);
            let global = full([], 7f32, (&all, sbp![B]))?;
            log.log(3, &[("own", &own), ("global", &global), ("n", &(world.rank() + 1))])?;
            log.flush()
        })
        .unwrap();
        assert_eq!(lines(&path), [json!({"step": 3, "own": expected, "global": 7.0, "n": expected})], "{how}");
    }
    assert!("median".parse::<OverRanks>().unwrap_err().to_string().contains("give first, mean"));
}

#[test]
fn i18_names_that_differ_between_ranks_are_an_error_and_no_deadlock() {
    let tmp = tempfile::tempdir().unwrap();
    for case in ["name", "step", "flush", "count"] {
        let path = tmp.path().join(case);
        let error = run_ranks(2, |world| {
            let (all, other) = (Placement::all(Device::Cpu)?, world.rank() == 1);
            let log = Log::new(&path, only(Format::Jsonl))?;
            let loss = full([], 1f32, (&all, sbp![B]))?;
            let (name, step) =
                (if other && case == "name" { "other" } else { "loss" }, if other && case == "step" { 4 } else { 3 });
            log.log(step, &[(name, &loss)])?;
            if other && case == "count" {
                log.log(step, &[("more", &loss)])?;
            }
            if !(other && case == "flush") {
                log.flush()?;
            }
            // Where one rank alone has flushed, the next collective tells.
            loss.add(&ones([], (&all, sbp![P]))?)?.item()
        })
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Diverged, "{case}: {error}");
    }
}

#[test]
fn what_cannot_be_logged_is_an_error_that_names_the_way_out() {
    let tmp = tempfile::tempdir().unwrap();
    let log = Log::new(tmp.path().join("run"), only(Format::Jsonl)).unwrap();
    let check = |name: &str, value: &dyn LogValue, text: &str| {
        let error = log.log(5, &[(name, value)]).unwrap_err();
        let all = format!("{} {}", error.message(), error.help_text().unwrap_or_default());
        assert!(all.contains(text), "{all}");
    };
    check(
        "loss",
        &ones([2], Device::Cpu).unwrap(),
        "\"loss\" is f32[2]: a log takes one number for each name reduce it first",
    );
    check("loss", &ones([0], Device::Cpu).unwrap(), "reduce it first");
    let complex = from_vec(vec![Complex::new(1f32, 2.0)], [1], Device::Cpu).unwrap();
    check("z", &complex, "log `abs()`");
    for (name, why) in
        [("", "is empty"), ("step", "every log has"), ("time", "every log has"), ("a\nb", "control character")]
    {
        check(name, &1.0, why);
    }
    check(&"x".repeat(201), &1.0, "longer than 200 bytes");
    assert!(log.log(5, &[("a", &1.0), ("a", &2.0)]).unwrap_err().to_string().contains("logged twice at step 5"));
    log.log(5, &[]).unwrap();
    log.log(5, &[("a", &1.0)]).unwrap();
    log.log(5, &[("b", &1u8)]).unwrap();
    check("a", &1.0, "use two names");
    assert!(log.log(4, &[("a", &1.0)]).unwrap_err().to_string().contains("step 4 is logged after step 5"));
    assert!(log.log(usize::MAX, &[("a", &1.0)]).unwrap_err().to_string().contains("is greater than"));
    log.flush().unwrap();
    check("a", &1.0, "logged twice");
    // Nothing of the calls that failed was kept.
    drop(log);
    assert_eq!(lines(&tmp.path().join("run")), [json!({"step": 5, "a": 1.0, "b": 1.0})]);
    for (options, why) in [
        (LogOptions { flush_every: 0, ..LogOptions::default() }, "`flush_every` must be at least 1"),
        (LogOptions { formats: vec![], ..LogOptions::default() }, "it has no format"),
        (LogOptions::default(), "is the file of another run"),
    ] {
        let error = Log::new(tmp.path().join("run"), options).err().unwrap();
        assert!(error.to_string().contains(why), "{error}");
    }
    assert!(Log::new("/", LogOptions::default()).err().unwrap().to_string().contains("must end in a name"));
    assert!("xml".parse::<Format>().unwrap_err().to_string().contains("jsonl, csv and tensorboard"));
}

#[test]
fn a_graph_and_a_dry_run_write_nothing() {
    let tmp = tempfile::tempdir().unwrap();
    run_ranks(1, |_| {
        let all = Placement::all(Device::Cpu)?;
        let (x, log) = (ones([4], (&all, sbp![B]))?, Log::new(tmp.path().join("run"), only(Format::Jsonl))?);
        for outside in [true, false] {
            let built = Graph::build(
                |g| {
                    let x = g.input("x", &x)?;
                    let loss = x.sum(())?;
                    let value: &dyn LogValue = if outside { &1.0 } else { &loss };
                    log.log(0, &[("loss", value)])?;
                    Ok(loss)
                },
                GraphOptions::default(),
            );
            let error = built.err().unwrap();
            assert!(error.to_string().contains("a graph cannot log metrics"), "{error}");
        }
        // What a graph returns keeps its value when the graph runs again.
        let mut graph = Graph::build(|g| g.input("x", &x)?.sum(()), GraphOptions::default())?;
        for step in 0..3 {
            log.log(step, &[("sum", &graph.run(&[&full([4], step as f32, (&all, sbp![B]))?])?)])?;
        }
        log.flush()
    })
    .unwrap();
    let sums: Vec<Value> = lines(&tmp.path().join("run")).iter().map(|l| l["sum"].clone()).collect();
    assert_eq!(sums, [json!(0.0), json!(4.0), json!(8.0)]);
    crate::dry_run(4, 0, |_| {
        let all = Placement::all(Device::Cpu)?;
        let log = Log::new(tmp.path().join("dry"), LogOptions::default())?;
        log.log(0, &[("loss", &ones([4], (&all, sbp![S(0)]))?.sum(())?), ("lr", &0.1)])?;
        assert!(log.log(0, &[("x", &ones([4], (&all, sbp![S(0)]))?)]).is_err());
        log.flush()
    })
    .unwrap();
    assert!(!tmp.path().join("dry.jsonl").exists());
}

#[test]
fn numbers_that_json_does_not_have_are_strings() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("run");
    let log = Log::new(&path, LogOptions::default()).unwrap();
    let (inf, tiny) = (f32::NEG_INFINITY, 1e-300);
    log.log(0, &[("a", &f64::NAN), ("b", &f64::INFINITY), ("c", &inf), ("d", &tiny), ("e", &u64::MAX)]).unwrap();
    log.flush().unwrap();
    assert_eq!(
        lines(&path),
        [json!({"step": 0, "a": "NaN", "b": "Infinity", "c": "-Infinity", "d": 1e-300, "e": 18446744073709551616.0})]
    );
    assert_eq!(csv(&path)[1], "0,nan,inf,-inf,1e-300,1.8446744073709552e19");
}

#[test]
fn a_name_that_comes_later_gets_a_column_and_no_cell_is_lost() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("run");
    let log = Log::new(&path, only(Format::Csv)).unwrap();
    log.log(0, &[("loss", &1.5), ("a,b", &2)]).unwrap();
    log.flush().unwrap();
    log.log(1, &[("loss", &1.0)]).unwrap();
    log.log(2, &[("say \"x\"/é", &3), ("loss", &0.5)]).unwrap();
    log.flush().unwrap();
    log.log(3, &[("a,b", &4)]).unwrap();
    log.flush().unwrap();
    assert_eq!(csv(&path)[1..], ["0,1.5,2.0,", "1,1.0,,", "2,0.5,,3.0", "3,,4.0,"]);
    let header = read_to_string(path.with_extension("csv")).unwrap();
    assert!(header.starts_with("step,time,loss,\"a,b\",\"say \"\"x\"\"/é\"\n"), "{header}");
    // The header is read back when the run goes on, and rows of step 2 and later go.
    drop(log);
    let log = Log::new(&path, LogOptions { resume: true, ..only(Format::Csv) }).unwrap();
    log.log(2, &[("say \"x\"/é", &9), ("new", &1)]).unwrap();
    log.flush().unwrap();
    assert_eq!(csv(&path)[1..], ["0,1.5,2.0,,", "1,1.0,,,", "2,,,9.0,1.0"]);
}

#[test]
fn a_run_that_goes_on_drops_its_later_rows_and_a_broken_end() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("run");
    let resumed = |steps: std::ops::Range<usize>, value: f64| {
        let log = Log::new(&path, LogOptions { resume: true, ..LogOptions::default() }).unwrap();
        steps.for_each(|s| log.log(s, &[("loss", &value)]).unwrap());
        log.flush().unwrap();
    };
    // Without files the log is new.
    resumed(0..5, 1.0);
    let broken = read_to_string(path.with_extension("jsonl")).unwrap() + "{\"step\":5,\"ti";
    std::fs::write(path.with_extension("jsonl"), broken).unwrap();
    let broken = read_to_string(path.with_extension("csv")).unwrap() + "5,17";
    std::fs::write(path.with_extension("csv"), broken).unwrap();
    resumed(3..6, 2.0);
    let expected: Vec<Value> = (0..6).map(|s| json!({"step": s, "loss": if s < 3 { 1.0 } else { 2.0 }})).collect();
    assert_eq!(lines(&path), expected);
    assert_eq!(csv(&path)[1..], ["0,1.0", "1,1.0", "2,1.0", "3,2.0", "4,2.0", "5,2.0"]);
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 2);
    // Files that no log has written are left as they are.
    for (ending, content) in
        [("jsonl", "{\"a\": 1}\n"), ("jsonl", "text\n"), ("csv", "a,b\n1,2\n"), ("csv", "step,time\nx,2\n")]
    {
        let file = path.with_extension(ending);
        std::fs::write(&file, content).unwrap();
        let format = if ending == "csv" { Format::Csv } else { Format::Jsonl };
        let log = Log::new(&path, LogOptions { resume: true, ..only(format) }).unwrap();
        let error = log.log(0, &[("loss", &1.0)]).unwrap_err().to_string();
        assert!(error.contains("is not a line of a log of metrics"), "{error}");
        assert_eq!(read_to_string(&file).unwrap(), content);
    }
}

#[test]
fn a_log_that_is_dropped_writes_what_needs_no_communication() {
    let tmp = tempfile::tempdir().unwrap();
    let path = |n: usize| tmp.path().join(n.to_string());
    for n in [1, 2] {
        run_ranks(n, |_| {
            let all = Placement::all(Device::Cpu)?;
            let log = Log::new(path(n), only(Format::Jsonl))?;
            log.log(0, &[("lr", &0.5), ("local", &number(2.0)), ("loss", &ones([2], (&all, sbp![S(0)]))?.sum(())?)])
        })
        .unwrap();
    }
    assert_eq!(lines(&path(1)), [json!({"step": 0, "lr": 0.5, "local": 2.0, "loss": 2.0})]);
    assert_eq!(lines(&path(2)), [json!({"step": 0, "lr": 0.5, "local": 2.0})]);
}

#[test]
fn the_log_of_a_rank_is_its_own_and_another_one_takes_its_place() {
    let tmp = tempfile::tempdir().unwrap();
    let path = |name: &str| tmp.path().join(name);
    run_ranks(2, |world| {
        let all = Placement::all(Device::Cpu)?;
        let loss = ones([2], (&all, sbp![S(0)]))?.sum(())?;
        let first = Log::new(path("first"), only(Format::Jsonl))?;
        first.install()?;
        log(0, &[("loss", &loss), ("rank", &world.rank())])?;
        Log::new(path("second"), only(Format::Jsonl))?.install()?;
        log(0, &[("loss", &loss.mul(2.0)?)])?;
        flush_log()
    })
    .unwrap();
    assert_eq!(lines(&path("first")), [json!({"step": 0, "loss": 2.0, "rank": 0.0})]);
    assert_eq!(lines(&path("second")), [json!({"step": 0, "loss": 4.0})]);
}

#[test]
fn a_path_where_nothing_can_be_made_is_an_error() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::write(tmp.path().join("file"), "").unwrap();
    let error = Log::new(tmp.path().join("file/run"), LogOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Storage, "{error}");
    // Of two links that another has prepared none is followed.
    std::os::unix::fs::symlink("nowhere", tmp.path().join("run.jsonl")).unwrap();
    assert!(Log::new(tmp.path().join("run"), LogOptions::default()).is_err());
    let log = Log::new(tmp.path().join("run"), LogOptions { resume: true, ..LogOptions::default() }).unwrap();
    assert!(log.log(0, &[("a", &1)]).is_err());
}
