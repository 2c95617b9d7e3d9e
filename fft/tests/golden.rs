//! Transforms and their gradients against torch.fft (`golden.json`), and along split tensors.

use oflow::functional::{Arg, call};
use oflow::ops::AttrValue;
use oflow::prelude::*;
use oflow::{ErrorKind, run_ranks};
use oflow_fft as fft;
use oflow_fft::{Dft, DftN};
use serde_json::Value as Json;

fn numbers(v: &Json) -> Vec<f64> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn ints(v: &Json) -> Vec<i64> {
    v.as_array().unwrap().iter().map(|x| x.as_i64().unwrap()).collect()
}

fn sizes(v: &Json) -> Vec<usize> {
    ints(v).into_iter().map(|n| n as usize).collect()
}

fn dtype(name: &Json) -> DType {
    match name.as_str().unwrap() {
        "complex64" => DType::C64,
        "complex128" => DType::C128,
        "float32" => DType::F32,
        "float64" => DType::F64,
        "int64" => DType::I64,
        "int32" => DType::I32,
        other => panic!("{other}"),
    }
}

fn made(data: &[f64], shape: &[usize], dtype: DType) -> Tensor {
    if dtype.is_complex() {
        let pairs: Vec<Complex<f64>> = data.chunks(2).map(|p| Complex::new(p[0], p[1])).collect();
        return from_vec(pairs, shape, Device::Cpu.dtype(dtype)).unwrap();
    }
    from_vec(data.to_vec(), shape, Device::Cpu.dtype(dtype)).unwrap()
}

fn parts(t: &Tensor) -> Result<Vec<f64>> {
    if t.dtype().is_complex() { t.detach().view_as_real()?.to_f64_vec() } else { t.to_f64_vec() }
}

fn near(have: &[f64], want: &[f64], single: bool, what: &str) {
    assert_eq!(have.len(), want.len(), "{what}");
    let eps = if single { 2e-5 } else { 1e-12 };
    let size = want.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    for (a, b) in have.iter().zip(want) {
        assert!((a - b).abs() <= eps * size, "{what}: {a} and not {b}: {have:?}");
    }
}

/// The options of a row.
fn options(row: &Json) -> Vec<(&str, Arg)> {
    let given = row["kw"].as_object().unwrap().iter().filter(|(_, v)| !v.is_null());
    given
        .map(|(k, v)| {
            let value: AttrValue = match v {
                Json::String(s) => AttrValue::Str(s.as_str().into()),
                Json::Array(_) => AttrValue::Ints(ints(v).into_iter().collect()),
                Json::Bool(b) => (*b).into(),
                v => v.as_i64().unwrap().into(),
            };
            (k.as_str(), Arg::Attr(value))
        })
        .collect()
}

