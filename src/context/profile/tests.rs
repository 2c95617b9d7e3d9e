use super::*;

#[test]
fn times_and_texts_fit_their_columns() {
    for ns in [0, 999, 12_345, 9_999_999, 999_999_999, 12_345_678_901, 999_000_000_000] {
        assert!(time(ns).chars().count() <= 9, "{}", time(ns));
    }
    assert_eq!(
        (time(1500), time(2_500_000), time(3_000_000_000)),
        (" 1.50 us".into(), "  2.5 ms".into(), "  3.00 s".into())
    );
}

#[test]
fn equal_rows_are_one_and_the_largest_comes_first() {
    let busy = |count, ns| {
        let mut b = Busy::default();
        (b.count, b.ns) = (count, ns);
        b
    };
    let rows = summed([("a", busy(1, 5)), ("b", busy(1, 7)), ("a", busy(2, 4))].into_iter());
    assert_eq!(rows, [("a", busy(3, 9)), ("b", busy(1, 7))]);
}

#[test]
fn an_op_stands_before_a_line_of_any_length() {
    let deep = ["deep"; 30].join("/");
    for (file, scope, expected) in [
        ("src/train.rs", "model", "matmul at src/train.rs:7 in model".to_string()),
        (&deep, "", "matmul at deep/deep:7".to_string()),
        (&deep, "model", "matmul at deep/deep:7 in model".to_string()),
    ] {
        assert_eq!(at_line("matmul", CallSite::told(file, 7, scope)), expected);
    }
    let name = at_line("matmul", CallSite::told(&deep, 7, &["block"; 30].join(".")));
    assert!(name.starts_with("matmul at …") && name.ends_with(".block") && name.chars().count() == NAME, "{name}");
}
