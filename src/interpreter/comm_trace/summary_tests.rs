use super::*;
use crate::interpreter::{DataLine, Measured, ReportLine, WorkLine};
use crate::memory::MemoryHolder;
use crate::trace::Totals;

fn work(scope: &str, line: u32, ns: u64) -> WorkLine {
    WorkLine { file: "src/train.rs".into(), line, scope: scope.into(), op: "matmul".into(), count: 100, ns }
}

/// A rank of 100 steps of 10 ms, which computes 6 of them.
fn rank(rank: usize) -> RankTime {
    let mut time = RankTime::of(&Totals::default());
    (time.rank, time.host, time.steps, time.median_ns) = (rank, format!("node{rank}"), 100, 10_000_000);
    (time.step.whole, time.step.compute, time.step.communication) = (10_000_000, 6_000_000, 2_000_000);
    time.work = vec![work("h.0.mlp.fc", 7, 400_000_000), work("", 9, 200_000_000)];
    time
}

fn report(times: Vec<RankTime>) -> Report {
    let mut report = Report::merge([]);
    (report.world, report.ranks) = (times.len(), (0..times.len()).collect());
    report.times = times;
    report
}

fn boxing(line: u32, predicted_ps: u64, total_ns: u64) -> ReportLine {
    let text = r#"{"file":"src/train.rs","op":"matmul","backward":false,"tensor":"f32[4]","on":"cpu[2]","from":"[S(0)]","to":"[B]",
        "steps":["all-gather"],"bytes":1000000,"links":{},"line":0,"count":100,"predicted_ps":0,"measured":null}"#;
    let mut l: ReportLine = serde_json::from_str(text).unwrap();
    (l.line, l.predicted_ps) = (line, Some(predicted_ps));
    l.measured = Some(Measured { count: 100, median_ns: total_ns / 100, total_ns });
    l
}

fn hint(line: u32, (taken_ps, asked_ps): (u64, u64), work: f64) -> ReportHint {
    ReportHint {
        file: "src/train.rs".into(),
        line,
        op: "matmul".into(),
        call: "matmul(f32[8, 4] [S(0)], f32[4, 4] [S(0)])".into(),
        input: Some("b".into()),
        now: "[S(0)]".into(),
        better: "[B]".into(),
        taken_ps,
        asked_ps,
        work,
        more_bytes: 2_000_000,
        calls: 100,
        ..ReportHint::default()
    }
}

fn memory(device: &str, peak: usize) -> DeviceMemory {
    let holder = |used_for: &str, line, bytes| {
        let mut h = MemoryHolder::default();
        (h.used_for, h.op, h.file, h.line, h.bytes, h.blocks) =
            (used_for.into(), "linear".into(), "src/train.rs".into(), line, bytes, 2);
        h.scope = "net.".to_string() + &"a_long_name.".repeat(9);
        h
    };
    let mut of = DeviceMemory::default();
    (of.device, of.stats.peak) = (device.into(), peak);
    of.peak = vec![holder("activations", 7, peak as u64 - 1000), holder("parameters", 2, 1000)];
    of
}

fn check_form(report: &Report) {
    let summary = report.summary();
    assert!(summary.len() <= 10, "{summary:#?}");
    let text = report.to_string();
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}\n{text}", line.chars().count());
    }
    assert!(summary.is_empty() || text.starts_with(&summary.join("\n")), "{text}");
}

#[test]
fn a_quiet_job_needs_no_change() {
    let r = report(vec![rank(0), rank(1)]);
    let summary = r.summary();
    check_form(&r);
    assert_eq!(summary[0], "2 ranks, 100 steps of 10.0 ms (median): 100.00 steps/s");
    let split = "a step: compute 60 %, communication 20 %, late ranks 0 %, data 0 %, saving 0 %, rest 20 %";
    assert_eq!(summary[1], split);
    assert_eq!(summary[2], "compute: h.0.mlp 40 %, src/train.rs:9 20 % …");
    assert_eq!(summary.last().unwrap(), "worth changing: nothing found that gains a hundredth of a step");
    assert!(r.advice().is_empty());
}

#[test]
fn a_layout_is_advised_with_what_its_boxings_take() {
    let mut r = report(vec![rank(0), rank(1)]);
    // Predicted 2 us a step, measured 1 ms: 500 times. All but a quarter would go.
    r.lines = vec![boxing(7, 200_000_000, 100_000_000)];
    r.hints = vec![hint(7, (2_000_000, 500_000), 1.0)];
    let advice = r.advice();
    assert_eq!(advice.len(), 1);
    assert!(advice[0].gain_ns.abs_diff(750_000) < 10, "{advice:?}");
    assert_eq!(advice[0].change, "matmul: b [S(0)] -> [B]");
    for part in ["src/train.rs:7", "2.0 MB more memory", "500.0 times the predicted"] {
        assert!(advice[0].detail.contains(part), "{advice:?}");
    }
    assert_eq!(r.summary()[7], "1. 0.75 ms (8 %)  src/train.rs:7  matmul: b [S(0)] -> [B]");
    check_form(&r);
    // A gradient that is made in the better layout is boxed at the line of backward: 0.9 ms a step.
    let mut back = boxing(99, 200_000_000, 90_000_000);
    (back.op, back.backward) = ("gradient".into(), true);
    (back.from, back.to) = ("[B]".into(), "[S(0)]".into());
    r.lines.push(back);
    r.hints[0].tensor = "f32[4]".into();
    assert!(r.advice()[0].gain_ns.abs_diff(900_000) < 10, "{:?}", r.advice());
    assert!(r.advice()[0].detail.contains("need not be boxed"), "{:?}", r.advice());
    check_form(&r);
    r.lines.pop();
    // Where ranks compute the same, dividing the work gains its half. The kernels of line 9 take 2 ms a step.
    r.hints = vec![hint(9, (0, 0), 0.5)];
    let advice = r.advice();
    assert_eq!(advice[0].gain_ns, 1_000_000);
    assert!(advice[0].detail.contains("computes 50 % of what it does now"), "{advice:?}");
}

