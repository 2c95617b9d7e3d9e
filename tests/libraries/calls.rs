//! C++ code that calls ops and functions: functions that compose them, gradients by code, kernels made of primitives.

use super::{build, options, same_on_the_gpu, source, vec};
use oflow::functional::{Arg, call_value, functions, overloads};
use oflow::libraries::{build_and_load, unload};
use oflow::prelude::*;
use oflow::{BackwardOptions, ErrorKind};
use oflow_tests::{cpp::cpp, gpus};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `composed.cc` is one library in several builds: one test uses it at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn one(name: &str, args: &[Arg], named: &[(&str, Arg)]) -> Tensor {
    oflow::call(name, args, named).unwrap_or_else(|e| panic!("{e}")).remove(0)
}

fn floats(x: &Tensor) -> Vec<f32> {
    x.to_vec().unwrap()
}

#[test]
fn a_function_of_a_library_composes_ops() {
    let _alone = alone();
    if !cpp() {
        return;
    }
    let library = build(&[source("composed.cc")]);
    assert!(library.functions()[0].starts_with("composed.scaled_relu(Tensor x, *, Float by=2.0)"), "{library:?}");
    let x = vec(&[-1.0, 3.0]).requires_grad_(true).unwrap();
    let y = one("composed.scaled_relu", &[(&x).into()], &[]);
    assert_eq!(floats(&y), [0.0, 6.0]);
    // Gradients flow through the ops that it calls, of higher order too.
    y.sum(()).unwrap().backward().unwrap();
    assert_eq!(floats(&x.grad().unwrap()), [0.0, 2.0]);
    // By other names, with an argument, and as an overload.
    for name in ["scaled_relu", "composed::scaled_relu"] {
        assert_eq!(floats(&one(name, &[(&x).into()], &[("by", 0.5.into())])), [0.0, 1.5]);
    }
    assert_eq!(floats(&one("scaled_relu", &[(&x).into(), vec(&[1.0, 10.0]).into()], &[])), [0.0, 30.0]);
    let listed = functions().into_iter().find(|f| f.sig.name == "composed.scaled_relu").unwrap();
    assert_eq!(listed.summary(), "relu(x) times a number.");
    assert!(!functions().iter().any(|f| f.sig.name == "composed.fails"));
    // Values, lists, optional tensors, several results, new tensors.
    let value = |name: &str, args: &[Arg], named: &[(&str, Arg)]| call_value(name, args, named).unwrap().to_string();
    assert_eq!(value("composed.told", &[(&x).into()], &[]), "\"f32 2 of 2 on cpu local with gradient\"");
    let n = [(&x).into(), Arg::from(vec![4i64, 5])];
    assert_eq!(value("composed.numbers", &n, &[]), "[4.0, 5.0, 1.0, 0.0, 2.0]");
    assert_eq!(
        value("composed.numbers", &n, &[("word", "a".into()), ("flag", false.into())]),
        "[4.0, 5.0, 0.0, 1.0, 2.0]"
    );
    let long = vec(&[1.0, 2.0, 3.0, 4.0]);
    let parts = oflow::call("composed.halves", &[(&long).into()], &[]).unwrap();
    assert_eq!((floats(&parts[0]), floats(&parts[1])), (vec![1.0, 2.0], vec![3.0, 4.0]));
    let parts = oflow::call("composed.halves", &[(&long).into(), vec(&[2.0, 1.0]).into()], &[]).unwrap();
    assert_eq!((floats(&parts[0]), floats(&parts[1])), (vec![2.0, 2.0], vec![6.0, 4.0]));
    assert_eq!(floats(&one("composed.joined", &[parts.as_slice().into()], &[])), [2.0, 2.0, 6.0, 4.0, 0.0, 0.0]);
    unload(&library).unwrap();
}

