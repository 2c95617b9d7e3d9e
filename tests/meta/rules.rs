//! What a dry run leaves alone, and what it refuses.

use super::told;
use oflow::functional::grad_from;
use oflow::optim::{Sgd, SgdOptions};
use oflow::prelude::*;
use oflow::{BackwardOptions, ErrorKind, Tensor, World, box_many, from_boxes};

fn refused<T>(what: Result<T>, kind: ErrorKind, words: &[&str]) {
    let Err(e) = what else { panic!("no error about {words:?}") };
    let text = e.to_string();
    assert_eq!(e.kind(), kind, "{text}");
    assert!(e.is_logical() && text.contains(file!()) && text.contains("help:"), "{text}");
    words.iter().for_each(|w| assert!(text.contains(w), "'{w}' is not in: {text}"));
}

/// Everything that a program can do with a global tensor that is not of its own kind or rank; one of `own` is at hand.
fn all_foreign(other: &Tensor, own: &Tensor, words: &[&str]) -> Result<()> {
    let (ctx, mesh) = (oflow::context::current_rank()?, own.placement()?.clone());
    let before = (ctx.ops_issued(), ctx.recorder().marks_after(0), ctx.generator(), ctx.local_generator());
    let bad = |r: Result<()>| refused(r, ErrorKind::Context, words);
    bad(other.relu().map(drop));
    bad(own.add(other).map(drop));
    bad(other.add(own).map(drop));
    bad(other.dropout(0.5).map(drop));
    bad(other.to_global(sbp![B]).map(drop));
    bad(other.to_global((&mesh, sbp![S(1)])).map(drop));
    bad(other.to_local().map(drop));
    bad(box_many(&[(own, sbp![B]), (other, sbp![B])]).map(drop));
    bad(own.copy_(other).map(drop));
    bad(other.copy_(own).map(drop));
    bad(other.add_(own).map(drop));
    bad(oflow::call("relu", &[other.into()], &[]).map(drop));
    bad(other.sum(()).map(drop));
    let leaf = own.detach().requires_grad_(true)?;
    let given = BackwardOptions { gradient: Some(other.clone()), ..Default::default() };
    bad(leaf.backward_with(&given));
    let leaves = std::slice::from_ref(&leaf);
    bad(grad_from(leaves, leaves, &[Some(other.clone())], &Default::default()).map(drop));
    bad(leaf.set_grad(Some(other.clone())));
    assert_eq!((ctx.ops_issued(), ctx.recorder().marks_after(0), ctx.generator(), ctx.local_generator()), before);
    // Of what backward meets on its way.
    let start = || BackwardOptions { gradient: Some(own.clone()), ..Default::default() };
    for result in [false, true] {
        let leaf = own.detach().requires_grad_(true)?;
        let y = leaf.relu()?;
        let foreign = other.clone();
        let _hook = if result { &y } else { &leaf }.register_hook(move |_| Ok(Some(foreign.clone())))?;
        bad(y.backward_with(&start()));
    }
    let foreign = other.clone();
    let leaf = own.detach().requires_grad_(true)?;
    let back = move |_: &[Option<Tensor>]| Ok(vec![Some(foreign.clone())]);
    let y = oflow::apply_custom("foreign", &[&leaf], |ins| Ok(vec![ins[0].relu()?]), back)?;
    bad(y[0].backward_with(&start()));
    Ok(())
}

/// [`all_foreign`], and the same with a local tensor.
fn all_mixed(other: &Tensor, local: &Tensor, own: &Tensor, words: &[&str]) -> Result<()> {
    all_foreign(other, own, words)?;
    let (ctx, mesh) = (oflow::context::current_rank()?, own.placement()?.clone());
    let before = (ctx.ops_issued(), ctx.recorder().marks_after(0), ctx.generator(), ctx.local_generator());
    let bad = |r: Result<()>| refused(r, ErrorKind::Context, words);
    bad(local.to_global((&mesh, sbp![B])).map(drop));
    bad(distribute(local, (&mesh, sbp![B])).map(drop));
    bad(local.transpose(0, 1).map(drop));
    bad(local.to_device(Device::Async).map(drop));
    bad(local.detach().mul_(2.0).map(drop));
    assert_eq!((ctx.ops_issued(), ctx.recorder().marks_after(0), ctx.generator(), ctx.local_generator()), before);
    Ok(())
}

