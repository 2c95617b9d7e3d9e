//! Which kernel runs, what it keeps, and whose memory its output takes.

use super::{add, run};
use oflow::backend::{Experimental, add_kernel, use_experimental};
use oflow::graph::{Graph, GraphOptions};
use oflow::ops::{DTypeRule, Grad, KernelCx, KernelDef, KernelPred, OpDef, Priority};
use oflow::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Experimental kernels are those of the process.
static ALONE: Mutex<()> = Mutex::new(());

/// A kernel that writes a number.
fn writes(v: f32) -> impl Fn(&KernelCx<'_>) -> Result<()> {
    move |cx| {
        match cx.output(0).dtype() {
            // SAFETY: the output of this call, which nothing else uses while the kernel runs.
            DType::F64 => unsafe { cx.output(0).as_mut_slice::<f64>()? }.fill(f64::from(v)),
            // SAFETY: as above.
            _ => unsafe { cx.output(0).as_mut_slice::<f32>()? }.fill(v),
        }
        Ok(())
    }
}

#[test]
fn predicates_ask_for_outputs_attributes_and_more() {
    let text = "picks(x: f32; dtype: dtype = f32, k: int = 0, mode: str = \"a\") -> y";
    let kernel =
        |name: &str, v: f32, pred: KernelPred| KernelDef::cpu(name, writes(v)).when(pred).priority(Priority::Optimized);
    add(OpDef::new(text).map(|o| {
        o.dtype(DTypeRule::Attr)
            .cpu(writes(1.0))
            .kernel(kernel("picks_f64", 2.0, KernelPred::OutputDType(0, DType::F64)))
            .kernel(kernel("picks_k", 3.0, KernelPred::IntIn("k".into(), 2, 4)))
            .kernel(kernel("picks_mode", 4.0, KernelPred::StrIn("mode".into(), vec!["b".into(), "c".into()])))
            .kernel(kernel(
                "picks_odd",
                5.0,
                KernelPred::when("y has an odd number of elements", |_, outs| outs[0].len() % 2 == 1),
            ))
    }));
    let of = |n: usize, attrs: &[(&str, oflow::ops::AttrValue)]| {
        run("picks", &[&zeros([n], Device::Cpu).unwrap()], attrs).unwrap()[0].to_f64_vec().unwrap()[0]
    };
    assert_eq!(of(2, &[]), 1.0);
    assert_eq!(of(2, &[("dtype", DType::F64.into())]), 2.0);
    assert_eq!([1i64, 2, 4, 5].map(|k| of(2, &[("k", k.into())])), [1.0, 3.0, 3.0, 1.0]);
    assert_eq!(["a", "c"].map(|m| of(2, &[("mode", m.into())])), [1.0, 4.0]);
    assert_eq!(of(3, &[]), 5.0);
}

#[test]
fn an_experimental_kernel_is_chosen_on_request() {
    let _alone = ALONE.lock().unwrap();
    add(OpDef::new("tries(x: f32) -> y").map(|o| o.cpu(writes(1.0))));
    add_kernel("hooks.tries", KernelDef::cpu("tries_new", writes(2.0)).priority(Priority::Experimental)).unwrap();
    let x = zeros([2], Device::Cpu).unwrap();
    let value = || run("tries", &[&x], &[]).unwrap()[0].to_f64_vec().unwrap()[0];
    assert_eq!(value(), 1.0);
    for (which, want) in [
        (Experimental::All, 2.0),
        (Experimental::Named(vec!["other".into()]), 1.0),
        (Experimental::Named(vec!["tries_new".into()]), 2.0),
        (Experimental::None, 1.0),
    ] {
        use_experimental(which.clone());
        assert_eq!(value(), want, "{which:?}");
    }
}

