//! The ops of this crate under oflow's tests of ops.

use oflow::prelude::*;
use oflow::testing::conformance;

#[test]
fn the_ops_conform() -> Result<()> {
    for op in oflow_fft::register()? {
        let report = conformance(op)?;
        println!("{report}");
        assert!(report.is_thorough(), "{report}");
    }
    Ok(())
}

/// Many lengths, forward and back, twice: as many plans are kept as may be, and what is planned again gives the same numbers.
#[test]
fn plans_of_many_lengths_are_bounded() -> Result<()> {
    oflow_fft::register()?;
    let round = || -> Result<Vec<Vec<f64>>> {
        (1..700)
            .map(|n| {
                let x = from_vec((0..n).map(|i| i as f64).collect(), [n], Device::Cpu)?;
                let back = oflow_fft::ifft(&oflow_fft::fft(&x, Default::default())?, Default::default())?;
                let half = oflow_fft::rfft(&x, Default::default())?;
                oflow_fft::irfft(&half, oflow_fft::Dft { n: Some(n), ..Default::default() })?;
                back.abs()?.to_vec::<f64>()
            })
            .collect()
    };
    let first = round()?;
    let (kept, most) = oflow_fft::kept_plans();
    assert!(kept <= most && most <= 1024, "{kept} of {most}");
    assert!(kept >= 64, "the last plans are kept: {kept}");
    assert_eq!(round()?, first);
    assert!(oflow_fft::kept_plans().0 <= most);
    Ok(())
}

/// Single numbers of transforms of all kinds of lengths by the definition, in f64, for lines one after the other and side by side.
#[test]
fn numbers_are_those_of_the_definition() -> Result<()> {
    oflow::manual_seed(5);
    let short =
        (1..=100).chain([120, 125, 128, 243, 250, 256, 360, 375, 400, 500, 512, 625, 640, 720, 729, 768, 800, 960]);
    let long = [
        1000, 1024, 1080, 1280, 1536, 1792, 2048, 2304, 2560, 3000, 3072, 4096, 5120, 6400, 8192, 16384, 20480, 65536,
        81920,
    ];
    for n in short.chain(long) {
        for dtype in [DType::F32, DType::F64] {
            let width = if n > 2000 { 3 } else { 19 };
            let x = randn([n, width, 2], Device::Cpu.dtype(dtype))?.view_as_complex()?;
            let rows = x.t()?.contiguous()?;
            let numbers = x.cast(DType::C128)?.to_vec::<Complex<f64>>()?;
            let scale = (n as f64).sqrt() * if dtype == DType::F32 { 4e-6 } else { 3e-14 };
            for inverse in [false, true] {
                let call = if inverse { oflow_fft::ifft } else { oflow_fft::fft };
                let (sign, norm) =
                    if inverse { (1.0, oflow_fft::Norm::Forward) } else { (-1.0, oflow_fft::Norm::Backward) };
                let along =
                    |x: &Tensor, dim| call(x, oflow_fft::Dft { dim, norm, ..Default::default() })?.cast(DType::C128);
                let (y, lines) = (along(&x, 0)?.to_vec::<Complex<f64>>()?, along(&rows, 1)?.to_vec::<Complex<f64>>()?);
                for (at, k) in [0, 1, n / 5, n / 2, n - 1].into_iter().enumerate() {
                    let (k, column) = (k.min(n - 1), (7 * at + 18) % width);
                    let mut sum = Complex::new(0.0, 0.0);
                    for j in 0..n {
                        let angle = sign * std::f64::consts::TAU * ((j * k) % n) as f64 / n as f64;
                        sum += numbers[j * width + column] * Complex::new(angle.cos(), angle.sin());
                    }
                    for found in [y[k * width + column], lines[column * n + k]] {
                        assert!(
                            (found - sum).norm() <= scale,
                            "number {k} of {n}, {dtype}, inverse {inverse}: {found}, not {sum}"
                        );
                    }
                }
            }
        }
    }
    Ok(())
}

/// Lines one after the other, side by side and with elements between: each is transformed as if it were alone, with the same bits.
#[test]
fn every_line_is_transformed_as_if_it_were_alone() -> Result<()> {
    oflow::manual_seed(3);
    let numbers = randn([19, 34, 21, 2], Device::Cpu)?.view_as_complex()?;
    type Transform = fn(&Tensor, i64) -> Result<Tensor>;
    let transforms: [(Transform, bool); 3] = [
        (|x, dim| oflow_fft::ifft(x, oflow_fft::Dft { dim, ..Default::default() }), false),
        (|x, dim| oflow_fft::rfft(x, oflow_fft::Dft { dim, ..Default::default() }), true),
        (|x, dim| oflow_fft::irfft(x, oflow_fft::Dft { dim, ..Default::default() }), false),
    ];
    for order in [[0i64, 1, 2], [2, 0, 1], [1, 2, 0], [0, 2, 1]] {
        for dim in 0..3 {
            for (transform, real) in transforms {
                let x = numbers.permute(order)?;
                let x = if real { x.real()? } else { x };
                let y = transform(&x, dim)?;
                let lines = |x: &Tensor| {
                    let x = x.movedim(dim, -1)?;
                    let n = *x.shape().last().unwrap() as i64;
                    x.reshape([-1, n])
                };
                let (x, y) = (lines(&x)?, lines(&y)?);
                for i in 0..x.shape()[0] as i64 {
                    let line = x.select(0, i)?.copy()?;
                    // Along the last dim a line is transformed as one, along others side by side with as many others as there are.
                    let alone = match dim {
                        2 => transform(&line, 0)?,
                        _ => transform(&line.unsqueeze(-1)?.expand([-1, 8])?.copy()?, 0)?.select(-1, 0)?,
                    };
                    assert!(alone.equal(&y.select(0, i)?)?, "line {i} along {dim} of {order:?}");
                }
            }
        }
    }
    Ok(())
}