/// Ranks that are threads can hand each other tensors. Shards of one size would pass for each other.
#[test]
fn tensors_of_another_rank_or_world_are_refused() {
    let mesh = || Placement::all(Device::Cpu);
    let earlier = oflow::run_ranks(2, |_| ones([4, 4], (&mesh()?, sbp![S(0)]))).unwrap();
    let there = [const { std::sync::OnceLock::new() }; 2];
    oflow::run_ranks(2, |world| {
        let own = ones([4, 4], (&mesh()?, sbp![S(0)]))?;
        let weight = own.detach().requires_grad_(true)?;
        weight.set_grad(Some(own.clone()))?;
        let _mine = there[world.rank()].set((own.clone(), weight));
        world.barrier()?;
        let (other, weight): &(Tensor, Tensor) = there[1 - world.rank()].get().unwrap();
        let (here, from) = (format!("rank {} of 2", world.rank()), format!("rank {} of 2", 1 - world.rank()));
        all_foreign(other, &own, &["was made by", &from, "cannot be used by", &here])?;
        all_foreign(&earlier[world.rank()], &own, &["was made by", &here, "context"])?;
        let unread = |r: Result<()>| refused(r, ErrorKind::Context, &["was made by", &from]);
        unread(other.to_vec::<f32>().map(drop));
        unread(other.to_vec_on::<f32>(0).map(drop));
        unread(oflow::save_file(std::env::temp_dir().join("oflow-foreign"), &[("x", other)]));
        unread(Sgd::new(vec![weight.clone()], SgdOptions::default()).step());
        // Threads of one rank share its tensors.
        let ctx = world.ctx().clone();
        let again = own.clone();
        let sum = std::thread::spawn(move || {
            let _entered = ctx.enter();
            again.relu().map(|y| y.short())
        });
        assert_eq!(sum.join().unwrap()?, "f32[4, 4] [S(0)]");
        world.barrier()
    })
    .unwrap();
    refused(earlier[0].relu(), ErrorKind::Context, &["entered no rank context"]);
}

fn some(world: &World) -> Result<(Tensor, Tensor)> {
    let mesh = Placement::all(Device::Cpu)?;
    assert!(world.size() > 1);
    Ok((ones([4, 4], (&mesh, sbp![S(0)]))?, ones([4, 4], Device::Cpu)?))
}

#[test]
fn meta_tensors_and_data_never_mix() {
    let metas = [0, 1].map(|rank| oflow::dry_run(2, rank, some).unwrap());
    // A tensor without a shard on its rank is one of its dry run all the same.
    let outside = oflow::dry_run(2, 1, |_| {
        let one = Placement::new(Device::Cpu, &[0], &[1])?;
        Ok((ones([4, 4], (&one, sbp![S(0)]))?, ones([4, 4], Device::Cpu)?))
    });
    let outside = outside.unwrap();
    let data = oflow::run_ranks(2, |world| {
        let (own, local) = some(world)?;
        for (global, here) in metas.iter().chain([&outside]) {
            assert!(global.is_meta() && here.is_meta());
            all_mixed(global, here, &own, &["dry run", "rank", "of 2", "the program, with data"])?;
        }
        Ok((own, local))
    })
    .unwrap();
    oflow::dry_run(2, 0, |world| {
        let (own, _) = some(world)?;
        all_mixed(&data[0].0, &data[0].1, &own, &["the program, with data", "inside the closure"])?;
        all_mixed(&metas[0].0, &metas[0].1, &own, &["dry run", "rank 0 of 2"])
    })
    .unwrap();
    // Nor where no context is entered.
    refused(metas[0].1.relu(), ErrorKind::Context, &["the program, with data"]);
    assert!(!data[0].0.is_meta());
}

#[test]
fn a_dry_run_leaves_the_program_alone() {
    let program = |world: &World, dry: bool| {
        manual_seed(7);
        let (own, _) = some(world)?;
        own.to_global(sbp![B])?;
        if dry {
            inside()?;
        }
        assert!(!oflow::is_dry_run());
        told(Device::Cpu, &[("own".into(), own.dropout(0.5)?)])
    };
    let with = oflow::run_ranks(2, |w| program(w, true)).unwrap();
    assert_eq!(with, oflow::run_ranks(2, |w| program(w, false)).unwrap());
}

/// A dry run that uses all that it has of its own.
fn inside() -> Result<()> {
    let inner = oflow::dry_run(64, 63, |w| {
        assert_eq!((w.rank(), w.size(), oflow::is_dry_run()), (63, 64, true));
        manual_seed(1);
        let (x, _) = some(w)?;
        x.to_global(sbp![B])?.dropout(0.5)?;
        w.barrier()?;
        let e = oflow::init().err().map(|e| e.to_string()).unwrap_or_default();
        assert!(e.contains("the world that `dry_run` gives"), "{e}");
        // One in another.
        oflow::dry_run(8, 0, some)?;
        assert_eq!(oflow::take_comm_trace().len(), 1);
        oflow::memory_stats(Device::Cpu)
    })?;
    assert!(inner.live < inner.peak);
    Ok(())
}

