//! Means and variances of integers: those of their numbers, whatever the layout, also where a sum of them does not fit the dtype.

use oflow::functional::call;
use oflow::prelude::*;
use oflow::run_ranks;

const DTYPES: [DType; 8] =
    [DType::Bool, DType::U8, DType::I8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64];
const FUNCTIONS: [&str; 6] = ["mean", "var", "std", "nanmean", "var_mean", "std_mean"];

/// Numbers at both ends of the dtype, and large ones that are near each other.
fn data(dtype: DType) -> Vec<Vec<i64>> {
    let (low, high) = dtype.integers().unwrap_or((0, 1));
    let near = high / 2;
    let around = (0..8).map(|i| near + if dtype == DType::Bool { i % 2 } else { i % 3 }).collect();
    vec![vec![high; 8], vec![high, low, high, high, low, high, high, high], around]
}

#[test]
fn of_integers_do_not_wrap_and_are_the_same_in_every_layout() {
    let (mut wrong, mut count) = (vec![], 0);
    for dtype in DTYPES {
        for numbers in data(dtype) {
            // In f64 as oflow takes them, so that what an f64 cannot hold is no difference.
            let x: Vec<f64> = numbers.iter().map(|n| *n as f64).collect();
            let n = x.len() as f64;
            let mean = x.iter().sum::<f64>() / n;
            let var = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
            for layout in [None, Some(Sbp::Broadcast), Some(Sbp::Split(0)), Some(Sbp::Split(1))] {
                let run = || {
                    let local = from_vec(numbers.clone(), [2, 4], Device::Cpu)?.cast(dtype)?;
                    let x = match layout {
                        None => local,
                        Some(sbp) => distribute(&local, (&Placement::all(Device::Cpu)?, NdSbp::from(sbp)))?,
                    };
                    let mut found = vec![];
                    for name in FUNCTIONS {
                        for y in call(name, &[(&x).into()], &[])? {
                            assert_eq!(y.dtype(), DType::F32, "{name} of {dtype}");
                            found.push((name, y.to_f64_vec()?[0]));
                        }
                    }
                    Ok(found)
                };
                let found = match layout {
                    None => run().unwrap(),
                    Some(_) => run_ranks(2, |_| run()).unwrap().swap_remove(0),
                };
                let want = [mean, var, var.sqrt(), mean, var, mean, var.sqrt(), mean];
                for ((name, y), want) in found.iter().zip(want) {
                    count += 1;
                    if (y - want).abs() > 1e-6 * want.abs().max(1e-30) {
                        wrong.push(format!("{name} of {dtype} {numbers:?} in {layout:?}: {y}, not {want}"));
                    }
                }
            }
        }
    }
    println!("{count} results");
    assert!(wrong.is_empty(), "{} of {count} results:\n{}", wrong.len(), wrong.join("\n"));
}
