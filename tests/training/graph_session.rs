//! Sessions: sources on threads of their own, values that are read behind the runs, graphs for several kinds of inputs. A session trains with the
//! bits of the loop that it stands for.

use super::graph::{At, Net, bits};
use oflow::Generator;
use oflow::checkpoint::{CheckpointManager, CheckpointOptions};
use oflow::data::{Batches, Loader, Stream};
use oflow::graph::{Session, SessionOptions};
use oflow::nn::{BatchNorm, Module};
use oflow::optim::{AdamW, AdamWOptions, Optimizer};
use oflow::prelude::*;
use oflow::state::{SaveState, Stateful};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

type Bits = Vec<Vec<u64>>;

/// Rows of an epoch: two batches of 8 and one of 3.
const ROWS: usize = 19;

fn loader(mesh: &Placement) -> Result<Arc<Loader>> {
    let x = (0..ROWS * 6).map(|i| ((i * 7) % 13) as f32 / 13.0 - 0.5).collect();
    let loader = Loader::new(mesh, 8).split_along(0)?.column::<f32>(x, &[6])?;
    Ok(Arc::new(loader.column((0..ROWS).map(|i| (i * 3 % 4) as i64).collect(), &[])?.shuffled(4)))
}

struct Training {
    net: Net,
    opt: AdamW,
}

impl Training {
    fn new(at: &At) -> Result<Training> {
        manual_seed(5);
        let net = Net::new(at, 0.2)?;
        let opt = AdamW::new(net.parameters(), AdamWOptions::default());
        Ok(Training { net, opt })
    }
    fn step(&mut self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let loss = self.net.forward(x)?.cross_entropy(y)?;
        self.opt.zero_grad();
        loss.backward()?;
        self.opt.step()?;
        Ok(loss)
    }
    fn weights(&self) -> Result<Bits> {
        self.net.parameters().iter().map(bits).collect()
    }
    fn sections<'a>(&'a mut self, data: &'a mut dyn Stateful) -> [(&'static str, &'a mut dyn Stateful); 3] {
        [("net", &mut self.net), ("opt", &mut self.opt), ("data", data)]
    }
}

fn on_meshes(f: impl Fn(&At, &Placement) -> Result<()> + Sync) {
    for sizes in [vec![1], vec![2], vec![2, 2]] {
        oflow::run_ranks(sizes.iter().product(), |_| {
            let axes: Vec<(&str, usize)> = ["dp", "tp"].into_iter().zip(sizes.iter().copied()).collect();
            let mesh = Placement::all(Device::Cpu)?.mesh(&axes)?;
            f(&At(Some((mesh.clone(), NdSbp::broadcast(mesh.axes()).with(0, Sbp::Split(0))))), &mesh)
        })
        .unwrap();
    }
}

/// The loop without a session: bits of losses, then of weights.
fn looped(at: &At, mesh: &Placement, steps: usize) -> Result<(Bits, Bits)> {
    let (mut t, loader) = (Training::new(at)?, loader(mesh)?);
    let mut batches = loader.stream();
    let mut losses = vec![];
    for step in 0..steps {
        t.opt.set_lr(0.05 / (1.0 + step as f64));
        let [x, y] = &batches.next()?[..] else { panic!("two columns") };
        // As a number is read: reduced before it is cast.
        losses.push(bits(&t.step(x, y)?.to_global(NdSbp::broadcast(mesh.axes()))?)?);
    }
    Ok((losses, t.weights()?))
}