#[test]
fn a_function_of_a_library_works_on_global_tensors() {
    let _alone = alone();
    if !cpp() {
        return;
    }
    let library = build(&[source("composed.cc")]);
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = arange(6, (&mesh, sbp![B]))?.cast(DType::F32)?.sub(2.0)?.to_global(sbp![S(0)])?;
        let x = x.detach().to_leaf(true)?;
        let y = oflow::call("composed.scaled_relu", &[(&x).into()], &[("by", 3.0.into())])?.remove(0);
        assert_eq!((y.sbp()?, y.to_vec::<f32>()?), (&sbp![S(0)], vec![0.0, 0.0, 0.0, 3.0, 6.0, 9.0]));
        y.sum(())?.backward()?;
        assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [0.0, 0.0, 0.0, 3.0, 3.0, 3.0]);
        let told = call_value("composed.told", &[(&x).into()], &[])?.to_string();
        assert_eq!(told, "\"f32 6 of 6 on cpu global [S(0)] with gradient\"");
        let joined = oflow::call("composed.joined", &[[y].as_slice().into()], &[])?.remove(0);
        assert!(joined.is_global() && joined.shape() == [12]);
        Ok(())
    })
    .unwrap();
    unload(&library).unwrap();
}

#[test]
fn errors_cross_between_a_library_and_oflow() {
    let _alone = alone();
    if !cpp() {
        return;
    }
    let library = build(&[source("composed.cc")]);
    let x = ones([2, 3], Device::Cpu).unwrap();
    let how = |how: &str| oflow::call("composed.fails", &[(&x).into()], &[("how", how.into())]);
    for (word, kind, says) in [
        // An error of oflow's comes back as it was.
        ("shape", ErrorKind::Shape, "matmul("),
        ("name", ErrorKind::Registry, "unknown function 'relooo'"),
        ("overload", ErrorKind::Argument, "no overload takes these arguments"),
        ("throws", ErrorKind::Argument, "function composed.fails of library composed ("),
        ("exception", ErrorKind::Device, "panicked or threw: an exception"),
        ("two", ErrorKind::Argument, "gives 2 tensors"),
        ("value", ErrorKind::Argument, "returns a value that is not a tensor"),
        ("stale", ErrorKind::Argument, "stands for no tensor"),
        ("itself", ErrorKind::Unsupported, "call each other 32 deep"),
        ("parts", ErrorKind::Unsupported, "'relu' cannot be called in a part of `parallel_for`"),
    ] {
        let e = how(word).map(|_| panic!("{word}")).unwrap_err();
        println!("{e}\n");
        assert!(e.kind() == kind && e.to_string().contains(says), "{word}: {:?} {e}", e.kind());
        assert!(e.to_string().contains("composed.fails") && e.to_string().contains("calls.rs:"), "{e}");
    }
    for word in ["caught", "keep", "kept"] {
        how(word).unwrap_or_else(|e| panic!("{word}: {e}"));
    }
    // A kernel runs in the middle of a call.
    let e = oflow::call("composed.calls", &[vec(&[1.0]).into()], &[]).unwrap_err().to_string();
    println!("{e}");
    assert!(e.contains("'ones' cannot be called in a kernel") && e.contains("launch a primitive"), "{e}");
    let e = oflow::call("composed.scaled_relu", &[], &[]).unwrap_err().to_string();
    assert!(
        e.contains("composed.scaled_relu(Tensor x, *, Float by=2.0) -> Tensor") && e.contains("'x' is missing"),
        "{e}"
    );
    unload(&library).unwrap();
    assert!(overloads("composed.scaled_relu").is_err() && overloads("composed.fails").is_err());
}

