//! Profiles and timelines of a GPU's kernels: their times are those on the stream.

use std::time::Instant;

use oflow::Profiler;
use oflow::prelude::*;
use oflow::trace::Busy;

/// The sum of a kind of event, of one op.
fn sum(profile: &oflow::Profile, kind: &str, op: &str) -> Busy {
    profile.totals().of_kind(kind).filter(|(name, ..)| *name == op).fold(Busy::default(), |mut sum, (_, _, busy)| {
        sum.count += busy.count;
        sum.ns += busy.ns;
        sum
    })
}

#[test]
fn a_profile_has_the_times_of_kernels_on_their_stream() {
    if !super::cuda() {
        return;
    }
    oflow::run_ranks(2, |_| {
        let x = randn([96, 96], Device::Cuda)?;
        let chain = |steps: usize| {
            (0..steps).try_fold(x.clone(), |y, _| {
                let y = y.matmul(&x)?.tanh()?;
                // Reading waits for the stream.
                y.sum(())?.item()?;
                oflow::mark_step();
                Ok(y)
            })
        };
        chain(1)?;
        for steps in [100, 3] {
            let started = Instant::now();
            let (_, profile) = oflow::profile(|| chain(steps))?;
            let whole = started.elapsed().as_nanos() as u64;
            let mut kernels = 0;
            for op in ["matmul", "tanh", "sum"] {
                let (ran, launched) = (sum(&profile, "kernel", op), sum(&profile, "launch", op));
                assert_eq!((ran.count, launched.count), (steps as u64, steps as u64), "{op}: {profile}");
                assert!(ran.ns > 0, "{op}: {profile}");
                kernels += ran.ns;
            }
            assert!(kernels <= whole, "kernels of {kernels} ns in {whole} ns: {profile}");
            // The main thread computes nothing itself: it waits for the kernels. In a few steps it may come too late for all of them.
            let step = profile.totals().step().unwrap();
            assert!((step.compute > 0 || steps < 100) && step.compute <= step.whole, "{step:?}: {profile}");
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_timeline_has_a_track_for_the_stream() {
    if !super::cuda() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_path_buf();
    oflow::run_ranks(1, move |_| {
        let x = randn([16, 16], Device::Cuda)?;
        let profiler = Profiler::start_with_timeline(&path)?;
        x.matmul(&x)?;
        profiler.stop()?;
        let bytes = std::fs::read(path.join("rank-0.pftrace")).unwrap();
        let has = |text: &str| bytes.windows(text.len()).any(|w| w == text.as_bytes());
        assert!(has("cuda compute stream") && has("kernel") && has("launch") && has("matmul"));
        Ok(())
    })
    .unwrap();
}
