//! What users write and read: calls by name and their messages, suggestions for names, printed values, optimizers whose
//! parameters were replaced.

use oflow::functional::{Arg, ParamKind, call, functions};
use oflow::nn::{Linear, Module};
use oflow::ops::{AttrKind, AttrValue};
use oflow::optim::{AdamW, AdamWOptions, Optimizer, Sgd, SgdOptions};
use oflow::prelude::*;
use oflow::{ErrorKind, run_ranks, run_ranks_with};

/// An argument that fits the parameter's type; `round` chooses among values that most functions refuse.
fn argument(name: &str, kind: ParamKind, round: usize, position: usize) -> Result<Arg> {
    let tensors = |i: usize| -> Result<Tensor> {
        match (round + i) % 5 {
            0 => zeros([2, 3], Device::Cpu),
            1 => zeros([5, 7, 2], Device::Cpu),
            2 => zeros([3], Device::Cpu.dtype(DType::I64)),
            3 => zeros([4, 4], Device::Cpu.dtype(DType::F64)),
            _ => zeros([3], Device::Cpu.dtype(DType::Bool)),
        }
    };
    Ok(match kind {
        ParamKind::Tensor => Arg::Tensor(tensors(position)?),
        ParamKind::TensorTuple => Arg::Tensors(vec![tensors(0)?, tensors(1)?]),
        ParamKind::Target => Arg::from(Device::Cpu.into_target().target().clone()),
        ParamKind::Generator => Arg::from(&oflow::Generator::new(7)),
        ParamKind::TensorIndex => Arg::from(vec![TensorIndex::Int(round as i64), (..).into()]),
        ParamKind::Attr(k) => Arg::Attr(match k {
            AttrKind::Int => AttrValue::Int(if name == "dim" && round % 2 == 1 { -9 } else { 9 }),
            AttrKind::Float => AttrValue::Float(7.5),
            AttrKind::Bool => AttrValue::Bool(false),
            AttrKind::Ints => AttrValue::Ints([7i64, 7].as_slice().into()),
            AttrKind::Floats => return Ok("no floats".into()),
            AttrKind::Shape => AttrValue::from(&[3usize, 5][..]),
            AttrKind::Scalar => AttrValue::Scalar(Scalar::Float(7.5)),
            AttrKind::DType => AttrValue::DType([DType::Bool, DType::F32][round % 2]),
            _ => return Ok("text".into()),
        }),
    })
}

#[test]
fn every_function_called_by_name_names_itself_and_the_callers_line() {
    let names: Vec<String> = oflow::ops::all().iter().map(|o| o.name().to_string()).collect();
    let mut refused = 0;
    // What a user registers calls methods, which name themselves: the next test.
    for def in functions().into_iter().filter(|f| f.sig.name != "halves") {
        let name = def.sig.name.as_str();
        let mut tried: Vec<Vec<Arg>> = vec![vec![], vec!["text".into(); def.sig.params.len()]];
        for round in 0..5 {
            let fits = def.sig.params.iter().filter(|p| !p.keyword_only).enumerate();
            tried.push(fits.map(|(i, p)| argument(&p.name, p.kind, round, i).unwrap()).collect());
        }
        for args in tried {
            let (Err(e), line) = (call(name, &args, &[]), line!()) else { continue };
            refused += 1;
            let text = e.to_string();
            let named = text.split(['(', ':']).next().unwrap_or_default();
            // A name with its domain may stand without it.
            let bare = name.rsplit('.').next() == Some(named);
            assert!(
                named == name || bare || names.iter().any(|n| n == named),
                "{name} with {args:?} is not named in:\n{text}"
            );
            let site = e.site().map(|s| (s.file, s.line));
            assert_eq!(site, Some((file!(), line)), "{name} with {args:?}:\n{text}");
        }
    }
    assert!(refused > 300, "only {refused} calls were refused");
}

