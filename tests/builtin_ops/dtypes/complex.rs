//! Complex numbers against PyTorch (`tests/golden/complex.json`), in every layout, and where callers go that no table lists.

use oflow::functional::{Arg, call, einsum};
use oflow::interpreter::Call;
use oflow::ops::{AttrValue, find};
use oflow::prelude::*;
use oflow::{ErrorKind, run_ranks};
use oflow_tests::golden::{numbers, sizes};
use serde_json::Value as Json;

fn dtype(name: &str) -> DType {
    match name {
        "complex64" => DType::C64,
        "complex128" => DType::C128,
        "float32" => DType::F32,
        "float64" => DType::F64,
        "bool" => DType::Bool,
        other => panic!("{other}"),
    }
}

/// A tensor of these numbers; of a complex dtype they are parts.
fn made(data: &[f64], shape: &[usize], dtype: DType) -> oflow::Result<Tensor> {
    if dtype.is_complex() {
        let pairs: Vec<Complex<f64>> = data.chunks(2).map(|p| Complex::new(p[0], p[1])).collect();
        return from_vec(pairs, shape, Device::Cpu.dtype(dtype));
    }
    from_vec(data.to_vec(), shape, Device::Cpu.dtype(dtype))
}

/// The numbers of a tensor; of a complex one the parts.
fn parts(t: &Tensor) -> oflow::Result<Vec<f64>> {
    if t.dtype().is_complex() { t.detach().view_as_real()?.to_f64_vec() } else { t.to_f64_vec() }
}

/// `beside`: numbers are compared with that much beside their own size, as the rounding of what cancels is.
fn near(have: &[f64], want: &[f64], dtype: DType, beside: f64, what: &str) {
    assert_eq!(have.len(), want.len(), "{what}");
    let eps = if matches!(dtype.part(), DType::F64) { 1e-11 } else { 1e-4 };
    let pair = if dtype.is_complex() { 2 } else { 1 };
    for (a, b) in have.chunks(pair).zip(want.chunks(pair)) {
        let size = b.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() <= eps * (size + beside), "{what}: {a} and not {b} ({have:?} {want:?})");
        }
    }
}

fn run(name: &str, args: &[Tensor]) -> oflow::Result<Tensor> {
    match name {
        "cumsum(dim=1)" => args[0].cumsum(1),
        "einsum" => einsum("ij,jk->ki", [&args[0], &args[1]]),
        "index_select" => args[0].index_select(0, &from_vec(vec![2i64, 0, 2], [3], Device::Cpu)?),
        _ => {
            let given: Vec<Arg> = args.iter().map(|t| t.into()).collect();
            Ok(call(name, &given, &[])?.swap_remove(0))
        }
    }
}

#[test]
fn functions_and_gradients_are_pytorchs() {
    let all: Vec<Json> = serde_json::from_str(include_str!("../../golden/complex.json")).unwrap();
    let mut gradients = 0;
    for row in &all {
        let name = row["call"].as_str().unwrap();
        let dtypes: Vec<DType> = row["dtypes"].as_array().unwrap().iter().map(|d| dtype(d.as_str().unwrap())).collect();
        let text = format!("{name} {dtypes:?} {}", row["args"]);
        let args: Vec<Tensor> = (0..dtypes.len())
            .map(|i| {
                let t = made(&numbers(&row["args"][i]), &sizes(&row["shapes"][i]), dtypes[i]).unwrap();
                t.requires_grad_(true).unwrap()
            })
            .collect();
        let y = run(name, &args).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(
            (y.dtype(), y.shape()),
            (dtype(row["of"].as_str().unwrap()), sizes(&row["shape"]).as_slice()),
            "{text}"
        );
        near(&parts(&y).unwrap(), &numbers(&row["y"]), y.dtype(), 1e-3, &text);
        let Some(grads) = row["grads"].as_array() else {
            assert!(!y.requires_grad(), "{text}");
            continue;
        };
        let loss = match y.dtype().is_complex() {
            true => y.real().unwrap().add(&y.imag().unwrap().mul(2.0).unwrap()).unwrap().sum(()).unwrap(),
            false => y.sum(()).unwrap(),
        };
        loss.backward().unwrap_or_else(|e| panic!("{text}: {e}"));
        for (t, want) in args.iter().zip(grads).filter(|(_, w)| !w.is_null()) {
            let g = t.grad().unwrap_or_else(|| panic!("{text}: no gradient"));
            assert_eq!((g.dtype(), g.shape()), (t.dtype(), t.shape()), "{text}");
            near(&parts(&g).unwrap(), &numbers(want), g.dtype(), 1.0, &format!("gradient of {text}"));
            gradients += 1;
        }
    }
    assert!(all.len() > 250 && gradients > 250, "{} {gradients}", all.len());
}

