//! What a user relies on: contexts, ways in and out, views as values, gradients and their layouts, refusals.

use oflow::prelude::*;
use oflow::vm::{INLINE_BYTES, VmMode};
use oflow::{BackwardOptions, ErrorKind};
use oflow_tests::world;

fn arange_f64(n: usize) -> Vec<f64> {
    (0..n).map(|i| i as f64).collect()
}

#[test]
fn i3_a_global_tensor_without_a_context_is_an_error() {
    let mesh = Placement::of_world(Device::Cpu, 1).unwrap();
    let e = zeros([2], (&mesh, sbp![B])).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Context);
    assert!(e.to_string().contains("entered no rank context"), "{e}");
    assert!(e.to_string().contains("oflow::init()"), "{e}");
    assert!(e.to_string().contains("semantics.rs"), "the user's file: {e}");
    // Local tensors need none, and dropping a global tensor needs none either.
    assert_eq!(zeros([2], Device::Cpu).unwrap().to_vec::<f32>().unwrap(), [0.0; 2]);
    // A context that was left because nothing held it: `let _ = ctx.enter()`, `oflow::init()?;`.
    let e = oflow::dry_run(1, 0, |world| {
        let ctx = world.ctx().clone();
        Ok(std::thread::spawn(move || {
            drop(ctx.enter());
            zeros([2], (&Placement::of_world(Device::Cpu, 1)?, sbp![B]))
        }))
    });
    let e = e.unwrap().join().unwrap().unwrap_err().to_string();
    assert!(e.contains("the one that it entered at tests/tensors/semantics.rs:") && e.contains("`let _ = …`"), "{e}");
    let escaped = oflow::run_ranks(1, |_| zeros([2], (&Placement::all(Device::Cpu)?, sbp![B]))).unwrap();
    drop(escaped);
}

#[test]
fn i3_a_helper_thread_enters_the_context() {
    world(1, |w, mesh| {
        let ctx = w.ctx().clone();
        let sum = std::thread::scope(|s| {
            s.spawn(move || {
                let _in = ctx.enter();
                ones([3], (&mesh, sbp![S(0)]))?.sum(())?.item()
            })
            .join()
            .unwrap()
        })?;
        assert_eq!(sum, 3.0);
        Ok(())
    });
}

#[test]
fn i13_three_ways_in_are_never_confused() {
    world(3, |w, mesh| {
        // The logical value, given alike by all: each keeps its shard.
        let value = from_vec(arange_f64(7), [7], Device::Cpu)?;
        let x = distribute(&value, (&mesh, sbp![S(0)]))?;
        assert_eq!(x.to_vec::<f64>()?, arange_f64(7));
        // It lies where the result is to lie.
        let e = distribute(&value, (&mesh.on(Device::Async), sbp![S(0)])).unwrap_err().to_string();
        assert!(
            e.contains("the value is on cpu, the placement on ") && e.contains("help: move it with `to_device`"),
            "{e}"
        );
        // Shards: rank 0 holds 3 rows, the others 2.
        let mine = if w.rank() == 0 {
            vec![0.0, 1.0, 2.0]
        } else {
            vec![1.0 + 2.0 * w.rank() as f64, 2.0 + 2.0 * w.rank() as f64]
        };
        let n = mine.len();
        let y = from_vec(mine, [n], Device::Cpu)?.to_global((&mesh, sbp![S(0)]))?;
        assert_eq!((y.shape(), y.to_vec::<f64>()?), (&[7usize][..], arange_f64(7)));
        // Partial shards add up; B shards are made equal by the first rank's.
        let r = full([2], w.rank() as f64, Device::Cpu)?;
        assert_eq!(r.to_global((&mesh, sbp![P]))?.to_vec::<f32>()?, [3.0; 2]);
        assert_eq!(r.to_global((&mesh, sbp![P(max)]))?.to_vec::<f32>()?, [2.0; 2]);
        assert_eq!(r.to_global((&mesh, sbp![B]))?.to_local()?.to_vec::<f32>()?, [0.0; 2]);
        // Shards that are not the balanced split are refused on every rank alike.
        let odd = zeros([if w.rank() == 2 { 3 } else { 2 }], Device::Cpu)?;
        let e = odd.to_global((&mesh, sbp![S(0)])).unwrap_err();
        assert!(e.to_string().contains("not the balanced split"), "{e}");
        // Boxing keeps the logical value.
        assert_eq!(x.to_global(sbp![P])?.to_global(sbp![B])?.to_vec::<f64>()?, arange_f64(7));
        Ok(())
    });
}

