//! Tensors on several threads: nothing is torn, nothing is read before it is written, nobody waits for ever.

use std::sync::atomic::{AtomicBool, Ordering};

use oflow::functional::call;
use oflow::ops::{Grad, OpDef};
use oflow::prelude::*;
use oflow::vm::VmMode;
use oflow::{CallSite, ErrorKind};

#[test]
fn in_place_from_two_threads_is_ordered_or_an_error() {
    let x = zeros([1 << 16], Device::Cpu).unwrap();
    let add = || (0..300).filter(|_| x.add_(1.0).map_err(|e| assert_eq!(e.kind(), ErrorKind::Value)).is_ok()).count();
    let added: usize = std::thread::scope(|s| {
        let threads: Vec<_> = (0..3).map(|_| s.spawn(add)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    // Every call that succeeded counts once, everywhere.
    assert!(added > 0);
    assert!(x.to_vec::<f32>().unwrap().iter().all(|v| *v == added as f32), "{added} were added");
}

#[test]
fn what_is_read_while_another_thread_writes_is_whole_or_an_error() {
    let x = zeros([1 << 16], Device::Cpu).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            for _ in 0..300 {
                // A reader is never in the way of a writer.
                x.add_(1.0).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        let mut whole = 0;
        while !done.load(Ordering::Acquire) || whole == 0 {
            match x.to_vec::<f32>() {
                Ok(v) => {
                    whole += 1;
                    assert!(v.iter().all(|e| *e == v[0]), "torn");
                }
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::Value);
                    assert!(e.to_string().contains("another thread"), "{e}");
                }
            }
        }
    });
}

/// Slow enough that who does not wait reads before the write.
const SLOW: VmMode = VmMode::Async { delay_us: 40_000, seed: 11 };

#[test]
fn a_thread_without_a_context_waits_for_the_stream_that_writes() {
    oflow::run_ranks_with(1, SLOW, |_| {
        for i in 0..4 {
            let x = full([5000], f64::from(i), Device::Cpu)?.add(1.0)?;
            let read = std::thread::spawn(move || {
                let y = x.mul(2.0)?;
                Ok::<_, Error>((x.to_vec::<f32>()?, y.to_vec::<f32>()?))
            });
            let (x, y) = read.join().unwrap()?;
            assert_eq!((x, y), (vec![i as f32 + 1.0; 5000], vec![2.0 * (i as f32 + 1.0); 5000]));
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_shard_of_a_boxing_under_way_is_read_when_it_has_come() {
    let mode = VmMode::CommThread;
    oflow::run_ranks_with(2, mode, |world| {
        let mesh = Placement::all(Device::Cpu)?;
        for _ in 0..20 {
            // Large enough for the communication thread.
            let x = full([1 << 16], 1.0, (&mesh, sbp![P]))?;
            let shard = x.to_global(sbp![B])?.to_local()?;
            let helper = std::thread::spawn(move || {
                // It has no boxing of its own under way, and must not take this rank's for done.
                let _ = oflow::report();
                shard.to_vec::<f32>()
            });
            let values = helper.join().unwrap()?;
            assert!(values.iter().all(|v| *v == values[0]), "rank {}", world.rank());
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_panic_on_a_stream_is_an_error_for_all_who_wait() {
    let op = OpDef::new("panics(x: float) -> y").unwrap().domain("test").grad(Grad::None);
    oflow::ops::register(op.cpu(|_| panic!("planted"))).unwrap();
    let told = AtomicBool::new(false);
    let end = oflow::run_ranks_with(1, VmMode::Async { delay_us: 50, seed: 3 }, |_| {
        let x = ones([4], Device::Cpu)?;
        let site = CallSite { line: line!() + 1, ..CallSite::here() };
        let y = call("panics", &[(&x).into()], &[])?.remove(0);
        let e = y.to_vec::<f32>().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Device);
        for part in ["panics", "planted", &site.to_string()] {
            assert!(e.to_string().contains(part), "{e}");
        }
        // From another thread too, and whatever comes later.
        let elsewhere = std::thread::spawn(move || y.to_vec::<f32>().unwrap_err().kind());
        assert_eq!(elsewhere.join().unwrap(), ErrorKind::Device);
        assert!(x.add(1.0).and_then(|z| z.to_vec::<f32>()).is_err());
        told.store(true, Ordering::Release);
        Ok(())
    });
    assert!(told.load(Ordering::Acquire));
    // The rank's last wait fails as well.
    assert!(end.is_err());
}