/// Values without any symmetry.
fn drawn(shape: &[usize], salt: usize) -> oflow::Result<Tensor> {
    let n: usize = shape.iter().product();
    let number = |i: usize| ((i * 37 + salt * 11) % 41) as f64 / 16.0 - 1.2;
    let pairs = (0..n).map(|i| Complex::new(number(2 * i), number(2 * i + 1))).collect::<Vec<_>>();
    from_vec(pairs, shape, Device::Cpu)
}

/// A program of many functions, and the gradients of its leaves.
fn program(z: &Tensor, w: &Tensor, x: &Tensor) -> oflow::Result<Vec<Tensor>> {
    let (z, w, x) =
        (z.detach().requires_grad_(true)?, w.detach().requires_grad_(true)?, x.detach().requires_grad_(true)?);
    let product = z.matmul(&w)?;
    let mixed = (&product * &x)?.add(Scalar::Complex(0.5, -0.25))?;
    let bent = mixed.tanh()?.add(&mixed.conj()?.mul(&mixed.abs()?)?)?;
    let cut = bent.slice(0, 0, 2, 1)?.exp()?.cumsum(1)?;
    let loss =
        cut.abs()?.sum(())?.add(&bent.angle()?.sin()?.mean(())?)?.add(&bent.sum(0)?.real()?.square()?.sum(())?)?;
    loss.backward()?;
    let grads = [&z, &w, &x].map(|t| t.grad());
    let mut all = vec![product.detach(), bent.detach(), loss.detach()];
    for (g, t) in grads.into_iter().zip([&z, &w, &x]) {
        let g = g.ok_or_else(|| oflow::Error::autograd(format!("{t:?} has no gradient")))?;
        assert_eq!((g.dtype(), g.shape()), (t.dtype(), t.shape()));
        all.push(g);
    }
    Ok(all)
}

#[test]
fn every_layout_gives_what_one_rank_gives() {
    let numbers = |all: Vec<Tensor>| all.iter().map(parts).collect::<oflow::Result<Vec<_>>>();
    let given =
        || -> oflow::Result<[Tensor; 3]> { Ok([drawn(&[5, 3], 1)?, drawn(&[3, 4], 2)?, drawn(&[5, 4], 3)?.real()?]) };
    let at = |one: &Placement| -> oflow::Result<_> {
        let [z, w, x] = given()?;
        let at = |t: &Tensor| distribute(t, (one, sbp![B]));
        program(&at(&z)?, &at(&w)?, &at(&x)?)
    };
    if !oflow_tests::calls_selected(at) {
        return;
    }
    let [z, w, x] = given().unwrap();
    let want = numbers(program(&z, &w, &x).unwrap()).unwrap();
    let layouts = [Sbp::Split(0), Sbp::Split(1), Sbp::Broadcast, Sbp::PARTIAL_SUM];
    for mesh in [vec![2], vec![3], vec![8], vec![2, 2]] {
        let ranks: usize = mesh.iter().product();
        let all = run_ranks(ranks, |_| {
            let place = Placement::new(Device::Cpu, &(0..ranks).collect::<Vec<_>>(), &mesh)?;
            let mut found = vec![];
            for n in 0..64 {
                let sbp = |k: usize| {
                    mesh.iter().enumerate().map(|(a, _)| layouts[((n >> (2 * k)) % 4) ^ a]).collect::<NdSbp>()
                };
                let at = |t: &Tensor, k: usize| distribute(t, (&place, sbp(k)));
                let [z, w, x] = given()?;
                found.push(numbers(program(&at(&z, 0)?, &at(&w, 1)?, &at(&x, 2)?)?)?);
            }
            Ok(found)
        })
        .unwrap();
        for (rank, found) in all.iter().enumerate() {
            for (n, found) in found.iter().enumerate() {
                for (k, (have, want)) in found.iter().zip(&want).enumerate() {
                    let dtype = DType::F64;
                    near(have, want, dtype, 1.0, &format!("{mesh:?}, layouts {n}, rank {rank}, result {k}"));
                }
            }
        }
    }
}