#[test]
fn ranks_outside_the_placement_hold_metadata_and_take_part() {
    world(3, |w, _| {
        let two = Placement::new(Device::Cpu, &[2, 0], &[2])?;
        let x = distribute(&from_vec(arange_f64(5), [5], Device::Cpu)?, (&two, sbp![S(0)]))?;
        let y = x.mul(2.0)?;
        assert_eq!(y.shape(), [5]);
        assert_eq!(y.shard()?.is_some(), w.rank() != 1);
        let sum = y.sum(())?;
        assert_eq!(sum.item()?, 20.0);
        // To another placement and back.
        let one = Placement::new(Device::Cpu, &[1], &[1])?;
        let z = y.to_global((&one, sbp![B]))?;
        assert_eq!(z.shard()?.is_some(), w.rank() == 1);
        assert_eq!(z.to_vec::<f64>()?, [0.0, 2.0, 4.0, 6.0, 8.0]);
        let e = x.add(&z).unwrap_err();
        assert!(e.to_string().contains("different placements") && e.to_string().contains("to_global"), "{e}");
        let e = x.add(&zeros([5], Device::Cpu)?).unwrap_err();
        assert!(e.to_string().contains("local and global inputs are mixed"), "{e}");
        let here = x.to_local();
        assert_eq!(here.is_err(), w.rank() == 1);
        Ok(())
    });
}

#[test]
fn i14_printing_shows_metadata_and_never_communicates() {
    world(2, |w, mesh| {
        let p = ones([4], (&mesh, sbp![S(0)]))?.sum(())?;
        let before = w.ctx().ops_issued();
        assert_eq!(format!("{p:?}"), "f32[] [P(sum)] on cpu[2]");
        assert_eq!(w.ctx().ops_issued(), before);
        assert_eq!(p.item()?, 4.0);
        Ok(())
    });
}