#[test]
fn nodes_of_a_graph_have_state_and_cache_of_their_own() {
    let kernel = KernelDef::cpu("counts", |cx: &KernelCx<'_>| {
        let next = |n: &AtomicUsize| n.fetch_add(1, Ordering::Relaxed) + 1;
        let kept = cx.cached(|| Ok(AtomicUsize::new(0)))?;
        let (ran, kept) = (next(cx.state::<AtomicUsize>()?), next(kept));
        writes((100 * ran + kept) as f32)(cx)
    });
    let kernel = kernel.with_node_state(|_, _| Ok(std::sync::Arc::new(AtomicUsize::new(0))));
    add(OpDef::new("counts(x: f32) -> y").map(|o| {
        o.dtype(DTypeRule::Input(0)).signatures(&["S(0) -> S(0)"]).traits(|t| t.side_effect = true).kernel(kernel)
    }));
    let counts = |x: &Tensor| Ok::<_, Error>(run("counts", &[x], &[])?.remove(0));
    let everywhere = |x: Tensor| -> Result<()> {
        let build = || {
            Graph::build(
                |g| {
                    let x = g.input("x", &x)?;
                    Ok((counts(&x)?, counts(&x)?))
                },
                GraphOptions::default(),
            )
        };
        // Another graph, and the eager calls, begin anew.
        for _ in 0..2 {
            let mut graph = build()?;
            for n in 1..5 {
                // One run is call by call: its nodes are the same.
                let _watched = (n == 3).then(|| oflow::interpreter::watch_calls(|_| Ok(())));
                let (a, b) = graph.run(&[&x])?;
                let want = vec![(101 * n) as f32; 2];
                assert_eq!((a.to_vec::<f32>()?, b.to_vec::<f32>()?), (want.clone(), want), "run {n}");
            }
        }
        Ok(())
    };
    everywhere(ones([2], Device::Cpu).unwrap()).unwrap();
    oflow::run_ranks(2, |_| everywhere(ones([2], (&Placement::all(Device::Cpu)?, sbp![S(0)]))?)).unwrap();
}

#[test]
fn a_kernel_prepares_once_for_each_plan_and_device() {
    static PLANNED: AtomicUsize = AtomicUsize::new(0);
    static PREPARED: AtomicUsize = AtomicUsize::new(0);
    let kernel = KernelDef::cpu("tabled", |cx: &KernelCx<'_>| {
        let (factor, state) = (cx.float("by")?, cx.state::<f64>()?);
        let n = cx.output(0).len();
        // A table that is made with the device at hand, at the first run.
        let table: &Vec<f64> = cx.cached(|| {
            PREPARED.fetch_add(1, Ordering::Relaxed);
            Ok((0..n).map(|i| i as f64 * state).collect())
        })?;
        // SAFETY: the output of this call, which nothing else uses while the kernel runs.
        let y = unsafe { cx.output(0).as_mut_slice::<f64>()? };
        y.iter_mut().zip(table).for_each(|(y, t)| *y = factor * t);
        Ok(())
    })
    .with_state(|_, _| {
        PLANNED.fetch_add(1, Ordering::Relaxed);
        Ok(std::sync::Arc::new(10.0f64))
    });
    add(OpDef::new("tabled(x: f64[1]; by: runtime float = 1.0) -> y")
        .map(|o| o.dtype(DTypeRule::Input(0)).kernel(kernel)));
    let at = |n: usize, d: Device, by: f64| {
        let x = ones([n], d.dtype(DType::F64)).unwrap();
        run("tabled", &[&x], &[("by", by.into())]).unwrap()[0].to_vec::<f64>().unwrap()
    };
    let want = |n: usize, by: f64| (0..n).map(|i| by * 10.0 * i as f64).collect::<Vec<_>>();
    let seen = || [&PLANNED, &PREPARED].map(|c| c.load(Ordering::Relaxed));
    // Tests beside this one register ops, after which all plans are made anew: a count stands only where nothing was registered
    // meanwhile. Each round has sizes of its own.
    for n in (2..).step_by(2) {
        let (before, generation) = (seen(), oflow::ops::generation());
        let counts = [(n, Device::Cpu, 1.0), (n, Device::Cpu, 2.0), (n + 1, Device::Cpu, 0.5), (n, Device::Async, 3.0)]
            .map(|(n, device, by)| {
                assert_eq!(at(n, device, by), want(n, by), "{n} elements on {device}");
                let now = seen();
                [now[0] - before[0], now[1] - before[1]]
            });
        if generation == oflow::ops::generation() {
            assert_eq!(counts, [[1, 1], [1, 1], [2, 2], [3, 3]]);
            break;
        }
    }
    // What is kept is of one type.
    add(OpDef::new("confused(x: f64[1]) -> y").map(|o| {
        o.cpu(|cx| {
            cx.cached(|| Ok(1u8))?;
            cx.cached(|| Ok(1u16)).map(drop)
        })
    }));
    let e = run("confused", &[&ones([1], Device::Cpu.dtype(DType::F64)).unwrap()], &[]).unwrap_err();
    assert_eq!(e.message(), "the kernel of confused keeps a value of another type");
}

