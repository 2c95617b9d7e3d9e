//! A library that is loaded again, changed, in use, unloaded.

use super::{cache, options, vec};
use oflow::graph::{Graph, GraphOptions};
use oflow::libraries::{Library, build_and_load, load, loaded, unload};
use oflow::ops::find;
use oflow::prelude::*;
use oflow_tests::cpp::cpp;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    let folder = cache().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A library with the op `name` of domain `domain`, which multiplies by `FACTOR`.
fn text(domain: &str, factor: &str) -> String {
    format!(
        "#include \"oflow_op.hpp\"\n#include \"factor.h\"\n\
         static void run(const oflow::Call &c) {{\n\
           const float *x = c.input(0).data<float>(); float *y = c.output(0).data<float>();\n\
           for (int64_t i = 0; i < c.output(0).size(); ++i) y[i] = ({factor}) * x[i];\n\
         }}\n\
         OFLOW_LIBRARY({domain}) {{\n\
           library.op(\"times(x: f32) -> y\").signatures({{\"S(0) -> S(0)\"}})\n\
             .gradient(\"x = {domain}.times(grad y)\").samples({{\"f32[4]\"}}).cpu(run);\n\
         }}\n"
    )
}

fn built(file: &Path) -> Library {
    build_and_load(&[file], options()).unwrap_or_else(|e| panic!("{e}"))
}

fn times(domain: &str) -> Result<f64> {
    oflow::call(&format!("{domain}.times"), &[vec(&[1.0]).into()], &[])?.remove(0).item()
}

#[test]
fn a_changed_source_is_built_again_and_an_unchanged_one_is_loaded() {
    if !cpp() {
        return;
    }
    let folder = folder("changed");
    let (file, header) = (folder.join("times.cc"), folder.join("factor.h"));
    std::fs::write(&header, "#define FACTOR 3\n").unwrap();
    std::fs::write(&file, text("changed", "FACTOR")).unwrap();
    let first = built(&file);
    assert_eq!(times("changed").unwrap(), 3.0);
    // Nothing has changed: the same library.
    assert_eq!(built(&file).hash(), first.hash());
    assert_eq!(find("changed.times").unwrap().id(), first.ops()[0].id());
    // A header counts as the source does.
    std::fs::write(&header, "#define FACTOR 5\n").unwrap();
    let second = built(&file);
    assert_ne!(second.hash(), first.hash());
    assert_eq!(times("changed").unwrap(), 5.0);
    std::fs::write(&file, text("changed", "FACTOR + 1")).unwrap();
    built(&file);
    assert_eq!(times("changed").unwrap(), 6.0);
    // One that does not compile leaves what is there.
    std::fs::write(&file, text("changed", "NOTHING")).unwrap();
    build_and_load(&[&file], options()).unwrap_err();
    assert_eq!(times("changed").unwrap(), 6.0);
    // The op that was found before is gone, and says so.
    let e = oflow::interpreter::Call::new(first.ops()[0], &[Some(&vec(&[1.0]))]).run1().unwrap_err().to_string();
    assert!(e.contains("op changed.times@1 is gone: its library was unloaded"), "{e}");
    let e = unload(&first).unwrap_err().to_string();
    assert!(e.contains("is not loaded"), "{e}");
}

/// A library that was built of another source is another one, though its declarations are the same.
#[test]
fn a_saved_graph_is_refused_after_its_library_has_changed() {
    if !cpp() {
        return;
    }
    let folder = folder("saved");
    let (file, header, plan) = (folder.join("times.cc"), folder.join("factor.h"), folder.join("plan"));
    std::fs::write(&header, "#define FACTOR 3\n").unwrap();
    std::fs::write(&file, text("saved", "FACTOR")).unwrap();
    built(&file);
    let x = vec(&[1.0, 2.0]);
    let graph = Graph::build(
        |g| Ok(oflow::call("saved.times", &[(&g.input("x", &x)?).into()], &[])?.remove(0)),
        GraphOptions::default(),
    );
    graph.unwrap().save(&plan, &[]).unwrap();
    let load = || Graph::<Tensor>::load(&plan, &mut []);
    assert_eq!(load().unwrap().run(&[&x]).unwrap().to_vec::<f32>().unwrap(), [3.0, 6.0]);
    std::fs::write(&header, "#define FACTOR 5\n").unwrap();
    let changed = built(&file);
    let e = load().err().unwrap().to_string();
    assert!(e.contains("the declaration of saved.times@1, or its library saved, has changed"), "{e}");
    std::fs::write(&header, "#define FACTOR 3\n").unwrap();
    let again = built(&file);
    assert_ne!(again.hash(), changed.hash());
    assert_eq!(load().unwrap().run(&[&x]).unwrap().to_vec::<f32>().unwrap(), [3.0, 6.0]);
    unload(&again).unwrap();
    let e = load().err().unwrap().to_string();
    assert!(e.contains("saved.times@1, which is not registered"), "{e}");
}

