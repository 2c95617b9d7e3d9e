//! Brute-force oracles that every transport is tested against.

use super::{CollectiveCall, Communicator, DType, Group, ReduceOp, Tag};
use half::{bf16, f16};
use oflow_base::Random;
use oflow_base::tree::{SHORT_BYTES, Tree};

pub(super) fn tag(ordinal: u64, op: &'static str) -> Tag {
    Tag {
        ordinal,
        hash: ordinal.wrapping_mul(0x9e37_79b9),
        op,
        file: "oracle.rs",
        line: ordinal as u32 + 1,
        scope: Default::default(),
    }
}

/// Element `i` of rank `r`'s data: small integers, so that only the order of f16 additions matters.
pub(super) fn value(dtype: DType, seed: u64, r: usize, i: usize) -> f64 {
    let x = Random::new(seed ^ ((r as u64) << 32) ^ (i as u64).wrapping_mul(0x2545_f491_4f6c_dd1d)).draw();
    match dtype {
        DType::Bool => (x % 2) as f64,
        DType::U8 => (x % 16) as f64,
        DType::I8 => (x % 31) as f64 - 15.0,
        DType::U16 | DType::U32 => (x % 2001) as f64,
        d if d.is_float() => ((x % 4001) as f64 - 2000.0) / 7.0,
        _ => (x % 2001) as f64 - 1000.0,
    }
}

pub(super) fn store(dtype: DType, x: f64) -> Vec<u8> {
    match dtype {
        DType::Bool | DType::U8 => vec![x as u8],
        DType::I8 => (x as i8).to_ne_bytes().to_vec(),
        DType::I16 => (x as i16).to_ne_bytes().to_vec(),
        DType::U16 => (x as u16).to_ne_bytes().to_vec(),
        DType::U32 => (x as u32).to_ne_bytes().to_vec(),
        DType::I32 => (x as i32).to_ne_bytes().to_vec(),
        DType::I64 => (x as i64).to_ne_bytes().to_vec(),
        DType::F16 => f16::from_f64(x).to_ne_bytes().to_vec(),
        DType::BF16 => bf16::from_f64(x).to_ne_bytes().to_vec(),
        DType::F32 => (x as f32).to_ne_bytes().to_vec(),
        _ => x.to_ne_bytes().to_vec(),
    }
}

fn load(dtype: DType, b: &[u8]) -> f64 {
    match dtype {
        DType::Bool | DType::U8 => b[0] as f64,
        DType::I8 => b[0] as i8 as f64,
        DType::I16 => i16::from_ne_bytes(b.try_into().unwrap()) as f64,
        DType::U16 => u16::from_ne_bytes(b.try_into().unwrap()) as f64,
        DType::U32 => u32::from_ne_bytes(b.try_into().unwrap()) as f64,
        DType::I32 => i32::from_ne_bytes(b.try_into().unwrap()) as f64,
        DType::I64 => i64::from_ne_bytes(b.try_into().unwrap()) as f64,
        DType::F16 => f16::from_ne_bytes(b.try_into().unwrap()).to_f64(),
        DType::BF16 => bf16::from_ne_bytes(b.try_into().unwrap()).to_f64(),
        DType::F32 => f32::from_ne_bytes(b.try_into().unwrap()) as f64,
        _ => f64::from_ne_bytes(b.try_into().unwrap()),
    }
}

pub(super) fn data(dtype: DType, seed: u64, rank: usize, elements: usize) -> Vec<u8> {
    (0..elements).flat_map(|i| store(dtype, value(dtype, seed, rank, i))).collect()
}

/// The reduction of the ranks' elements in that order, one element at a time.
pub(super) fn reduced(dtype: DType, op: ReduceOp, seed: u64, ranks: &[usize], elements: usize) -> Vec<u8> {
    let one = |i: usize| {
        let mut values = ranks.iter().map(|&r| load(dtype, &store(dtype, value(dtype, seed, r, i))));
        let first = values.next().unwrap();
        let sum = |a: f64, b: f64| match dtype {
            DType::F16 | DType::BF16 | DType::F32 => (a as f32 + b as f32) as f64,
            DType::U8 => (a as u8).wrapping_add(b as u8) as f64,
            DType::I8 => (a as i8).wrapping_add(b as i8) as f64,
            _ => a + b,
        };
        let all = values.fold(first, |a, b| match op {
            ReduceOp::Sum => sum(a, b),
            ReduceOp::Max => a.max(b),
            ReduceOp::Min => a.min(b),
        });
        store(dtype, all)
    };
    (0..elements).flat_map(one).collect()
}

