//! Libraries that are wrong: each gives a sentence, and the process goes on.

use super::{build, cache, cpp::cpp, options, root, source, vec};
use oflow::ops::{BuildOptions, Library, build_and_load, find, load};
use oflow::prelude::*;
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
        (&["-DWRONG=12"], "op hostile.twice@1 is registered already"),
        (&["-DWRONG=10"], "has neither a function nor a CUDA source"),
        (&["-DWRONG=0", "-DNAME=\"a b\""], "'a b' is no name of a library"),
        (&["-DWRONG=0", "-DNAME=\"\\xff\""], "is no UTF-8"),
        (&["-DWRONG=0", "-DDEVICE=\"tpu\""], "a kernel is for the device 'tpu'"),
        (&["-DWRONG=0", "-DDECLARATION=\"twice(x\""], "op 'twice(x' of library hostile"),
        (&["-DWRONG=0", "-DDECLARATION=\"twice(x!: f32) -> ()\""], "it writes its input 'x'"),
        (&["-DWRONG=0", "-DDECLARATION=\"oflow.relu(x: f32) -> y\""], "op oflow.relu@1 is registered already"),
        (&["-DWRONG=0", "-DSIGNATURE=\"S(0), B -> S(0)\""], "declares the signature"),
        (&["-DWRONG=0", "-DTRAITS=\"quick\""], "there is no trait 'quick'"),
        (&["-DWRONG=0", "-DGRADIENT=\"z = f(x)\""], "there is no input 'z'"),
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
        (&["-DWRONG=2"], "returned 77, which is no status"),
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
    oflow::ops::unload(&hostile(&["-DWRONG=0"]).unwrap()).unwrap();
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
        ("number", "an exception that is no std::exception"),
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
    let x = ones([2, 2], Device::Cpu).unwrap();
    let e = oflow::call("throws.refuses", &[x.into()], &[]).unwrap_err();
    assert!(e.is_logical() && e.to_string().contains("x has 2 dims, not 1"), "{e}");
    oflow::ops::unload(&library).unwrap();
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
        ("name", "there is no input 'z'"),
    ] {
        let e = how(word, 2).unwrap_err().to_string();
        println!("{e}\n");
        assert!(e.contains(says) && e.contains("panics.it") && e.contains("library panics ("), "{word}: {e}");
    }
    let e = how("", 3).unwrap_err();
    assert!(e.is_logical() && e.to_string().contains("a panic of a rule"), "{e}");
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
        [(sources, "was given no source"), (&["a.py"], "is no source of an op"), (&["none.rs"], "cannot be read")]
    {
        let e = build_and_load(sources, options()).unwrap_err().to_string();
        assert!(e.contains(says), "{e}");
    }
}

#[test]
fn a_source_that_does_not_compile_shows_its_lines() {
    let folder = cache().join("broken");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text, says) in [
        ("bad.cc", "#include \"oflow_op.hpp\"\nint f() { return nothing; }\n", "bad.cc:2:"),
        ("bad.c", "int f(void) {\n  return x;\n}\n", "bad.c:2:"),
        ("bad.rs", "oflow_op::library! {\n    nothing\n}\n", "bad.rs:2:"),
        ("bad.cu", "/* oflow\nop: f(x: f32) -> y\nshapes: [n] -> [n]\n*/\n", "bad.cu:3: there is no key 'shapes'"),
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
