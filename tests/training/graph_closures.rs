//! Closures of graphs: what they cannot do is an error at its line, nothing of a capture stays, and hooks and watchers see the calls of runs.

use oflow::graph::{Graph, GraphOptions, Passes};
use oflow::optim::{AdamW, AdamWOptions, Optimizer, Sgd, SgdOptions};
use oflow::prelude::*;

/// Builds a graph of one input, which must fail: the error.
fn refused(f: impl FnOnce(&Tensor) -> Result<Tensor>) -> String {
    let x = from_vec(vec![1.0f32, 2.0, 3.0], [3], Device::Cpu).unwrap();
    let made = Graph::build(|g| f(&g.input("x", &x)?), GraphOptions::default());
    made.expect_err("refused").to_string()
}

#[test]
fn what_a_closure_cannot_do_is_an_error_at_its_line() {
    let here = |line: u32| format!("graph_closures.rs:{line}");
    let line = line!() + 1;
    let e = refused(|x| if x.sum(())?.item()? > 0.0 { x.add(1.0) } else { x.sub(1.0) });
    assert!(e.contains("has no value while its graph is captured") && e.contains(&here(line)), "{e}");

    let w = ones([3], Device::Cpu).unwrap();
    let line = line!() + 1;
    let e = refused(|x| x.narrow(0, 0, 2)?.add_(1.0).cloned());
    assert!(e.contains("view of a local tensor") && e.contains(&here(line)), "{e}");

    let line = line!() + 5;
    let e = refused(|x| {
        let y = x.add(1.0)?;
        let first = y.narrow(0, 0, 1)?;
        y.mul_(2.0)?;
        first.add(1.0)
    });
    assert!(e.contains("shares memory that a call of the graph has written since") && e.contains(&here(line)), "{e}");

    let kept = std::cell::RefCell::new(None);
    let line = line!() + 2;
    let e = refused(|x| {
        let y = x.exp()?;
        *kept.borrow_mut() = Some(y.clone());
        y.sum(())
    });
    assert!(e.contains("outlives it") && e.contains(&here(line)), "{e}");
    let e = kept.take().unwrap().add(1.0).unwrap_err().to_string();
    assert!(e.contains("made in the capture of graph") && e.contains("return it from the closure"), "{e}");

    let e = refused(|x| {
        manual_seed(1);
        x.add(1.0)
    });
    assert!(e.contains("a graph cannot seed the generators"), "{e}");
    let e = refused(|x| x.nonzero());
    assert!(e.contains("depends on values"), "{e}");
    let e = refused(|x| Graph::build(|_| x.add(1.0), GraphOptions::default())?.run(&[]));
    assert!(e.contains("while another is captured"), "{e}");
    let p = w.to_leaf(true).unwrap();
    let old = p.mul(2.0).unwrap();
    let e = refused(|x| x.mul(&old));
    assert!(e.contains("was made by mul") && e.contains("before the graph is captured"), "{e}");
    let e = refused(|x| x.add(&ones([4], Device::Cpu)?));
    assert!(e.contains("add(f32[3], f32[4])"), "{e}");
}