#[test]
fn a_library_of_functions_is_replaced_and_wrong_ones_are_refused() {
    let load =
        |flags: &[&str]| build_and_load(&[source("functions.c")], flags.iter().fold(options(), |o, f| o.flag(f)));
    let call = || oflow::call("plain.times", &[vec(&[1.0]).into()], &[]).map(|y| floats(&y[0]));
    let before = oflow::ops::hash();
    load(&[]).unwrap();
    let first = oflow::ops::hash();
    assert_eq!(call().unwrap(), [2.0]);
    load(&["-DFACTOR=10"]).unwrap();
    assert_eq!(call().unwrap(), [10.0]);
    // Ranks compare the functions of libraries with their ops.
    assert!(before != first && first != oflow::ops::hash());
    for (flags, says) in [
        (&["-DSIGNATURE=\"f(Tensr x) -> Tensor\""][..], "unknown type 'Tensr'"),
        (&["-DSIGNATURE=\"other.f(Tensor x) -> Tensor\""], "cannot be the name of a function of this library"),
        (&["-DSIGNATURE=\"f(Tensor x)\"", "-DNAME=\"oflow\""], "missing '->'"),
        (&["-DSIGNATURE=\"f(Tensor x) -> Tensor\"", "-DNAME=\"oflow\""], "cannot be the name of a function"),
        (&["-DSIGNATURE=\"f(Tensor x, Generator g) -> Tensor\""], "cannot be given 'Generator g'"),
        (&["-DSIGNATURE=\"f(Placement p) -> Tensor\""], "cannot be given 'Placement p'"),
        (&["-DSIGNATURE=\"\""], "missing '->'"),
        (&["-DWRONG=20"], "it has no body"),
        (&["-DWRONG=21"], "is a null pointer"),
        (&["-DWRONG=22"], "is not a list"),
        (&["-DWRONG=23"], "is registered already"),
        (&["-DWRONG=24"], "is of version 3 of the interface for ops"),
        (&["-DWRONG=25"], "the library has no ops and no functions"),
        (&["-DWRONG=26"], "is not UTF-8"),
    ] {
        let e = load(flags).map(|l| panic!("{flags:?} gives {l:?}")).unwrap_err().to_string();
        println!("{e}\n");
        assert!(e.contains(says), "{flags:?}: {e}");
        // What was loaded before is there.
        assert_eq!(call().unwrap(), [10.0], "{flags:?}");
    }
    for (wrong, says) in [
        (1, "unknown kind 77 of arguments"),
        (2, "an argument is a null pointer"),
        (3, "the arguments of a call is not a list"),
        (4, "unknown kind 77 of values"),
        (5, "an argument is one tensor"),
        (6, "says that it has 4 bytes"),
        (7, "the name of a function is not a text"),
        (8, "12345678901 stands for no tensor"),
        (9, "returned 77, which is not a status"),
        (10, "plain.times of library plain"),
        (11, "is of version 2 of the interface"),
        (12, "gives 0 tensors"),
    ] {
        load(&[&format!("-DWRONG={wrong}")]).unwrap();
        let e = call().unwrap_err().to_string();
        println!("{e}\n");
        assert!(e.contains(says) && e.contains("plain.times"), "{wrong}: {e}");
    }
    // A function and an op have one name.
    let op = oflow::ops::OpDef::elementwise("taken(x: float) -> y", "x").unwrap().domain("plain");
    let _ = oflow::ops::register(op).unwrap();
    let e = load(&["-DSIGNATURE=\"taken(Tensor x) -> Tensor\""]).unwrap_err().to_string();
    assert!(e.contains("there is a function 'plain.taken' already"), "{e}");
    unload(&load(&[]).unwrap()).unwrap();
    assert!(call().unwrap_err().to_string().contains("unknown function 'plain.times'"));
}

#[test]
fn a_gradient_is_a_rule_in_cpp() {
    let _alone = alone();
    if !cpp() {
        return;
    }
    let library = build(&[source("rule.cc")]);
    // Sharding, first and second derivatives by finite differences.
    let weighted = *library.ops().first().unwrap();
    println!("{}", oflow::testing::conformance(weighted).unwrap_or_else(|e| panic!("{e}")));
    derivatives();
    // No graph holds a call any more.
    unload(&library).unwrap();
}

