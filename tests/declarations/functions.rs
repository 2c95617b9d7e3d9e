//! The table of functions: what by name can be called as by method, forms in place, functions that ops of other crates declare, and
//! overloads that no call reaches.

use oflow::functional::{
    Arg, AttentionOptions, CumsumOptions, FnBody, FnDef, MatmulOptions, OneHotOptions, ParamKind, RandOptions,
    SoftplusOptions, call, call_value, functions, register_function,
};
use oflow::ops::{Grad, OpDef, register};
use oflow::prelude::*;
use std::sync::Arc;

fn one(name: &str, args: &[Arg], named: &[(&str, Arg)]) -> Result<Tensor> {
    Ok(call(name, args, named)?.remove(0))
}

fn same(a: &Tensor, b: &Tensor) {
    assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()));
    assert_eq!(bits(a), bits(b));
}

/// The bits of the elements, one NaN for all: functions are NaN outside their domains.
fn bits(t: &Tensor) -> Vec<u64> {
    let one = |x: &f64| if x.is_nan() { u64::MAX } else { x.to_bits() };
    t.to_f64_vec().unwrap().iter().map(one).collect()
}

#[test]
fn what_a_method_does_can_be_called_by_name() {
    let x = arange(24, Device::Cpu).unwrap().cast(DType::F32).unwrap().div(7.0).unwrap().reshape([2, 3, 4]).unwrap();
    let v = arange(4, Device::Cpu).unwrap().cast(DType::F32).unwrap();
    let w = x.select(0, 1).unwrap();
    let cpu = || Arg::from(Device::Cpu.into_target().target().clone());
    let t = |t: &Tensor| Arg::from(t);
    same(&one("transpose", &[t(&x), 0.into(), (-1).into()], &[]).unwrap(), &x.transpose(0, -1).unwrap());
    same(&one("transpose", &[t(&x)], &[("dim1", 2.into()), ("dim0", 1.into())]).unwrap(), &x.transpose(1, 2).unwrap());
    same(&one("flatten", &[t(&x)], &[]).unwrap(), &x.flatten(0, -1).unwrap());
    same(&one("flatten", &[t(&x)], &[("start", 1.into())]).unwrap(), &x.flatten(1, -1).unwrap());
    same(&one("expand", &[t(&v), vec![3i64, -1].into()], &[]).unwrap(), &v.expand([3, 4]).unwrap());
    same(
        &one("stack", &[vec![v.clone(), v.clone()].into()], &[("dim", 1.into())]).unwrap(),
        &stack([&v, &v], 1).unwrap(),
    );
    same(&one("var", &[t(&x)], &[("dims", vec![0i64, 2].into())]).unwrap(), &x.var([0, 2]).unwrap());
    same(&one("var", &[t(&x), 1.into()], &[]).unwrap(), &x.var(1).unwrap());
    same(&one("matmul", &[t(&x), t(&v)], &[]).unwrap(), &x.matmul(&v).unwrap());
    same(&one("matmul", &[t(&w), t(&w)], &[("transpose_b", true.into())]).unwrap(), &w.matmul_t(&w).unwrap());
    same(
        &one("layer_norm", &[t(&x)], &[("axes", 2.into())]).unwrap(),
        &x.reshape([2, 12]).unwrap().layer_norm(None, None, 1e-5).unwrap().reshape([2, 3, 4]).unwrap(),
    );
    same(&one("matmul_t", &[t(&w), t(&w)], &[]).unwrap(), &w.matmul_t(&w).unwrap());
    same(&one("layer_norm", &[t(&x), t(&v)], &[]).unwrap(), &x.layer_norm(Some(&v), None, 1e-5).unwrap());
    same(
        &one("layer_norm", &[t(&x), Arg::None, t(&v)], &[("eps", 0.5.into())]).unwrap(),
        &x.layer_norm(None, Some(&v), 0.5).unwrap(),
    );
    same(&one("rms_norm", &[t(&x)], &[]).unwrap(), &x.rms_norm(None, None).unwrap());
    let q = x.reshape([1, 2, 3, 4]).unwrap();
    same(
        &one("attention", &[t(&q), t(&q), t(&q)], &[("causal", true.into())]).unwrap(),
        &q.attention(&q, &q, true).unwrap(),
    );
    let ids = from_vec(vec![0i64, 3, 1], [3], Device::Cpu).unwrap();
    same(&one("cross_entropy", &[t(&w), t(&ids)], &[]).unwrap(), &w.cross_entropy(&ids).unwrap());
    assert_eq!(one("cross_entropy", &[t(&w), t(&ids)], &[("reduction", "none".into())]).unwrap().shape(), [3]);
    same(&one("one_hot", &[t(&ids), 4.into()], &[]).unwrap(), &ids.one_hot(4).unwrap());
    same(&one("full", &[vec![2i64].into(), 3.into(), cpu()], &[]).unwrap(), &full([2], 3i64, Device::Cpu).unwrap());
    same(
        &one("ones", &[vec![2i64].into(), cpu()], &[("dtype", DType::F64.into())]).unwrap(),
        &ones([2], Device::Cpu.dtype(DType::F64)).unwrap(),
    );
    same(
        &one("arange", &[1.into(), 2.5.into(), 0.5.into(), cpu()], &[]).unwrap(),
        &range(1i64, 2.5, 0.5, Device::Cpu).unwrap(),
    );
    same(&one("zeros_like", &[t(&x)], &[]).unwrap(), &zeros_like(&x).unwrap());
    let r = one("rand", &[vec![100i64].into(), cpu()], &[("lo", 2.0.into()), ("hi", 3.0.into())]).unwrap();
    assert!(r.to_f64_vec().unwrap().iter().all(|x| (2.0..3.0).contains(x)));
    for (parts, want) in [
        (call("split", &[t(&x), 3.into(), 2.into()], &[]), x.split(3, 2)),
        (call("chunk", &[t(&x), 2.into()], &[]), x.chunk(2, 0)),
    ] {
        let (parts, want) = (parts.unwrap(), want.unwrap());
        assert_eq!(parts.len(), want.len());
        parts.iter().zip(&want).for_each(|(a, b)| same(a, b));
    }
    let y = x.copy().unwrap();
    one("add_", &[t(&y), t(&v)], &[]).unwrap();
    one("mul_", &[t(&y), 2.into()], &[]).unwrap();
    same(&y, &x.add(&v).unwrap().mul(2i64).unwrap());
    one("copy_", &[t(&y), t(&x)], &[]).unwrap();
    same(&y, &x);
    same(&one("zero_", &[t(&y)], &[]).unwrap(), &zeros_like(&x).unwrap());
}

