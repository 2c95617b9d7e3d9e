//! What a library in C++ may declare and its kernels may ask: a call for each feature of the header.

use super::{build, example, options, same_on_the_gpu, source, vec};
use oflow::backend::{Experimental, use_experimental};
use oflow::functional::Arg;
use oflow::interpreter::Target;
use oflow::libraries::build_and_load;
use oflow::prelude::*;
use oflow_tests::cpp::cpp;
use oflow_tests::gpus;

/// Calls an op of the library.
fn call(name: &str, x: &Tensor) -> oflow::Result<Tensor> {
    Ok(oflow::call(&format!("features.{name}"), &[x.into()], &[])?.remove(0))
}

fn refused(name: &str, x: &Tensor) -> String {
    call(name, x).unwrap_err().to_string()
}

#[test]
fn kernels_and_rules_ask_for_what_the_header_has() {
    if !cpp() {
        return;
    }
    build(&[source("features.cc")]);
    let matrix = from_vec((0..6).map(|i| i as f32).collect(), [2, 3], Device::Cpu).unwrap();
    // A kernel that reads through strides is given a view as it is.
    for (x, strides) in [(matrix.clone(), [3i64, 1]), (matrix.transpose(0, 1).unwrap(), [1, 3])] {
        assert_eq!(call("strides", &x).unwrap().to_vec::<i64>().unwrap(), strides);
    }
    // These compare inside the kernel.
    call("shapes", &matrix).unwrap();
    call("values", &matrix).unwrap();
    let tens = call("elements", &matrix).unwrap();
    assert_eq!(tens.to_vec::<f32>().unwrap(), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
    assert!(refused("square_matrix", &matrix).contains("features.square_matrix(f32[2, 3])"));
    assert!(refused("square_matrix", &matrix).contains("the matrix is not square"));
    assert_eq!(call("square_matrix", &ones([2, 2], Device::Cpu).unwrap()).unwrap().shape(), [2, 2]);
    let wide = |x: &Tensor| call("wider", x).unwrap().dtype();
    assert_eq!(
        (wide(&matrix), wide(&matrix.cast(DType::I32).unwrap())),
        (DType::F64, DType::I64),
        "a rule by code says the dtype"
    );
}

#[test]
fn an_input_without_a_class_takes_what_is_real() {
    if !cpp() {
        return;
    }
    build(&[source("features.cc")]);
    let x = vec(&[1.0, 0.0]);
    for dtype in [DType::Bool, DType::U8, DType::I64, DType::F16, DType::BF16, DType::F64] {
        assert_eq!(call("any_real", &x.cast(dtype).unwrap()).unwrap().to_vec::<f32>().unwrap(), [1.0, 1.0], "{dtype}");
    }
    let text = refused("any_real", &x.cast(DType::C64).unwrap());
    assert!(text.contains("'x'") && text.contains("c64"), "{text}");
}

#[test]
fn kernels_run_on_empty_tensors_where_the_trait_says_so() {
    if !cpp() {
        return;
    }
    build(&[source("features.cc")]);
    let runs = || {
        oflow::call("features.runs", &[Arg::Target(Target::Local(Device::Cpu))], &[])
            .unwrap()
            .remove(0)
            .to_vec::<i64>()
            .unwrap()
    };
    let (before, empty) = (runs(), vec(&[]));
    call("run_empty", &empty).unwrap();
    call("no_run_empty", &empty).unwrap();
    assert_eq!(runs(), [before[0] + 1, before[1]]);
}

#[test]
fn a_kernel_says_how_long_its_result_is() {
    if !cpp() {
        return;
    }
    let library = build(&[source("features.cc")]);
    let half = call("first_half", &vec(&[1.0, 2.0, 3.0, 4.0, 5.0])).unwrap();
    assert_eq!((half.shape(), half.to_vec::<f32>().unwrap()), (&[2][..], vec![1.0, 2.0]));
    assert_eq!(call("first_half", &vec(&[])).unwrap().shape(), [0]);
    if gpus::cuda() {
        same_on_the_gpu(library.ops().iter().find(|op| op.sig.name == "first_half").unwrap());
    }
}

#[test]
fn the_kernel_with_the_priority_runs_and_has_its_scratch_memory() {
    if !cpp() {
        return;
    }
    build(&[source("features.cc")]);
    let x = vec(&[1.0, -2.0, 3.5]);
    assert_eq!(call("scratch", &x).unwrap().to_vec::<f32>().unwrap(), [2.0, -4.0, 7.0]);
    use_experimental(Experimental::Named(vec!["features.scratch.experimental".into()]));
    assert_eq!(call("scratch", &x).unwrap().to_vec::<f32>().unwrap(), [7.0; 3]);
    use_experimental(Experimental::None);
}

#[test]
fn what_cannot_be_built_or_run_here_is_refused_with_help() {
    if !cpp() {
        return;
    }
    let refused = |files: &[&str]| {
        let files: Vec<_> = files.iter().map(|f| source(f)).collect();
        build_and_load(&files, options()).unwrap_err().to_string()
    };
    let text = refused(&["written.cc"]);
    assert!(text.contains("x!") && text.contains("help"), "{text}");
    let text = refused(&["lists.cc", "features.cc"]);
    assert!(text.contains("OFLOW_LIBRARY") && text.contains("lists.cc") && text.contains("features.cc"), "{text}");
    // Gradients are held against the ops that they name when the library is loaded.
    let folder = tempfile::tempdir().unwrap();
    let gradient = |name: &str, gradient: &str| {
        let file = folder.path().join(format!("{name}.cc"));
        let kernel = ".cpu([](const oflow::Call &) {})";
        let text = format!(
            "#include \"oflow_op.hpp\"\nOFLOW_LIBRARY({name})\n{{\n    library.op(\"scale_grad(dy: f32; alpha: runtime float = 1.0) -> \
             dx\").gradient(\"none\"){kernel};\n    library.op(\"scale(x: f32; alpha: runtime float = 1.0) -> \
             y\").gradient(\"{gradient}\"){kernel};\n}}\n"
        );
        std::fs::write(&file, text).unwrap();
        build_and_load(&[file], options()).unwrap_err().to_string()
    };
    let text = gradient("forgets", "x = forgets.scale_grad(grad y)");
    assert!(text.contains("forgets.scale") && text.contains("alpha") && text.contains("; alpha"), "{text}");
    let text = gradient("lost", "x = lost.nowhere(grad y; alpha)");
    assert!(text.contains("the gradient of scale calls 'lost.nowhere'"), "{text}");
    // A kernel for GPUs alone.
    build(&[example("softclip.cu")]);
    let text = oflow::call("demo.softclip", &[(&vec(&[1.0])).into()], &[]).unwrap_err().to_string();
    assert!(text.contains("demo.softclip") && text.contains("cpu"), "{text}");
}
