//! Batches of data sets and streams: on every mesh the same rows, each rank's own ones only, resumed on other numbers of ranks.

use oflow::checkpoint::{CheckpointManager, CheckpointOptions};
use oflow::data::{Array, DataStreamExt, Dataset, Feed, Loader, Row, Sampler, from_fn, in_memory};
use oflow::prelude::*;
use oflow::run_ranks;
use oflow::state::Stateful;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows of a value `[2, 3]` and a label, all of which tell the number of the row.
fn row(n: usize) -> Result<Row> {
    let x: Vec<f32> = (0..6).map(|i| (n * 6 + i) as f32).collect();
    Ok(Row::new().with("x", Array::new(&x, &[2, 3])?).with("y", n as i64))
}

fn rows(n: usize) -> impl Dataset<Item = Row> {
    in_memory((0..n).collect()).map(row)
}

fn read(batch: &[Tensor]) -> Result<(Vec<f64>, Vec<f64>)> {
    Ok((batch[0].to_f64_vec()?, batch[1].to_f64_vec()?))
}

type Read = Vec<(Vec<f64>, Vec<f64>)>;

/// Two epochs of batches of columns in memory: the oracle.
fn from_columns(n: usize, batch: usize, seed: u64) -> Read {
    let run = |_: &_| {
        let x = (0..n * 6).map(|i| i as f32).collect();
        let mesh = Placement::all(Device::Cpu)?;
        let l = Loader::new(&mesh, batch).column(x, &[2, 3])?.column((0..n as i64).collect(), &[])?.shuffled(seed);
        (0..2).flat_map(|e| l.epoch(e)).map(|b| read(&b?)).collect()
    };
    run_ranks(1, run).unwrap().remove(0)
}

