//! Libraries that are wrong: each gives a sentence, and the process goes on.

use super::{build, cache, conforms, options, root, source, vec};
use oflow::functional::Arg;
use oflow::libraries::{BuildOptions, Library, build_and_load, load};
use oflow::ops::{AttrValue, find};
use oflow::prelude::*;
use oflow::testing::conformance;
use oflow_tests::again::again;
use oflow_tests::cpp::cpp;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `hostile.c` is one library in several builds: one test uses it at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hostile(flags: &[&str]) -> Result<Library> {
    let all = ["-DFACTOR=2"].iter().chain(flags);
    build_and_load(&[source("hostile.c")], all.fold(options(), |o: BuildOptions, f| o.flag(f)))
}

fn call(name: &str) -> Result<Vec<f32>> {
    oflow::call(name, &[vec(&[1.0, 2.0]).into()], &[])?.remove(0).to_vec()
}

#[test]
fn a_library_that_cannot_be_used_is_refused_with_a_sentence() {
    let _alone = alone();
    for (flags, says) in [
        (&["-DWRONG=0", "-DMAJOR=2"][..], "of version 2 of the interface for ops, this oflow has 1"),
        (&["-DWRONG=13"], "has no function `oflow_op_library`"),
        (&["-DWRONG=14"], "is a null pointer"),
        (&["-DWRONG=15"], "is not aligned"),
        (&["-DWRONG=11"], "is a null pointer"),
        (&["-DWRONG=0", "-DOP_SIZE=4"], "says that it has 4 bytes"),
        // A field would be cut in two.
        (&["-DWRONG=0", "-DOP_SIZE=300"], "says that it has 300 bytes"),
        (&["-DWRONG=12"], "op hostile.twice@1 is registered already"),
        (&["-DWRONG=10"], "has neither a function nor a CUDA source"),
        (&["-DWRONG=0", "-DNAME=\"a b\""], "'a b' cannot be the name of a library"),
        (&["-DWRONG=0", "-DNAME=\"\\xff\""], "is not UTF-8"),
        (&["-DWRONG=0", "-DDEVICE=\"tpu\""], "a kernel is for the device 'tpu'"),
        (&["-DWRONG=0", "-DDECLARATION=\"twice(x\""], "op 'twice(x' of library hostile"),
        (&["-DWRONG=0", "-DDECLARATION=\"twice(x!: f32) -> ()\""], "it writes its input 'x'"),
        (&["-DWRONG=0", "-DDECLARATION=\"oflow.relu(x: f32) -> y\""], "op oflow.relu@1 is registered already"),
        (&["-DWRONG=0", "-DSIGNATURE=\"S(0), B -> S(0)\""], "declares the signature"),
        (&["-DWRONG=0", "-DTRAITS=\"quick\""], "unknown trait 'quick'"),
        (&["-DWRONG=0", "-DGRADIENT=\"z = f(x)\""], "unknown input 'z'"),
    ] {
        let e = hostile(flags).map(|l| panic!("{flags:?} gives {l:?}")).unwrap_err().to_string();
        println!("{e}\n");
        assert!(e.contains(says), "{flags:?}: {e}");
        assert!(find("hostile.twice").is_err(), "{flags:?}");
    }
}

#[test]
fn a_kernel_or_rule_that_fails_is_an_error_of_the_call() {
    let _alone = alone();
    for (flags, says) in [
        (&["-DWRONG=1"][..], "no luck today"),
        (&["-DWRONG=2"], "returned 77, which is not a status"),
        (&["-DWRONG=3"], "a kernel of op hostile.twice@1"),
        (&["-DWRONG=4", "-DTRAITS=\"length_by_kernel\""], "it says the length 1000; there is room for 2"),
        (&["-DWRONG=5", "-DTRAITS=\"length_by_kernel\""], "it says no length"),
        (&["-DWRONG=6"], "it gives 0 of 1 outputs"),
        (&["-DWRONG=7"], "has more bytes than memory has addresses"),
        (&["-DWRONG=8"], "the shape rule of op hostile.twice@1"),
        (&["-DWRONG=16"], "the shapes are secret"),
    ] {
        hostile(flags).unwrap_or_else(|e| panic!("{flags:?}: {e}"));
        let e = call("hostile.twice").unwrap_err().to_string();
        println!("{e}\n");
        assert!(e.contains(says), "{flags:?}: {e}");
        assert!(e.contains("hostile.twice") && (e.contains("hostile (") || says.contains("addresses")), "{e}");
    }
    hostile(&["-DWRONG=9"]).unwrap();
    let wrong = oflow::run_ranks(2, |w| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones([4], (&mesh, sbp![B]))?;
        Ok((w.rank(), oflow::call("hostile.twice", &[x.into()], &[]).map(drop).map_err(|e| e.to_string())))
    });
    for (rank, found) in wrong.unwrap() {
        let e = found.unwrap_err();
        assert!(e.contains("gives 'S(0) -> nowhere'"), "rank {rank}: {e}");
    }
    // The next build is whole.
    hostile(&["-DWRONG=0"]).unwrap();
    assert_eq!(call("hostile.twice").unwrap(), [2.0, 4.0]);
    oflow::libraries::unload(&hostile(&["-DWRONG=0"]).unwrap()).unwrap();
}

