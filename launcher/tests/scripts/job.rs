//! The job of the process tests: what its ranks do is named by the first argument.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use oflow::World;
use oflow::graph::{Graph, GraphOptions, Passes};
use oflow::nn::{Linear, Module};
use oflow::ops::{DTypeRule, KernelDef, OpDef};
use oflow::optim::{AdamW, AdamWOptions, Optimizer};
use oflow::prelude::*;
use oflow::sbp::Signature;

fn main() -> Result<()> {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let argument = std::env::args().nth(2).unwrap_or_default();
    before_init(&mode);
    let world = oflow::init()?;
    match mode.as_str() {
        "" => Ok(()),
        "arithmetic" => arithmetic(&world),
        "cost-model" => cost_model(&world),
        "first-collective" => first_collective(&world, &argument),
        "forever" => forever(&world, &argument),
        "panic" => panics(&world),
        "unwinds-late" => unwinds_late(&world),
        "local-error" => local_error(&world),
        "same-error" => same_error(),
        "exit" => exits(&world, &argument),
        "mismatch" => mismatch(&world),
        "no-context" => no_context(),
        "diverge" => diverge(&world),
        "declares-differently" => declares_differently(&world),
        "skip" => skip(&world),
        "skip-alone" => skip_alone(&world),
        "shape" => shape(&world),
        "value" => value(&world),
        "placement" => placement(&world, &argument),
        "loop" => endless_loop(&world),
        "early" => early(&world),
        "early-own-words" => early(&world).map_err(|e| Error::argument("no loss").because(e)),
        "exits-before-init" | "never-inits" => collective(&world).map(drop),
        "becomes-another" => becomes_another(&world),
        "exits-from-barrier" => exits_from_barrier(&world),
        "exits-when-done" => exits_when_done(&world),
        "unneeded" => unneeded(&world),
        "stdin" => stdin(&world),
        "child" => child(&argument),
        "short-waits" => short_waits(&world),
        "long-wait" => long_wait(&world),
        "graph-holds" => graph_holds(&world, &argument, false),
        "graph-loop-holds" => graph_holds(&world, &argument, true),
        "graph-is-long" => graph_is_long(&world, false),
        "graph-loop-is-long" => graph_is_long(&world, true),
        "graph-differs" => graph_differs(&world, &argument),
        "graph-of-some" => graph_of_some(&world, &argument),
        "graph-saves" => graph_saves(&world, &argument, true),
        "graph-loads" => graph_saves(&world, &argument, false),
        "graph-meets" => graph_meets(&world, &argument),
        "bad-index" => bad_index(&world, &argument),
        other => panic!("no mode {other:?}"),
    }
}

/// What rank 1 does instead of joining the job.
fn before_init(mode: &str) {
    if std::env::var("RANK").is_ok_and(|rank| rank == "1") {
        match mode {
            "exits-before-init" => std::process::exit(0),
            "never-inits" => loop {
                std::thread::park();
            },
            _ => {}
        }
    }
}

/// Boxes 2,000 times and prints how often the main thread slept for it.
fn short_waits(world: &World) -> Result<()> {
    let x = ones([1024], (&Placement::all(Device::Cpu)?, sbp![P]))?;
    let sleeps = || {
        let text = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|n| n.trim().parse().ok()).unwrap_or(u64::MAX)
    };
    world.barrier()?;
    let before = sleeps();
    for _ in 0..2000 {
        x.to_global(&sbp![B])?;
    }
    println!("{}", sleeps() - before);
    Ok(())
}

/// Rank 0 waits 10 s for the others and prints the milliseconds of processor time that it took.
fn long_wait(world: &World) -> Result<()> {
    world.barrier()?;
    let used = || {
        let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let of = |path: std::path::PathBuf| std::fs::read_to_string(path).ok()?.split(' ').next()?.parse::<u64>().ok();
        tasks.filter_map(|t| of(t.path().join("schedstat"))).sum::<u64>()
    };
    if world.rank() > 0 {
        std::thread::sleep(std::time::Duration::from_secs(10));
    }
    let before = used();
    world.barrier()?;
    if world.rank() == 0 {
        println!("{}", (used() - before) / 1_000_000);
    }
    Ok(())
}

