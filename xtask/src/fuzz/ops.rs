//! Ops that somebody else declares: the comments of a `.cu` file, and the structs of a shared library.

use super::disk::Folder;
use super::targets::Taken;
use oflow::functional::{call_any, overloads};
use oflow::interpreter::Call;
use oflow::libraries::{BuildOptions, build_and_load, fuzz, unload};
use oflow::ops::{Op, ParamKind};
use oflow::prelude::*;
use oflow::testing::Sample;

/// Loads the file, plans the calls of its samples and unloads it. What was loaded must go again.
pub fn cuda_file(folder: &Folder, input: &[u8]) -> Taken {
    folder.write("ops.cu", input)?;
    let Ok(library) = build_and_load(&[folder.path("ops.cu")], BuildOptions::new().name("fuzzed")) else {
        return Ok(false);
    };
    for op in library.ops() {
        for sample in Sample::all(op).into_iter().flatten() {
            let _planned_or_refused = sample.infer(op);
        }
    }
    unload(&library).map_err(|e| e.to_string())?;
    Ok(true)
}

/// Most elements of a call that is run.
const MOST: usize = 1 << 10;

/// Registers what the structs describe, plans and runs the calls of its samples and unloads it.
pub fn library(input: &[u8]) -> Taken {
    let Ok(fuzzed) = fuzz::load(input) else {
        return Ok(false);
    };
    for op in fuzzed.library.ops() {
        for sample in Sample::all(op).into_iter().flatten() {
            let _ran_or_refused = called(op, &sample);
        }
    }
    for text in fuzzed.library.functions() {
        let _ran_or_refused = function(text.split('(').next().unwrap_or_default());
    }
    unload(&fuzzed.library).map_err(|e| e.to_string())?;
    Ok(true)
}

/// Calls a function of a library; parameters that are no tensors have their defaults.
fn function(name: &str) -> oflow::Result<()> {
    for def in overloads(name)? {
        let mut named = vec![];
        for p in &def.sig.params {
            match p.kind {
                ParamKind::Tensor => named.push((p.name.as_str(), ones([2], Device::Cpu)?.into())),
                ParamKind::TensorTuple => named.push((p.name.as_str(), [ones([2], Device::Cpu)?].as_slice().into())),
                _ => {}
            }
        }
        let _ran_or_refused = call_any(name, &[], &named);
    }
    Ok(())
}

/// Plans a call, and runs it where it is small.
fn called(op: &'static Op, sample: &Sample) -> oflow::Result<()> {
    let outs = sample.infer(op)?;
    let inputs = sample.inputs.iter().flatten().map(|s| s.shape.iter().product());
    let largest = inputs.chain(outs.iter().map(|t| t.len())).max();
    if sample.inputs.is_empty() || largest.is_none_or(|n| n > MOST) {
        return Ok(());
    }
    let (attrs, runtime) = sample.attributes(op)?;
    let values = sample.values(1, true);
    let leaf = |t: Tensor| if t.dtype().has_gradients() { t.requires_grad_(true) } else { Ok(t) };
    let tensor =
        |v: &Option<oflow::testing::Value>| v.as_ref().map(|v| v.local(Device::Cpu).and_then(leaf)).transpose();
    let inputs = values.iter().map(tensor).collect::<oflow::Result<Vec<Option<Tensor>>>>()?;
    let refs: Vec<Option<&Tensor>> = inputs.iter().map(|t| t.as_ref()).collect();
    let made = Call::new(op, &refs).attrs(attrs).runtime(runtime).run()?;
    // A gradient rule of the library, where it has one.
    let first = made.into_vec().into_iter().find(|y| y.requires_grad());
    first.map_or(Ok(()), |y| y.sum(())?.backward())
}

/// Files that declare all that there is.
pub fn cuda_files(_: &Folder) -> Result<Vec<Vec<u8>>, String> {
    let all = "/* oflow\nop: all(x: f32|f64[2], w: float; n: int = 2 * 3 - 1, eps: float = 1 / 8, by: runtime float = 1.0, \
               flag: bool = true) -> (y, z)\ndomain: mine\nversion: 2\ndoc: One sentence.\nsubject: Mine\n\
               traits: strided, run_empty\nfunction: all(Tensor x, Tensor w, *, Int n=5) -> Tensor\ndtype: like x\nsignature: S(0), B -> S(0), S(0)\n\
               gradient: x = mine.all_grad(grad y, x; eps)\nsample: f32[4, 6] f32[4]; n=3\nkernel: k\ndtypes: f32\npriority: optimized\n*/\n\
               /* oflow\nop: all_grad(dy: float, y: float; eps: float) -> dx\ndomain: mine\nkernel: k_grad\n*/\n";
    let product = "/* oflow\nop: product(a: f32, b: f32; k: int = 2) -> y\ndomain: mine\nshape: [..., m, k], [..., k, n] -> [..., m, \
                   (n + 2 * k) // 3]\nfactors: mk, kn -> mn\nlinear: a\nlinear: b: y\nsample: f32[4, 2] f32[2, 3]\nkernel: k\n\
                   threads: m * n + min(k, 3)\n*/\n";
    let leaky = "/* oflow\nop: mine.leaky(x: float; alpha: runtime float = 0.01) -> y\nexpression: select(x >= 0, x, alpha * x)\n\
                 derivative: x: select(x >= 0, 1, alpha)\nsample: f32[5]\nkernel: k\ngradient: none\n*/\n";
    Ok([all, product, leaky].map(|text| text.as_bytes().to_vec()).to_vec())
}