#[test]
fn a_session_trains_with_the_bits_of_the_loop() {
    on_meshes(|at, mesh| {
        let (losses, weights) = looped(at, mesh, 10)?;
        // With one graph every change of the batch's size captures again.
        for graphs in [1, 2] {
            let (mut t, mut captures, mut read) = (Training::new(at)?, 0, vec![]);
            let mut session = Session::new(SessionOptions::default().graphs(graphs));
            session.feed(&["x", "y"], Stream::new(loader(mesh)?))?;
            session.fetch("loss", 1)?;
            for step in 0..10 {
                t.opt.set_lr(0.05 / (1.0 + step as f64));
                session.run(&[], |s| {
                    captures += 1;
                    s.name("loss", &t.step(&s.input("x")?, &s.input("y")?)?)
                })?;
                let ready = session.fetched("loss")?;
                assert_eq!(ready.len(), usize::from(step > 0), "behind by one run");
                read.extend(ready);
                assert!(session.graphs().count() <= graphs);
            }
            session.finish();
            read.extend(session.fetched("loss")?);
            assert_eq!(captures, if graphs == 1 { 7 } else { 2 });
            for (n, (run, loss)) in read.iter().enumerate() {
                assert_eq!((*run, &bits(loss)?), (n as u64, &losses[n]));
            }
            assert_eq!((read.len(), t.weights()?), (10, weights.clone()));
            assert!(session.run(&[], |_| Ok(()))?.is_none());
        }
        Ok(())
    });
}

/// Trains to a number of steps and saves, from what an earlier part has saved; by a session or as a loop.
fn part(at: &At, mesh: &Placement, (session, from, to): (bool, usize, usize), dir: &Path) -> Result<Bits> {
    let mut t = Training::new(at)?;
    let mut manager = CheckpointManager::new(dir, CheckpointOptions { keep: 1 });
    let loader = loader(mesh)?;
    let rate = |step: usize| 0.05 / (1.0 + step as f64);
    if session {
        let mut session = Session::new(SessionOptions::default().ahead(3));
        session.feed(&["x", "y"], Stream::new(loader))?;
        if from > 0 {
            // A session that has begun goes back to what is loaded.
            session.run(&[], |s| t.step(&s.input("x")?, &s.input("y")?))?;
            manager.load_latest(&mut t.sections(&mut session.position("x")?))?;
        }
        for step in from..to {
            t.opt.set_lr(rate(step));
            session.run(&[], |s| t.step(&s.input("x")?, &s.input("y")?))?;
        }
        let mut position = session.position("y")?;
        manager.save(to as u64, &t.sections(&mut position).map(|(name, state)| (name, &*state)))?;
    } else {
        let mut batches = loader.stream();
        if from > 0 {
            manager.load_latest(&mut t.sections(&mut batches))?;
        }
        for step in from..to {
            t.opt.set_lr(rate(step));
            let [x, y] = &batches.next()?[..] else { panic!("two columns") };
            t.step(x, y)?;
        }
        manager.save(to as u64, &t.sections(&mut batches).map(|(name, state)| (name, &*state)))?;
    }
    let mut saved = SaveState::new();
    t.opt.save_state(&mut saved)?;
    let mut all = t.weights()?;
    for (_, t) in &saved.into_parts().0 {
        all.push(bits(t)?);
    }
    Ok(all)
}

#[test]
fn checkpoints_of_sessions_and_loops_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    on_meshes(|at, mesh| {
        let run = |parts: &[(bool, usize)]| -> Result<Bits> {
            let (mut from, mut last) = (0, vec![]);
            let dir = folder.path().join(format!("{} {parts:?}", mesh.len()));
            for (session, to) in parts {
                last = part(at, mesh, (*session, from, *to), &dir)?;
                from = *to;
            }
            Ok(last)
        };
        let want = run(&[(false, 12)])?;
        for parts in [[(true, 5), (true, 12)], [(true, 5), (false, 12)], [(false, 5), (true, 12)]] {
            assert!(run(&parts)? == want, "{parts:?}");
        }
        Ok(())
    });
}

