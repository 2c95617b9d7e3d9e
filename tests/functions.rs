//! The table of functions: the page that lists it, what by name can be called as by method, and overloads that cannot be.

use expect_test::expect_file;
use oflow::functional::{Arg, FnBody, FnDef, call, functions, register_function};
use oflow::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// `docs/ops.md`, from the table. `UPDATE_EXPECT=1 cargo test --test functions` writes it anew.
#[test]
fn the_page_lists_every_function() {
    let mut by_name: BTreeMap<String, Vec<FnDef>> = BTreeMap::new();
    for def in functions().into_iter().filter(|d| !d.sig.name.contains("test")) {
        by_name.entry(def.sig.name.clone()).or_default().push(def);
    }
    let overloads: usize = by_name.values().map(Vec::len).sum();
    let mut page = format!(
        "# Functions\n\nThe {} functions that `oflow::functional::call` and `oflow run` call by name, {overloads} with their overloads, as text. \
         Most are methods of\n`Tensor` or functions of the prelude under the same name, with the same order of arguments. Parameters after `*` are given by name\n\
         only; a type with `?` may be left out. Overloads are tried in order. `oflow ops NAME` tells of an op its element types,\n\
         signatures, gradient and kernels.\n\nThis page is made from the table by a test; do not edit it.\n",
        by_name.len()
    );
    for (name, defs) in &by_name {
        page += &format!("\n## {name}\n\n");
        for def in defs {
            page += &format!("```text\n{}\n```\n\n{}\n\n", def.sig, def.doc.replace('[', "\\["));
        }
        page.pop();
    }
    expect_file!["../docs/ops.md"].assert_eq(&page);
    assert!(by_name.len() > 150, "{}", by_name.len());
    let silent: Vec<&String> =
        by_name.iter().filter(|(_, d)| d.iter().any(|d| d.doc.is_empty())).map(|(n, _)| n).collect();
    assert!(silent.is_empty(), "without a sentence: {silent:?}");
}

fn one(name: &str, args: &[Arg], named: &[(&str, Arg)]) -> Result<Tensor> {
    Ok(call(name, args, named)?.remove(0))
}

fn same(a: &Tensor, b: &Tensor) {
    assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()));
    assert_eq!(a.to_f64_vec().unwrap(), b.to_f64_vec().unwrap());
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
    same(&one("rms_norm", &[t(&x)], &[]).unwrap(), &x.rms_norm(None, 1e-6).unwrap());
    let q = x.reshape([1, 2, 3, 4]).unwrap();
    same(
        &one("attention", &[t(&q), t(&q), t(&q)], &[("causal", true.into())]).unwrap(),
        &q.attention(&q, &q, true).unwrap(),
    );
    let ids = from_vec(vec![0i64, 3, 1], [3], Device::Cpu).unwrap();
    same(&one("cross_entropy", &[t(&w), t(&ids)], &[]).unwrap(), &w.cross_entropy(&ids).unwrap());
    assert_eq!(one("cross_entropy", &[t(&w), t(&ids)], &[("per_row", true.into())]).unwrap().shape(), [3]);
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
        (vec![Arg::from(&x), 0.5.into()], vec![], "takes 1 positional arguments, 2 given"),
        (vec![Arg::from(&x)], vec![("beta", Arg::from(0.5))], "has no parameter 'beta'"),
        (vec![Arg::from(&x)], vec![("x", Arg::from(&x))], "'x' is given twice: by its place and by its name"),
        (vec![Arg::from(&x)], vec![("alpha", Arg::from(0.5)), ("alpha", Arg::from(0.5))], "'alpha' is given twice"),
        (vec![Arg::from(&x)], vec![("alpha", Arg::from("a"))], "attribute 'alpha' must be float, not \"a\""),
    ] {
        let e = refused(&args, &named);
        assert!(e.contains(text) && e.contains("leaky_relu(Tensor x, *, Float alpha=0.01) -> Tensor"), "{text}:\n{e}");
    }
}