#[test]
fn a_users_function_reports_the_callers_line_too() {
    use oflow::functional::{FnBody, FnDef, register_function};
    let body = |b: &oflow::functional::Bound| {
        let x = b.tensor(0).ok_or_else(|| Error::argument("no tensor"))?;
        Ok(vec![x.split(2, 0)?.remove(0).matmul(x)?, x.chunk(2, 7)?.remove(0)])
    };
    let def = FnDef::new("halves(Tensor x) -> (Tensor a, Tensor b)", FnBody::Code(std::sync::Arc::new(body)));
    register_function(def.unwrap()).unwrap();
    for shape in [vec![4usize, 3], vec![4, 2]] {
        let x = zeros(&shape, Device::Cpu).unwrap();
        let (e, line) = (call("halves", &[(&x).into()], &[]).unwrap_err(), line!());
        assert_eq!(e.site().map(|s| (s.file, s.line)), Some((file!(), line)), "{e}");
    }
    // The next call on this thread has its own line again.
    let x = zeros([2, 3], Device::Cpu).unwrap();
    let (e, line) = (x.matmul(&x).unwrap_err(), line!());
    assert_eq!(e.site().map(|s| s.line), Some(line));
}

#[test]
fn an_argument_given_twice_is_refused() {
    let x = ones([2], Device::Cpu).unwrap();
    let e = call("leaky_relu", &[(&x).into()], &[("alpha", 0.1.into()), ("alpha", 0.2.into())]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Argument);
    assert!(e.to_string().contains("'alpha' is given twice"), "{e}");
    let e = call("add", &[(&x).into(), (&x).into()], &[("b", (&x).into())]).unwrap_err();
    assert!(e.to_string().contains("'b' is given twice"), "{e}");
}

#[test]
fn unknown_names_are_answered_by_what_serves() {
    let help = |name: &str| {
        let (e, line) = (call(name, &[], &[]).unwrap_err(), line!());
        assert_eq!((e.kind(), e.site().map(|s| (s.file, s.line))), (ErrorKind::Registry, Some((file!(), line))));
        e.help_text().unwrap_or_default().to_string()
    };
    for (name, part) in [
        ("sofmax", "did you mean 'softmax'?"),
        ("LayerNorm", "did you mean 'layer_norm'?"),
        ("softmaxx", "did you mean 'softmax'?"),
        ("mena", "did you mean 'mean'?"),
        ("swish", "silu"),
        ("torch.nn.functional.log_softmax", "did you mean 'log_softmax'?"),
    ] {
        assert!(help(name).contains(part), "{name}: {}", help(name));
    }
    assert!(help("as_tensor").contains("from_vec"));
    assert!(help("linalg.det").contains("oflow_linalg::det"), "{}", help("linalg.det"));
    assert!(help("torch.inverse").contains("oflow_linalg::inv`"), "{}", help("torch.inverse"));
    assert!(help("torch.stft").contains("oflow_fft::stft`"), "{}", help("torch.stft"));
    for absent in ["as_strided", "poisson"] {
        let h = help(absent);
        assert!(h.contains("PyTorch") && !h.contains("did you mean"), "{absent}: {h}");
    }
    assert!(!help("qzx").contains("did you mean"), "{}", help("qzx"));
}

#[test]
fn dropout_always_gives_a_new_tensor() {
    let x = ones([4], Device::Cpu).unwrap();
    let y = x.dropout(0.0).unwrap();
    y.add_(1.0).unwrap();
    assert_eq!((x.to_vec::<f32>().unwrap(), y.to_vec::<f32>().unwrap()), (vec![1.0; 4], vec![2.0; 4]));
}