/// Starts a process of its own and waits for it.
fn child(command: &str) -> Result<()> {
    let status = std::process::Command::new("sh").args(["-c", command]).status();
    status.map(drop).map_err(|e| Error::io("no child").because(e))
}

/// A P tensor reduced to B: needs every rank.
fn collective(world: &World) -> Result<f64> {
    let all = Placement::all(Device::Cpu)?;
    let x = ones([world.size(), 3], (&all, sbp![S(0)]))?;
    let sum = x.sum(())?;
    sum.item()
}

/// Global tensors of several layouts, values checked on every rank.
fn arithmetic(world: &World) -> Result<()> {
    let n = world.size();
    let all = Placement::all(Device::Cpu)?;
    let x = arange(12 * n as i64, (&all, sbp![S(0)]))?.cast(DType::F64)?.reshape([n as i64, 12])?;
    let p = x.sum(0)?;
    let whole = p.to_global((&all, sbp![B]))?;
    assert_eq!(*whole.sbp()?, sbp![B]);
    let expected: Vec<f64> = (0..12).map(|c| (0..n).map(|r| (12 * r + c) as f64).sum()).collect();
    assert_eq!(whole.to_vec::<f64>()?, expected);
    let split = whole.to_global((&all, sbp![S(0)]))?;
    assert_eq!(split.to_vec::<f64>()?, expected);
    let total = expected.iter().sum::<f64>();
    assert_eq!(split.sum(())?.item()?, total);
    if world.rank() == 0 {
        println!("{n} ranks: {total}");
    }
    world.barrier()
}

/// Prints the constants that boxings are planned under.
fn cost_model(world: &World) -> Result<()> {
    let model = world.ctx().planner().model();
    println!("{} {}", model.local_ps, model.hosts.several());
    Ok(())
}

/// Prints the time from a moment that the test names to the end of the first collective.
fn first_collective(world: &World, began_ns: &str) -> Result<()> {
    collective(world)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos();
    if world.rank() == 0 {
        println!("{}", (now - began_ns.parse::<u128>().expect("nanoseconds")) / 1000);
    }
    Ok(())
}

/// Reduces without end. Once it runs, each rank writes its process id into a file of the folder.
fn forever(world: &World, folder: &str) -> Result<()> {
    collective(world)?;
    let path = format!("{folder}/pid{}", world.rank());
    std::fs::File::create(format!("{path}.new"))?.write_all(std::process::id().to_string().as_bytes())?;
    std::fs::rename(format!("{path}.new"), path)?;
    loop {
        collective(world)?;
    }
}

fn panics(world: &World) -> Result<()> {
    for step in 0.. {
        collective(world)?;
        assert!(world.rank() != 1 || step < 5, "rank 1 has no data");
    }
    Ok(())
}