#[test]
fn layouts_change_by_name() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = arange(6, Device::Cpu)?;
        let g = one("distribute", &[(&x).into(), mesh.clone().into(), sbp![S(0)].into()], &[])?;
        assert_eq!(g.sbp()?, &sbp![S(0)]);
        let b = one("to_global", &[(&g).into(), sbp![B].into()], &[])?;
        assert_eq!((b.sbp()?, b.to_vec::<i64>()?), (&sbp![B], vec![0, 1, 2, 3, 4, 5]));
        let local = one("to_local", &[(&g).into()], &[])?;
        assert_eq!((local.is_global(), local.numel()), (false, 3));
        let again = one("to_global", &[local.into(), mesh.into(), sbp![S(0)].into()], &[])?;
        assert_eq!(again.to_vec::<i64>()?, x.to_vec::<i64>()?);
        Ok(())
    })
    .unwrap();
}

#[test]
fn an_overload_that_no_call_reaches_is_refused() {
    let body = || FnBody::Code(Arc::new(|b: &oflow::functional::Bound| Ok(vec![b.given(0)?.clone()])));
    let add = |text: &str| register_function(FnDef::new(text, body()).unwrap().hidden());
    add("once_hidden_test(Tensor x, Scalar s) -> Tensor").unwrap();
    let e = add("once_hidden_test(Tensor x, Int n) -> Tensor").unwrap_err();
    assert_eq!(
        e.message(),
        "no call would reach the overload once_hidden_test(Tensor x, Int n) -> Tensor: once_hidden_test(Tensor x, Scalar s) -> Tensor takes all its calls"
    );
    add("once_hidden_test(Tensor x, String s) -> Tensor").unwrap();
    // A hidden function can be called, and is not listed.
    let x = ones([2], Device::Cpu).unwrap();
    assert_eq!(one("once_hidden_test", &[(&x).into(), "a".into()], &[]).unwrap().shape(), [2]);
    assert!(functions().iter().all(|d| d.sig.name != "once_hidden_test"));
}

