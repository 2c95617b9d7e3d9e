use crate::threads::with_threads;
use oflow_kernels::parallel::*;
use std::sync::Mutex;

fn chunks(len: usize, grain: usize) -> Vec<(usize, usize)> {
    let seen = Mutex::new(Vec::new());
    parallel_for(len, grain, &|r| seen.lock().unwrap().push((r.start, r.end)));
    let mut seen = seen.into_inner().unwrap();
    seen.sort();
    seen
}

#[test]
fn chunks_do_not_depend_on_threads_and_cover_once() {
    for (len, grain) in [(0, 4), (1, 4), (4, 4), (5, 4), (1000, 7), (3, 0)] {
        let alone = chunks(len, grain);
        assert_eq!(alone.iter().map(|(a, b)| b - a).sum::<usize>(), len);
        assert!(alone.windows(2).all(|w| w[0].1 == w[1].0));
        for threads in [1, 2, 3] {
            assert_eq!(with_threads(threads, || chunks(len, grain)), alone, "{len} {grain} {threads}");
        }
    }
}

#[test]
fn pool_is_seen_and_joined_once() {
    assert_eq!(threads(), 1);
    with_threads(2, || {
        assert_eq!(threads(), 2);
        let again = install_pool(2).unwrap_err();
        assert!(again.0.contains("cannot start 2 compute threads"), "{again}");
    });
}

#[test]
fn the_thread_goes_on_alone_after_its_pool() {
    std::thread::scope(|s| {
        s.spawn(|| {
            drop(install_pool(2).unwrap());
            assert_eq!(chunks(10, 3).len(), 4);
        });
    });
}