#[test]
fn what_complex_numbers_do_not_have_is_an_error_that_says_so() {
    let z = drawn(&[3, 3], 1).unwrap();
    let x = ones([3, 3], Device::Cpu).unwrap();
    let refused = |made: oflow::Result<Tensor>, words: &[&str]| {
        let e = made.map(|t| format!("{t:?}")).expect_err("refused");
        for word in words {
            assert!(e.to_string().contains(word), "{e}");
        }
    };
    refused(z.lt(&z), &["lt", "must be real, not c128", "view_as_real"]);
    refused(z.maximum(&z), &["maximum", "must be real, not c128"]);
    refused(z.relu(), &["relu", "must be real, not c128"]);
    refused(z.floor(), &["floor"]);
    refused(z.amax(()), &["amax"]);
    refused(z.softmax(0), &["softmax"]);
    refused(z.sort(0, false).map(|mut s| s.swap_remove(0)), &["sort"]);
    refused(x.imag(), &["imag", "must be complex, not f32"]);
    refused(x.clamp(Scalar::Complex(0.0, 1.0), 1.0), &["clamp"]);
    refused(x.lt(Scalar::Complex(0.0, 1.0)), &["lt", "a complex number is given where real ones are computed"]);
    refused(x.ge(Scalar::Complex(1.0, 0.0)), &["ge", "a complex number is given"]);
    refused(z.logit(None), &["logit", "takes real numbers"]);
    refused(z.quantile(0.5, None), &["quantile", "quantiles are of floats"]);
    refused(x.masked_fill(&x, Scalar::Complex(0.0, 1.0)), &["masked_fill", "1.0j"]);
    refused(full([2], Scalar::Complex(0.0, 1.0), Device::Cpu.dtype(DType::F32)), &["1.0j"]);
    refused(x.view_as_complex(), &["view_as_complex", "is not 2"]);
    refused(x.view_as_real(), &["view_as_real", "must be complex"]);
    refused(x.add_(&z).cloned(), &["add", "in place"]);
    assert_eq!(z.cast(DType::C64).unwrap().add_(&x.cast(DType::F64).unwrap()).unwrap().dtype(), DType::C64);
    refused(z.matmul(&drawn(&[3, 3], 2).unwrap().cast(DType::C64).unwrap()), &["matmul"]);
    assert!(z.to_f64_vec().unwrap_err().to_string().contains("view_as_real"));
    let e = z.sum(()).unwrap().item().unwrap_err().to_string();
    assert!(e.contains("item") && e.contains("to_vec::<Complex<f64>>()"), "{e}");
    assert_eq!(z.to_vec::<f64>().unwrap_err().kind(), ErrorKind::DType);
    let leaf = z.requires_grad_(true).unwrap();
    let e = leaf.sum(()).unwrap().backward().unwrap_err().to_string();
    assert!(e.contains("complex") && e.contains("real"), "{e}");
    // With a gradient given it has one: of z in the sum, that number.
    let y = leaf.mul(Scalar::Complex(0.0, 1.0)).unwrap().sum(()).unwrap();
    let of_y = full([], Scalar::Complex(2.0, 3.0), Device::Cpu.dtype(DType::C128)).unwrap();
    y.backward_with(&oflow::interpreter::BackwardOptions { gradient: Some(of_y), ..Default::default() }).unwrap();
    assert_eq!(leaf.grad().unwrap().to_vec::<Complex<f64>>().unwrap(), [Complex::new(3.0, -2.0); 9]);
}