#[test]
fn rules_over_mesh_axes_that_give_what_cannot_be_are_errors_of_the_call() {
    let _alone = alone();
    let is_not_read = "is not a signature over several mesh axes";
    let twice = || {
        let ranks = oflow::run_ranks(2, |_| {
            let x = ones([4], (&Placement::all(Device::Cpu)?, sbp![B]))?;
            let called = oflow::call("hostile.twice", &[x.into()], &[]).and_then(|y| y[0].to_vec::<f32>());
            Ok(called.map_err(|e| (e.is_logical(), e.to_string())))
        });
        ranks.unwrap()
    };
    for (rule, flags, says) in [
        ("nd_infer_rule", &["-DROW=\"[S(0)] -> nowhere\""][..], "'nowhere' has no brackets"),
        ("nd_infer_rule", &["-DROW=\"[S(0)\""], is_not_read),
        ("nd_infer_rule", &["-DROW=\"[S(0)], [B] -> [S(0)]\""], "it is of 2 inputs and 1 outputs"),
        ("nd_infer_rule", &["-DROW=\"[S(0), S(0)] -> [B, B]\""], "the call has 1 inputs and 1 outputs on 1 mesh axes"),
        ("nd_infer_rule", &["-DROW=\"[S(5)] -> [B]\""], "which has no dim 5"),
        ("nd_infer_rule", &["-DROW=\"\"", "-DSTATUS=77"], "returned 77, which is not a status"),
        ("nd_infer_rule", &["-DROW=\"\"", "-DSTATUS=OFLOW_PANIC"], "panicked or threw"),
        ("nd_choose", &["-DROW=\"[S(0)] -> nowhere\""], "'nowhere' has no brackets"),
        ("nd_choose", &["-DROW=\"[S(0)] -> [B]\""], "takes [S(0)] -> [B], which is none of its signatures"),
        ("nd_choose", &["-DROW=\"[S(0)] -> [S(0)]\"", "-DTIMES=2"], "gives 2 signatures"),
        ("nd_choose", &["-DROW=\"\"", "-DSTATUS=OFLOW_ERROR"], "it does not say why"),
        // A text that is longer than a text may be is not taken, so the rule says nothing.
        ("nd_choose", &["-DROW=\"x\"", "-DLENGTH=((size_t)-1)", "-DSTATUS=OFLOW_ERROR"], "it does not say why"),
    ] {
        let rule_flag = format!("-DRULE={rule}");
        let flags: Vec<&str> = ["-DWRONG=0", &rule_flag].iter().chain(flags).copied().collect();
        hostile(&flags).unwrap_or_else(|e| panic!("{flags:?}: {e}"));
        for (rank, found) in twice().into_iter().enumerate() {
            let (logical, e) = found.map(|y| panic!("{flags:?}: {y:?}")).unwrap_err();
            assert!(e.contains(says) && e.contains("hostile.twice"), "rank {rank}, {flags:?}: {e}");
            assert!(logical && (e.contains("hostile (") || says.contains("no dim")), "rank {rank}, {flags:?}: {e}");
        }
    }
    // A library of the version before has no such rules: the struct ends before them.
    let before = "-DOP_SIZE=offsetof(oflow_op_def, nd_infer_rule)";
    hostile(&["-DWRONG=0", "-DRULE=nd_choose", "-DROW=\"[B] -> nowhere\"", before]).unwrap();
    assert_eq!(twice(), [Ok(vec![2.0; 4]), Ok(vec![2.0; 4])]);
    oflow::libraries::unload(&hostile(&["-DWRONG=0"]).unwrap()).unwrap();
}

