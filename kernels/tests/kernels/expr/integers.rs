use oflow_kernels::expr::integers::*;

#[test]
fn integers_never_panic() {
    for a in [i64::MIN, -7, -1, 0, 1, 7, i64::MAX] {
        for b in [i64::MIN, -3, -1, 0, 1, 3, i64::MAX] {
            let values = [div(a, b), fmod(a, b), remainder(a, b), floor_div(a, b), pow(a, b)];
            if b == 0 {
                assert_eq!(values, [0, 0, 0, 0, 1]);
            } else if a != 0 && a.abs_diff(0) < 100 && b.abs_diff(0) < 100 {
                let (x, y) = (a as f64, b as f64);
                assert_eq!(values[3], (x / y).floor() as i64);
                assert_eq!(values[2], (x - (x / y).floor() * y) as i64);
                assert_eq!(values[4], x.powf(y).trunc() as i64);
            }
        }
    }
}
