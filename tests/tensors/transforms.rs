//! Derivatives of functions, and the search for NaN.

use oflow::functional::{jacobian, jvp, vjp};
use oflow::prelude::*;
use oflow::{ErrorKind, detect_anomaly, run_ranks};

fn close(a: &Tensor, want: &[f64]) {
    let a = a.to_f64_vec().unwrap();
    assert!(a.len() == want.len() && a.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-12), "{a:?} is not {want:?}");
}

fn f64s(v: &[f64], shape: &[usize]) -> Tensor {
    from_vec(v.to_vec(), shape, Device::Cpu).unwrap()
}

#[test]
fn products_with_the_jacobian_from_both_sides_agree_with_it() {
    let (x, y) = (f64s(&[0.3, -1.2, 2.0], &[3]), f64s(&[1.5, 0.25], &[2]));
    let f = |x: &[Tensor]| {
        let outer = x[0].reshape([3, 1])?.mul(&x[1])?;
        Ok(vec![outer.tanh()?, x[0].square()?.sum(())?])
    };
    let inputs = [x.clone(), y.clone()];
    let (u, c) = (
        [f64s(&[1.0, 2.0, -1.0], &[3]), f64s(&[0.5, -2.0], &[2])],
        [f64s(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2]), f64s(&[7.0], &[])],
    );
    let (outs, forward) = jvp(f, &inputs, &u).unwrap();
    let (same, backward) = vjp(f, &inputs, &c).unwrap();
    assert!(outs.iter().zip(&same).all(|(a, b)| a.to_f64_vec().unwrap() == b.to_f64_vec().unwrap()));
    let dot = |a: &[Tensor], b: &[Tensor]| -> f64 {
        a.iter().zip(b).map(|(a, b)| a.mul(b).unwrap().sum(()).unwrap().item().unwrap()).sum()
    };
    // c (J u) = (c J) u
    assert!((dot(&c, &forward) - dot(&backward, &u)).abs() < 1e-12);
    let j = jacobian(|x| x.reshape([3, 1])?.mul(&y)?.tanh(), &x).unwrap();
    assert_eq!(j.shape(), [3, 2, 3]);
    let along_x = j.reshape([6, 3]).unwrap().matmul(&u[0]).unwrap();
    let zero = f64s(&[0.0, 0.0], &[2]);
    let (_, d) = jvp(f, &inputs, &[u[0].clone(), zero]).unwrap();
    close(&d[0].reshape([6]).unwrap(), &along_x.to_f64_vec().unwrap());
    // Nobody's grad() is touched, and the results are of no graph.
    assert!(x.grad().is_none() && backward.iter().chain(&forward).chain(&outs).all(|t| !t.requires_grad()));
}

#[test]
fn inputs_without_influence_give_zeros_and_wrong_ones_are_named() {
    let x = f64s(&[1.0, 2.0], &[2]);
    let v = f64s(&[1.0], &[]);
    let (_, g) = vjp(|x| Ok(vec![x[0].sum(())?]), &[x.clone(), x.clone()], std::slice::from_ref(&v)).unwrap();
    close(&g[0], &[1.0, 1.0]);
    close(&g[1], &[0.0, 0.0]);
    let (_, g) = vjp(|_| Ok(vec![f64s(&[3.0], &[])]), std::slice::from_ref(&x), std::slice::from_ref(&v)).unwrap();
    close(&g[0], &[0.0, 0.0]);
    let (_, d) = jvp(|_| Ok(vec![f64s(&[3.0], &[])]), std::slice::from_ref(&x), std::slice::from_ref(&x)).unwrap();
    close(&d[0], &[0.0]);
    assert_eq!(jacobian(|x| x.slice(0, 0, 0, 1), &x).unwrap().shape(), [0, 2]);
    close(&jacobian(|x| x.sum(()), &x).unwrap(), &[1.0, 1.0]);
    let e = vjp(|x| Ok(vec![x[0].square()?]), std::slice::from_ref(&x), std::slice::from_ref(&v)).unwrap_err();
    assert!(e.to_string().contains("the cotangents are") && e.site().is_some_and(|s| s.file == file!()), "{e}");
    let e = jvp(|x| Ok(vec![x[0].square()?]), std::slice::from_ref(&x), &[v]).unwrap_err();
    assert!(e.to_string().contains("the tangents are"), "{e}");
    let ints = arange(3, Device::Cpu).unwrap();
    assert!(vjp(|x| Ok(vec![x[0].clone()]), std::slice::from_ref(&ints), std::slice::from_ref(&ints)).is_err());
    assert!(jacobian(|x| x.gt(0.0), &x).is_err());
    // Recorded also inside `no_grad`.
    let _off = no_grad();
    close(&jacobian(|x| x.square(), &x).unwrap(), &[2.0, 0.0, 0.0, 4.0]);
}