#[test]
fn data_sets_give_the_batches_of_columns_in_every_layout_and_with_threads() {
    let want = from_columns(23, 8, 5);
    for threads in [0, 3] {
        let got = run_ranks(4, |_| {
            let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 2), ("tp", 2)])?;
            let some = Placement::new(Device::Cpu, &[3, 1], &[2])?;
            let mut all: Vec<Read> = vec![];
            for (p, sbp) in
                [(&mesh, sbp![S(0), B]), (&mesh, sbp![S(0), S(0)]), (&mesh, sbp![B, B]), (&some, sbp![S(0)])]
            {
                let l = Loader::new(p, 8).with_sbp(sbp)?.dataset(rows(23))?.shuffled(5).prefetch(threads, 2);
                all.push((0..2).flat_map(|e| l.epoch(e)).map(|b| read(&b?)).collect::<Result<_>>()?);
            }
            // A dim of the values is split too, where all columns have it.
            let l = Loader::new(&mesh, 8).with_sbp(sbp![S(0), S(2)])?.prefetch(threads, 2);
            let l = l.dataset(rows(23).map(|r| r.select(&["x"])))?.shuffled(5);
            let x: Vec<Vec<f64>> =
                (0..2).flat_map(|e| l.epoch(e)).map(|b| b?[0].to_f64_vec()).collect::<Result<_>>()?;
            assert_eq!(l.columns().collect::<Vec<_>>(), ["x"]);
            Ok((all, x))
        })
        .unwrap();
        for (all, x) in got {
            assert!(all.iter().all(|a| *a == want));
            assert_eq!(x, want.iter().map(|(x, _)| x.clone()).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_rank_reads_only_its_rows() {
    let read = run_ranks(4, |w| {
        let count = Arc::new(AtomicUsize::new(0));
        let seen = count.clone();
        let counted = in_memory((0..40).collect::<Vec<usize>>()).map(move |n| {
            seen.fetch_add(1, Ordering::SeqCst);
            row(n)
        });
        let l = Loader::new(&Placement::all(Device::Cpu)?, 8).split_along(0)?.dataset(counted)?;
        l.epoch(0).try_for_each(|b| b.map(drop))?;
        let by_number = count.swap(0, Ordering::SeqCst);
        // The same of a stream, of 38 rows: the shorter batch is 6 rows of which ranks have 2, 2, 1 and 1.
        let seen = count.clone();
        let stream = from_fn(|| (0..38).map(Ok)).map(move |n: usize| {
            seen.fetch_add(1, Ordering::SeqCst);
            row(n)
        });
        let mut feed = Feed::new(&Placement::all(Device::Cpu)?, 8, stream)?.split_along(0)?;
        let labels: Vec<f64> =
            feed.by_ref().map(|b| b?[1].to_f64_vec()).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        assert_eq!(labels, (0..38).map(f64::from).collect::<Vec<_>>());
        Ok((w.rank(), by_number, count.load(Ordering::SeqCst)))
    })
    .unwrap();
    for (rank, by_number, streamed) in read {
        // Every rank reads the first row, for the shapes, and 2 rows of each of 5 batches.
        assert_eq!(by_number, 1 + 10, "rank {rank}");
        // 4 batches of 2 rows, the first row, and the last batch, whose share is known at its end only.
        assert!(streamed <= 1 + 4 * 2 + 2 + 2, "rank {rank} made {streamed} rows");
    }
}

#[test]
fn local_batches_are_the_parts_of_the_global_ones() {
    let want = from_columns(23, 8, 5);
    let got = run_ranks(3, |_| {
        let l = Loader::local(Device::Cpu, 8).dataset(rows(23))?.shuffled(5);
        let feed = in_memory((0..23).collect()).stream(Sampler::random(5), 0..2)?.map(row);
        let of_feed: Read = Feed::local(Device::Cpu, 8, feed)?.map(|b| read(&b?)).collect::<Result<_>>()?;
        Ok(((0..2).flat_map(|e| l.epoch(e)).map(|b| read(&b?)).collect::<Result<Read>>()?, of_feed))
    })
    .unwrap();
    for (at, (x, y)) in want.iter().enumerate() {
        let joined: Vec<f64> = got.iter().flat_map(|(l, _)| l[at].1.clone()).collect();
        assert_eq!(joined, *y);
        let joined: Vec<f64> = got.iter().flat_map(|(l, _)| l[at].0.clone()).collect();
        assert_eq!(joined, *x);
    }
    // A stream goes from one epoch into the next within a batch; the labels of all ranks are the 46 rows.
    let labels: Vec<f64> = (0..6).flat_map(|at| got.iter().flat_map(move |(_, f)| f[at].1.clone())).collect();
    let both: Vec<f64> = want.iter().flat_map(|(_, y)| y.clone()).collect();
    assert_eq!(labels, both);
}

/// The labels of the batches that follow a saved position, after some were read and saved on other ranks.
fn resumed<S: Stateful>(
    make: impl Fn() -> Result<S> + Sync,
    next: impl Fn(&mut S) -> Result<Vec<f64>> + Sync,
    (saved_on, loaded_on): (usize, usize),
    at: usize,
) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let dir = tempfile::tempdir().unwrap();
    let steps = 12;
    let whole = run_ranks(saved_on, |_| {
        let mut s = make()?;
        let first: Vec<Vec<f64>> = (0..at).map(|_| next(&mut s)).collect::<Result<_>>()?;
        CheckpointManager::new(dir.path(), CheckpointOptions { keep: 2 }).save(at as u64, &[("data", &s)])?;
        let rest = (at..steps).map(|_| next(&mut s)).collect::<Result<Vec<_>>>()?;
        Ok([first, rest].concat())
    });
    let whole = whole.unwrap().remove(0);
    let rest = run_ranks(loaded_on, |_| {
        let mut s = make()?;
        CheckpointManager::new(dir.path(), CheckpointOptions { keep: 2 }).load_latest(&mut [("data", &mut s)])?;
        (at..steps).map(|_| next(&mut s)).collect()
    });
    (whole, rest.unwrap().remove(0))
}

#[test]
fn positions_saved_on_some_ranks_are_resumed_on_others() {
    let feed = || {
        let mesh = Placement::all(Device::Cpu)?;
        let numbers = in_memory((0..23).collect()).stream(Sampler::random(4), 0..u64::MAX)?;
        let rows = numbers.filter(|n| n % 5 != 0).shuffle(7, 2).map(row).prefetch(3);
        Feed::new(&mesh, 6, rows)?.split_along(0)
    };
    let weighted = || Sampler::weighted((0..23).map(f64::from).collect(), 30, 9);
    for (from, to, at) in [(4, 2, 5), (2, 4, 3), (1, 3, 8), (3, 1, 0)] {
        let labels = |b: Vec<Tensor>| b[1].to_f64_vec();
        let (whole, rest) =
            resumed(feed, |f| labels(f.next().ok_or_else(|| Error::value("the end"))??), (from, to), at);
        assert_eq!(rest, whole[at..], "a feed saved on {from} ranks, loaded on {to}");
        for threads in [0, 2] {
            let stream = || {
                let mesh = Placement::all(Device::Cpu)?;
                let l = Loader::new(&mesh, 6).split_along(0)?.dataset(rows(23))?.sampler(weighted()?)?;
                Ok(oflow::data::Stream::new(Arc::new(l.prefetch(threads, 3))))
            };
            let (whole, rest) = resumed(stream, |s| labels(s.next()?), (from, to), at);
            assert_eq!(rest, whole[at..], "a loader with {threads} threads");
        }
    }
}

#[test]
fn a_position_of_another_sampler_is_refused() {
    run_ranks(1, |_| {
        let make = |s: Sampler| -> Result<_> {
            Ok(oflow::data::Stream::new(Arc::new(Loader::local(Device::Cpu, 2).dataset(rows(6))?.sampler(s)?)))
        };
        let weights = |w: f64| Sampler::weighted(vec![1.0, 1.0, 1.0, 1.0, 1.0, w], 6, 3);
        let dir = tempfile::tempdir()?;
        let mut checkpoints = CheckpointManager::new(dir.path(), CheckpointOptions { keep: 2 });
        let mut s = make(weights(2.0)?)?;
        s.next()?;
        checkpoints.save(1, &[("data", &s)])?;
        for other in [weights(3.0)?, Sampler::random(3), Sampler::sequential(), Sampler::subset(vec![0, 1, 2, 3, 4, 5])]
        {
            let e = checkpoints.load_latest(&mut [("data", &mut make(other)?)]).unwrap_err().to_string();
            assert!(e.contains("the position in the data was saved for 6 draws by 6 weights"), "{e}");
        }
        checkpoints.load_latest(&mut [("data", &mut make(weights(2.0)?)?)])?;
        Ok(())
    })
    .unwrap();
}

#[test]
fn errors_of_rows_name_them_and_come_in_the_place_of_their_batch() {
    run_ranks(1, |_| {
        for threads in [0, 1, 4] {
            let failing = in_memory((0..12).collect::<Vec<usize>>()).map(|n| match n {
                5 => Err(Error::parse("data.csv, line 6: 'x' is no number")),
                8 => panic!("no row 8"),
                n => row(n),
            });
            let l = Loader::local(Device::Cpu, 2).dataset(failing)?.prefetch(threads, 3);
            let mut batches = l.stream();
            let good = |b: Result<Vec<Tensor>>, first: usize| {
                assert_eq!(b.unwrap()[1].to_f64_vec().unwrap(), [first as f64, first as f64 + 1.0]);
            };
            good(batches.next(), 0);
            good(batches.next(), 2);
            // The batch fails each time; it is passed over by `skip`.
            for _ in 0..2 {
                let e = batches.next().unwrap_err();
                let text = e.to_string();
                assert!(text.contains("row 5 of the data set: data.csv, line 6: 'x' is no number"), "{text}");
                assert!(!e.is_logical(), "other ranks do not have it");
            }
            batches.skip()?;
            good(batches.next(), 6);
            if threads > 0 {
                let e = batches.next().unwrap_err().to_string();
                assert!(e.contains("panic on a thread that reads data: no row 8"), "{e}");
                batches.skip()?;
                good(batches.next(), 10);
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn rows_that_do_not_make_batches_are_refused() {
    run_ranks(1, |_| {
        let loader = || Loader::local(Device::Cpu, 3);
        let numbers = || in_memory((0..4usize).collect());
        let e = loader().dataset(numbers().map(|_| Ok(Row::new().with("word", "red")))).err().unwrap().to_string();
        assert!(e.contains("row 0 of the data set: the field 'word' is text; batches have numbers only"), "{e}");
        let ragged = numbers().map(|n| Ok(Row::new().with("x", Array::new(&vec![0f32; 2 + n / 2], &[2 + n / 2])?)));
        let e = loader().dataset(ragged)?.stream().next().unwrap_err().to_string();
        assert!(e.contains("row 2 of the data set: the field 'x' has f32[3]; in the first row it has f32[2]"), "{e}");
        let e = loader().column(vec![0f32; 4], &[])?.dataset(rows(4)).err().unwrap().to_string();
        assert!(e.contains("has rows already") && e.contains("data.rs"), "{e}");
        assert!(loader().dataset(rows(4))?.column(vec![0f32; 4], &[]).is_err());
        let global = || Loader::new(&Placement::all(Device::Cpu).unwrap(), 3);
        assert!(loader().split_along(0).is_err() && global().with_sbp(sbp![P(sum)]).is_err());
        let e = global().with_sbp(sbp![S(1)])?.dataset(rows(4)).err().unwrap().to_string();
        assert!(e.contains("batches of the column 'y'"), "{e}");
        assert!(
            Loader::local(Device::Cpu, 0).dataset(rows(4)).is_err()
                && Feed::local(Device::Cpu, 0, from_fn(|| [].into_iter())).is_err()
        );
        // A sampler that does not fit rows that come after it.
        let early = loader().sampler(Sampler::subset(vec![]))?.sampler(Sampler::sequential())?;
        assert!(loader().sampler(Sampler::subset(vec![3])).is_err());
        let weights = Sampler::weighted(vec![1.0], 9, 1)?;
        let l = loader().with_rows(1).sampler(weights)?.with_rows(4).column(vec![0f32; 4], &[])?;
        let e = l.stream().next().unwrap_err().to_string();
        assert!(e.contains("the sampler has 1 weights for 4 rows"), "{e}");
        assert_eq!(early.dataset(rows(4))?.batches(), 2);
        // No rows: no batches.
        let empty = loader().dataset(rows(0))?;
        assert_eq!((empty.batches(), empty.epoch(0).count()), (0, 0));
        assert!(empty.stream().next().is_err());
        assert_eq!(Feed::local(Device::Cpu, 2, from_fn(|| [].into_iter()))?.count(), 0);
        Ok(())
    })
    .unwrap();
}