/// Counts of elements for the members: uneven, some zero, at most about `most`.
fn counts(rng: &mut Random, members: usize, most: usize) -> Vec<usize> {
    (0..members).map(|_| if rng.below(4) == 0 { 0 } else { rng.below(most + 1) }).collect()
}

/// What one rank does in a world test: every collective over a group at one size, compared with the oracle.
pub(super) fn check_all(
    comm: &dyn Communicator,
    group: &Group,
    elements: usize,
    dtype: DType,
    op: ReduceOp,
    seed: u64,
) {
    let (size, m, me) = (dtype.size(), group.ranks.len(), group.me);
    let what = format!("{dtype} {op} {elements} on {group:?}");
    let t = tag(seed, "check");
    let rank = comm.rank();
    let mut rng = Random::new(seed);
    comm.barrier(group, &t).unwrap();

    let mut buf = data(dtype, seed, rank, elements);
    comm.all_reduce(group, &t, &buf.clone(), &mut buf, dtype, op).unwrap();
    assert!(buf == reduced(dtype, op, seed, &group.ranks, elements), "all_reduce {what}");

    let root = rng.below(m);
    let mut buf = data(dtype, seed, rank, elements);
    comm.broadcast(group, &t, root, &mut buf).unwrap();
    assert!(buf == data(dtype, seed, group.ranks[root], elements), "broadcast {what}");

    let n = counts(&mut rng, m, elements);
    let bytes: Vec<usize> = n.iter().map(|c| c * size).collect();
    let mut recv = vec![0xaa; bytes.iter().sum()];
    comm.all_gather(group, &t, &data(dtype, seed, rank, n[me]), &mut recv, &bytes).unwrap();
    let expected: Vec<u8> = group.ranks.iter().zip(&n).flat_map(|(&r, &c)| data(dtype, seed, r, c)).collect();
    assert!(recv == expected, "all_gather {what} {n:?}");

    let total: usize = n.iter().sum();
    let start: usize = bytes[..me].iter().sum();
    let mut recv = vec![0xaa; bytes[me]];
    let (send, receive) = (&data(dtype, seed, rank, total)[..], &mut recv[..]);
    let scatter = CollectiveCall::ReduceScatter { send, receive, counts: &bytes, dtype, op };
    comm.run(group, &t, scatter).unwrap();
    let expected = reduced(dtype, op, seed, &group.ranks, total);
    assert!(recv == expected[start..start + bytes[me]], "reduce_scatter {what} {n:?}");

    // Message from i to j: seeded by (i, j).
    let matrix: Vec<Vec<usize>> = (0..m).map(|_| counts(&mut rng, m, elements)).collect();
    let message = |i: usize, j: usize| data(dtype, seed + 1000 * i as u64, group.ranks[j], matrix[i][j]);
    let send: Vec<u8> = (0..m).flat_map(|j| message(me, j)).collect();
    let send_counts: Vec<usize> = (0..m).map(|j| matrix[me][j] * size).collect();
    let recv_counts: Vec<usize> = (0..m).map(|i| matrix[i][me] * size).collect();
    let mut recv = vec![0xaa; recv_counts.iter().sum()];
    let (send_counts, receive_counts) = (&send_counts[..], &recv_counts[..]);
    let swap = CollectiveCall::AllToAll { send: &send[..], send_counts, receive: &mut recv[..], receive_counts };
    comm.run(group, &t, swap).unwrap();
    let expected: Vec<u8> = (0..m).flat_map(|i| message(i, me)).collect();
    assert!(recv == expected, "all_to_all {what} {matrix:?}");

    // Only messages that exist are sent, in an order of each rank's own.
    let some = |i: usize, j: usize| i != j && (matrix[i][j] > 0 || (i + j).is_multiple_of(3));
    let out: Vec<(usize, Vec<u8>)> =
        (0..m).rev().filter(|&j| some(me, j)).map(|j| (group.ranks[j], message(me, j))).collect();
    let sends: Vec<(usize, &[u8])> = out.iter().map(|(r, b)| (*r, &b[..])).collect();
    let mut into: Vec<(usize, Vec<u8>)> =
        (0..m).filter(|&i| some(i, me)).map(|i| (i, vec![0xaa; matrix[i][me] * size])).collect();
    let mut recvs: Vec<(usize, &mut [u8])> = into.iter_mut().map(|(i, b)| (group.ranks[*i], &mut b[..])).collect();
    comm.exchange(&t, &sends, &mut recvs).unwrap();
    for (i, b) in &into {
        assert!(*b == message(*i, me), "exchange {what} from member {i}");
    }
}