/// Makes an optimizer, then lays the module out, then steps.
fn replaced<O: Optimizer>(optimizer: impl Fn(Vec<Tensor>) -> O) -> Result<()> {
    let mesh = Placement::all(Device::Cpu)?;
    let mut net = Linear::new(4, 3, Device::Cpu)?;
    let mut opt = optimizer(net.parameters());
    let line = line!() + 1;
    net.to_global(&mesh, &[("weight", sbp![S(0)])])?;
    net.forward(&ones([2, 4], (&mesh, sbp![B]))?)?.sum(())?.backward()?;
    let (e, at) = (opt.step().unwrap_err(), line!());
    let text = e.to_string();
    assert_eq!((e.kind(), e.site().map(|s| (s.file, s.line))), (ErrorKind::Autograd, Some((file!(), at))), "{text}");
    assert!(text.contains(&format!("{}:{line}", file!())), "{text}");
    assert!(text.contains("make the optimizer after"), "{text}");
    // One that is made afterwards trains.
    let (mut opt, before) = (optimizer(net.parameters()), net.weight.to_vec::<f32>()?);
    opt.step()?;
    assert_ne!(net.weight.to_vec::<f32>()?, before);
    Ok(())
}

#[test]
fn an_optimizer_of_replaced_parameters_says_so() {
    run_ranks(2, |_| {
        replaced(|p| Sgd::new(p, SgdOptions::default()))?;
        replaced(|p| AdamW::new(p, AdamWOptions::default()))
    })
    .unwrap();
}

#[test]
fn parameters_that_come_back_can_be_trained_on() {
    let mut net = Linear::new(2, 2, Device::Cpu).unwrap();
    let (mine, mut opt) = (net.parameters(), Sgd::new(net.parameters(), SgdOptions::default()));
    // Averaged weights for a while, then the trained ones again.
    net.map_parameters(&mut |_, t| t.detach().mul(0.5)?.requires_grad_(true)).unwrap();
    let mut back = mine.iter();
    net.map_parameters(&mut |_, t| Ok(back.next().unwrap_or(t).clone())).unwrap();
    assert!(net.weight.same(&mine[0]));
    // The bias takes no part in this loss: as always a parameter without a gradient is left alone.
    net.weight.sum(()).unwrap().backward().unwrap();
    opt.step().unwrap();
}