#[test]
fn nothing_is_read_saved_or_asked_of_other_ranks() {
    oflow::dry_run(4, 2, |w| {
        let (x, local) = some(w)?;
        let unread = |r: Result<()>| refused(r, ErrorKind::Unsupported, &["has no values", "is_dry_run"]);
        unread(x.to_vec::<f32>().map(drop));
        unread(local.to_vec_on::<f32>(0).map(drop));
        unread(x.to_vec_on::<f32>(0).map(drop));
        unread(x.sum(())?.item().map(drop));
        unread(local.to_f64_vec().map(drop));
        let no = |r: Result<()>| refused(r, ErrorKind::Unsupported, &["a dry run cannot", "is_dry_run"]);
        let dir = std::env::temp_dir().join(format!("oflow-meta-{}", std::process::id()));
        let mut m = oflow::checkpoint::CheckpointManager::new(&dir, Default::default());
        let mut opt = Sgd::new(vec![local.clone()], SgdOptions::default());
        no(m.save(1, &[("o", &opt)]));
        no(m.save_async(1, &[("o", &opt)]));
        no(m.load_latest(&mut [("o", &mut opt)]).map(drop));
        no(m.load_step(1, &mut [("o", &mut opt)]));
        no(oflow::save_file(dir.join("x"), &[("x", &x)]));
        assert!(!dir.exists());
        no(from_boxes(&[(&[0, 0], &local)], [8, 4], (x.placement()?, sbp![S(0)])).map(drop));
        assert_eq!(format!("{x:?} {local}"), "meta f32[4, 4] [S(0)] on cpu[4] meta f32[4, 4] on cpu");
        Ok(())
    })
    .unwrap();
    for (world, rank) in [(0, 0), (4, 4), (usize::MAX, 0), (1 << 21, 0)] {
        refused(oflow::dry_run(world, rank, |_| Ok(())), ErrorKind::Argument, &["a dry run cannot be rank"]);
    }
}

/// The ways in and out of global tensors.
fn in_and_out(world: &World) -> Result<Vec<String>> {
    let mesh = Placement::all(Device::Cpu)?.mesh(&[("a", 2), ("b", 3)])?;
    let some = Placement::new(Device::Cpu, &[4, 1], &[2])?;
    let shard = ones([2, 6], Device::Cpu)?.requires_grad_(true)?;
    let value = from_vec((0..24).map(|x| x as f32).collect(), [4, 6], Device::Cpu)?;
    let mut all = vec![];
    for layout in [sbp![S(0), B], sbp![S(0), S(1)], sbp![S(0), S(0)], sbp![B, P], sbp![P, S(1)]] {
        let x = shard.to_global((&mesh, layout))?;
        all.push(x.clone());
        x.mul(&x)?.sum(())?.backward()?;
        all.extend(shard.grad());
        all.push(x.to_local()?);
    }
    for layout in [sbp![P, S(1)], sbp![S(1), S(0)], sbp![S(0), S(0)], sbp![B, P]] {
        let x = distribute(&value, (&mesh, layout))?;
        let moved = x.to_global((&some, sbp![S(1)]))?;
        all.extend([x, moved.clone(), moved.to_global((&mesh, sbp![B, S(0)]))?]);
        all.push(if some.ranks().contains(&world.rank()) { moved.to_local()? } else { moved });
    }
    let there = value.to_device(Device::Async)?;
    all.extend([there.to_device(Device::Cpu)?.permute([1, 0])?.reshape([3, 8])?, there]);
    world.barrier()?;
    let named: Vec<(String, Tensor)> = all.into_iter().map(|t| ("tensor".into(), t)).collect();
    told(Device::Cpu, &named)
}

#[test]
fn ways_in_and_out_are_those_of_a_real_run() {
    let real = crate::real(6, in_and_out);
    for (rank, real) in real.iter().enumerate() {
        super::same(&format!("rank {rank}"), real, &oflow::dry_run(6, rank, in_and_out).unwrap());
    }
}

#[test]
fn any_size_any_device_any_thread() {
    // More than there is, on a device that is not there, from several threads of one rank.
    let peak = oflow::dry_run(4096, 77, |world| {
        let mesh = Placement::all(Device::Cuda)?;
        let x = zeros([1 << 30, 1 << 12], (&mesh, sbp![B]))?;
        let ctx = world.ctx().clone();
        let all = std::thread::scope(|s| {
            let one = || {
                refused(x.relu(), ErrorKind::Context, &["dry run"]);
                let _entered = ctx.enter();
                x.relu()?.sum(())
            };
            let threads: Vec<_> = (0..4).map(|_| s.spawn(one)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect::<Result<Vec<_>>>()
        })?;
        assert!(all.iter().all(|t| t.is_meta()));
        Ok(oflow::memory_stats(Device::Cuda)?.peak)
    })
    .unwrap();
    assert!(peak >= 2 << 44, "{peak}");
}