#[test]
fn functions_that_hand_on_their_inputs_have_derivatives() {
    let (x, u) = (f64s(&[1.0, 2.0], &[2]), f64s(&[3.0, 5.0], &[2]));
    // The same tensor as input and output, and twice as output.
    let twice = |x: &[Tensor]| Ok(vec![x[0].clone(), x[0].clone()]);
    let (_, g) = vjp(twice, std::slice::from_ref(&x), &[u.clone(), u.clone()]).unwrap();
    close(&g[0], &[6.0, 10.0]);
    let (_, d) = jvp(twice, std::slice::from_ref(&x), std::slice::from_ref(&u)).unwrap();
    close(&d[0], &[3.0, 5.0]);
    close(&d[1], &[3.0, 5.0]);
    close(&jacobian(|x| Ok(x.clone()), &x).unwrap(), &[1.0, 0.0, 0.0, 1.0]);
    // A view of an input. Results are of no graph, as the documentation says: what is made of them has no derivative.
    close(&jacobian(|x| x.unsqueeze(0)?.t(), &x).unwrap(), &[1.0, 0.0, 0.0, 1.0]);
    let hessian = jacobian(
        |x| {
            vjp(|x| Ok(vec![x[0].pow(3.0)?.sum(())?]), std::slice::from_ref(x), &[f64s(&[1.0], &[])])
                .map(|r| r.1[0].clone())
        },
        &x,
    );
    close(&hessian.unwrap(), &[0.0; 4]);
}

#[test]
fn derivatives_of_global_tensors_have_the_single_device_values() {
    let run = |ranks: usize| {
        run_ranks(ranks, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            let value: Vec<f64> = (0..6).map(|i| f64::from(i) * 0.3 - 0.7).collect();
            let mut all = vec![];
            for s in [sbp![S(0)], sbp![S(1)], sbp![B]] {
                let x = from_vec(value.clone(), [3, 2], (&mesh, s))?;
                let j = jacobian(|x| x.softmax(1)?.matmul(&x.t()?), &x)?;
                let (_, d) =
                    jvp(|x| Ok(vec![x[0].exp()?.sum(0)?]), std::slice::from_ref(&x), std::slice::from_ref(&x))?;
                let (_, g) = vjp(|x| Ok(vec![x[0].exp()?]), std::slice::from_ref(&x), std::slice::from_ref(&x))?;
                all.push((j.to_vec::<f64>()?, d[0].to_vec::<f64>()?, g[0].to_vec::<f64>()?));
            }
            Ok(all)
        })
        .unwrap()
        .remove(0)
    };
    let (alone, four) = (run(1), run(4));
    for (a, b) in alone.iter().zip(&four) {
        for (a, b) in [(&a.0, &b.0), (&a.1, &b.1), (&a.2, &b.2)] {
            assert!(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-14), "{a:?} {b:?}");
        }
    }
}

#[test]
fn the_first_nan_is_named_with_its_op_and_line() {
    let _searching = detect_anomaly();
    let x = from_vec(vec![4.0f32, -1.0, 0.0], [3], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let (e, line) = (x.mul(2.0).and_then(|x| x.sqrt()).unwrap_err(), line!());
    assert_eq!((e.kind(), e.site().map(|s| s.line)), (ErrorKind::Value, Some(line)), "{e}");
    assert!(e.to_string().starts_with("sqrt(f32[3])") && e.to_string().contains("1 of 3 elements"), "{e}");
    // Not its own fault.
    let nan = from_vec(vec![f32::NAN, 1.0], [2], Device::Cpu).unwrap();
    let e = nan.add(1.0).unwrap_err();
    assert!(e.to_string().contains("input 0 `x` had some before"), "{e}");
    let one = ones([2], Device::Cpu).unwrap();
    let e = one.add_(&nan).unwrap_err();
    assert!(e.to_string().contains("had some before"), "{e}");
    // The derivative of the square root at 0 is infinite, and 0 times that is none: found in backward, at the forward line.
    let z = zeros([2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let (y, line) = (z.sqrt().unwrap(), line!());
    let e = y.mul(0.0).unwrap().sum(()).unwrap().backward().unwrap_err();
    assert!(e.to_string().contains("in backward") && e.site().is_some_and(|s| s.line == line), "{e}");
    // Integers, empty tensors, and after the guard.
    assert!(arange(3, Device::Cpu).unwrap().add(1i64).is_ok() && zeros([0, 2], Device::Cpu).unwrap().log().is_ok());
    drop(_searching);
    assert!(nan.add(1.0).is_ok());
}

#[test]
fn the_rank_whose_shard_has_the_nan_finds_it() {
    let found = run_ranks(2, |w| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = from_vec(vec![1.0f32, 2.0, -1.0, 4.0], [4], (&mesh, sbp![S(0)]))?;
        let _searching = detect_anomaly();
        Ok((w.rank(), x.log().err().map(|e| e.to_string())))
    })
    .unwrap();
    assert_eq!(found[0], (0, None));
    assert!(
        found[1].1.as_ref().is_some_and(|e| e.contains("1 of 2 elements of output 0 `y` in this rank's shard")),
        "{found:?}"
    );
}