/// stft and istft of a row, on one rank and split over two.
fn short_pieces(row: &Json) {
    let run = |split: bool| -> Result<()> {
        let mut x = made(&numbers(&row["x"]), &[2, 23], DType::F64);
        if split {
            x = distribute(&x, (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
        }
        let mut options = options(row);
        if !row["window"].is_null() {
            let w = numbers(&row["window"]);
            let mut window = made(&w, &[w.len()], DType::F64);
            if split {
                window = distribute(&window, (&Placement::all(Device::Cpu)?, sbp![B]))?;
            }
            options.push(("window", Arg::from(&window)));
        }
        let y = call("fft.stft", &[(&x).into(), 8i64.into()], &options)?.swap_remove(0);
        assert_eq!(y.shape(), sizes(&row["size"]), "{row}");
        near(&parts(&y)?, &numbers(&row["y"]), false, &row["kw"].to_string());
        if !row["back"].is_null() {
            options.retain(|(name, _)| *name != "pad_mode");
            options.push(("length", 23i64.into()));
            let back = call("fft.istft", &[(&y).into(), 8i64.into()], &options)?.swap_remove(0);
            assert_eq!(back.dtype(), DType::F64, "a signal is real: {row}");
            near(&back.to_f64_vec()?, &numbers(&row["back"]), false, &format!("back {}", row["kw"]));
        }
        Ok(())
    };
    run(false).unwrap();
    run_ranks(2, |_| run(true)).unwrap();
}

#[test]
fn transforms_and_gradients_are_pytorchs() {
    fft::register().unwrap();
    let all: Vec<Json> = serde_json::from_str(include_str!("golden.json")).unwrap();
    let mut gradients = 0;
    for row in &all {
        let name = format!("fft.{}", row["call"].as_str().unwrap());
        if let Some(n) = row["n"].as_i64() {
            let y = call(
                &name,
                &[n.into(), oflow::interpreter::Target::Local(Device::Cpu).into(), row["d"].as_f64().unwrap().into()],
                &[],
            )
            .unwrap()
            .swap_remove(0);
            near(&y.to_f64_vec().unwrap(), &numbers(&row["y"]), true, &name);
            continue;
        }
        if name == "fft.stft" {
            short_pieces(row);
            continue;
        }
        let of = dtype(&row["dtype"]);
        let text = format!("{name} {of} {} {}", row["shape"], row["kw"]);
        let mut x = made(&numbers(&row["x"]), &sizes(&row["shape"]), of);
        if of.has_gradients() {
            x = x.requires_grad_(true).unwrap();
        }
        let options = options(row);
        let y = call(&name, &[(&x).into()], &options).unwrap_or_else(|e| panic!("{text}: {e}")).swap_remove(0);
        assert_eq!((y.dtype(), y.shape()), (dtype(&row["of"]), sizes(&row["size"]).as_slice()), "{text}");
        let single = y.dtype().part() == DType::F32;
        near(&parts(&y).unwrap(), &numbers(&row["y"]), single, &text);
        if row["grad"].is_null() {
            continue;
        }
        let weights = from_vec((1..=y.numel()).map(|i| i as f64).collect(), y.shape(), Device::Cpu).unwrap();
        let loss = y.abs().unwrap().square().unwrap().mul(&weights).unwrap().sum(()).unwrap();
        loss.backward().unwrap_or_else(|e| panic!("{text}: {e}"));
        let g = x.grad().unwrap();
        assert_eq!(g.dtype(), of, "{text}");
        near(&parts(&g).unwrap(), &numbers(&row["grad"]), single, &format!("gradient of {text}"));
        gradients += 1;
    }
    assert!(all.len() > 250 && gradients > 200, "{} {gradients}", all.len());
}

#[test]
fn split_and_partial_tensors_give_what_one_rank_gives() {
    let draw = |shape: &[usize]| {
        let n: usize = shape.iter().product();
        made(&(0..2 * n).map(|i| ((i * 29) % 31) as f64 / 8.0 - 1.7).collect::<Vec<_>>(), shape, DType::C128)
    };
    let program = |z: &Tensor| -> Result<Vec<Vec<f64>>> {
        let z = z.detach().requires_grad_(true)?;
        let y = fft::fft(&z, Dft::default())?;
        let s = fft::irfft2(&fft::ifftn(&y, DftN { s: Some(vec![6, 4]), ..Default::default() })?, DftN::default())?;
        let r = fft::rfft(&s, Dft { n: Some(5), dim: 0, norm: fft::Norm::Ortho })?;
        r.abs()?.square()?.sum(())?.backward()?;
        let grad = z.grad().ok_or_else(|| Error::autograd("no gradient"))?;
        [&y.detach(), &r.detach(), &grad].into_iter().map(parts).collect()
    };
    let want = program(&draw(&[3, 5, 4])).unwrap();
    for sbp in [Sbp::Split(0), Sbp::Split(1), Sbp::Split(2), Sbp::Broadcast, Sbp::PARTIAL_SUM] {
        for ranks in [2, 3, 5] {
            let all = run_ranks(ranks, |_| {
                let mesh = Placement::all(Device::Cpu)?;
                program(&distribute(&draw(&[3, 5, 4]), (&mesh, sbp))?)
            });
            for have in all.unwrap() {
                for (have, want) in have.iter().zip(&want) {
                    near(have, want, false, &format!("{sbp} on {ranks}"));
                }
            }
        }
    }
    // Along dims that are not split nothing moves.
    run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        for sbp in [Sbp::Split(0), Sbp::PARTIAL_SUM] {
            let z = distribute(&draw(&[4, 6]), (&mesh, sbp))?;
            let denied = boxing_policy(Policy::Deny);
            let y = fft::fft(&z, Dft::default())?;
            drop(denied);
            assert_eq!(y.sbp()?, &NdSbp::from(sbp));
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn long_lines_strides_and_what_is_refused() {
    // A prime length, through a transposed view, there and back.
    let x = made(&(0..2 * 1009).map(|i| ((i * 7) % 13) as f64 - 6.0).collect::<Vec<_>>(), &[1009, 2], DType::F64);
    let turned = x.transpose(0, 1).unwrap();
    let y = fft::rfft(&turned, Dft::default()).unwrap();
    let back = fft::irfft(&y, Dft { n: Some(1009), ..Default::default() }).unwrap();
    near(&back.to_f64_vec().unwrap(), &turned.to_f64_vec().unwrap(), false, "there and back");
    // An expanded line is the same everywhere.
    let wide = fft::fft(&x.select(1, 0).unwrap().expand([3, 1009]).unwrap(), Dft::default()).unwrap();
    assert_eq!(wide.select(0, 0).unwrap().to_bytes().unwrap(), wide.select(0, 2).unwrap().to_bytes().unwrap());
    // Nothing in another dim is fine, along the transformed one it is not.
    let empty = zeros([0, 4], Device::Cpu).unwrap();
    assert_eq!(fft::rfft(&empty, Dft::default()).unwrap().shape(), [0, 3]);
    let refused = |made: Result<Tensor>, kind: ErrorKind, words: &[&str]| {
        let e = made.map(|t| format!("{t:?}")).expect_err("refused");
        assert_eq!(e.kind(), kind, "{e}");
        assert_eq!(e.site().map(|site| site.file), Some(file!()), "{e}");
        for word in words {
            assert!(e.to_string().contains(word), "{e}");
        }
    };
    let z = x.cast(DType::C64).unwrap();
    refused(fft::fft(&empty, Dft { dim: 0, ..Default::default() }), ErrorKind::Argument, &["fft", "length 0"]);
    refused(
        fft::fft(&x, Dft { dim: 2, ..Default::default() }),
        ErrorKind::Argument,
        &["fft(f64[1009, 2])", "dim 2 is out of range"],
    );
    refused(fft::rfft(&z, Dft::default()), ErrorKind::DType, &["rfft", "must be real, not c64"]);
    refused(fft::fft(&x, Dft { n: Some(0), ..Default::default() }), ErrorKind::Argument, &["length 0"]);
    refused(
        fft::irfft(&ones([1], Device::Cpu).unwrap(), Dft::default()),
        ErrorKind::Argument,
        &["length of the result"],
    );
    let twice = DftN { dims: Some(vec![0, -2]), ..Default::default() };
    refused(fft::fftn(&x, twice), ErrorKind::Argument, &["named twice"]);
    let many = DftN { s: Some(vec![1, 2, 3]), ..Default::default() };
    refused(fft::fftn(&x, many), ErrorKind::Argument, &["3 lengths", "2 dims"]);
    refused(fft::fft(&x, Dft { n: Some(usize::MAX / 2), ..Default::default() }), ErrorKind::Shape, &["pad"]);
    refused(fft::fftfreq(0, 1.0, Device::Cpu), ErrorKind::Argument, &["no samples"]);
    let e = call("fft.fft", &[(&x).into()], &[("norm", Arg::Attr(AttrValue::Str("half".into())))]).unwrap_err();
    assert!(e.to_string().contains("'backward', 'ortho', 'forward'"), "{e}");
}

#[test]
fn frequencies_are_exact_in_their_dtype_and_layout() {
    for n in [1usize, 2, 5, 8, 9] {
        let k = |i: usize| if i < n.div_ceil(2) { i as f64 } else { i as f64 - n as f64 };
        let want: Vec<f64> = (0..n).map(|i| k(i) / (n as f64 * 0.1)).collect();
        let half: Vec<f64> = (0..n / 2 + 1).map(|i| i as f64 / (n as f64 * 0.1)).collect();
        assert_eq!(fft::fftfreq(n, 0.1, Device::Cpu.dtype(DType::F64)).unwrap().to_vec::<f64>().unwrap(), want);
        assert_eq!(fft::rfftfreq(n, 0.1, Device::Cpu.dtype(DType::F64)).unwrap().to_vec::<f64>().unwrap(), half);
        let single: Vec<f32> = want.iter().map(|x| *x as f32).collect();
        assert_eq!(fft::fftfreq(n, 0.1, Device::Cpu).unwrap().to_vec::<f32>().unwrap(), single);
        let same = run_ranks(3, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            let split = fft::fftfreq(n, 0.1, (&mesh, sbp![S(0)]).dtype(DType::F64))?;
            assert_eq!(split.sbp()?, &NdSbp::from(Sbp::Split(0)));
            split.to_vec::<f64>()
        });
        assert!(same.unwrap().iter().all(|have| *have == want));
    }
    for (made, kind, words) in [
        (fft::fftfreq(usize::MAX, 1.0, Device::Cpu), ErrorKind::Shape, "fftfreq(18446744073709551615, 1)"),
        (fft::rfftfreq(0, 1.0, Device::Cpu), ErrorKind::Argument, "rfftfreq(0, 1)"),
        (fft::fftfreq(4, 1.0, Device::Cpu.dtype(DType::I32)), ErrorKind::DType, "i32 has none"),
    ] {
        let e = made.map(|t| format!("{t:?}")).expect_err("refused");
        assert!(e.kind() == kind && e.to_string().contains(words), "{e}");
        assert_eq!(e.site().map(|site| site.file), Some(file!()), "{e}");
    }
}

#[test]
fn a_window_said_by_its_length_lies_where_the_signal_is() {
    fft::register().unwrap();
    let signal = |of: DType| made(&(0..46).map(|i| ((i * 5) % 11) as f64 - 4.0).collect::<Vec<_>>(), &[2, 23], of);
    let options = |w: Option<&Tensor>| {
        let mut all = vec![("hop_length", Arg::from(2i64)), ("win_length", 6i64.into())];
        all.extend(w.map(|w| ("window", Arg::from(w))));
        all
    };
    let both = |x: &Tensor, w: Option<&Tensor>| -> Result<[Vec<f64>; 2]> {
        let y = call("fft.stft", &[x.into(), 8i64.into()], &options(w))?.swap_remove(0);
        let back = call("fft.istft", &[(&y).into(), 8i64.into()], &options(w))?.swap_remove(0);
        Ok([parts(&y)?, back.to_f64_vec()?])
    };
    let want = both(&signal(DType::F64), Some(&ones([6], Device::Cpu.dtype(DType::F64)).unwrap())).unwrap();
    near(&want[1][..22], &signal(DType::F64).to_f64_vec().unwrap()[..22], false, "there and back");
    assert_eq!(both(&signal(DType::F64), None).unwrap(), want);
    // The dtype of the window that is made follows the signal: f32 stays f32.
    let y = call("fft.stft", &[(&signal(DType::F32)).into(), 8i64.into()], &options(None)).unwrap();
    assert_eq!(y[0].dtype(), DType::C64);
    for sbp in [Sbp::Split(0), Sbp::Broadcast, Sbp::PARTIAL_SUM] {
        let all = run_ranks(2, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            both(&distribute(&signal(DType::F64), (&mesh, sbp))?, None)
        });
        for have in all.unwrap() {
            near(&have[0], &want[0], false, &format!("{sbp}"));
            near(&have[1], &want[1], false, &format!("{sbp}, back"));
        }
    }
    let x = signal(DType::F64);
    let long = fft::Stft { win_length: Some(9), ..Default::default() };
    let e = fft::stft(&x, 8, &long).map(|t| format!("{t:?}")).expect_err("refused");
    assert!(e.to_string().contains("a window of 9 numbers is longer than a piece of 8"), "{e}");
}

/// Sizes that wrap when they are added or multiplied.
#[test]
fn sizes_that_cannot_be_addressed_are_errors() {
    let x = made(&(0..23).map(f64::from).collect::<Vec<_>>(), &[23], DType::F64);
    let y = fft::stft(&x, 8, &Default::default()).unwrap();
    let with = |hop: usize| fft::Stft { hop_length: Some(hop), ..Default::default() };
    let off = fft::Stft { center: false, ..Default::default() };
    for made in [
        fft::istft(&y, 8, Some(usize::MAX), &Default::default()),
        fft::istft(&y, 8, Some(usize::MAX - 3), &Default::default()),
        fft::istft(&y, 8, Some(usize::MAX / 2), &Default::default()),
        fft::istft(&y, 8, None, &with(usize::MAX)),
        fft::istft(&y, 8, None, &with(usize::MAX / 8)),
        fft::istft(&y, 8, None, &with(usize::MAX / 2)),
        fft::stft(&x, 8, &with(usize::MAX)),
        fft::stft(&x, 8, &with(0)),
        fft::stft(&x, usize::MAX, &Default::default()),
        fft::stft(&x, usize::MAX, &off),
        fft::fft(&x, Dft { n: Some(usize::MAX), ..Default::default() }),
        fft::irfft(&y, Dft { n: Some(usize::MAX), ..Default::default() }),
        fft::rfft(&x, Dft { n: Some(usize::MAX - 22), ..Default::default() }),
    ] {
        let e = made.map(|t| format!("{t:?}")).expect_err("refused");
        assert!(e.to_string().contains("ft("), "{e}");
        assert_eq!(e.site().map(|site| site.file), Some(file!()), "{e}");
    }
    // Steps longer than the signal leave one piece.
    assert_eq!(fft::stft(&x, 8, &with(1 << 40)).unwrap().shape(), [5, 1]);
}