#[test]
fn exceptions_stay_in_the_library() {
    if !cpp() {
        return;
    }
    let library = build_and_load(&[source("throws.cc")], options().debug(true)).unwrap();
    let how = |how: &str| {
        let args = [("how", how.into())];
        oflow::call("throws.it", &[vec(&[0.0]).into()], &args).and_then(|y| y[0].to_vec::<f32>())
    };
    for (word, says) in [
        ("error", "an error of the op"),
        ("exception", "panicked or threw: an exception"),
        ("number", "an exception that is not a std::exception"),
        ("thread", "an error of a part"),
        ("dtype", "'y' is f32, not f64"),
        ("bounds", "index 100 of a dim of size 1"),
        ("lossy", "the parameter 2147483648 does not fit its type"),
    ] {
        let e = how(word).unwrap_err().to_string();
        println!("{e}\n");
        assert!(e.contains(says) && e.contains("throws.it") && e.contains("library throws ("), "{word}: {e}");
    }
    assert_eq!(how("sum").unwrap(), [2147483648.0]);
    for (name, says) in [("lists", "panicked or threw: a list"), ("takes", "an exception that is not a std::exception")]
    {
        let e = oflow::run_ranks(1, |_| {
            let x = ones([4], (&Placement::all(Device::Cpu)?, sbp![B]))?;
            oflow::call(&format!("throws.{name}"), &[x.into()], &[]).map(drop)
        });
        let e = e.unwrap_err().to_string();
        assert!(e.contains(says) && e.contains(&format!("op throws.{name}@1 of library throws (")), "{e}");
    }
    let x = ones([2, 2], Device::Cpu).unwrap();
    let e = oflow::call("throws.refuses", &[x.into()], &[]).unwrap_err();
    assert!(e.is_logical() && e.to_string().contains("x has 2 dims, not 1"), "{e}");
    oflow::libraries::unload(&library).unwrap();
    let e = build_and_load(&[source("throws.cc")], options().flag("-DBROKEN")).unwrap_err().to_string();
    assert!(e.contains("could not declare its ops: no ops today"), "{e}");
}

#[test]
fn panics_stay_in_the_library() {
    build(&[source("panics.rs")]);
    let how = |how: &str, n: usize| {
        let args = [("how", how.into())];
        oflow::call("panics.it", &[vec(&vec![0.0; n]).into()], &args).map(drop)
    };
    for (word, says) in [
        ("panic", "panicked or threw: a panic of the op"),
        ("error", "an error of the op"),
        ("thread", "panicked or threw: a panic of a part"),
        ("dtype", "'y' is f32, not f64"),
        ("name", "unknown input 'z'"),
    ] {
        let e = how(word, 2).unwrap_err().to_string();
        println!("{e}\n");
        assert!(e.contains(says) && e.contains("panics.it") && e.contains("library panics ("), "{word}: {e}");
    }
    let e = how("", 3).unwrap_err();
    assert!(e.is_logical() && e.to_string().contains("a panic of a rule"), "{e}");
    let e = oflow::run_ranks(1, |_| {
        let x = ones([4], (&Placement::all(Device::Cpu)?, sbp![B]))?;
        oflow::call("panics.takes", &[x.into()], &[]).map(drop)
    });
    let e = e.unwrap_err().to_string();
    assert!(
        e.contains("panicked or threw: a panic of a choice") && e.contains("op panics.takes@1 of library panics ("),
        "{e}"
    );
    how("", 2).unwrap();
}

#[test]
fn files_that_are_no_libraries() {
    for (path, says) in [
        (root().join("Cargo.toml"), "cannot be loaded"),
        (root().join("none.so"), "cannot be read"),
        (root().join("src"), "cannot be read"),
    ] {
        let e = load(&path).unwrap_err().to_string();
        println!("{e}\n");
        assert!(e.contains(says), "{e}");
    }
    let sources: &[&str] = &[];
    for (sources, says) in
        [(sources, "was given no source"), (&["a.py"], "is not a source of an op"), (&["none.rs"], "cannot be read")]
    {
        let e = build_and_load(sources, options()).unwrap_err().to_string();
        assert!(e.contains(says), "{e}");
    }
}

/// The built library of the sources of these tests whose name begins so.
fn built(name: &str) -> PathBuf {
    let folders = std::fs::read_dir(cache()).unwrap().map(|f| f.unwrap().path());
    let files = folders.filter(|f| f.is_dir()).flat_map(|f| std::fs::read_dir(f).unwrap()).map(|f| f.unwrap().path());
    let named = |f: &PathBuf| f.extension().is_some_and(|e| e == "so") && f.display().to_string().contains(name);
    files.filter(named).max().unwrap_or_else(|| panic!("no library {name} was built"))
}

