use super::*;

fn line(op: &str, count: u64, times: Option<(u64, u64)>) -> ReportLine {
    ReportLine {
        file: "train.rs".into(),
        line: 7,
        scope: String::new(),
        op: op.into(),
        backward: false,
        tensor: "f32[4]".into(),
        on: "cpu[2]".into(),
        from: "[P(sum)]".into(),
        to: "[B]".into(),
        steps: vec!["all-reduce(sum) along axis 0".into()],
        count,
        bytes: 32 * count,
        links: BTreeMap::from([(LinkKind::SameHost, 32 * count)]),
        predicted_ps: Some(10_000_000 * count),
        measured: times.map(|(median_ns, total_ns)| Measured { count, median_ns, total_ns }),
    }
}

fn of_rank(rank: usize, lines: Vec<ReportLine>) -> Report {
    Report::new(3, vec![rank], lines, 0, vec![])
}

#[test]
fn plans_made_anew_are_one_line() {
    let r = of_rank(
        0,
        vec![line("relu", 1, Some((9000, 9000))), line("add", 1, None), line("relu", 3, Some((2000, 6500)))],
    );
    assert_eq!(r.lines.iter().map(|l| l.op.as_str()).collect::<Vec<_>>(), ["add", "relu"]);
    assert_eq!(r.lines[1], line("relu", 4, Some((2000, 15_500))));
    assert_eq!((r.count(), r.bytes(), r.predicted().as_micros(), r.measured().as_nanos()), (5, 160, 50, 15_500));
    // What was not measured is not compared.
    assert_eq!(r.ratio(), Some(8.0 / 40.0));
}

#[test]
fn a_report_of_any_numbers_is_added_up() {
    let most = ReportLine {
        bytes: u64::MAX,
        links: BTreeMap::from([(LinkKind::SameHost, u64::MAX)]),
        predicted_ps: Some(u64::MAX),
        ..line("add", 1, Some((u64::MAX, u64::MAX)))
    };
    let most = ReportLine { count: u64::MAX, ..most };
    let other = ReportLine { op: "relu".into(), ..most.clone() };
    let r = of_rank(0, vec![most.clone(), most, other]);
    assert_eq!((r.count(), r.bytes(), r.measured().as_nanos()), (u64::MAX, u64::MAX, u64::MAX.into()));
    let text = Report::merge([r.clone(), r]).to_string();
    assert!(text.contains("in all"), "{text}");
}

#[test]
fn ranks_are_merged_by_the_median_and_bytes_are_not_added_again() {
    let ranks = [(1, 30), (0, 20), (2, 90)].map(|(r, t)| of_rank(r, vec![line("add", 2, Some((t / 2, t)))]));
    let r = Report::merge(ranks);
    assert_eq!(r.ranks, [0, 1, 2]);
    assert_eq!(r.lines, [line("add", 2, Some((15, 30)))]);
    // A rank that ended early has seen less, one outside the placement measures nothing.
    let r = Report::merge([of_rank(0, vec![line("add", 1, None)]), of_rank(2, vec![line("add", 2, Some((4, 8)))])]);
    assert_eq!((r.ranks.as_slice(), &r.lines[0]), (&[0, 2][..], &line("add", 2, Some((4, 8)))));
}

#[test]
fn json_round_trip() {
    let r = of_rank(1, vec![line("add", 2, Some((1500, 3000))), line("relu", 1, None)]);
    assert!(r.to_json().contains(r#""links":{"same_host":64}"#), "{}", r.to_json());
    assert_eq!(Report::from_json(&r.to_json()).unwrap(), r);
    assert!(Report::from_json("{}").unwrap_err().message().contains("not a report"));
}

#[test]
fn prints_as_a_table() {
    let mut far = line("add", 2, Some((1500, 3000)));
    far.links = BTreeMap::from([(LinkKind::SameHost, 24), (LinkKind::Network, 40)]);
    let report =
        Report { dropped: 3, ..of_rank(1, vec![far, ReportLine { line: 9, backward: true, ..line("relu", 1, None) }]) };
    expect_test::expect![[r#"
        communication by line of the program, rank 1 of 3
        3 communication records were dropped before: the sums are too small
         count        bytes predicted  measured   median  (times in us, or in s)
             2           64      20.0       3.0        - train.rs:7
             2           64      20.0       3.0      1.5   forward add f32[4] [P(sum)] -> [B]:
                                                           all-reduce(sum) along axis 0; same host 24 B,
                                                           network 40 B
             1           32      10.0         -        - train.rs:9
             1           32      10.0         -        -   backward relu f32[4] [P(sum)] -> [B]:
                                                           all-reduce(sum) along axis 0; same host 32 B
             3           96      30.0       3.0        - in all: 56 B over same host, 40 B over network; by
                                                         the medians 0.15 times the predicted"#]]
    .assert_eq(&report.to_string());
    assert_eq!(of_rank(0, vec![]).to_string(), "communication by line of the program, rank 0 of 3\nnone");
}