#[test]
fn the_texts_of_wrong_calls() {
    let x = ones([2, 3], Device::Cpu).unwrap();
    let refused = |args: &[Arg], named: &[(&str, Arg)]| call("leaky_relu", args, named).unwrap_err().to_string();
    for (args, named, text) in [
        (vec![], vec![], "'x' is missing"),
        (vec![Arg::from(&x), 0.5.into(), 0.5.into()], vec![], "takes 2 positional arguments, 3 given"),
        (vec![Arg::from(&x)], vec![("beta", Arg::from(0.5))], "has no parameter 'beta'"),
        (vec![Arg::from(&x)], vec![("x", Arg::from(&x))], "'x' is given twice: by its place and by its name"),
        (vec![Arg::from(&x)], vec![("alpha", Arg::from(0.5)), ("alpha", Arg::from(0.5))], "'alpha' is given twice"),
        (vec![Arg::from(&x)], vec![("alpha", Arg::from("a"))], "attribute 'alpha' must be float, not \"a\""),
    ] {
        let e = refused(&args, &named);
        assert!(e.contains(text) && e.contains("leaky_relu(Tensor x, Float alpha=0.01) -> Tensor"), "{text}:\n{e}");
    }
}

#[test]
fn what_has_no_halves_is_refused_by_glu_itself() {
    for (shape, dim, text) in [
        (&[][..], -1, "glu needs at least 1 dim, but x is a scalar"),
        (&[3][..], -1, "dim -1 has 3 elements: expected an even number"),
        (&[4][..], 1, "dim 1 is out of range for a tensor of 1 dims"),
        (&[4][..], i64::MIN, "is out of range for a tensor of 1 dims"),
    ] {
        let e = zeros(shape, Device::Cpu).unwrap().glu(dim).unwrap_err().to_string();
        assert!(e.contains("glu(f32[") && e.contains(text) && e.contains(file!()), "{e}");
    }
    assert_eq!(zeros([3, 0, 2], Device::Cpu).unwrap().glu(1).unwrap().shape(), [3, 0, 2]);
}

/// Two tensors for a function in place, and the other arguments.
fn arguments(def: &FnDef) -> (Tensor, Vec<Arg>) {
    let x = arange(15, Device::Cpu).unwrap().cast(DType::F64).unwrap().div(7.0).unwrap().add(0.3).unwrap();
    let row = x.narrow(0, 2, 5).unwrap();
    let mask = row.gt(0.8).unwrap();
    let rest = def.sig.params[1..].iter().map(|p| match (p.kind, p.name.as_str()) {
        (ParamKind::Tensor, "mask") => Arg::from(&mask),
        (ParamKind::Tensor, _) => Arg::from(&row),
        (_, "hi") => Arg::from(1.5),
        (_, "n") => Arg::from(2i64),
        _ => Arg::from(0.5),
    });
    (x.reshape([3, 5]).unwrap(), rest.collect())
}

