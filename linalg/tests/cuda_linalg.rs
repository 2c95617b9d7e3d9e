//! The decompositions on a GPU, or on the emulated one.

use oflow::ops::Op;
use oflow::prelude::*;
use oflow_tests::gpus::cuda;
use oflow_tests::on_gpu::ops_on_gpu;

#[test]
fn the_ops_give_the_cpus_results() -> Result<()> {
    // The eigenvalues of `eig` come in any order: see below.
    let here = |o: &&'static Op| !o.traits.cpu_only && o.name() != "linalg.eig";
    let ops: Vec<&'static Op> = oflow_linalg::register()?.iter().copied().filter(here).collect();
    ops_on_gpu(&ops);
    Ok(())
}

/// `A V = V diag(L)`, with vectors of length 1 that have a positive element where they are largest; gradients are the CPU's.
#[test]
fn eigenvalues_of_general_matrices_are_those_of_the_matrix() -> Result<()> {
    if !cuda() {
        return Ok(());
    }
    oflow_linalg::register()?;
    oflow::run_ranks(1, |_| {
        for dtype in [DType::F32, DType::F64, DType::C64, DType::C128] {
            oflow::manual_seed(5);
            let near = if dtype == DType::F32 || dtype == DType::C64 { 1e-4 } else { 1e-11 };
            let on_cpu = match dtype.is_complex() {
                false => randn([2, 5, 5], Device::Cpu)?.cast(dtype)?,
                true => randn([2, 5, 5, 2], Device::Cpu)?.cast(dtype.part())?.view_as_complex()?,
            };
            let run = |device: Device| {
                let a = on_cpu.to(device)?.requires_grad_(true)?;
                let (l, v) = oflow_linalg::eig(&a)?;
                // Neither depends on the order.
                let loss = l.abs()?.sum(())?.add(&v.abs()?.square()?.square()?.sum(())?)?;
                loss.backward()?;
                let gap = a.cast(l.dtype())?.matmul(&v)?.sub(&v.mul(&l.unsqueeze(-2)?)?)?.abs()?.amax(())?.item()?;
                let most = v.abs()?.amax(1i64)?;
                let (re, im) = (v.real()?.amax(1i64)?, v.imag()?);
                let length = v.abs()?.square()?.sum(1i64)?.sub(1.0)?.abs()?.amax(())?.item()?;
                assert!(gap < near && length < near, "{dtype} on {device}: {gap} and {length}");
                assert!(re.sub(&most)?.abs()?.amax(())?.item()? < near, "{dtype} on {device}: {re} and {most}, {im}");
                let grad = a.grad().ok_or_else(|| Error::value("no gradient"))?.to(Device::Cpu)?;
                Ok::<_, Error>((loss.item()?, grad))
            };
            let ((loss, grad), (want, wanted)) = (run(Device::Cuda)?, run(Device::Cpu)?);
            assert!((loss - want).abs() < near * want, "{dtype}: {loss} and {want}");
            let gap = grad.sub(&wanted)?.abs()?.amax(())?.item()?;
            assert!(gap < 100.0 * near, "{dtype}: {gap}");
        }
        Ok(())
    })?;
    Ok(())
}