fn derivatives() {
    let leaf = |v: &[f32]| vec(v).requires_grad_(true).unwrap();
    let (x, w) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]));
    let y = one("ruled.weighted", &[(&x).into(), (&w).into()], &[("by", 2.0.into())]);
    y.sum(()).unwrap().backward().unwrap();
    assert_eq!((floats(&x.grad().unwrap()), floats(&w.grad().unwrap())), (vec![12.0, 32.0], vec![2.0, 8.0]));
    // The optional input is left out, and the gradient of the gradient.
    let x = leaf(&[1.0, 2.0]);
    let y = one("ruled.weighted", &[(&x).into()], &[]).sum(()).unwrap();
    let again = BackwardOptions { create_graph: true, ..Default::default() };
    let dx = oflow::functional::grad([&y], [&x], &again).unwrap().remove(0).unwrap();
    assert_eq!(floats(&dx), [2.0, 4.0]);
    dx.sum(()).unwrap().backward().unwrap();
    assert_eq!(floats(&x.grad().unwrap()), [2.0, 2.0]);
}

#[test]
fn a_rule_in_cpp_that_is_wrong_is_an_error() {
    let _alone = alone();
    if !cpp() {
        return;
    }
    let library = build(&[source("rule.cc")]);
    for (how, says) in [
        ("name", "wrong has no input 'z'"),
        ("index", "has no input 7"),
        ("value", "99 stands for no value"),
        ("function", "unknown function 'reloo'"),
        ("shape", "expected the shape [2]"),
        ("output", "has no output 'q'"),
        ("saved", "reads input 1, which it did not say it saves"),
        ("error", "not today"),
        ("exception", "panicked or threw: an exception"),
    ] {
        let x = vec(&[1.0, 2.0]).requires_grad_(true).unwrap();
        let y = one("ruled.wrong", &[(&x).into(), vec(&[1.0, 1.0]).into()], &[("how", how.into())]);
        let e = y.sum(()).unwrap().backward().map(|()| panic!("{how} is taken")).unwrap_err().to_string();
        println!("{e}\n");
        assert!(e.contains(says) && e.contains("ruled.wrong"), "{how}: {e}");
    }
    unload(&library).unwrap();
    let e = build_and_load(&[source("rule.cc")], options().flag("-DSAVES={\"q\"}")).unwrap_err().to_string();
    assert!(e.contains("its gradient reads 'q', which is neither an input nor an output"), "{e}");
}

#[test]
fn a_kernel_launches_primitives() {
    if !cpp() {
        return;
    }
    let library = build(&[source("primitives.cc")]);
    let dense = *library.ops().iter().find(|op| op.name() == "primitives.dense").unwrap();
    println!("{}", oflow::testing::conformance(dense).unwrap_or_else(|e| panic!("{e}")));
    let t = |v: &[f32], shape: [usize; 2]| from_vec(v.to_vec(), shape, Device::Cpu).unwrap();
    let (x, w) = (t(&[1.0, 2.0, 3.0, 4.0], [2, 2]), t(&[1.0, 0.0, 0.0, -1.0, 1.0, 1.0], [3, 2]));
    for _ in 0..2 {
        let args = [(&x).into(), (&w).into(), vec(&[0.5, 0.0, 0.0]).into()];
        let made = oflow::call("primitives.dense", &args, &[]).unwrap();
        assert_eq!(floats(&made[0]), [1.5, 0.0, 3.0, 3.5, 0.0, 7.0]);
        assert_eq!((floats(&made[1]), made[2].to_f64_vec().unwrap()), (vec![1.5, 3.5], vec![1.5, 3.5]));
        assert_eq!((floats(&made[3]), floats(&made[4])), (vec![1.0, 1.0], vec![1.0, 3.0, 2.0, 4.0]));
    }
    if gpus::cuda() {
        same_on_the_gpu(dense);
    }
    for (how, says) in [
        ("outside", "output 0 lies outside the memory of the call"),
        ("beyond", "input 0 lies outside the memory of the call"),
        ("strides", "input 0"),
        ("input", "output 0 lies outside the memory of the call"),
        ("shape", "output 0 is f32[4], the primitive was made for f32[3]"),
        ("align", "is not aligned for f32"),
        ("overlap", "output 0 shares memory with input 0"),
        ("op", "unknown op 'nothing'"),
        ("random", "it draws random numbers"),
        ("attr", "has no attribute 'alpha'"),
        ("dtype", "no kernel of 'gelu' runs on cpu for (i32[4])"),
        ("thread", "launched from another thread"),
    ] {
        let args = [vec(&[1.0, 2.0, 3.0, 4.0]).into()];
        let e = oflow::call("primitives.wrong", &args, &[("how", how.into())]).unwrap_err().to_string();
        println!("{e}\n");
        assert!(e.contains(says) && e.contains("primitives.wrong"), "{how}: {e}");
    }
    let y = one("primitives.wrong", &[vec(&[-1.0, 2.0]).into()], &[("how", "".into())]);
    assert_eq!(floats(&y), [0.0, 2.0]);
}