#[test]
fn in_place_is_the_same_function_with_the_same_gradient() {
    let mut seen = 0;
    for def in functions() {
        let FnBody::InPlace(op) = &def.body else { continue };
        // What is of integers only has no gradient, and steps have none.
        let op = oflow::ops::find(op).unwrap();
        let first = &op.sig.inputs[0];
        if first.no_grad || !first.dtypes.contains(DType::F64) || matches!(op.grad, Grad::None | Grad::Missing) {
            continue;
        }
        let (x, rest) = arguments(&def);
        let keywords: Vec<(&str, Arg)> =
            def.sig.params[1..].iter().zip(&rest).map(|(p, a)| (p.name.as_str(), a.clone())).collect();
        let name = def.sig.name.clone();
        let gradient = |in_place: bool| {
            let leaf = x.copy().unwrap().requires_grad_(true).unwrap();
            let start = leaf.mul(1.0).unwrap();
            let called = if in_place { name.as_str() } else { name.trim_end_matches('_') };
            let y = one(called, &[Arg::from(&start)], &keywords).unwrap_or_else(|e| panic!("{e}"));
            if in_place {
                same(&y, &start);
            }
            y.mul(&y).unwrap().sum(()).unwrap().backward().unwrap();
            [bits(&y), bits(&leaf.grad().unwrap())]
        };
        assert_eq!(gradient(true), gradient(false), "{}", def.sig);
        seen += 1;
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn in_place_writes_no_other_shape_and_no_other_dtype() {
    let x = zeros([3, 5], Device::Cpu).unwrap();
    let e = ones([5], Device::Cpu).unwrap().add_(&x).unwrap_err().to_string();
    assert!(e.contains("add(") && e.contains("tests/declarations/functions.rs"), "{e}");
    let ids = arange(3, Device::Cpu).unwrap();
    let e = ids.exp_().unwrap_err().to_string();
    assert!(e.contains("exp(") && e.contains("i64"), "{e}");
    assert_eq!(ids.to_vec::<i64>().unwrap(), [0, 1, 2]);
}

#[test]
fn keyword_only_parameters_are_options() {
    let x = arange(6, Device::Cpu).unwrap().cast(DType::F32).unwrap().reshape([2, 3]).unwrap();
    let half = SoftplusOptions { beta: 0.5, ..Default::default() };
    same(&x.softplus_with(&half).unwrap(), &one("softplus", &[(&x).into()], &[("beta", 0.5.into())]).unwrap());
    same(&x.softplus_with(&SoftplusOptions::default()).unwrap(), &x.softplus().unwrap());
    let y = x.copy().unwrap();
    y.softplus_with_(&half).unwrap();
    same(&y, &x.softplus_with(&half).unwrap());
    let turned = MatmulOptions { transpose_a: true, ..Default::default() };
    same(&x.matmul_with(&x, &turned).unwrap(), &x.t().unwrap().matmul(&x).unwrap());
    let v = x.select(0, 1).unwrap();
    same(&v.matmul_with(&x, &MatmulOptions { transpose_b: true, ..turned }).unwrap(), &x.matmul(&v).unwrap());
    same(&x.cumsum_with(1, &CumsumOptions { reverse: false }).unwrap(), &x.cumsum(1).unwrap());
    let classes = OneHotOptions { dtype: DType::F32 };
    assert_eq!(arange(2, Device::Cpu).unwrap().one_hot_with(3, &classes).unwrap().dtype(), DType::F32);
    let q = x.reshape([1, 1, 2, 3]).unwrap();
    let scaled = q.attention_with(&q, &q, true, &AttentionOptions { scale: Some(0.1), ..Default::default() }).unwrap();
    same(
        &scaled,
        &one("attention", &[(&q).into(), (&q).into(), (&q).into(), true.into()], &[("scale", 0.1.into())]).unwrap(),
    );
    let r =
        oflow::functional::rand_with([50], Device::Cpu.dtype(DType::F64), &RandOptions { lo: 2.0, hi: 3.0 }).unwrap();
    assert!(r.dtype() == DType::F64 && r.to_vec::<f64>().unwrap().iter().all(|x| (2.0..3.0).contains(x)));
    assert_eq!(x.var_keepdim(0).unwrap().shape(), [1, 3]);
    assert_eq!((x.softmax(1usize).unwrap().shape(), x.argmax_keepdim(-1).unwrap().shape()), (&[2, 3][..], &[2, 1][..]));
}

#[test]
fn an_op_of_another_crate_declares_its_functions() {
    let scaled = |name: &str, by: f64| {
        OpDef::elementwise(
            &format!("{name}(x: float; by: runtime float = {by:?}, more: runtime float = 0.0) -> y"),
            "x * by + more",
        )
        .unwrap()
        .domain("declared")
    };
    let text = "scaled(Tensor x, *, Float by=2.0) -> Tensor";
    register(scaled("scaled_op", 2.0).function(text).function("times(Tensor x, Float by) -> Tensor")).unwrap();
    let x = ones([2], Device::Cpu).unwrap();
    for name in ["declared.scaled", "declared::scaled", "scaled"] {
        let y = one(name, &[(&x).into()], &[("by", 3.0.into())]).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [3.0, 3.0], "{name}");
    }
    assert_eq!(one("times", &[(&x).into(), 4.0.into()], &[]).unwrap().to_vec::<f32>().unwrap(), [4.0, 4.0]);
    // The op itself is there by its own name, with all that it takes, and so is the form in place.
    let own = one("declared.scaled_op", &[(&x).into()], &[("more", 1.0.into())]).unwrap();
    assert_eq!(own.to_vec::<f32>().unwrap(), [3.0, 3.0]);
    one("declared.scaled_", &[(&x).into()], &[]).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [2.0, 2.0]);
    assert!(functions().iter().any(|d| d.sig.to_string() == format!("declared.{text}")));

    for (op, text, why) in [
        ("a", "f(Tensor y) -> Tensor", "'Tensor y' is neither an input nor an attribute"),
        ("b", "f(Tensor x, Int by) -> Tensor", "'Int by' is neither an input nor an attribute"),
        ("c", "f(*, Float by) -> Tensor", "the input 'x' is missing"),
        ("d", "f(Tensr x) -> Tensor", "unknown type 'Tensr'"),
        ("e", "scaled(Tensor x) -> Tensor", "no call would reach the overload declared.scaled(Tensor x) -> Tensor"),
    ] {
        let e = register(scaled(op, 1.0).function(text)).map(|op| op.name()).unwrap_err();
        assert!(e.message().contains(why), "{e}");
        assert!(oflow::ops::find(&format!("declared.{op}")).is_err(), "a refused op is registered");
    }
    let needs = OpDef::elementwise("needs(x: float; by: runtime float) -> y", "x * by").unwrap().domain("declared");
    let e = register(needs.function("needs(Tensor x) -> Tensor")).map(|op| op.name()).unwrap_err();
    assert!(e.message().contains("the attribute 'by' is missing and has no default"), "{e}");
}