/// What the CPU refuses is refused, and the matrix is named.
#[test]
fn matrices_that_are_not_computed_are_errors() -> Result<()> {
    if !cuda() {
        return Ok(());
    }
    oflow_linalg::register()?;
    let run = |values: Vec<f64>, call: fn(&Tensor) -> Result<Tensor>| {
        oflow::run_ranks(1, |_| {
            let x = from_vec(values.clone(), [2, 2, 2], Device::Cpu)?.to(Device::Cuda)?;
            // The error is told at the latest where the result is read.
            call(&x)?.to(Device::Cpu).map(drop)
        })
        .err()
        .map(|e| e.to_string())
    };
    let one = [1.0, 0.0, 0.0, 1.0];
    let batch = |second: [f64; 4]| [one, second].concat();
    type Case = (&'static str, [f64; 4], fn(&Tensor) -> Result<Tensor>);
    let cases: [Case; 5] = [
        ("matrix 1 of the batch is singular", [1.0, 2.0, 2.0, 4.0], |x| oflow_linalg::inv(x)),
        ("matrix 1 of the batch is singular", [1.0, 2.0, 2.0, 4.0], |x| oflow_linalg::solve(x, x)),
        ("matrix 1 of the batch is not positive definite", [1.0, 2.0, 2.0, 1.0], |x| oflow_linalg::cholesky(x)),
        ("matrix 1 of the batch has an infinity or a NaN", [f64::NAN, 0.0, 0.0, 1.0], |x| Ok(oflow_linalg::eigh(x)?.0)),
        ("matrix 1 of the batch has an infinity or a NaN", [f64::INFINITY, 0.0, 0.0, 1.0], |x| {
            Ok(oflow_linalg::svd(x)?.1)
        }),
    ];
    for (want, second, call) in cases {
        let have = run(batch(second), call).unwrap_or_default();
        assert!(have.contains(want), "{have:?} for {want}");
        assert_eq!(run(batch([2.0, 1.0, 1.0, 2.0]), call), None);
    }
    Ok(())
}

/// Batches of larger matrices, tall and wide ones, whose memory lies by columns or has gaps.
#[test]
fn matrices_of_any_layout_give_the_cpus_results() -> Result<()> {
    if !cuda() {
        return Ok(());
    }
    oflow_linalg::register()?;
    type Call = fn(&Tensor) -> Result<Vec<Tensor>>;
    let any: [(&str, Call); 5] = [
        ("svd", |x| oflow_linalg::svd(x).map(|(u, s, v)| vec![u, s, v])),
        ("svd_full, values", |x| Ok(vec![oflow_linalg::svd_full(x)?.1])),
        ("qr", |x| oflow_linalg::qr(x).map(|(q, r)| vec![q, r])),
        ("qr_complete", |x| oflow_linalg::qr_complete(x).map(|(q, r)| vec![q, r])),
        ("pinv", |x| Ok(vec![oflow_linalg::pinv(x, Default::default())?])),
    ];
    let square: [(&str, Call); 5] = [
        ("inv", |x| Ok(vec![oflow_linalg::inv(x)?])),
        ("det", |x| Ok(vec![oflow_linalg::det(x)?])),
        ("slogdet", |x| oflow_linalg::slogdet(x).map(|(s, l)| vec![s, l])),
        ("eigh", |x| oflow_linalg::eigh(x).map(|(l, q)| vec![l, q])),
        ("solve", |x| Ok(vec![oflow_linalg::solve(x, &x.transpose(-1, -2)?)?])),
    ];
    oflow::run_ranks(1, |_| {
        for (seed, (rows, columns)) in [(17, 17), (19, 11), (9, 21)].into_iter().enumerate() {
            oflow::manual_seed(seed as u64);
            let whole = randn([columns + 2, 3, rows], Device::Cpu)?.cast(DType::F64)?;
            let complex = randn([columns + 2, 3, rows, 2], Device::Cpu)?.cast(DType::F64)?.view_as_complex()?;
            for x in [whole, complex] {
                for (name, call) in any.iter().chain(square.iter().filter(|_| rows == columns)) {
                    let run = |x: &Tensor| call(&x.narrow(0, 1, columns as i64)?.permute([1i64, 2, 0])?);
                    for (i, (have, want)) in run(&x.to(Device::Cuda)?)?.iter().zip(run(&x)?).enumerate() {
                        let gap = have.to(Device::Cpu)?.sub(&want)?.abs()?.amax(())?.item()?;
                        let largest = want.abs()?.amax(())?.item()?.max(1.0);
                        assert!(gap < 1e-9 * largest, "{name} of [{rows}, {columns}] {}, result {i}: {gap}", x.dtype());
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(())
}