#[test]
fn i15_global_views_are_values_and_local_views_share() {
    world(2, |_, mesh| {
        let x = distribute(&from_vec(arange_f64(6), [2, 3], Device::Cpu)?, (&mesh, sbp![B]))?;
        let (t, row) = (x.t()?, x.select(0, 1)?);
        x.add_(100.0)?;
        assert_eq!(t.to_vec::<f64>()?, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        assert_eq!(row.to_vec::<f64>()?, [3.0, 4.0, 5.0]);
        assert_eq!(x.to_vec::<f64>()?[0], 100.0);
        let boxed = x.to_global(sbp![S(0)])?.to_global(sbp![B])?;
        x.zero_()?;
        assert_eq!(boxed.to_vec::<f64>()?[0], 100.0);
        // The boxed copy of a changed tensor is made anew.
        let y = ones([4], (&mesh, sbp![S(0)]))?;
        let b = y.to_global(sbp![B])?;
        y.mul_(3.0)?;
        assert_eq!((b.to_vec::<f32>()?[0], y.to_global(sbp![B])?.to_vec::<f32>()?[0]), (1.0, 3.0));
        Ok(())
    });
    let x = from_vec(arange_f64(6), [2, 3], Device::Cpu).unwrap();
    let row = x.select(0, 1).unwrap();
    row.mul_(10.0).unwrap();
    assert_eq!(x.to_vec::<f64>().unwrap(), [0.0, 1.0, 2.0, 30.0, 40.0, 50.0]);
}

#[test]
fn local_views_copy_nothing_and_overlaps_are_safe() {
    let x = from_vec(arange_f64(9), [3, 3], Device::Cpu).unwrap();
    x.add_(&x.t().unwrap()).unwrap();
    let want: Vec<f64> = (0..9).map(|i| (i + (i % 3) * 3 + i / 3) as f64).collect();
    assert_eq!(x.to_vec::<f64>().unwrap(), want);
    let e = x.add_(&zeros([2, 3, 3], Device::Cpu.dtype(DType::F64)).unwrap()).unwrap_err();
    assert!(e.to_string().contains("cannot be written in place"), "{e}");
}

#[test]
fn gradients_of_ways_in_and_out() {
    world(2, |w, mesh| {
        // distribute: the value's gradient is whole on every rank.
        let v = from_vec(arange_f64(4), [4], Device::Cpu)?.requires_grad_(true)?;
        distribute(&v, (&mesh, sbp![S(0)]))?.square()?.sum(())?.backward()?;
        assert_eq!(v.grad().unwrap().to_vec::<f64>()?, [0.0, 2.0, 4.0, 6.0]);
        // local -> global: S gives the shard's gradient; B gives each rank its part (P) of the whole.
        let s = full([2], 1.0 + w.rank() as f64, Device::Cpu)?.requires_grad_(true)?;
        s.to_global((&mesh, sbp![S(0)]))?.square()?.sum(())?.backward()?;
        assert_eq!(s.grad().unwrap().to_vec::<f32>()?, [2.0 * (1.0 + w.rank() as f32); 2]);
        let b = full([2], 3.0, Device::Cpu)?.requires_grad_(true)?;
        b.to_global((&mesh, sbp![B]))?.sum(())?.backward()?;
        let parts = b.grad().unwrap().to_global((&mesh, sbp![P]))?;
        assert_eq!(parts.to_vec::<f32>()?, [1.0; 2], "the parts add up to the gradient");
        let stated = full([2], 3.0, Device::Cpu)?.requires_grad_(true)?;
        stated.to_global((&mesh, sbp![B]).grad_sbp(sbp![B]))?.sum(())?.backward()?;
        assert_eq!(stated.grad().unwrap().to_vec::<f32>()?, [1.0; 2]);
        // global -> local: a B tensor's shards are used by each rank, so their gradients add up.
        let g = ones([2], (&mesh, sbp![B]))?.requires_grad_(true)?;
        g.to_local()?.mul(1.0 + w.rank() as f64)?.sum(())?.backward()?;
        assert_eq!(g.grad().unwrap().to_vec::<f32>()?, [3.0; 2]);
        let g = ones([2], (&mesh, sbp![B]))?.requires_grad_(true)?;
        g.to_local_with(sbp![B])?.mul(5.0)?.sum(())?.backward()?;
        assert_eq!(g.grad().unwrap().to_vec::<f32>()?, [5.0; 2]);
        Ok(())
    });
}

#[test]
fn no_sync_keeps_partial_gradients_over_micro_batches() {
    world(2, |_, mesh| {
        let w = ones([3], (&mesh, sbp![B]))?.requires_grad_(true)?;
        let x = ones([4, 3], (&mesh, sbp![S(0)]))?;
        {
            let _quiet = no_sync();
            for _ in 0..3 {
                oflow::take_comm_trace();
                x.mul(&w)?.sum(())?.backward()?;
                let sent: u64 = oflow::take_comm_trace().iter().filter(|r| r.backward).map(|r| r.bytes_sent()).sum();
                assert_eq!(sent, 0, "no_sync communicated");
            }
            assert_eq!(w.grad().unwrap().sbp()?, &sbp![P]);
        }
        x.mul(&w)?.sum(())?.backward()?;
        let g = w.grad().unwrap();
        assert_eq!((g.sbp()?, g.to_vec::<f32>()?), (&sbp![B], vec![16.0; 3]));
        Ok(())
    });
}

#[test]
fn i9_backward_sends_the_same_in_the_same_order_on_every_rank() {
    let logs = oflow::run_ranks(4, |_| {
        let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 2), ("tp", 2)])?;
        let x = randn([6, 4], (&mesh, sbp![S(0), B]))?;
        let a = randn([4, 8], (&mesh, sbp![B, S(1)]))?.requires_grad_(true)?;
        let b = randn([8, 4], (&mesh, sbp![B, S(0)]))?.requires_grad_(true)?;
        oflow::take_comm_trace();
        let h = x.matmul(&a)?.gelu()?.matmul(&b)?;
        h.add(&h.relu()?)?.sum(())?.backward()?;
        Ok(oflow::take_comm_trace().iter().map(|r| r.to_string()).collect::<Vec<_>>())
    })
    .unwrap();
    assert!(!logs[0].is_empty());
    assert!(logs.iter().all(|l| l == &logs[0]), "{logs:#?}");
}