/// Compilers write such names in another way into the lists of what they have read.
#[test]
fn files_with_odd_names_are_followed_too() {
    if !cpp() {
        return;
    }
    let folder = folder("odd $name #1");
    let (file, header) = (folder.join("odd name.cc"), folder.join("factor.h"));
    std::fs::write(&header, "#define FACTOR 3\n").unwrap();
    std::fs::write(&file, text("odd", "FACTOR")).unwrap();
    built(&file);
    assert_eq!(times("odd").unwrap(), 3.0);
    std::fs::write(&header, "#define FACTOR 5\n").unwrap();
    built(&file);
    assert_eq!(times("odd").unwrap(), 5.0);
    // A module of a Rust source counts as well, and the source may have a name that no package can have.
    let (file, part) = (folder.join("3 fn.rs"), folder.join("part.rs"));
    std::fs::write(&part, "pub const FACTOR: f32 = 3.0;\n").unwrap();
    let source = "mod part;\nuse oflow_op::{Call, Library, Op, Outputs, Result};\n\
                  fn run(call: &Call, out: &mut Outputs) -> Result<()> {\n\
                  out.slice::<f32>(0)?.iter_mut().zip(call.input::<f32>(0)?).for_each(|(y, x)| *y = part::FACTOR * x);\nOk(())\n}\n\
                  oflow_op::library! { Library::new(\"odd_rust\").op(Op::new(\"times(x: f32) -> y\").cpu(run)) }\n";
    std::fs::write(&file, source).unwrap();
    built(&file);
    assert_eq!(times("odd_rust").unwrap(), 3.0);
    std::fs::write(&part, "pub const FACTOR: f32 = 5.0;\n").unwrap();
    built(&file);
    assert_eq!(times("odd_rust").unwrap(), 5.0);
}

#[test]
fn a_library_in_use_is_not_unloaded() {
    if !cpp() {
        return;
    }
    let folder = folder("used");
    let file = folder.join("times.cc");
    std::fs::write(folder.join("factor.h"), "").unwrap();
    std::fs::write(&file, text("used", "2")).unwrap();
    let library = built(&file);
    assert!(loaded().iter().any(|l| l.name() == "used"));
    let x = vec(&[1.0]).requires_grad_(true).unwrap();
    let y = oflow::call("used.times", &[(&x).into()], &[]).unwrap().remove(0);
    let z = y.mul(3.0).unwrap();
    drop(y);
    let e = unload(&library).unwrap_err().to_string();
    assert!(e.contains("op used.times@1 is in use: an autograd graph holds a call of it"), "{e}");
    std::fs::write(&file, text("used", "4")).unwrap();
    let e = build_and_load(&[&file], options()).unwrap_err().to_string();
    assert!(e.contains("is in use"), "{e}");
    z.backward().unwrap();
    assert_eq!(x.grad().unwrap().item().unwrap(), 6.0);
    drop(z);
    unload(&library).unwrap();
    let e = times("used").unwrap_err().to_string();
    assert!(e.contains("unknown function 'used.times'"), "{e}");
    assert!(!loaded().iter().any(|l| l.name() == "used"));
    // It can come back, by its file too, and under its old name.
    built(&file);
    assert_eq!(times("used").unwrap(), 4.0);
}

#[test]
fn two_libraries_do_not_have_one_op() {
    if !cpp() {
        return;
    }
    let folder = folder("two");
    std::fs::write(folder.join("factor.h"), "").unwrap();
    let (one, other) = (folder.join("one.cc"), folder.join("other.cc"));
    std::fs::write(&one, text("shared_name", "2")).unwrap();
    std::fs::write(&other, text("shared_name", "4")).unwrap();
    built(&one);
    let e = build_and_load(&[&other], options()).unwrap_err().to_string();
    println!("{e}");
    assert!(e.contains("is registered already") && e.contains("one.cc"), "{e}");
    assert_eq!(times("shared_name").unwrap(), 2.0);
}

/// A build that writes over the file of a loaded library does not change the code that runs.
#[test]
fn a_file_that_is_written_over_is_loaded_anew() {
    if !cpp() {
        return;
    }
    let folder = folder("over");
    std::fs::write(folder.join("factor.h"), "").unwrap();
    let so = folder.join("libover.so");
    let compile = |factor: &str| {
        let file = folder.join("over.cc");
        std::fs::write(&file, text("over", factor)).unwrap();
        let made = folder.join("made.so");
        let mut command = std::process::Command::new("c++");
        command.args(["-std=c++17", "-shared", "-fPIC", "-I"]).arg(super::root().join("op-abi/include"));
        assert!(command.arg(&file).arg("-o").arg(&made).status().unwrap().success());
        // As `cp` does: into the same file.
        std::fs::write(&so, std::fs::read(&made).unwrap()).unwrap();
    };
    compile("2");
    let first = load(&so).unwrap();
    assert_eq!(times("over").unwrap(), 2.0);
    compile("7");
    assert_eq!(times("over").unwrap(), 2.0);
    let second = load(&so).unwrap();
    assert_eq!(times("over").unwrap(), 7.0);
    assert_eq!((first.file(), load(&so).unwrap().hash()), (second.file(), second.hash()));
}

#[test]
fn several_processes_build_once() {
    if !cpp() {
        return;
    }
    let folder = folder("once");
    std::fs::write(folder.join("factor.h"), "").unwrap();
    let file = folder.join("times.cc");
    std::fs::write(&file, text("once", "2")).unwrap();
    let own = tempfile::tempdir().unwrap();
    // Threads with locks of their own files stand for processes: `flock` tells open files apart.
    let hashes: Vec<String> = std::thread::scope(|s| {
        let build = || build_and_load(&[&file], options().cache(own.path())).unwrap().hash().to_string();
        let all: Vec<_> = (0..4).map(|_| s.spawn(build)).collect();
        all.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(hashes.iter().all(|h| *h == hashes[0]));
    let made = std::fs::read_dir(own.path()).unwrap().filter_map(|e| e.ok()).map(|e| e.file_name());
    let made: Vec<String> =
        made.map(|n| n.to_string_lossy().into_owned()).filter(|n| n.starts_with("times-")).collect();
    assert_eq!(made.len(), 2, "a folder and its lock: {made:?}");
}
