use crate::owned::{Owned, read};
use oflow_kernels::DType;
use oflow_kernels::cpu::rotary::*;

#[test]
fn by_hand() {
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        // Two heads of three positions; one pair of the three elements more is left as it is.
        let x: Vec<f64> = (0..2 * 3 * 5).map(|i| ((i * 7) % 11) as f64 - 5.0).collect();
        let (c, s): (Vec<f64>, Vec<f64>) =
            ((0..6).map(|i| (i % 4) as f64).collect(), (0..6).map(|i| 1.0 - (i % 3) as f64).collect());
        let (tx, tc, ts) = (
            Owned::from_f64(dtype, &[2, 3, 5], &x),
            Owned::from_f64(dtype, &[3, 2], &c),
            Owned::from_f64(dtype, &[3, 2], &s),
        );
        for interleaved in [false, true] {
            let mut want = x.clone();
            for (r, row) in want.chunks_mut(5).enumerate() {
                let old = row.to_vec();
                for i in 0..2 {
                    let (a, b) = if interleaved { (2 * i, 2 * i + 1) } else { (i, 2 + i) };
                    let k = r % 3 * 2 + i;
                    row[a] = old[a] * c[k] - old[b] * s[k];
                    row[b] = old[b] * c[k] + old[a] * s[k];
                }
            }
            let out = Owned::zeros(dtype, &[2, 3, 5]);
            rotary(&tx.view(), &tc.view(), &ts.view(), interleaved, &out.view()).unwrap();
            assert_eq!(read(&out.view()), want, "{dtype} {interleaved}");
            // Heads and positions exchanged, in x and in the output.
            let turned = Owned::zeros(dtype, &[3, 2, 5]);
            let tables = [&tc, &ts].map(|t| t.view());
            // SAFETY: the same elements with a dim of one head.
            let tables = tables
                .map(|t| unsafe { t.restride(0, [3, 1, 2].into_iter().collect(), [2, 0, 1].into_iter().collect()) });
            rotary(&tx.permuted(&[1, 0, 2]), &tables[0], &tables[1], interleaved, &turned.view()).unwrap();
            assert_eq!(read(&turned.permuted(&[1, 0, 2])), want, "{dtype} {interleaved}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let t = |dims: &[usize]| Owned::zeros(DType::F32, dims);
    let refused = |x: &[usize], c: &[usize]| {
        let (x, c, out) = (t(x), t(c), t(x));
        rotary(&x.view(), &c.view(), &c.view(), false, &out.view()).is_err()
    };
    assert!(refused(&[2, 5], &[2, 3]) && refused(&[2, 4], &[3, 2]) && refused(&[2, 4], &[1, 2, 2]));
    assert!(!refused(&[2, 4], &[2]) && !refused(&[0, 4], &[2]) && !refused(&[2, 4], &[2, 0]));
}