/// Every rank fails, rank 1 first; it takes longest to end.
fn unwinds_late(world: &World) -> Result<()> {
    struct Late;
    impl Drop for Late {
        fn drop(&mut self) {
            // Longer than the launcher waits for failures that come together.
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
    LATE.with(|_| ());
    thread_local! { static LATE: Late = const { Late }; }
    if world.rank() == 1 {
        return Err(Error::io("the data is gone"));
    }
    loop {
        collective(world)?;
    }
}

fn local_error(world: &World) -> Result<()> {
    for step in 0.. {
        collective(world)?;
        if world.rank() == 1 && step == 5 {
            std::fs::read("no such file")?;
        }
    }
    Ok(())
}

fn same_error() -> Result<()> {
    let all = Placement::all(Device::Cpu)?;
    let x = ones([4, 8], (&all, sbp![S(0)]))?;
    x.add(&ones([4, 9], (&all, sbp![B]))?)?;
    Ok(())
}

fn exits(world: &World, code: &str) -> Result<()> {
    collective(world)?;
    if world.rank() == 1 {
        std::process::exit(code.parse().expect("a code"));
    }
    loop {
        collective(world)?;
    }
}

/// A logical error is the same on every rank; the program catches it and goes on.
fn mismatch(world: &World) -> Result<()> {
    let all = Placement::all(Device::Cpu)?;
    let x = ones([8, 4], (&all, sbp![S(0)]))?;
    let w = ones([3, 2], (&all, sbp![B]))?;
    let error = x.matmul(&w).expect_err("4 is not 3");
    print!("caught: {error}\n--\n");
    let y = x.matmul(&ones([4, 2], (&all, sbp![B]))?)?;
    println!("goes on: {}", y.sum(())?.item()? + collective(world)?);
    Ok(())
}

/// A thread is not a rank until it enters the context.
fn no_context() -> Result<()> {
    let all = Placement::all(Device::Cpu)?;
    let x = ones([8], (&all, sbp![S(0)]))?;
    let error = std::thread::scope(|s| s.spawn(|| x.sum(()).and_then(|y| y.item())).join().expect("no panic"));
    println!("caught: {}", error.expect_err("no context"));
    Ok(())
}

/// The ranks issue different ops.
fn diverge(world: &World) -> Result<()> {
    let all = Placement::all(Device::Cpu)?;
    let x = ones([8], (&all, sbp![S(0)]))?;
    let sum = x.sum(())?;
    let y = if world.rank() == 0 {
        sum.exp()?
    } else {
        sum.relu()?
    };
    println!("{}", y.item()?);
    Ok(())
}

/// After `init` rank 1 declares an op by another expression than the others.
fn declares_differently(world: &World) -> Result<()> {
    let expression = if world.rank() == 1 { "x * 3" } else { "x * 2" };
    oflow::ops::register(oflow::ops::OpDef::elementwise("scaled(x: float) -> y", expression)?.domain("test"))?;
    let x = ones([8], (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
    let y = oflow::functional::call("scaled", &[(&x).into()], &[])?.remove(0);
    y.sum(())?.item().map(drop)
}

/// Rank 1 leaves an op out that needs nobody else.
fn skip(world: &World) -> Result<()> {
    let all = Placement::all(Device::Cpu)?;
    let mut x = ones([8], (&all, sbp![S(0)]))?;
    if world.rank() != 1 {
        x = x.relu()?;
    }
    let y = x.exp()?;
    println!("{}", y.sum(())?.item()?);
    Ok(())
}

/// As [`skip`], by ranks that never talk to each other.
fn skip_alone(world: &World) -> Result<()> {
    let all = Placement::all(Device::Cpu)?;
    let mut x = ones([8], (&all, sbp![S(0)]))?;
    for step in 0.. {
        x = x.neg()?;
        if world.rank() != 1 || step != 3 {
            x = x.relu()?;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Ok(())
}

/// Rank 1 has a tensor of another shape.
fn shape(world: &World) -> Result<()> {
    let all = Placement::all(Device::Cpu)?;
    let n = if world.rank() == 1 { 6 } else { 4 };
    let x = ones([n, 2], (&all, sbp![S(0)]))?;
    println!("{}", x.sum(())?.item()?);
    Ok(())
}

/// Rank 1 scales by another number.
fn value(world: &World) -> Result<()> {
    let all = Placement::all(Device::Cpu)?;
    let x = ones([4], (&all, sbp![S(0)]))?;
    let y = x.mul(if world.rank() == 1 { 0.5 } else { 0.25 })?;
    println!("{}", y.sum(())?.item()?);
    Ok(())
}

/// Rank 1 uses other ranks, or the same ones in another order, or names the mesh axis otherwise.
fn placement(world: &World, what: &str) -> Result<()> {
    let (n, other) = (world.size(), world.rank() == 1);
    let all: Vec<usize> = (0..n).collect();
    let usual = Placement::new(Device::Cpu, &all, &[n])?;
    let turned: Vec<usize> = all.iter().rev().copied().collect();
    let turned = Placement::new(Device::Cpu, &turned, &[n])?;
    let x = ones([4, 2], (&usual, sbp![S(0)]))?;
    let x = match what {
        "boxing" => x.to_global((if other { &turned } else { &usual }, sbp![B]))?,
        "factory" => ones([4, 2], (if other { &turned } else { &usual }, sbp![S(0)]))?,
        "name" => ones([4, 2], (&usual.mesh(&[(if other { "tp" } else { "dp" }, n)])?, sbp![S(0)]))?,
        "slice" => {
            let mesh = usual.mesh(&[("dp", n)])?;
            ones([4, 2], (&mesh.slice("dp", world.rank())?, sbp![B]))?
        }
        "shards" => ones([4, 2], Device::Cpu)?.to_global((if other { &turned } else { &usual }, sbp![S(0)]))?,
        "source" => {
            let y = distribute(&ones([4, 2], Device::Cpu)?, (if other { &turned } else { &usual }, sbp![S(0)]))?;
            y.to_global((&usual, sbp![B]))?
        }
        other => panic!("no case {other:?}"),
    };
    println!("{}", x.sum(())?.item()?);
    Ok(())
}

/// Rank 1 computes for ever; the others wait for it.
fn endless_loop(world: &World) -> Result<()> {
    collective(world)?;
    let all = Placement::all(Device::Cpu)?;
    let x = ones([4], (&all, sbp![S(0)]))?.relu()?;
    while world.rank() == 1 {
        std::hint::spin_loop();
    }
    println!("{}", x.sum(())?.item()?);
    Ok(())
}

/// Rank 1 ends well while the others still want something of it.
fn early(world: &World) -> Result<()> {
    collective(world)?;
    if world.rank() != 1 {
        collective(world)?;
    }
    Ok(())
}

/// Rank 1 becomes a program that knows nothing of the job.
fn becomes_another(world: &World) -> Result<()> {
    use std::os::unix::process::CommandExt;
    collective(world)?;
    if world.rank() == 1 {
        return Err(std::process::Command::new("sleep").arg("1000").exec().into());
    }
    collective(world).map(drop)
}

/// Rank 1 exits while the others wait for it in a barrier of the control plane.
fn exits_from_barrier(world: &World) -> Result<()> {
    collective(world)?;
    if world.rank() == 1 {
        std::process::exit(0);
    }
    let control = world.ctx().control().expect("a launcher");
    control.barrier("all", world.size(), std::time::Duration::from_secs(60))
}

/// Every rank is done at another time, and ends by exit().
fn exits_when_done(world: &World) -> Result<()> {
    collective(world)?;
    world.barrier()?;
    std::thread::sleep(std::time::Duration::from_millis(300) * world.rank() as u32);
    println!("done");
    std::process::exit(0)
}

/// Rank 1 exits with 0 when nobody needs it any more; the others compute on, with each other.
fn unneeded(world: &World) -> Result<()> {
    let others: Vec<usize> = (0..world.size()).filter(|r| *r != 1).collect();
    collective(world)?;
    if world.rank() == 1 {
        std::process::exit(0);
    }
    let others = Placement::new(Device::Cpu, &others, &[others.len()])?;
    for _ in 0..200 {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let over = ones([world.size(), 3], (&others, sbp![S(0)]))?.sum(())?.to_global((&others, sbp![B]))?;
        assert_eq!(over.to_local()?.item()?, 3.0 * world.size() as f64);
    }
    println!("done");
    Ok(())
}

/// Rank 0 has the input and gives it to all.
fn stdin(world: &World) -> Result<()> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let all = Placement::all(Device::Cpu)?;
    // Ranks other than 0 read nothing and add zero.
    let mine = line.trim().parse::<f64>().unwrap_or(0.0);
    let sum = from_vec(vec![mine], [1], Device::Cpu)?.to_global((&all, sbp![P]))?;
    println!("{}", sum.sum(())?.item()?);
    world.barrier()
}

/// Writes this process's id into a file of the folder.
fn tell_pid(world: &World, folder: &str) -> Result<()> {
    let path = format!("{folder}/pid{}", world.rank());
    std::fs::File::create(format!("{path}.new"))?.write_all(std::process::id().to_string().as_bytes())?;
    Ok(std::fs::rename(format!("{path}.new"), path)?)
}

/// Registers `test.work(x) -> y`, whose kernel copies and does that besides.
fn working(work: impl Fn() -> Result<()> + Send + Sync + 'static) -> Result<()> {
    let split = oflow::sbp::Sbp::Split(0);
    let def = OpDef::new("work(x: float) -> y")?
        .domain("test")
        .shape1(|c| Ok(c.input(0)?.shape.clone()))
        .dtype(DTypeRule::Input(0))
        .get_sbp(move |_| Ok(vec![Signature::new(&[split], &[split])]))
        .kernel(KernelDef::cpu("work", move |cx| {
            work()?;
            Ok(oflow::kernels::cpu::copy::copy(cx.input(0)?, cx.output(0))?)
        }));
    oflow::ops::register(def).map(drop)
}

fn work(x: &Tensor) -> Result<Tensor> {
    Ok(oflow::functional::call("test.work", &[x.into()], &[])?.remove(0))
}

/// In its third call rank 1 stays in a kernel, of the third run or the third iteration of a loop; it tells its id there, and the others when they wait
/// for it.
fn graph_holds(world: &World, folder: &str, looped: bool) -> Result<()> {
    let (rank, kept) = (world.rank(), folder.to_string());
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let id = std::process::id();
    working(move || {
        if rank != 1 || calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 2 {
            return Ok(());
        }
        std::fs::write(format!("{kept}/pid1.new"), id.to_string())?;
        std::fs::rename(format!("{kept}/pid1.new"), format!("{kept}/pid1"))?;
        loop {
            std::thread::park();
        }
    })?;
    let x = ones([8], (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
    let step = |g: &oflow::graph::GraphBuilder<'_>| {
        let x = g.input("x", &x)?;
        match looped {
            true => g.repeat(4, |_| work(&x.relu()?)?.exp()?.sum(()))?.sum(()),
            false => work(&x.relu()?)?.exp()?.sum(()),
        }
    };
    let mut graph = Graph::build(step, GraphOptions::default())?;
    if rank != 1 {
        tell_pid(world, folder)?;
    }
    loop {
        graph.run(&[&x])?.item()?;
    }
}

/// A run takes rank 1 six seconds, in 60 kernels, or in a loop of one kernel.
fn graph_is_long(world: &World, looped: bool) -> Result<()> {
    let rank = world.rank();
    working(move || {
        if rank == 1 {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        Ok(())
    })?;
    let x = ones([8], (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
    let long = |x: &Tensor| (0..60).try_fold(x.clone(), |y, _| work(&y))?.sum(());
    let step = |g: &oflow::graph::GraphBuilder<'_>| {
        let x = g.input("x", &x)?;
        if looped {
            let (last, _) = g.scan(60, vec![x], |_, y| Ok((vec![work(&y[0])?], vec![])))?;
            return last[0].sum(());
        }
        long(&x)
    };
    let mut graph = Graph::build(step, GraphOptions::default())?;
    println!("{}", graph.run(&[&x])?.item()?);
    Ok(())
}

/// Three steps of a model, as a graph that is saved, or by one that an earlier job has saved. Prints the losses.
fn graph_saves(world: &World, folder: &str, captured: bool) -> Result<()> {
    let mesh = Placement::all(Device::Cpu)?;
    let mut model = Linear::new(4, 2, (&mesh, sbp![B]))?;
    let mut opt = AdamW::new(model.parameters(), AdamWOptions { lr: 0.1, ..Default::default() });
    let x = rand([8, 4], (&mesh, sbp![S(0)]))?;
    let mut graph = if captured {
        let step = |g: &oflow::graph::GraphBuilder<'_>| {
            let loss = model.forward(&g.input("x", &x)?)?.square()?.mean(())?;
            opt.zero_grad();
            loss.backward()?;
            opt.step()?;
            Ok(loss)
        };
        let graph = Graph::build(step, GraphOptions::default())?;
        graph.save(folder, &[("model", &model), ("opt", &opt)])?;
        graph
    } else {
        Graph::load(folder, &mut [("model", &mut model), ("opt", &mut opt)])?
    };
    for _ in 0..3 {
        let loss = graph.run(&[&x])?.item()?;
        if world.rank() == 0 {
            println!("loss {loss}");
        }
    }
    Ok(())
}

/// The last rank captures something else, or captures nothing.
fn graph_differs(world: &World, how: &str) -> Result<()> {
    let last = world.rank() + 1 == world.size();
    let x = ones([8], (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
    let usual = |x: &Tensor| x.relu()?.neg()?.exp()?.sum(());
    let step = |x: &Tensor| match (how, last) {
        ("op", true) => x.relu()?.neg()?.sigmoid()?.sum(()),
        ("attribute", true) => x.relu()?.neg()?.exp()?.sum_keepdim(0),
        ("longer", true) => usual(x)?.neg(),
        _ => usual(x),
    };
    if how == "eager" && last {
        println!("{}", step(&x)?.item()?);
    }
    let passes = match (how, last) {
        ("passes", true) => Passes::default().without("fuse")?,
        _ => Passes::default(),
    };
    let options = GraphOptions::default().passes(passes);
    let mut graph = Graph::build(|g| step(&g.input("x", &x)?), options)?;
    match graph.run(&[&x]) {
        Err(e) if how == "longer" => {
            // The error is that of every rank, so the program may go on.
            println!("caught: {e}\n--");
            println!("{}", usual(&x)?.item()?);
            Ok(())
        }
        y => y?.item().map(drop),
    }
}

/// A graph on all ranks but the first, which has ended before, or waits for the others to end.
fn graph_of_some(world: &World, how: &str) -> Result<()> {
    let others: Vec<usize> = (1..world.size()).collect();
    let some = Placement::new(Device::Cpu, &others, &[others.len()])?;
    if world.rank() == 0 && how == "left" {
        return Ok(());
    }
    let x = ones([8], (&some, sbp![S(0)]))?;
    let last = world.rank() + 1 == world.size();
    let step = |x: &Tensor| if how == "differs" && last { x.exp()?.sum(()) } else { x.relu()?.sum(()) };
    let mut graph = Graph::build(|g| step(&g.input("x", &x)?), GraphOptions::default())?;
    if how == "ends" && last {
        std::process::exit(0);
    }
    let y = graph.run(&[&x])?.to_global((&some, sbp![B]))?;
    if world.rank() > 0 {
        println!("{}", y.to_local()?.item()?);
    }
    Ok(())
}

/// Rank 1 does not come to the first run.
fn graph_meets(world: &World, how: &str) -> Result<()> {
    collective(world)?;
    let x = ones([8], (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
    let mut graph = Graph::build(|g| g.input("x", &x)?.relu()?.sum(()), GraphOptions::default())?;
    match (how, world.rank()) {
        ("exit", 1) => std::process::exit(7),
        ("loop", 1) => loop {
            std::hint::spin_loop();
        },
        _ => graph.run(&[&x])?.item().map(drop),
    }
}

/// Rank 1 has an index that is out of range.
fn bad_index(world: &World, how: &str) -> Result<()> {
    let all = Placement::all(Device::Cpu)?;
    let rows = ones([4, 2], (&all, sbp![B]))?;
    let index = |i: i64| from_vec(vec![i, 1], [2], Device::Cpu)?.to_global((&all, sbp![S(0)]));
    let (good, bad) = (index(3)?, index(if world.rank() == 1 { 4 } else { 3 })?);
    let step = |i: &Tensor| rows.index_select(0, i)?.exp()?.sum(());
    let mut graph = Graph::build(|g| step(&g.input("i", &good)?), GraphOptions::default())?;
    for i in [&good, &bad] {
        let y = if how == "graph" { graph.run(&[i])? } else { step(i)? };
        println!("{}", y.item()?);
    }
    Ok(())
}
