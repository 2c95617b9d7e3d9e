//! Streams against iterators, and resumed at every item.

use super::*;
use crate::data::{Dataset, Sampler, in_memory};

type Boxed = Box<dyn DataStream<Item = i64>>;

/// A stream by name, with the items that it must give; `None` where the order is by chance.
type Case = (&'static str, fn() -> Boxed, Option<Vec<i64>>);

fn numbers(n: i64) -> impl DataStream<Item = i64> {
    from_fn(move || (0..n).map(Ok))
}

fn cases() -> Vec<Case> {
    vec![
        ("map", || Box::new(numbers(9).map(|n| Ok(n * n))), Some((0..9).map(|n| n * n).collect())),
        ("filter", || Box::new(numbers(9).filter(|n| n % 3 == 1)), Some(vec![1, 4, 7])),
        ("take", || Box::new(numbers(9).take(4)), Some(vec![0, 1, 2, 3])),
        ("take more", || Box::new(numbers(3).take(40)), Some(vec![0, 1, 2])),
        ("skip", || Box::new(numbers(9).skip(6)), Some(vec![6, 7, 8])),
        ("skip all", || Box::new(numbers(9).skip(60)), Some(vec![])),
        ("concat", || Box::new(numbers(2).concat(numbers(3))), Some(vec![0, 1, 0, 1, 2])),
        (
            "zip",
            || Box::new(numbers(5).zip(numbers(9).skip(2)).map(|(a, b)| Ok(10 * a + b))),
            Some(vec![2, 13, 24, 35, 46]),
        ),
        ("batch", || Box::new(numbers(7).batch(3).unwrap().map(|b| Ok(b.iter().sum()))), Some(vec![3, 12, 6])),
        (
            "interleave",
            || {
                let s = |n: i64, by: i64| -> Boxed { Box::new(numbers(n).map(move |x| Ok(x + by))) };
                Box::new(s(3, 0).interleave(vec![s(1, 10), s(0, 20), s(2, 30)]))
            },
            Some(vec![0, 10, 30, 1, 31, 2]),
        ),
        ("prefetch", || Box::new(numbers(9).map(|n| Ok(n + 1)).prefetch(3)), Some((1..10).collect())),
        ("shuffle", || Box::new(numbers(25).shuffle(6, 4)), None),
        ("shuffle less", || Box::new(numbers(3).shuffle(10, 4)), None),
        (
            "shuffled prefetch",
            || Box::new(numbers(25).filter(|n| n % 2 == 0).prefetch(2).shuffle(4, 9).prefetch(1)),
            None,
        ),
        (
            "data set",
            || Box::new(in_memory((0..7i64).collect()).stream(Sampler::random(3), 0..3).unwrap().skip(2)),
            None,
        ),
        ("a bit of all", || Box::new(numbers(30).shuffle(5, 1).skip(3).concat(numbers(4).skip(1)).take(25)), None),
    ]
}

fn rest(s: &mut Boxed) -> Vec<i64> {
    std::iter::from_fn(|| s.next()).map(Result::unwrap).collect()
}

#[test]
fn streams_give_what_iterators_do_and_go_on_at_every_item() {
    for (name, make, want) in cases() {
        let all = rest(&mut make());
        if let Some(want) = want {
            assert_eq!(all, want, "{name}");
        }
        for at in 0..=all.len() {
            let mut s = make();
            for (i, want) in all[..at].iter().enumerate() {
                // What is passed over is the same as what is taken.
                match i % 2 {
                    0 => s.pass().unwrap().unwrap(),
                    _ => assert_eq!(s.next().unwrap().unwrap(), *want, "{name}"),
                }
            }
            // A position is saved as text.
            let position: Value = serde_json::from_str(&s.position().to_string()).unwrap();
            for mut other in [make(), s] {
                other.seek(&position).unwrap();
                assert_eq!(rest(&mut other), all[at..], "{name} at {at}");
                assert!(other.next().is_none() && other.pass().is_none(), "{name} has ended");
                // And back.
                other.seek(&position).unwrap();
                assert_eq!(rest(&mut other), all[at..], "{name} at {at}, again");
            }
        }
    }
}

#[test]
fn shuffled_items_are_all_there_and_out_of_order() {
    let mut got = rest(&mut (Box::new(numbers(200).shuffle(20, 1)) as Boxed));
    assert_ne!(got, (0..200).collect::<Vec<_>>());
    assert_ne!(got, rest(&mut (Box::new(numbers(200).shuffle(20, 2)) as Boxed)));
    got.sort_unstable();
    assert_eq!(got, (0..200).collect::<Vec<_>>());
}

#[test]
fn errors_come_in_order_and_the_stream_goes_on() {
    let failing = || numbers(8).map(|n| if n % 3 == 2 { Err(Error::value(format!("item {n}"))) } else { Ok(n) });
    let shown = |s: &mut dyn DataStream<Item = i64>| -> Vec<String> {
        std::iter::from_fn(|| s.next()).map(|r| r.map_or_else(|e| e.message().to_string(), |n| n.to_string())).collect()
    };
    let want = ["0", "1", "item 2", "3", "4", "item 5", "6", "7"];
    assert_eq!(shown(&mut failing()), want);
    assert_eq!(shown(&mut failing().prefetch(2)), want);
    assert_eq!(shown(&mut failing().filter(|_| true).take(4)), want[..4]);
    let sums = |b: Vec<i64>| Ok(b.iter().sum());
    assert_eq!(shown(&mut failing().batch(2).unwrap().map(sums)), ["1", "item 2", "item 5", "13"]);
}

#[test]
fn a_panic_on_a_thread_is_an_error_and_the_end() {
    let mut s = numbers(8).map(|n| Ok(10 / (3 - n))).prefetch(2);
    assert!((0..3).all(|_| s.next().unwrap().is_ok()));
    let e = s.next().unwrap().unwrap_err();
    assert!(e.message().contains("panic on a thread that reads data: attempt to divide by zero"), "{e}");
    assert!(s.next().is_none());
    assert!(s.seek(&s.position()).unwrap_err().message().contains("has panicked"));
    // Threads end where streams are dropped half way.
    let mut s = numbers(1_000_000).prefetch(1);
    assert_eq!(s.next().unwrap().unwrap(), 0);
}

#[test]
fn positions_of_other_streams_are_refused() {
    let e = numbers(3).take(2).seek(&numbers(3).position()).unwrap_err();
    assert!(e.message().contains("a position of another stream: no 'left' in {\"item\":0}"), "{e}");
    assert!(numbers(3).seek(&serde_json::json!({ "item": 4 })).is_err());
    let d = |n: i64, seed| in_memory((0..n).collect()).stream(Sampler::random(seed), 0..1).unwrap();
    let e = d(5, 1).seek(&d(5, 2).position()).unwrap_err();
    assert_eq!(
        e.message(),
        "the position is one in 5 rows shuffled by seed 2; this stream has 5 rows shuffled by seed 1"
    );
    assert!(numbers(5).shuffle(2, 1).seek(&numbers(5).shuffle(2, 3).position()).is_err());
}
