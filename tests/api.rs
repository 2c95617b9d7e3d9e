//! What users write and read: calls by name and their messages, suggestions for names, printed values, optimizers whose
//! parameters were replaced.

use oflow::functional::{Arg, ParamKind, call, functions};
use oflow::nn::{Linear, Module};
use oflow::ops::{AttrKind, AttrValue};
use oflow::optim::{AdamW, AdamWOptions, Optimizer, Sgd, SgdOptions};
use oflow::prelude::*;
use oflow::{ErrorKind, run_ranks};

/// An argument that fits the parameter's type; `round` chooses among values that most functions refuse.
fn argument(kind: ParamKind, round: usize, position: usize) -> Result<Arg> {
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
        ParamKind::Attr(k) => Arg::Attr(match k {
            AttrKind::Int => AttrValue::Int([9, -9][round % 2]),
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
    for def in functions() {
        let name = def.sig.name.as_str();
        let mut tried: Vec<Vec<Arg>> = vec![vec![], vec!["text".into(); def.sig.params.len()]];
        for round in 0..5 {
            let fits = def.sig.params.iter().filter(|p| !p.keyword_only).enumerate();
            tried.push(fits.map(|(i, p)| argument(p.kind, round, i).unwrap()).collect());
        }
        for args in tried {
            let (Err(e), line) = (call(name, &args, &[]), line!()) else { continue };
            refused += 1;
            let text = e.to_string();
            let named = text.split(['(', ':']).next().unwrap_or_default();
            assert!(named == name || names.iter().any(|n| n == named), "{name} with {args:?} is not named in:\n{text}");
            let site = e.site().map(|s| (s.file, s.line));
            assert_eq!(site, Some((file!(), line)), "{name} with {args:?}:\n{text}");
        }
    }
    assert!(refused > 300, "only {refused} calls were refused");
}

#[test]
fn a_users_function_reports_the_callers_line_too() {
    use oflow::functional::{FnBody, register_function};
    let body = |b: &oflow::functional::Bound| {
        let x = b.tensor(0).ok_or_else(|| Error::argument("no tensor"))?;
        Ok(vec![x.split(2, 0)?.remove(0).matmul(x)?, x.chunk(2, 7)?.remove(0)])
    };
    register_function("halves(Tensor x) -> (Tensor a, Tensor b)", FnBody::Code(std::sync::Arc::new(body))).unwrap();
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
        ("addmm", "matmul"),
        ("torch.nn.functional.log_softmax", "did you mean 'log_softmax'?"),
    ] {
        assert!(help(name).contains(part), "{name}: {}", help(name));
    }
    assert!(help("addmm").contains("add"));
    for absent in ["det", "conv2d", "svd"] {
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
    let x = f(vec![1.0, 2.0, 3.0, 4.5], &[2, 2]);
    assert_eq!(x.to_string(), "tensor([[1.0000, 2.0000],\n        [3.0000, 4.5000]], f32[2, 2] on cpu)");
    assert_eq!(format!("{x:?}"), "f32[2, 2] on cpu");
    assert_eq!(f(vec![1.0, f32::NAN, f32::NEG_INFINITY], &[3]).to_string(), "tensor([1., nan, -inf], f32[3] on cpu)");
}