#[test]
fn writes_views_and_numbers() {
    let z = drawn(&[2, 3], 4).unwrap();
    let before = z.to_vec::<Complex<f64>>().unwrap();
    // In place, with a complex number, through a view.
    z.select(0, 1).unwrap().mul_(Scalar::Complex(0.0, 1.0)).unwrap();
    let after = z.to_vec::<Complex<f64>>().unwrap();
    assert_eq!(&after[..3], &before[..3]);
    for (a, b) in after[3..].iter().zip(&before[3..]) {
        assert_eq!((a.re, a.im), (-b.im, b.re));
    }
    // One tensor in several places of a call that writes it.
    z.mul_(&z).unwrap();
    assert_eq!(z.to_vec::<Complex<f64>>().unwrap()[1], before[1] * before[1]);
    // An op whose calls are those of its parts, in place, with its gradient.
    let leaf = drawn(&[2, 3], 5).unwrap().requires_grad_(true).unwrap();
    let own = leaf.mul(2.0).unwrap();
    let attrs = [AttrValue::from(1i64), AttrValue::from(false)];
    Call::new(find("cumsum").unwrap(), &[Some(&own)]).attrs(attrs).given(&own).run().unwrap();
    assert_eq!(own.to_bytes().unwrap(), leaf.detach().mul(2.0).unwrap().cumsum(1).unwrap().to_bytes().unwrap());
    own.real().unwrap().sum(()).unwrap().backward().unwrap();
    let of_leaf = leaf.grad().unwrap().to_vec::<Complex<f64>>().unwrap();
    assert_eq!(of_leaf[..3], [6.0, 4.0, 2.0].map(|re| Complex::new(re, 0.0)));
    // Scattered elements of a transposed view.
    let t = z.transpose(0, 1).unwrap();
    assert_eq!(t.exp().unwrap().log().unwrap().shape(), [3, 2]);
    assert_eq!(t.conj().unwrap().transpose(0, 1).unwrap().conj().unwrap().to_bytes().unwrap(), z.to_bytes().unwrap());
    // A complex number with real ones, in every kind.
    for dtype in [DType::Bool, DType::I32, DType::F16, DType::F32, DType::F64] {
        let y = ones([2], Device::Cpu.dtype(dtype)).unwrap().add(Scalar::Complex(0.5, 2.0)).unwrap();
        assert_eq!(y.dtype(), if dtype == DType::F64 { DType::C128 } else { DType::C64 }, "{dtype}");
        assert_eq!(y.cast(DType::C128).unwrap().to_vec::<Complex<f64>>().unwrap(), [Complex::new(1.5, 2.0); 2]);
    }
    // Filling, comparing, choosing, printing.
    let y = full([2, 2], Scalar::Complex(1.0, -0.5), Device::Cpu).unwrap();
    assert_eq!(y.dtype(), DType::C64);
    assert!(y.eq(Scalar::Complex(1.0, -0.5)).unwrap().all(()).unwrap().item().unwrap() == 1.0);
    assert_eq!(y.cast(DType::Bool).unwrap().to_vec::<bool>().unwrap(), [true; 4]);
    assert_eq!(
        full([1], Scalar::Complex(0.0, 2.0), Device::Cpu).unwrap().cast(DType::Bool).unwrap().to_vec::<bool>().unwrap(),
        [true]
    );
    assert!(y.to_string().contains("1.0000-0.5000j"), "{y}");
    y.zero_().unwrap();
    assert_eq!(y.to_bytes().unwrap(), [0; 32]);
    // Operators, with numbers on either side and among themselves.
    let i = Complex::new(0.0, 1.0);
    let x = from_vec(vec![2.0f64], [1], Device::Cpu).unwrap();
    let one = |made: oflow::Result<Tensor>| made.unwrap().to_vec::<Complex<f64>>().unwrap()[0];
    assert_eq!((one(&x * i), one(i - &x), one(i / &x)), (2.0 * i, i - 2.0, i / 2.0));
    assert_eq!(one(oflow::eval!(-(i * i + 3.0) * x)), Complex::new(-4.0, 0.0));
    // Autocast leaves complex numbers alone, also those of a product with real ones.
    let mode = autocast(Autocast::Bf16);
    let (a, b) = (drawn(&[2, 3], 1).unwrap().cast(DType::C64).unwrap(), ones([3, 2], Device::Cpu).unwrap());
    assert_eq!(a.matmul(&b).unwrap().dtype(), DType::C64);
    assert_eq!(b.matmul(&b.transpose(0, 1).unwrap()).unwrap().dtype(), DType::BF16);
    drop(mode);
    // Empty tensors, and no dims.
    for shape in [vec![], vec![0], vec![2, 0]] {
        let e = drawn(&shape, 1).unwrap();
        let made = e.exp().unwrap().abs().unwrap();
        assert_eq!((made.shape(), made.dtype()), (shape.as_slice(), DType::F64));
        assert_eq!(e.view_as_real().unwrap().view_as_complex().unwrap().to_bytes().unwrap(), e.to_bytes().unwrap());
        assert_eq!(e.sum(()).unwrap().shape(), [0usize; 0]);
    }
}

#[test]
fn a_second_use_with_other_numbers_has_its_own_gradient() {
    // The same op, recorded with real and with complex tensors in turn: what is remembered of one is not the other's.
    for _ in 0..2 {
        for complex in [false, true, false] {
            let x = from_vec(vec![0.5f64, -2.0], [2], Device::Cpu).unwrap();
            let x = if complex { x.cast(DType::C128).unwrap() } else { x }.requires_grad_(true).unwrap();
            let y = x.mul(&x).unwrap().abs().unwrap().sqrt().unwrap().sum(()).unwrap();
            y.backward().unwrap();
            let g = x.grad().unwrap();
            let want = if complex { vec![1.0, 0.0, -1.0, 0.0] } else { vec![1.0, -1.0] };
            near(&parts(&g).unwrap(), &want, DType::F64, 1.0, &format!("complex: {complex}"));
        }
    }
    // A real leaf among complex numbers gets the real part.
    let x = from_vec(vec![0.5f32, -2.0], [2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    x.mul(Scalar::Complex(2.0, 3.0)).unwrap().view_as_real().unwrap().sum(()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [5.0; 2]);
}