/// One step of `chain`: x + 1. Its kernel may write where its input is, or must not, by name.
fn step(name: &str, reuse: bool) -> Result<OpDef> {
    let kernel = KernelDef::cpu(name, |cx: &KernelCx<'_>| {
        let x = cx.input(0)?;
        // SAFETY: the memory of this call's input and output, which may be the same; each element is read, then written.
        unsafe {
            let (x, y) = (x.ptr().cast::<f64>(), cx.output(0).ptr().cast::<f64>());
            (0..cx.output(0).len()).for_each(|i| y.add(i).write(x.add(i).read() + 1.0));
        }
        Ok(())
    });
    let kernel = if reuse { kernel.may_reuse(0, 0) } else { kernel };
    Ok(OpDef::new(&format!("{name}(x: f64) -> y"))?
        .dtype(DTypeRule::Input(0))
        .signatures(&["S0 -> S0"])
        .kernel(kernel)
        .grad(Grad::None))
}

/// An op whose lowering calls a step eight times, then adds the first result, which lives until then.
fn chain(name: &str, step: &'static str) -> Result<OpDef> {
    Ok(OpDef::new(&format!("{name}(x: f64[1]) -> y"))?
        .dtype(DTypeRule::Input(0))
        .lowering(
            |_| Ok(vec!["S0 -> S0".parse()?]),
            move |e, call| {
                let first = e.call(step, &[call.input("x")?], &[])?;
                let mut v = first;
                for _ in 0..7 {
                    v = e.call(step, &[v], &[])?;
                }
                Ok(vec![e.call("add", &[v, first], &[])?])
            },
        )
        .cpu(|_| Err(Error::unsupported("the lowering is to run")))
        .grad(Grad::None))
}

#[test]
fn outputs_take_the_memory_of_values_that_end() {
    add(step("plain_step", false));
    add(step("reusing_step", true));
    add(chain("plain_chain", "hooks.plain_step"));
    add(chain("reusing_chain", "hooks.reusing_step"));
    const N: usize = 1 << 20;
    let run_chain = |name: &'static str| {
        let ranks = oflow::run_ranks(2, move |_| {
            let mesh = Placement::all(Device::Cpu)?;
            let x = from_vec(vec![1.0f64; N], [N], (&mesh, sbp![S(0)]))?;
            let before = oflow::memory_stats(Device::Cpu)?;
            let y = run(name, &[&x], &[])?.remove(0);
            let after = oflow::memory_stats(Device::Cpu)?;
            // The caller's tensor is as it was, and x + 8 + x + 1 was computed.
            assert_eq!((x.sum(())?.item()?, y.sum(())?.item()?), (N as f64, 11.0 * N as f64));
            Ok(after.peak - before.live)
        });
        ranks.unwrap()[0]
    };
    let shard = N / 2 * 8;
    let (plain, reusing) = (run_chain("plain_chain"), run_chain("reusing_chain"));
    // Two values of the chain and the first result; one less where each step writes into the value before it.
    assert_eq!((plain / shard, reusing / shard), (3, 2), "{plain} and {reusing} bytes");
}