#[test]
fn functions_give_values_that_are_no_tensors() {
    let x = arange(6, Device::Cpu).unwrap().reshape([2, 3]).unwrap();
    let text = |name: &str, rest: &[Arg]| {
        let args: Vec<Arg> = [Arg::from(&x)].into_iter().chain(rest.iter().cloned()).collect();
        call_value(name, &args, &[]).map(|v| v.to_string())
    };
    assert_eq!(text("numel", &[]).unwrap(), "6");
    assert_eq!(text("shape", &[]).unwrap(), "[2, 3]");
    assert_eq!(text("size", &[(-1).into()]).unwrap(), "3");
    assert_eq!(text("dtype", &[]).unwrap(), "i64");
    assert_eq!(text("is_global", &[]).unwrap(), "false");
    let big = full([1], (1i64 << 53) + 1, Device::Cpu).unwrap();
    assert_eq!(call_value("item", &[big.into()], &[]).unwrap().to_string(), "9007199254740993");
    for (e, why) in [
        (text("item", &[]).unwrap_err(), "it has 6 elements"),
        (text("size", &[2.into()]).unwrap_err(), "dim 2"),
        (text("neg", &[]).unwrap_err(), "the function gives tensors"),
        (call("numel", &[Arg::from(&x)], &[]).unwrap_err(), "which is not a tensor"),
        (text("placement", &[]).unwrap_err(), "is not a global tensor"),
    ] {
        let e = e.to_string();
        assert!(e.contains(why) && e.contains("tests/declarations/functions.rs"), "{why}: {e}");
    }
    let tensors = FnBody::Code(Arc::new(|b: &oflow::functional::Bound| Ok(vec![b.given(0)?.clone()])));
    let e = FnDef::new("count_test(Tensor x) -> Int", tensors).map(|_| ()).unwrap_err();
    assert!(e.message().contains("gives tensors"), "{e}");
    let two = FnDef::new("two_test(Tensor x) -> Int", FnBody::Value(Arc::new(|_| Ok(2i64.into())))).unwrap().hidden();
    register_function(two).unwrap();
    assert_eq!(text("two_test", &[]).unwrap(), "2");
}