#[test]
fn a_step_without_any_gradient_is_an_error() {
    let w = ones([2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let e = Sgd::new(vec![w.clone()], SgdOptions::default()).step().unwrap_err();
    assert!(e.to_string().contains("no parameter has a gradient"), "{e}");
    Sgd::new(vec![], SgdOptions::default()).step().unwrap();
    // One parameter without a gradient among others that have one is left as it is, as in PyTorch.
    let other = ones([2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    w.sum(()).unwrap().backward().unwrap();
    Sgd::new(vec![w, other.clone()], SgdOptions::default()).step().unwrap();
    assert_eq!(other.to_vec::<f32>().unwrap(), [1.0, 1.0]);
}

#[test]
fn display_of_a_local_tensor_shows_its_values() {
    let f = |v: Vec<f32>, shape: &[usize]| from_vec(v, shape, Device::Cpu).unwrap();
    let shows = |x: &Tensor, text: &str| assert_eq!(x.to_string(), text);
    let x = f(vec![1.0, 2.0, 3.0, 4.5], &[2, 2]);
    shows(&x, "tensor([[1.0000, 2.0000],\n        [3.0000, 4.5000]], f32[2, 2] on cpu)");
    assert_eq!(format!("{x:?}"), "f32[2, 2] on cpu");
    // A view shows what it sees.
    shows(&x.t().unwrap(), "tensor([[1.0000, 3.0000],\n        [2.0000, 4.5000]], f32[2, 2] on cpu)");
    shows(&x.select(1, 1).unwrap(), "tensor([2.0000, 4.5000], f32[2] on cpu)");
    shows(&x.select(0, 0).unwrap().select(0, 0).unwrap(), "tensor(1., f32[] on cpu)");
    shows(&f(vec![7.0], &[1]).expand([3]).unwrap(), "tensor([7., 7., 7.], f32[3] on cpu)");
    // The texts of `torch.tensor(...)` with these values.
    shows(&f(vec![1.0, f32::NAN, f32::NEG_INFINITY], &[3]), "tensor([1., nan, -inf], f32[3] on cpu)");
    shows(&f(vec![100.0, 2.5, -3.0], &[3]), "tensor([100.0000,   2.5000,  -3.0000], f32[3] on cpu)");
    shows(&f(vec![1e-5, 1.0], &[2]), "tensor([1.0000e-05, 1.0000e+00], f32[2] on cpu)");
    shows(&f(vec![1.0, 1e5, 0.0], &[3]), "tensor([1.0000e+00, 1.0000e+05, 0.0000e+00], f32[3] on cpu)");
    shows(&f(vec![], &[0, 3]), "tensor([], f32[0, 3] on cpu)");
    shows(&f(vec![0.0; 6], &[2, 1, 3]), "tensor([[[0., 0., 0.]],\n\n        [[0., 0., 0.]]], f32[2, 1, 3] on cpu)");
    let bools = from_vec(vec![true, false], [2], Device::Cpu).unwrap();
    shows(&bools, "tensor([ True, False], bool[2] on cpu)");
    let ints = |n: i64| arange(n, Device::Cpu).unwrap();
    shows(&ints(3).sub(1).unwrap(), "tensor([-1,  0,  1], i64[3] on cpu)");
    shows(&ints(2000), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999], i64[2000] on cpu)");
    let lines = ints(30).to_string();
    assert!(lines.starts_with("tensor([ 0,  1,  2, ") && lines.contains(", 17,\n        18, 19, "), "{lines}");
    let big = "tensor([[   0,    1,    2,  ...,   97,   98,   99],
        [ 100,  101,  102,  ...,  197,  198,  199],
        [ 200,  201,  202,  ...,  297,  298,  299],
        ...,
        [9700, 9701, 9702,  ..., 9797, 9798, 9799],
        [9800, 9801, 9802,  ..., 9897, 9898, 9899],
        [9900, 9901, 9902,  ..., 9997, 9998, 9999]], i64[100, 100] on cpu)";
    shows(&ints(10_000).reshape([100, 100]).unwrap(), big);
    for d in [DType::F16, DType::BF16, DType::F64] {
        shows(&x.cast(d).unwrap().select(0, 0).unwrap(), &format!("tensor([1., 2.], {d}[2] on cpu)"));
    }
    let w = f(vec![0.5], &[1]).requires_grad_(true).unwrap();
    shows(&w, "tensor([0.5000], f32[1] on cpu (requires grad))");
    // Messages keep to metadata.
    assert!(x.to_vec::<i64>().unwrap_err().to_string().starts_with("f32[2, 2] on cpu cannot be read as i64"));
    // No context, no rank, another thread.
    std::thread::spawn(move || assert!(x.to_string().contains("4.5000"))).join().unwrap();
}

#[test]
fn i14_display_waits_for_a_local_tensor_and_never_communicates() {
    let mode = oflow::vm::VmMode::Async { delay_us: 300, seed: 5 };
    run_ranks_with(2, mode, |w| {
        let mesh = Placement::all(Device::Cpu)?;
        let mut x = ones([4], Device::Cpu)?;
        for _ in 0..5 {
            x = x.add(1.0)?;
        }
        assert_eq!(x.to_string(), "tensor([6., 6., 6., 6.], f32[4] on cpu)");
        let y = ones([4], (&mesh, sbp![S(0)]))?;
        oflow::take_comm_trace();
        if w.rank() == 0 {
            // On one rank only: it would hang if it communicated.
            assert_eq!(y.to_string(), "f32[4] [S(0)] on cpu[2]");
            assert_eq!(y.to_local()?.to_string(), "tensor([1., 1.], f32[2] on cpu)");
        } else {
            y.to_local()?;
        }
        assert!(oflow::take_comm_trace().is_empty());
        Ok(())
    })
    .unwrap();
}

#[test]
fn operators_take_literals_and_results() -> Result<()> {
    let x = from_vec(vec![1.0f32, 2.0], [2], Device::Cpu)?;
    let is = |t: Tensor, want: [f32; 2]| assert_eq!(t.to_vec::<f32>().unwrap(), want);
    is((&x + 1.0)?, [2.0, 3.0]);
    is((2.0 * &x)?.relu()?, [2.0, 4.0]);
    is((&x - 1)?.relu()?, [0.0, 1.0]);
    is((1 - &x)?, [0.0, -1.0]);
    is((4.0 / &x)?, [4.0, 2.0]);
    is((&x * 2.0f32)?, [2.0, 4.0]);
    is((&x * 2i64)?, [2.0, 4.0]);
    is((x.clone() * 2i32)?, [2.0, 4.0]);
    is((-1.0 * &x)?.neg()?, [1.0, 2.0]);
    is((-x.clone())?, [-1.0, -2.0]);
    is((&x * &x + &x)?.relu()?, [2.0, 6.0]);
    is((&x + &x * &x)?, [2.0, 6.0]);
    is((&x * 2.0 - &x)?, [1.0, 2.0]);
    is((&x + x.square())?, [2.0, 6.0]);
    is((2.0 * &x * &x / &x)?, [2.0, 4.0]);
    let n = 4usize;
    is((1.0 / n as f64 * &x)?, [0.25, 0.5]);
    // The first error comes out, with the line of its operator.
    let y = zeros([3], Device::Cpu)?;
    let (e, line) = ((&x * &y + &x).unwrap_err(), line!());
    assert_eq!(e.site().map(|s| (s.file, s.line)), Some((file!(), line)), "{e}");
    assert!(e.to_string().starts_with("mul("), "{e}");
    Ok(())
}

#[test]
fn eval_takes_any_arithmetic_expression() -> Result<()> {
    let x = from_vec(vec![1.0f32, 2.0], [2], Device::Cpu)?;
    let (y, n) = (&x, 3usize);
    let z = &y;
    let is = |t: Tensor, want: [f32; 2]| assert_eq!(t.to_vec::<f32>().unwrap(), want);
    is(eval!(&x)?, [1.0, 2.0]);
    is(eval!(&x * &x + y * y)?, [2.0, 8.0]);
    is(eval!(&x * 2.0 + 1)?, [3.0, 5.0]);
    is(eval!(2.0f32 * &x)?, [2.0, 4.0]);
    is(eval!(-(&x + y) * 2)?, [-4.0, -8.0]);
    is(eval!(10 - (y - 1) * 3 - -y)?, [11.0, 9.0]);
    is(eval!((&x + 1) / (y + 1) * x.square())?, [1.0, 4.0]);
    is(eval!((&x + 1)?.relu()? - x.mean(())?.exp()? * 0)?, [2.0, 3.0]);
    is(eval!(1.0 / n as f64 * &x * 6)?, [2.0, 4.0]);
    is(eval!(2 * 3 * &x - 1 / 2 * y)?, [5.5, 11.0]);
    is(eval!(&*y * *z)?, [1.0, 4.0]);
    is(eval!([&x, y][1] * [1.0, 2.0][1])?, [2.0, 4.0]);
    let a = zeros([3], Device::Cpu)?;
    let (e, line) = (eval!(1 + &x * &a + &a).unwrap_err(), line!());
    assert_eq!(e.site().map(|s| (s.file, s.line)), Some((file!(), line)), "{e}");
    assert!(e.to_string().starts_with("mul("), "{e}");
    assert!(eval!(1 + 2).unwrap_err().to_string().contains("the number 3"));
    Ok(())
}

#[test]
fn lists_layouts_and_sizes_are_taken_as_users_have_them() -> Result<()> {
    let parts = arange(6, Device::Cpu)?.split(2, 0)?;
    let refs: Vec<&Tensor> = parts.iter().collect();
    for whole in [cat(&parts, 0)?, cat(parts.clone(), 0)?, cat(&parts[..], 0)?, cat(refs, 0)?, cat([&parts[0]], 0)?] {
        assert_eq!(whole.to_vec::<i64>()?[..2], [0, 1]);
    }
    assert_eq!(stack(&parts, 1)?.shape(), [2, 3]);
    assert_eq!(stack([&parts[0], &parts[1]], -1)?.shape(), [2, 2]);
    let (e, line) = (stack(&parts, 5).unwrap_err(), line!());
    assert_eq!(e.site().map(|s| (s.file, s.line)), Some((file!(), line)), "{e}");
    assert!(stack::<Tensor>([], 0).unwrap_err().to_string().contains("no tensor to stack"));
    let x = zeros([4, 6], Device::Cpu)?;
    let (rows, sizes) = (x.shape()[0], vec![2usize, 12]);
    for (y, want) in [
        (x.reshape(x.shape())?, vec![4, 6]),
        (x.reshape(&sizes)?, vec![2, 12]),
        (x.reshape(sizes.as_slice())?, vec![2, 12]),
        (x.reshape([3i32, -1])?, vec![3, 8]),
        (x.reshape([3i64, 8])?, vec![3, 8]),
        (x.reshape((rows, 2, -1))?, vec![4, 2, 3]),
        (x.reshape(-1)?, vec![24]),
        (x.unsqueeze(0)?.expand((2, rows, -1))?, vec![2, 4, 6]),
        (x.permute([1usize, 0])?, vec![6, 4]),
        (x.sum([1usize])?, vec![4]),
        (x.sum(vec![0, 1])?.expand([3])?, vec![3]),
    ] {
        assert_eq!(y.shape(), want);
    }
    let (e, line) = (x.reshape([usize::MAX]).unwrap_err(), line!());
    assert_eq!((e.kind(), e.site().map(|s| s.line)), (ErrorKind::Shape, Some(line)), "{e}");
    run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let at = (&mesh, sbp![S(0)]);
        let x = zeros([4], &at)?;
        assert_eq!(x.to_global(&(&mesh, sbp![B]))?.to_global(&at)?.to_global(&sbp![S(0)])?.sbp()?, &at.1);
        let target = x.target();
        assert_eq!(ones([2], &target)?.sbp()?, &sbp![S(0)]);
        distribute(&arange(4, Device::Cpu)?, &at)?;
        distribute(&arange(4, Device::Cpu)?, (mesh.clone(), sbp![B]))?;
        Ok(())
    })
    .map(drop)
}

#[test]
fn the_same_dtype_or_device_gives_the_tensor_itself() -> Result<()> {
    let x = ones([2], Device::Cpu)?;
    assert!(x.cast(DType::F32)?.same(&x) && x.to_device(Device::Cpu)?.same(&x));
    let mut drop = oflow::nn::Dropout::new(0.0);
    assert!(drop.forward(&x)?.same(&x));
    drop.train(false);
    assert!(drop.forward(&x)?.same(&x));
    Ok(())
}

#[test]
fn the_error_of_ranks_is_that_of_the_rank_that_failed() {
    for failing in [0, 1] {
        let e = run_ranks(2, |world| {
            let ids = from_vec(vec![if world.rank() == failing { 9i64 } else { 0 }], [1], Device::Cpu)?;
            ones([4, 2], Device::Cpu)?.embedding(&ids)?;
            let mesh = Placement::all(Device::Cpu)?;
            ones([2], (&mesh, sbp![P]))?.to_global(sbp![B])
        })
        .unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Value, "{e}");
    }
}

#[test]
fn a_very_long_name_is_refused_at_once() {
    let e = call(&"relu".repeat(300_000), &[], &[]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Registry);
}