#[test]
fn training_and_evaluation_share_their_variables() {
    on_meshes(|at, mesh| {
        let mut totals = vec![];
        for captured in [false, true] {
            let (mut t, loader) = (Training::new(at)?, loader(mesh)?);
            let mut train = Session::new(SessionOptions::default().runs_per_call(3));
            train.feed(&["x", "y"], Stream::new(loader.clone()))?;
            let mut batches = loader.stream();
            for epoch in 0..3 {
                if captured {
                    train.run(&[], |s| t.step(&s.input("x")?, &s.input("y")?))?;
                    // A session of an epoch: its source ends.
                    let mut evaluate = Session::new(SessionOptions::default());
                    evaluate.feed(&["x", "y"], Batches::new(loader.clone(), epoch))?;
                    let _quiet = no_grad();
                    while let Some((logits, n)) = evaluate.run(&[], |s| {
                        let x = s.input("x")?;
                        Ok((t.net.forward(&x)?.sum(())?, s.input("y")?.sum(())?))
                    })? {
                        totals.push((captured, bits(&logits)?, bits(&n)?));
                    }
                } else {
                    for _ in 0..3 {
                        let [x, y] = &batches.next()?[..] else { panic!("two columns") };
                        t.step(x, y)?;
                    }
                    let _quiet = no_grad();
                    for batch in loader.epoch(epoch) {
                        let batch = batch?;
                        let logits = t.net.forward(&batch[0])?.sum(())?;
                        totals.push((captured, bits(&logits)?, bits(&batch[1].sum(())?)?));
                    }
                }
            }
        }
        let (eager, graph): (Vec<_>, Vec<_>) = totals.into_iter().partition(|(captured, ..)| !captured);
        assert_eq!(eager.len(), 9);
        assert!(eager.iter().zip(&graph).all(|(a, b)| (&a.1, &a.2) == (&b.1, &b.2)));
        Ok(())
    });
}

#[test]
fn an_evaluation_reads_statistics_that_a_training_writes() {
    for declared in [true, false] {
        let mut norm = BatchNorm::new(3, Device::Cpu).unwrap();
        let x = from_vec((0..12).map(|i| (i * i % 7) as f32).collect(), [4, 3], Device::Cpu).unwrap();
        let (mut train, mut evaluate) =
            (Session::new(SessionOptions::default()), Session::new(SessionOptions::default()));
        let mut compared = vec![];
        for _ in 0..3 {
            norm.train(true);
            train.run(&[("x", &x)], |s| norm.forward(&s.input("x")?)).unwrap();
            norm.train(false);
            let _quiet = no_grad();
            let seen = evaluate.run(&[("x", &x)], |s| {
                let statistics = norm.named_buffers().into_iter().map(|(_, b)| b.tensor().clone());
                statistics.filter(|_| declared).try_for_each(|t| s.variable(&t))?;
                norm.forward(&s.input("x")?)
            });
            compared.push(seen.map(|seen| (bits(&seen.unwrap()).unwrap(), bits(&norm.forward(&x).unwrap()).unwrap())));
        }
        match declared {
            true => assert!(compared.into_iter().all(|pair| pair.is_ok_and(|(graph, eager)| graph == eager))),
            false => {
                let e = compared.remove(1).unwrap_err().to_string();
                assert!(e.contains("a constant of the graph") && e.contains("declare it as a variable"), "{e}");
            }
        }
    }
}

#[test]
fn a_source_may_be_slower_on_some_ranks() {
    let made = oflow::run_ranks(3, |world| {
        let mesh = Placement::all(Device::Cpu)?;
        let (rank, noise) = (world.rank() as u64, Generator::new(3));
        let source = (0..6u64).map(move |n| {
            std::thread::sleep(Duration::from_millis((rank * 7 + n * 5) % 11));
            rand([6], Device::Cpu.generator(&noise))
        });
        let mut session = Session::new(SessionOptions::default());
        session.feed(&["x"], source)?;
        session.fetch("sum", 2)?;
        let mut sums = vec![];
        while session
            .run(&[], |s| {
                let x = distribute(&s.input("x")?, (&mesh, sbp![S(0)]))?;
                s.name("sum", &x.sum(())?)
            })?
            .is_some()
        {
            sums.push(ones([4], (&mesh, sbp![S(0)]))?.sum(())?.item()?);
        }
        assert_eq!(sums, [4.0; 6]);
        session.fetched("sum")?.into_iter().map(|(run, sum)| Ok((run, sum.item()?))).collect::<Result<Vec<_>>>()
    });
    let made = made.unwrap();
    assert_eq!(made[0].iter().map(|(run, _)| *run).collect::<Vec<_>>(), [0, 2, 4]);
    assert!(made[0] == made[1] && made[0] == made[2] && made[0][0].1 != made[0][1].1);
}