#[test]
fn hooks_retained_gradients_and_misuse() {
    let x = from_vec(vec![1.0f64, 2.0], [2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let y = x.square().unwrap();
    y.retain_grad().unwrap();
    let handle = x.register_hook(|g| g.mul(10.0).map(Some)).unwrap();
    let z = y.sum(()).unwrap();
    z.backward_with(&BackwardOptions { retain_graph: true, ..Default::default() }).unwrap();
    assert_eq!(y.grad().unwrap().to_vec::<f64>().unwrap(), [1.0, 1.0]);
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [20.0, 40.0]);
    handle.remove();
    x.set_grad(None).unwrap();
    z.backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [2.0, 4.0]);
    let e = z.backward().unwrap_err();
    assert!(e.to_string().contains("second time") && e.to_string().contains("retain_graph"), "{e}");
    let e = y.backward().unwrap_err();
    assert!(e.to_string().contains("not a single number"), "{e}");
    let e = x.add_(1.0).unwrap_err();
    assert!(e.to_string().contains("no_grad"), "{e}");
    let e = zeros([2], Device::Cpu.dtype(DType::I64)).unwrap().requires_grad_(true).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Autograd);
    // A tensor that backward needs was changed.
    let w = x.mul(1.0).unwrap();
    let s = w.square().unwrap().sum(()).unwrap();
    w.add_(1.0).unwrap();
    let e = s.backward().unwrap_err();
    assert!(e.to_string().contains("changed in place"), "{e}");
    // An in-place product overwrites what its own gradient reads, and keeps it; an in-place sum reads nothing.
    let (w, k) = (x.mul(1.0).unwrap(), x.mul(3.0).unwrap());
    w.mul_(&k).unwrap();
    x.set_grad(None).unwrap();
    w.sum(()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [6.0, 12.0]);
    let k = x.mul(3.0).unwrap();
    x.set_grad(None).unwrap();
    let w = x.mul(2.0).unwrap();
    w.add_(&k).unwrap();
    w.sum(()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [5.0, 5.0]);
}