/// The tensor that is written is also what is read: whole, as a row that broadcasts, transposed, and as another view of it.
#[test]
fn in_place_on_views_of_the_tensor_itself_has_the_values_and_gradients_of_the_function() {
    type Other = fn(&Tensor) -> Result<Tensor>;
    let others: [(&str, Other); 4] = [
        ("itself", |x| Ok(x.clone())),
        ("a row", |x| x.select(0, 1)),
        ("transposed", |x| x.t()),
        ("a view of it", |x| x.reshape([9])?.reshape([3, 3])),
    ];
    let f64s = |t: &Tensor| t.to_f64_vec().unwrap();
    for (what, other) in others {
        for name in ["mul", "div"] {
            let run = |in_place: bool| -> Result<(Vec<f64>, Vec<f64>)> {
                let leaf = arange(9, Device::Cpu)?.cast(DType::F64)?.add(1.0)?.reshape([3, 3])?.requires_grad_(true)?;
                let x = leaf.mul(1.0)?;
                let y = other(&x)?;
                let z = match (in_place, name) {
                    (true, "mul") => x.mul_(&y)?.clone(),
                    (true, _) => x.div_(&y)?.clone(),
                    (false, "mul") => x.mul(&y)?,
                    (false, _) => x.div(&y)?,
                };
                z.square()?.sum(())?.backward()?;
                let grad = leaf.grad().ok_or_else(|| oflow::Error::autograd("no gradient"))?;
                Ok((f64s(&z), f64s(&grad)))
            };
            assert_eq!(run(true).unwrap(), run(false).unwrap(), "{name} {what}");
        }
    }
}

#[test]
fn a_recurrent_net_of_more_layers_than_can_be_counted_is_refused() -> Result<()> {
    let (x, h) = (ones([2, 5, 3], Device::Cpu)?, ones([1, 5, 4], Device::Cpu)?);
    for (layers, both_ways) in [(i64::MAX, true), (1 << 62, true), (1 << 61, false), (0, false), (-1, false)] {
        let named = [("num_layers", layers.into()), ("bidirectional", both_ways.into())];
        let e = call("gru", &[(&x).into(), (&h).into(), Arg::Tensors(vec![])], &named).unwrap_err().to_string();
        assert!(e.contains("gru(") && e.contains("there are 0 weights"), "{e}");
    }
    Ok(())
}

/// Products inside functions that are exact for their dtype stay so under autocast.
#[test]
fn statistics_and_distances_keep_their_precision_under_autocast() {
    let x = arange(90, Device::Cpu.dtype(DType::F32)).unwrap().sin().unwrap().reshape([30, 3]).unwrap();
    let all = || [x.cdist(&x, 2.0).unwrap(), x.cdist(&x, 1.0).unwrap(), x.cov().unwrap(), x.corrcoef().unwrap()];
    let plain = all();
    let _amp = autocast(oflow::ops::Autocast::Bf16);
    for (a, b) in plain.iter().zip(&all()) {
        same(a, b);
    }
}

/// `add` and `sub` take a factor by name, also in place, of the kind of the result.
#[test]
fn add_and_sub_have_an_alpha() -> Result<()> {
    let (x, y) = (from_vec(vec![1.0f32, 2.0], [2], Device::Cpu)?, from_vec(vec![3.0f32, 5.0], [2], Device::Cpu)?);
    let of = |name: &str, other: Arg, alpha: Arg| call(name, &[(&x).into(), other], &[("alpha", alpha)]);
    let values = |all: Result<Vec<Tensor>>| all?.remove(0).to_vec::<f32>();
    assert_eq!(values(of("add", (&y).into(), 2.into()))?, [7.0, 12.0]);
    assert_eq!(values(of("sub", (&y).into(), 0.5.into()))?, [-0.5, -0.5]);
    assert_eq!(values(of("add", 3.0.into(), 2.into()))?, [7.0, 8.0]);
    assert_eq!(values(of("sub_", 1.0.into(), 0.5.into()))?, [0.5, 1.5]);
    assert_eq!(values(of("add_", (&y).into(), 2.0.into()))?, [6.5, 11.5]);
    let n = arange(3, Device::Cpu)?;
    let e = call("add", &[(&n).into(), (&n).into()], &[("alpha", 0.5.into())]).unwrap_err().to_string();
    assert!(e.contains("add_scaled(") && e.contains("expected an integer for alpha"), "{e}");
    Ok(())
}

/// A function of another overload's parameters is one more; the same once more is refused.
#[test]
fn a_function_is_registered_once() -> Result<()> {
    let define = |text: &str| {
        let body = FnBody::Code(Arc::new(|b: &oflow::functional::Bound| Ok(vec![b.given(0)?.clone()])));
        register_function(FnDef::new(text, body)?)
    };
    define("registered_once(Tensor x, Int n) -> Tensor")?;
    let e = define("registered_once(Tensor x, Int n) -> Tensor").unwrap_err().to_string();
    assert!(e.contains("the function registered_once(Tensor x, Int n) -> Tensor is registered already"), "{e}");
    define("registered_once(Tensor x, String how) -> Tensor")
}