#[test]
fn a_fetched_variable_is_the_value_that_it_had() {
    let w = zeros([2], Device::Cpu).unwrap();
    let mut session = Session::new(SessionOptions::default().runs_per_call(2));
    session.fetch("w", 1).unwrap();
    let one = ones([2], Device::Cpu).unwrap();
    for _ in 0..2 {
        session
            .run(&[("x", &one)], |s| {
                let _quiet = no_grad();
                w.add_(&s.input("x")?)?;
                s.name("w", &w)
            })
            .unwrap();
    }
    session.finish();
    let read: Vec<f64> =
        session.fetched("w").unwrap().iter().map(|(_, w)| w.sum(()).unwrap().item().unwrap()).collect();
    assert_eq!((read, session.runs()), (vec![2.0, 4.0, 6.0, 8.0], 4));
}

fn numbers(n: usize) -> impl Iterator<Item = Result<Tensor>> + Send {
    (0..n).map(|i| full([2], i as f64, Device::Cpu))
}

#[test]
fn a_session_ends_with_its_first_source() {
    let mut session = Session::new(SessionOptions::default().runs_per_call(2));
    session.feed(&["x"], numbers(5)).unwrap();
    session.feed(&["y"], numbers(9)).unwrap();
    let mut run =
        || session.run(&[], |s| s.input("x")?.add(&s.input("y")?)).unwrap().map(|t| t.to_vec::<f32>().unwrap());
    assert_eq!(
        [run(), run(), run(), run(), run()],
        [Some(vec![2.0; 2]), Some(vec![6.0; 2]), Some(vec![8.0; 2]), None, None]
    );
}

#[test]
fn what_does_not_fit_is_an_error() {
    let x = ones([2], Device::Cpu).unwrap();
    let fresh = || Session::new(SessionOptions::default());
    let told = |e: Option<Error>, words: &[&str]| {
        let e = e.expect("an error").to_string();
        assert!(words.iter().all(|w| e.contains(w)) && e.contains("graph_session.rs"), "{e}");
    };
    let mut s = fresh();
    s.feed(&["x", "y"], numbers(3)).unwrap();
    told(s.feed(&["y"], numbers(3)).err(), &["input \"y\" has a source already"]);
    told(s.feed(&["z", "z"], numbers(3)).err(), &["input \"z\" has a source already"]);
    told(s.position("z").err(), &["input \"z\" has no source"]);
    told(s.position("x").err(), &["no position that can be saved", "a `Stream` of a loader"]);
    told(s.fetch("a", 0).err(), &["every 0 runs"]);
    s.fetch("a", 1).unwrap();
    told(s.fetch("a", 2).err(), &["\"a\" is fetched already"]);
    told(s.fetched("b").err(), &["\"b\" is not fetched"]);
    told(s.run(&[], |s| s.input("x")).err(), &["source of \"x\", \"y\" gave 1 tensors for 2 inputs"]);
    told(s.run(&[], |s| s.input("x")).err(), &["has failed before"]);

    let mut s = fresh();
    s.feed(&["x"], numbers(9)).unwrap();
    told(
        s.run(&[], |s| s.input("y")).err(),
        &["input \"y\" of the step has no source and is not given", "there are \"x\""],
    );
    told(s.run(&[], |_| Ok(())).err(), &["the step has no input \"x\", which a source feeds", "it takes none"]);
    told(s.run(&[("y", &x)], |s| s.input("x")).err(), &["the step has no input \"y\""]);
    told(s.run(&[("x", &x)], |s| s.input("x")).err(), &["input \"x\" is given twice, or has a source"]);
    told(s.run(&[], |s| s.input("x")?.add(&ones([3], Device::Cpu)?)).err(), &["add(f32[2], f32[3])"]);
    s.fetch("loss", 1).unwrap();
    told(s.run(&[], |s| s.input("x")).err(), &["names no value \"loss\", which is fetched", "which names none"]);
    assert!(s.run(&[], |s| s.name("loss", &s.input("x")?.sum(())?)).unwrap().is_some());
    told(
        fresh().run(&[("x", &x)], |s| s.variable(&s.input("x")?.mul(2.0)?)).err(),
        &["a call of the graph makes", "declared as a variable"],
    );
    told(Session::new(SessionOptions::default().runs_per_call(0)).run(&[], |_| Ok(())).err(), &["0 runs a call"]);
}