#[test]
fn a_saved_global_tensor_that_was_copied_on_write_is_found_out() {
    world(2, |_, mesh| {
        let x = ones([4], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
        let w = x.mul(1.0)?;
        w.add_(0.0)?;
        let s = w.square()?.sum(())?;
        let view = w.reshape([2, 2])?;
        w.add_(1.0)?; // others hold the memory: the handle moves to new memory
        let e = s.backward().unwrap_err();
        assert!(e.to_string().contains("changed in place"), "{e}");
        assert_eq!(view.to_vec::<f32>()?, [1.0; 4]);
        Ok(())
    });
}

#[test]
fn an_output_that_its_gradient_reads_may_not_be_changed_in_any_layout() {
    world(2, |_, mesh| {
        let local = ones([4], Device::Cpu)?;
        for x in [local.copy()?, distribute(&local, (&mesh, sbp![S(0)]))?, distribute(&local, (&mesh, sbp![B]))?] {
            let x = x.requires_grad_(true)?;
            for recorded in [true, false] {
                let y = x.exp()?;
                let sum = y.sum(())?;
                match recorded {
                    true => drop(y.add_(1.0)?),
                    false => no_grad().run(|| y.add_(1.0).map(drop))?,
                }
                drop(y);
                let e = sum.backward().unwrap_err().to_string();
                assert!(e.contains("the output of exp was changed in place"), "{}: {e}", x.short());
            }
            // One that nothing has saved may.
            let y = x.mul(2.0)?;
            y.add_(1.0)?;
            y.sum(())?.backward()?;
        }
        Ok(())
    });
}

#[test]
fn a_long_chain_is_differentiated_and_dropped_without_recursion() {
    let x = ones([1], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let mut y = x.clone();
    for _ in 0..100_000 {
        y = y.add(0.0).unwrap();
    }
    y.sum(()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [1.0]);
}

#[test]
fn a_gpu_that_is_not_there_is_asked_for_with_a_clear_error() {
    if let Ok(gpus) = oflow::kernels::cuda::probe::probe().check() {
        println!("skipped: this machine has {} GPUs", gpus.len());
        return;
    }
    let e = zeros([2], Device::Cuda).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    let text = e.to_string();
    assert!(text.contains("Device::Cuda cannot be used on this machine: no "), "{e}");
    assert!(text.contains("help: `oflow doctor`") && text.contains("Device::Cpu"), "{e}");
}

#[test]
fn errors_name_op_shapes_layouts_line_and_the_way_out() {
    world(4, |_, mesh| {
        let mesh = mesh.mesh(&[("dp", 4)])?;
        let a = zeros([8, 4], (&mesh, sbp![S(0)]))?;
        let b = zeros([3, 2], (&mesh, sbp![B]))?;
        let line = line!() + 1;
        let e = a.matmul(&b).unwrap_err();
        let want = format!(
            "matmul(f32[8, 4] [S(0)], f32[3, 2] [B]) on cpu[dp=4]: inner dims differ: 4 and 3\n  at tests/tensors/semantics.rs:{line}\n  help: the last dim of the first operand must equal the second-to-last of the second"
        );
        assert_eq!(e.to_string(), want);
        assert!(e.is_logical());
        // The program goes on.
        assert_eq!(a.sum(())?.item()?, 0.0);
        let e = zeros([4], (&mesh, sbp![S(1)])).unwrap_err();
        assert!(e.to_string().contains("splits dim 1"), "{e}");
        let e = zeros([4], (&mesh, sbp![S(0), B])).unwrap_err();
        assert!(e.to_string().contains("one SBP per mesh axis"), "{e}");
        let e = a.cast(DType::Bool)?.to_global(sbp![P]).unwrap_err();
        assert!(e.to_string().contains("bool tensor cannot be P(sum)"), "{e}");
        let e = ones([8], (&Placement::of_world(Device::Cpu, 9)?, sbp![B])).unwrap_err();
        assert!(e.to_string().contains("oflaunch --nproc"), "{e}");
        Ok(())
    });
}

#[test]
fn i17_the_asynchronous_device_agrees_with_the_inline_one() {
    // Streams are threads with random delays and freed memory is poisoned: a missing wait gives wrong numbers.
    let run = |device: Device, mode: VmMode, seed: u64| {
        oflow::run_ranks_with(4, mode, |_| {
            manual_seed(seed);
            let mesh = Placement::all(device)?.mesh(&[("dp", 2), ("tp", 2)])?;
            let x = randn([6, 4], (&mesh, sbp![S(0), B]).dtype(DType::F64))?;
            let a = randn([4, 8], (&mesh, sbp![B, S(1)]).dtype(DType::F64))?.requires_grad_(true)?;
            let b = randn([8, 4], (&mesh, sbp![B, S(0)]).dtype(DType::F64))?.requires_grad_(true)?;
            let mut log = vec![];
            for _ in 0..5 {
                let h = x.matmul(&a)?.gelu()?.matmul(&b)?;
                let loss = h.softmax(-1)?.square()?.sum(())?;
                loss.backward()?;
                let _quiet = no_grad();
                for p in [&a, &b] {
                    let g = p.grad().unwrap();
                    p.sub_(&g.mul(0.1)?)?;
                    p.set_grad(None).unwrap();
                }
                log.push(loss.item()?);
            }
            log.extend(a.to_vec::<f64>()?);
            Ok(log)
        })
        .unwrap()
        .remove(0)
    };
    for seed in 0..4 {
        assert_eq!(run(Device::Async, VmMode::Inline, seed), run(Device::Cpu, VmMode::Inline, seed), "seed {seed}");
    }
}

#[test]
fn i18_an_error_that_depends_on_values_is_local() {
    let table = zeros([3, 2], Device::Cpu).unwrap();
    let ids = from_vec(vec![0i64, 3], [2], Device::Cpu).unwrap();
    let line = line!() + 1;
    let e = table.embedding(&ids).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Value);
    assert!(!e.is_logical());
    let text = e.to_string();
    assert!(
        text.contains("embedding") && text.contains(&format!("semantics.rs:{line}")) && text.contains('3'),
        "{text}"
    );
    let (logits, target) = (zeros([1, 4], Device::Cpu).unwrap(), from_vec(vec![4i64], [1], Device::Cpu).unwrap());
    assert_eq!(logits.cross_entropy(&target).unwrap_err().kind(), ErrorKind::Value);
}

#[test]
fn i17_large_boxings_on_a_thread_of_their_own_agree_and_keep_one_order() {
    let rows = INLINE_BYTES / 8 / 16 + 3;
    let run = |mode: VmMode| {
        oflow::run_ranks_with(3, mode, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            let mut x = randn([rows, 16], (&mesh, sbp![S(0)]).dtype(DType::F64))?;
            let mut log = vec![];
            for _ in 0..6 {
                // Large and small collectives in turn, results overwritten while boxings are on their way.
                let whole = x.to_global(sbp![B])?;
                let columns = x.to_global(sbp![S(1)])?;
                x.mul_(0.5)?;
                log.push(columns.sum(0)?.amax(())?.item()?);
                x = x.add(&whole)?;
                log.push(x.mean(())?.item()?);
            }
            Ok(log)
        })
        .unwrap()
    };
    let inline = run(VmMode::Inline);
    for _ in 0..4 {
        assert_eq!(run(VmMode::CommThread), inline);
    }
}