#[test]
fn a_slow_loader_is_advised_threads_that_keep_up() {
    let loader = |threads, cpu_ns| DataLine {
        file: "src/train.rs".into(),
        line: 3,
        taken: 100,
        waited_ns: 600_000_000,
        made: 100,
        made_ns: 900_000_000,
        cpu_ns,
        threads,
    };
    let with = |data: DataLine, spare| {
        let mut times = vec![rank(0), rank(1)];
        times.iter_mut().for_each(|t| (t.step.data, t.spare_cores) = (6_000_000, spare));
        times[1].data = vec![data];
        report(times)
    };
    // 9 ms a batch, 4 ms of a step beside waiting: three threads.
    let r = with(loader(0, 0), 0);
    let advice = r.advice();
    assert_eq!((advice[0].gain_ns, advice[0].change.as_str()), (6_000_000, "data: no prefetch -> prefetch(3, 6)"));
    check_form(&r);
    // Made by the processor, and no core is free: nothing is gained. With a free one it is.
    assert!(with(loader(0, 900_000_000), 0).advice().is_empty());
    assert_eq!(with(loader(0, 900_000_000), 1).advice()[0].gain_ns, 6_000_000);
    assert_eq!(with(loader(2, 0), 0).advice()[0].change, "data: prefetch on 2 threads -> prefetch(3, 6)");
    assert!(with(loader(3, 0), 0).advice().is_empty(), "as many threads as are of use");
}

#[test]
fn a_rank_that_others_wait_for_is_named() {
    let mut times = vec![rank(0), rank(1), rank(2)];
    for t in [0, 2] {
        (times[t].step.late_ranks, times[t].step.compute) = (3_000_000, 4_000_000);
    }
    (times[1].step.compute, times[1].queued) = (7_000_000, 0.4);
    let r = report(times.clone());
    let advice = r.advice();
    assert_eq!((advice[0].gain_ns, advice[0].place.as_str()), (3_000_000, "rank 1 on node1"));
    assert!(advice[0].change.contains("40 % of the time without one"), "{advice:?}");
    assert!(r.summary()[4].starts_with("late: rank 1 is waited for, by rank"), "{:?}", r.summary());
    check_form(&r);
    times[1].queued = 0.0;
    let r = report(times.clone());
    assert!(r.advice()[0].change.contains("computes 3.00 ms longer"), "{:?}", r.advice());
    // It waits for data: the loader's advice is about that.
    (times[1].step.compute, times[1].step.data) = (4_000_000, 3_000_000);
    assert!(report(times).advice().is_empty());
}

#[test]
fn reports_of_any_content_have_their_form() {
    check_form(&report(vec![]));
    let mut none = rank(0);
    (none.steps, none.median_ns) = (0, 0);
    let r = report(vec![none]);
    check_form(&r);
    assert!(r.summary()[0].contains("no step ended"), "{:?}", r.summary());
    let mut many: Vec<RankTime> = (0..300).map(rank).collect();
    for (n, t) in many.iter_mut().enumerate() {
        t.host = "a-very-long-name-of-a-host\u{1b}[31m.example.org".repeat(3);
        t.step.late_ranks = n as u64 * 10_000;
        t.work = (0..60).map(|n| work(&format!("a.{}.{n}", "very_long_name_".repeat(9)), n, 1_000_000)).collect();
        t.memory = (0..3).map(|n| memory(&format!("device{n}"), 1 << (20 + n))).collect();
        t.dropped = 7;
    }
    let mut r = report(many);
    r.lines = (0..30).map(|n| boxing(n, 1 << 40, 1 << 40)).collect();
    r.lines[0].file = format!("/{}", "folder/".repeat(40));
    r.hints = (0..30).map(|n| hint(n, (1 << 40, 0), 0.1)).collect();
    check_form(&r);
    let again = Report::from_json(&r.to_json()).unwrap();
    assert_eq!(again, r);
    for (n, wrong) in ["1e300", "-1.0", "1125899906842625"].iter().enumerate() {
        let text = match n {
            0 => r.to_json().replacen("\"work\":0.1", &format!("\"work\":{wrong}"), 1),
            1 => r.to_json().replacen("\"queued\":0.0", &format!("\"queued\":{wrong}"), 1),
            _ => r.to_json().replacen("\"median_ns\":10000000,\"step\"", &format!("\"median_ns\":{wrong},\"step\""), 1),
        };
        assert_ne!(text, r.to_json());
        assert!(Report::from_json(&text).unwrap_err().message().contains("not a report"), "{wrong}");
    }
}