#[test]
fn an_error_of_a_source_comes_out_at_a_run() {
    let step = |s: &oflow::graph::SessionBuilder<'_>| s.input("x")?.mul(2.0);
    let mut session = Session::new(SessionOptions::default());
    let line = line!() + 1;
    let bad = |i: usize| ones([2 + i], Device::Cpu)?.add(&ones([3], Device::Cpu)?);
    session.feed(&["x"], (0..3).map(move |i| if i == 0 { ones([2], Device::Cpu) } else { bad(i + 1) })).unwrap();
    assert!(session.run(&[], step).unwrap().is_some());
    let e = session.run(&[], step).unwrap_err();
    assert!(e.to_string().contains("source of \"x\"") && e.to_string().contains("add(f32[4], f32[3])"), "{e}");
    assert_eq!(e.site().map(|s| s.line), Some(line));
    assert!(session.run(&[], step).unwrap_err().to_string().contains("has failed before"));

    let mut session = Session::new(SessionOptions::default());
    session.feed(&["x"], std::iter::from_fn(|| -> Option<Result<Tensor>> { panic!("no {}", "rows") })).unwrap();
    let e = session.run(&[], step).unwrap_err().to_string();
    assert!(e.contains("the source of \"x\" panicked: no rows") && e.contains("graph_session.rs"), "{e}");
}

#[test]
fn a_source_makes_no_calls_that_have_a_place_in_an_order() {
    let refused = |make: fn(&Placement) -> Result<Tensor>| {
        let e = oflow::run_ranks(2, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            let mut session = Session::new(SessionOptions::default());
            session.feed(&["x"], std::iter::from_fn(move || Some(make(&mesh))))?;
            session.run(&[], |s| s.input("x")).map(drop)
        });
        e.unwrap_err().to_string()
    };
    let orders = "makes no calls on global tensors";
    assert!(refused(|mesh| zeros([4], (mesh, sbp![S(0)]))).contains(orders));
    assert!(refused(|mesh| distribute(&zeros([4], Device::Cpu)?, (mesh, sbp![S(0)]))).contains(orders));
    assert!(refused(|mesh| zeros([4], Device::Cpu)?.to_global((mesh, sbp![S(0)]))).contains(orders));
    assert!(refused(|_| rand([4], Device::Cpu)).contains("does not draw from the generators of the rank"));
}

/// Counts the batches that it made, and tells when it is dropped.
struct Counted {
    made: Arc<AtomicUsize>,
    _alive: Arc<()>,
}

impl Iterator for Counted {
    type Item = Result<Tensor>;
    fn next(&mut self) -> Option<Result<Tensor>> {
        self.made.fetch_add(1, Ordering::SeqCst);
        Some(ones([2], Device::Cpu))
    }
}

#[test]
fn dropping_a_session_stops_its_threads() {
    let (made, alive) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
    let mut session = Session::new(SessionOptions::default().ahead(3));
    session.feed(&["x"], Counted { made: made.clone(), _alive: alive.clone() }).unwrap();
    assert_eq!(made.load(Ordering::SeqCst), 0, "a source is asked from the first run on");
    session.run(&[], |s| s.input("x")).unwrap();
    // One that is taken, three that wait, one that is made.
    while made.load(Ordering::SeqCst) < 5 {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(made.load(Ordering::SeqCst), 5);
    drop(session);
    assert_eq!(Arc::strong_count(&alive), 1, "the source is dropped");
}

#[test]
fn modes_are_part_of_what_is_captured() {
    let (w, x) = (ones([2], Device::Cpu).unwrap().requires_grad_(true).unwrap(), ones([2], Device::Cpu).unwrap());
    let (mut session, mut captures) = (Session::new(SessionOptions::default()), vec![]);
    for grad in [true, false, true, false] {
        let _mode = oflow::context::set_grad_enabled(grad);
        session
            .run(&[("x", &x)], |s| {
                captures.push(grad);
                s.input("x")?.mul(&w)?.sum(())
            })
            .unwrap();
    }
    assert_eq!(captures, [true, false]);
}