#[test]
fn a_capture_leaves_every_tensor_as_it_was() {
    let w = ones([3], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let c = ones([3], Device::Cpu).unwrap();
    w.mul(&c).unwrap().sum(()).unwrap().backward().unwrap();
    let fingerprint = || {
        let grad = w.grad().map(|g| (g.to_vec::<f32>().unwrap(), g.version()));
        (w.to_vec::<f32>().unwrap(), w.version(), w.requires_grad(), w.is_leaf(), grad, c.version(), c.requires_grad())
    };
    let before = fingerprint();
    let mut opt = Sgd::new(vec![w.clone()], SgdOptions { lr: 0.5, momentum: 0.9, ..Default::default() });
    for fails in [true, false] {
        let made = Graph::build(
            |g| {
                let x = g.input("x", &c)?;
                opt.zero_grad();
                let loss = w.mul(&c)?.mul(&x)?.sum(())?;
                loss.backward()?;
                opt.step()?;
                if fails {
                    return loss.item().map(|_| loss);
                }
                Ok(loss)
            },
            GraphOptions::default(),
        );
        assert_eq!(made.is_err(), fails);
        assert_eq!(fingerprint(), before);
    }
}

#[test]
fn a_panic_in_the_closure_gives_everything_back() {
    let w = ones([2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    w.sum(()).unwrap().backward().unwrap();
    let build = || {
        Graph::build(|_| -> Result<Tensor> { panic!("{:?}", w.mul(2.0)?.sum(())?.backward()) }, GraphOptions::default())
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(build)).is_err());
    assert_eq!(w.grad().unwrap().to_vec::<f32>().unwrap(), [1.0; 2]);
    assert_eq!(w.mul(2.0).unwrap().to_vec::<f32>().unwrap(), [2.0; 2]);
    assert!(Graph::build(|_| w.mul(2.0), GraphOptions::default()).is_ok());
}

#[test]
fn runs_refuse_other_inputs_and_constants_that_were_written() {
    let x = ones([3], Device::Cpu).unwrap();
    let c = ones([3], Device::Cpu).unwrap();
    let leaf = x.to_leaf(true).unwrap();
    let build = || Graph::build(|g| g.input("x", &leaf)?.mul(&c), GraphOptions::default());
    let e = build().err().unwrap().to_string();
    assert!(e.contains("requires a gradient, which a graph does not compute for inputs"), "{e}");
    let mut graph = Graph::build(|g| g.input("x", &x)?.mul(&c), GraphOptions::default()).unwrap();
    assert_eq!(graph.run(&[&x]).unwrap().to_vec::<f32>().unwrap(), [1.0; 3]);
    let e = graph.run(&[&leaf]).err().unwrap().to_string();
    assert!(e.contains("requires a gradient, which a graph does not compute for inputs"), "{e}");
    assert!(no_grad().run(|| graph.run(&[&leaf])).is_ok());
    let e = graph.run(&[]).err().unwrap().to_string();
    assert!(e.contains("the graph has 1 inputs (\"x\"), 0 given"), "{e}");
    let e = graph.run(&[&ones([4], Device::Cpu).unwrap()]).err().unwrap().to_string();
    assert!(e.contains("input \"x\" of the graph is f32[4] on cpu, but it was captured with f32[3] on cpu"), "{e}");
    let w = ones([3], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let mut trains = Graph::build(
        |g| {
            g.input("x", &x)?.mul(&w)?.sum(())?.backward()?;
            w.grad().ok_or_else(|| Error::argument("no gradient"))
        },
        GraphOptions::default(),
    )
    .unwrap();
    assert_eq!(trains.run(&[&x]).unwrap().to_vec::<f32>().unwrap(), [1.0; 3]);
    let frozen = w.clone().requires_grad_(false).unwrap();
    let e = trains.run(&[&x]).err().unwrap().to_string();
    assert!(e.contains("no longer requires a gradient") && e.contains("build the graph again"), "{e}");
    drop(frozen);
    c.add_(1.0).unwrap();
    let e = graph.run(&[&x]).err().unwrap().to_string();
    assert!(e.contains("a constant of the graph") && e.contains("was written since"), "{e}");
}

#[test]
fn hooks_policies_and_the_search_for_nan_see_the_calls_of_a_run() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones([4, 6], (&mesh, sbp![S(0)]))?;
        let w = ones([6, 2], (&mesh, sbp![S(0)]))?;
        // A fused call is one call: here each function is to be seen.
        let options = GraphOptions::default().passes(Passes::default().without("fuse")?);
        let line = line!() + 1;
        let mut graph = Graph::build(|g| g.input("x", &x)?.matmul(&w)?.sub(1.0)?.log(), options)?;
        let at = |e: &Error| e.site().map(|s| s.line) == Some(line);

        let seen = std::rc::Rc::new(std::cell::RefCell::new(vec![]));
        let names = seen.clone();
        let watch = oflow::interpreter::watch_calls(move |call| {
            names.borrow_mut().push(call.op.name().to_string());
            Ok(())
        });
        graph.run(&[&x])?;
        drop(watch);
        let seen = seen.take();
        assert!(seen.contains(&"matmul".to_string()) && seen.contains(&"log".to_string()), "{seen:?}");

        let e = boxing_policy(Policy::Deny).run(|| graph.run(&[&x])).expect_err("boxings are denied");
        assert!(e.to_string().contains("boxing is denied here") && at(&e), "{e}");

        // What the program did not ask for is denied in a run too.
        let (p, split) = (ones([6, 2], (&mesh, sbp![B]))?.requires_grad_(true)?, ones([4, 2], (&mesh, sbp![S(0)]))?);
        let mut trains = Graph::build(
            |g| {
                g.input("x", &x)?.matmul(&p)?.mul(&split)?.sum(())?.backward()?;
                p.grad().ok_or_else(|| Error::argument("no gradient"))
            },
            GraphOptions::default(),
        )?;
        assert!(trains.explain().contains(" for a gradient"), "{}", trains.explain());
        let e = boxing_policy(Policy::Deny).run(|| trains.run(&[&x])).expect_err("the boxing of a gradient is denied");
        assert!(e.to_string().contains("the gradient of a leaf") && e.to_string().contains("in backward"), "{e}");
        assert!(boxing_policy(Policy::Allow).run(|| trains.run(&[&x])).is_ok());

        let found = oflow::detect_anomaly().run(|| graph.run(&[&x.mul(-1.0)?]));
        let e = found.expect_err("the logarithm of a negative number is found");
        assert!(e.to_string().contains("log") && at(&e), "{e}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn ranks_with_other_programs_are_told_apart() {
    let made = oflow::run_ranks(2, |world| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones([4], (&mesh, sbp![S(0)]))?;
        let factor = 2 + world.rank() as i64;
        let mut graph = Graph::build(|g| g.input("x", &x)?.mul(factor)?.sum(()), GraphOptions::default())?;
        graph.run(&[&x])?.to_vec::<f32>()
    });
    let e = made.unwrap_err().to_string();
    assert!(e.contains("graph"), "{e}");
}

#[test]
fn a_closure_returns_nothing_one_tensor_or_several() {
    let x = from_vec(vec![1.0f32, -2.0], [2], Device::Cpu).unwrap();
    let count = zeros([], Device::Cpu).unwrap();
    let mut counts = Graph::build(|_| count.add_(1.0).map(drop), GraphOptions::default()).unwrap();
    counts.run(&[]).unwrap();
    counts.run(&[]).unwrap();
    assert_eq!(count.to_vec::<f32>().unwrap(), [2.0]);
    let mut pair = Graph::build(
        |g| {
            let x = g.input("x", &x)?;
            Ok((x.abs()?, x))
        },
        GraphOptions::default(),
    )
    .unwrap();
    let mut of_one = Graph::build(|g| g.input("a", &x)?.sub(&g.input("b", &x)?), GraphOptions::default()).unwrap();
    let y = from_vec(vec![5.0f32, 5.0], [2], Device::Cpu).unwrap();
    assert_eq!(of_one.run(&[&y, &x]).unwrap().to_vec::<f32>().unwrap(), [4.0, 7.0], "one example serves two inputs");
    let (abs, same) = pair.run(&[&x]).unwrap();
    assert_eq!((abs.to_vec::<f32>().unwrap(), same.to_vec::<f32>().unwrap()), (vec![1.0, 2.0], vec![1.0, -2.0]));
    let mut many = Graph::build(
        |g| {
            let x = g.input("x", &x)?;
            Ok(vec![x.sign()?, x.neg()?])
        },
        GraphOptions::default(),
    )
    .unwrap();
    assert_eq!(many.run(&[&x]).unwrap().len(), 2);
}

#[test]
fn the_text_of_a_graph_has_layouts_and_lines() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones([4, 6], (&mesh, sbp![S(0)]))?;
        let w = ones([6, 2], (&mesh, sbp![S(1)]))?.requires_grad_(true)?;
        let mut opt = AdamW::new(vec![w.clone()], AdamWOptions::default());
        let graph = Graph::build(
            |g| {
                let loss = g.input("x", &x)?.matmul(&w)?.sum(())?;
                loss.backward()?;
                opt.step()?;
                Ok(loss)
            },
            GraphOptions::default(),
        )?;
        let text = graph.explain();
        for part in [
            "1 inputs, 3 variables, 0 constants",
            "input %0 \"x\": f32[4, 6] [S(0)] on cpu[2]",
            "host 0 \"adamw_many\"",
            "step=host 0.0} over %1, %2, %3",
            " backward  # ",
            "return %",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        Ok(())
    })
    .unwrap();
}