/// Sizes × dtypes × ops on the group of the whole world. `slot` is the transport's buffer, which some sizes exceed.
pub(super) fn check_world(comm: &dyn Communicator, slot: usize) {
    let group = Group { ranks: (0..comm.world()).collect(), me: comm.rank() };
    let mut seed = 0;
    for dtype in DType::REAL {
        for op in [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min] {
            if dtype == DType::Bool && op == ReduceOp::Sum {
                continue;
            }
            for elements in [0, 1, 37, 3 * slot / dtype.size() + 5] {
                seed += 1;
                check_all(comm, &group, elements, dtype, op, seed);
            }
        }
    }
}

/// Random overlapping groups in one random order; every rank skips those that it is not in.
pub(super) fn check_overlapping(comm: &dyn Communicator, calls: u64, slot: usize) {
    let mut rng = Random::new(77);
    for seed in 0..calls {
        let mut ranks: Vec<usize> = (0..comm.world()).collect();
        for i in (1..ranks.len()).rev() {
            ranks.swap(i, rng.below(i + 1));
        }
        ranks.truncate(1 + rng.below(comm.world()));
        let elements = if rng.below(8) == 0 { rng.below(slot) } else { rng.below(64) };
        if let Some(me) = ranks.iter().position(|&r| r == comm.rank()) {
            check_all(comm, &Group { ranks, me }, elements, DType::F32, ReduceOp::Sum, seed);
        }
    }
}

/// Messages around the size up to which large groups go by a tree, and the bytes that one rank has sent in each call.
pub(super) fn check_short(comm: &dyn Communicator, group: &Group) {
    let (m, me, rank) = (group.ranks.len(), group.me, comm.rank());
    let sent = |call: &mut dyn FnMut()| {
        let before = comm.traffic().bytes_sent;
        call();
        comm.traffic().bytes_sent - before
    };
    assert_eq!(sent(&mut || comm.barrier(group, &tag(0, "barrier")).unwrap()), 0);
    let most = SHORT_BYTES as usize / m;
    for (i, bytes) in [0, 4, 28, most / 4 * 4, most / 4 * 4 + 4, 2 * most].into_iter().enumerate() {
        for (dtype, op) in [(DType::F16, ReduceOp::Sum), (DType::F32, ReduceOp::Sum), (DType::I32, ReduceOp::Min)] {
            let (seed, elements) = (i as u64, bytes / 4 * 4 / dtype.size());
            let mut buf = data(dtype, seed, rank, elements);
            let n = buf.len() as u64;
            let told = Tree::of_short(m, n * m as u64).map(|t| t.sent(me, n, |r| r.len() as u64 * n));
            let counted =
                sent(&mut || comm.all_reduce(group, &tag(seed, "sum"), &buf.clone(), &mut buf, dtype, op).unwrap());
            assert!(buf == reduced(dtype, op, seed, &group.ranks, elements), "{dtype} {op} {elements} of {m}");
            assert!(told.is_none_or(|told| told == counted), "{counted} bytes, not {told:?}, {elements} of {m}");
        }
        // Uneven parts, some empty.
        let counts: Vec<usize> = (0..m).map(|j| [0, bytes, bytes / 2][j % 3]).collect();
        let total = counts.iter().sum::<usize>();
        let mut recv = vec![0xaa; total];
        let told = Tree::of_short(m, total as u64)
            .map(|t| t.sent(me, total as u64, |r| counts[r].iter().sum::<usize>() as u64));
        let own = data(DType::U8, i as u64, rank, counts[me]);
        let counted = sent(&mut || comm.all_gather(group, &tag(9, "gather"), &own, &mut recv, &counts).unwrap());
        let whole: Vec<u8> = (0..m).flat_map(|j| data(DType::U8, i as u64, group.ranks[j], counts[j])).collect();
        assert!(recv == whole, "all_gather of {bytes} bytes of {m}");
        assert!(told.is_none_or(|told| told == counted), "{counted} bytes, not {told:?}, {bytes} of {m}");
    }
}