#[test]
fn a_library_that_would_kill_the_process_is_refused_before_it_runs() {
    let e = build_and_load(&[source("unlinked.c")], options()).unwrap_err().to_string();
    println!("{e}\n");
    assert!(e.contains("unlinked.c cannot be loaded") && e.contains("undefined symbol: nowhere_at_all"), "{e}");
    assert!(e.contains("help: link what defines it"), "{e}");
    // Files that are cut off, and what is no file.
    let _alone = alone();
    hostile(&["-DWRONG=0"]).unwrap();
    let whole = std::fs::read(built("hostile")).unwrap();
    let cut = cache().join("cut.so");
    for part in [0, 1, 63, 64, 500, whole.len() / 3, whole.len() / 2] {
        std::fs::write(&cut, &whole[..part]).unwrap();
        let e = load(&cut).unwrap_err().to_string();
        assert!(e.contains("cut.so cannot be loaded: it is"), "{part}: {e}");
    }
    let pipe = cache().join("pipe.so");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    for path in [&pipe, Path::new("/dev/zero"), Path::new("/dev/null")] {
        let e = load(path).unwrap_err().to_string();
        assert!(e.contains("is not a regular file"), "{e}");
    }
    let as_source = cache().join("pipe.c");
    rustix::fs::mknodat(rustix::fs::CWD, &as_source, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    assert!(build_and_load(&[&as_source], options()).unwrap_err().to_string().contains("not a regular file"));
}

/// The process that runs this test again, for ends of a process.
const AGAIN: &str = "OFLOW_TEST_LIBRARY_ENDS";

#[test]
fn a_constructor_that_throws_ends_the_process_and_names_its_library() {
    if !cpp() {
        return;
    }
    if std::env::var_os(AGAIN).is_some() {
        let e = build_and_load(&[source("constructor.cc")], options());
        panic!("the process goes on: {e:?}");
    }
    let name = "hostile::a_constructor_that_throws_ends_the_process_and_names_its_library";
    let ended = again(name).env(AGAIN, "1").output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    println!("{said}");
    assert!(!ended.status.success() && !said.contains("the process goes on"), "{:?}", ended.status);
    assert!(said.contains("while the library") && said.contains("constructor.cc is opened"), "{said}");
}

#[test]
fn kernels_do_not_read_beyond_what_factors_say() {
    if !cpp() {
        return;
    }
    let library = build_and_load(&[source("sized.cc")], options().flag("-DFACTOR=2")).unwrap();
    let plus = |shape: &[usize]| {
        let (x, g) = (zeros([40, 60], Device::Cpu)?, ones(shape, Device::Cpu)?);
        oflow::call("sized.plus", &[x.into(), g.into()], &[])
    };
    plus(&[40, 60]).unwrap();
    for shape in [[2, 3], [1, 1], [40, 59], [39, 60], [40, 61]] {
        let e = plus(&shape).unwrap_err();
        assert!(e.is_logical() && e.to_string().contains("input 'g' has the shape"), "{e}");
    }
    conforms(&library);
    // A gradient that is 100 times too large, of ops that take f32 alone.
    let wrong = build_and_load(&[source("sized.cc")], options().flag("-DFACTOR=200")).unwrap();
    let gated = wrong.ops().iter().find(|op| op.name() == "sized.gated").unwrap();
    let e = conformance(gated).unwrap_err().to_string();
    println!("{e}");
    assert!(e.contains("sized.gated: the gradient of input 1, element 0 is") && e.lines().count() <= 6, "{e}");
}

#[test]
fn lists_and_values_are_what_the_declaration_says() {
    if !cpp() {
        return;
    }
    build_and_load(&[source("lists.cc")], options()).unwrap();
    let call = |name: &str, attrs: &[(&str, AttrValue)]| -> Vec<f32> {
        let attrs: Vec<(&str, Arg)> = attrs.iter().map(|(n, v)| (*n, Arg::Attr(v.clone()))).collect();
        oflow::call(name, &[vec(&[0.0]).into()], &attrs).unwrap().remove(0).to_vec().unwrap()
    };
    // Empty ones too.
    assert_eq!(call("lists.sizes", &[]), [0.0; 6]);
    let list = |all: &[AttrValue]| AttrValue::List(all.to_vec().into());
    let mixed = list(&[Scalar::Int(1).into(), Scalar::Float(2.5).into()]);
    let given = [
        ("names", list(&[AttrValue::Str("a".into()), AttrValue::Str("b".into())])),
        ("flags", list(&[AttrValue::Bool(true)])),
        ("types", list(&[DType::F32.into(), DType::I64.into(), DType::Bool.into()])),
        ("numbers", mixed),
        ("dims", AttrValue::from([7i64, 8, 9, 10])),
    ];
    assert_eq!(call("lists.sizes", &given), [2.0, 1.0, 3.0, 2.0, 4.0, 3.5]);
    assert_eq!(call("lists.values", &[]), [3.0, 4.5, -4.5, 1.0, 1.0, 0.0]);
    let complex = AttrValue::Scalar(oflow::kernels::Scalar::Complex(1.0, 2.0));
    for (name, value) in [("s", complex.clone()), ("all", vec![complex.to_scalar().unwrap()].into())] {
        let x = from_vec(vec![1.0f32], [1], Device::Cpu).unwrap();
        let e = oflow::call("lists.takes", &[x.into()], &[(name, Arg::Attr(value))]).unwrap_err().to_string();
        assert!(e.contains(&format!("'{name}' is a complex number, which an op of a library cannot be given")), "{e}");
    }
    let numbers = |x: Tensor| oflow::call("lists.numbers", &[x.into()], &[]);
    let x = from_vec(vec![-1.5f32, 2.0], [2], Device::Cpu).unwrap();
    let quantised = x.quantize(DType::qint8(0.5, 3).unwrap()).unwrap();
    assert_eq!(numbers(quantised).unwrap()[0].to_vec::<f32>().unwrap(), [-1.5, 2.0]);
    let e = numbers(x).unwrap_err().to_string();
    assert!(e.contains("another type: f32"), "{e}");
}

#[test]
fn each_element_type_has_its_kernel() {
    if !cpp() {
        return;
    }
    build_and_load(&[source("sized.cc")], options().flag("-DFACTOR=2")).unwrap();
    let of = |dtype: DType| from_vec(vec![1.0, 2.0], [2], Device::Cpu.dtype(dtype)).unwrap();
    for (op, dtype) in
        [("inc", DType::I32), ("inc", DType::I64), ("mix", DType::F32), ("mix", DType::I64), ("inc", DType::I32)]
    {
        let y = oflow::call(&format!("sized.{op}"), &[of(dtype).into()], &[]).unwrap().remove(0);
        assert_eq!((y.dtype(), y.to_f64_vec().unwrap()), (dtype, vec![2.0, 3.0]), "{op} {dtype}");
    }
    for (x, ids, kernel) in [(DType::F32, DType::I64, 1), (DType::F64, DType::I32, 1), (DType::BF16, DType::I64, 2)] {
        let y = oflow::call("sized.which", &[of(x).into(), of(ids).into()], &[]).unwrap().remove(0);
        assert_eq!(y.item().unwrap(), f64::from(kernel), "{x} {ids}");
    }
    let e = oflow::call("sized.which", &[of(DType::F16).into(), of(DType::I64).into()], &[]).unwrap_err();
    assert!(e.to_string().contains("no kernel of 'sized.which'"), "{e}");
}

#[test]
fn a_source_that_does_not_compile_shows_its_lines() {
    let folder = cache().join("broken");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text, says) in [
        ("bad.cc", "#include \"oflow_op.hpp\"\nint f() { return nothing; }\n", "bad.cc:2:"),
        ("bad.c", "int f(void) {\n  return x;\n}\n", "bad.c:2:"),
        ("bad.rs", "oflow_op::library! {\n    nothing\n}\n", "bad.rs:2:"),
        ("bad.cu", "/* oflow\nop: f(x: f32) -> y\nshapes: [n] -> [n]\n*/\n", "bad.cu:3: unknown key 'shapes'"),
        ("none.cu", "__global__ void f() {}\n", "declares no op"),
        ("open.cu", "/* oflow\nop: f(x: f32) -> y\n", "open.cu:1: the comment of the op has no end"),
        ("entry.cu", "/* oflow\nop: f(x: f32) -> y\n*/\n", "has no line 'kernel: "),
    ] {
        if name.ends_with(".cc") && !cpp() {
            continue;
        }
        let file = folder.join(name);
        std::fs::write(&file, text).unwrap();
        let e = build_and_load(&[&file], options()).unwrap_err().to_string();
        println!("{e}\n");
        assert!(e.contains(says), "{name}: {e}");
    }
}