/// Calls what a library from bytes has: its functions, and the gradients of its ops.
fn call_all(library: &oflow::libraries::Library) {
    let x = || ones([2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    for text in library.functions() {
        let name = text.split('(').next().unwrap();
        for def in overloads(name).unwrap() {
            let tensor = |p: &&oflow::functional::FnParam| p.kind == oflow::functional::ParamKind::Tensor;
            let args: Vec<Arg> = def.sig.params.iter().filter(tensor).map(|_| x().into()).collect();
            let _ran_or_refused = oflow::functional::call_any(name, &args, &[]);
        }
    }
    for op in library.ops() {
        let made = oflow::call(op.name(), &[x().into()], &[]).unwrap_or_default();
        let _ran_or_refused = made.first().map(|y| y.sum(()).and_then(|y| y.backward()));
    }
}

#[test]
fn what_a_library_describes_and_asks_for_is_not_trusted() {
    use oflow::libraries::fuzz;
    let taken = |bytes: &[u8]| {
        let fuzzed = fuzz::load(bytes)?;
        call_all(&fuzzed.library);
        unload(&fuzzed.library)
    };
    for bytes in fuzz::recorded() {
        taken(&bytes).unwrap_or_else(|e| panic!("{e}"));
    }
    // The function of the last one gives what `relu` has returned, and the rule of the third from the end calls `relu`.
    let all = fuzz::recorded();
    let composed = fuzz::load(&all[all.len() - 1]).unwrap();
    let y = one("fuzzed.again", &[vec(&[-1.0, 2.0]).into()], &[]);
    assert_eq!(floats(&y), [0.0, 2.0]);
    unload(&composed.library).unwrap();
    let ruled = fuzz::load(&all[all.len() - 3]).unwrap();
    let x = vec(&[-1.0, 2.0]).requires_grad_(true).unwrap();
    let y = one("fuzzed.ruled", &[(&x).into()], &[]);
    y.mul(&vec(&[-3.0, 4.0])).unwrap().sum(()).unwrap().backward().unwrap();
    assert_eq!(floats(&x.grad().unwrap()), [0.0, 4.0]);
    drop(y);
    unload(&ruled.library).unwrap();
    // Bytes that are changed at random.
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    let mut ran = 0;
    for round in 0..4000 {
        let mut bytes = all[all.len() - 1 - round % 2].clone();
        for _ in 0..1 + random(4) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = random(256) as u8,
                1 => bytes[at] = random(12) as u8,
                _ => bytes[at] ^= 1 << random(8),
            }
        }
        ran += usize::from(taken(&bytes).is_ok());
    }
    println!("{ran} of 4000 were taken");
    assert!(ran > 100);
    // Rules over the axes of a mesh are asked about calls on global tensors.
    let mut ran = 0;
    for _ in 0..300 {
        let mut bytes = all[all.len() - 4].clone();
        let at = random(bytes.len());
        bytes[at] = random(128) as u8;
        let Ok(fuzzed) = fuzz::load(&bytes) else { continue };
        let ops = fuzzed.library.ops().to_vec();
        let called = oflow::run_ranks(1, |_| {
            let x = ones([5], (&Placement::all(Device::Cpu)?, sbp![B]))?;
            ops.iter().try_for_each(|op| oflow::call(op.name(), &[(&x).into()], &[]).map(drop))
        });
        ran += usize::from(called.is_ok());
        unload(&fuzzed.library).unwrap();
    }
    assert!(ran > 10, "{ran}");
}
