use oflow_kernels::resample::*;

fn line(rule: &str, steps: &[i64], image: usize, result: usize) -> Line {
    lines(Rule::named(rule).unwrap(), false, steps, &[], &[image], &[result]).unwrap()[0]
}
fn moved(l: &Line) -> Vec<Option<usize>> {
    (0..l.result).map(|o| l.taps(o, false)).map(|t| (t.n > 0).then_some(t.at[0])).collect()
}

#[test]
fn pads_and_windows() {
    let some = |v: &[usize]| v.iter().map(|i| Some(*i)).collect::<Vec<_>>();
    assert_eq!(moved(&line("reflect", &[2], 3, 7)), some(&[2, 1, 0, 1, 2, 1, 0]));
    assert_eq!(moved(&line("replicate", &[2], 3, 6)), some(&[0, 0, 0, 1, 2, 2]));
    assert_eq!(moved(&line("circular", &[3], 3, 8)), some(&[0, 1, 2, 0, 1, 2, 0, 1]));
    assert_eq!(moved(&line("reflect", &[-1], 4, 4)), some(&[1, 2, 3, 2]));
    // Two windows of three elements, padded by one.
    let w = line("windows", &[2, 2, 1, 1], 3, 6);
    assert_eq!(moved(&w), [None, Some(1), Some(0), Some(2), Some(1), None]);
}

#[test]
fn interpolation() {
    let some = |v: &[usize]| v.iter().map(|i| Some(*i)).collect::<Vec<_>>();
    assert_eq!(moved(&line("nearest", &[], 3, 6)), some(&[0, 0, 1, 1, 2, 2]));
    assert_eq!(moved(&line("nearest-exact", &[], 5, 2)), some(&[1, 3]));
    let t = line("linear", &[], 2, 4).taps(1, true);
    assert_eq!((t.at[..2].to_vec(), t.weight[..2].to_vec()), (vec![0, 1], vec![0.75, 0.25]));
    assert_eq!(cubic(0.0), [0.0, 1.0, 0.0, 0.0]);
    assert!((cubic(0.3).iter().sum::<f64>() - 1.0).abs() < 1e-15);
    let aligned = lines(Rule::Linear, true, &[], &[], &[3], &[5]).unwrap()[0];
    assert_eq!(aligned.taps(3, true).weight[..2], [0.5, 0.5]);
}

#[test]
fn numbers_out_of_range_are_refused() {
    let refused = |rule: &str, steps: &[i64], scales: &[f64], image: usize, result: usize| {
        lines(Rule::named(rule).unwrap(), false, steps, scales, &[image], &[result]).is_err()
    };
    assert!(refused("reflect", &[3], &[], 3, 6) && refused("reflect", &[0], &[], 3, 6));
    assert!(refused("circular", &[4], &[], 3, 7) && refused("replicate", &[1], &[], 0, 1));
    assert!(refused("replicate", &[], &[], 3, 3) && refused("replicate", &[i64::MIN], &[], 3, 3));
    assert!(refused("linear", &[], &[], 0, 1) && refused("nearest", &[], &[f64::NAN], 2, 2));
    assert!(refused("windows", &[2, 0, 0, 1], &[], 3, 2) && refused("windows", &[2, 1, 0, 1], &[], 3, 3));
    assert!(refused("windows", &[i64::MAX, 1, 0, 1], &[], 3, 3));
    assert!(!refused("windows", &[0, 1, 0, 1], &[], 3, 0) && !refused("reflect", &[-3], &[], 3, 0));
}
