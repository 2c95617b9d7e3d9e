//! Attention of split sequences: random calls in random layouts give what one rank gives, forward and backward; what moves is what the
//! layouts say.

use oflow::interpreter::list_called;
use oflow::prelude::*;
use oflow::sbp::Sbp;
use oflow::testing::Random;
use oflow::{BackwardOptions, functional::AttentionOptions, functional::grad};

const MESHES: [&[usize]; 4] = [&[2], &[3], &[4], &[2, 2]];

fn mesh(sizes: &[usize]) -> Result<Placement> {
    let names = ["a", "b"];
    let axes: Vec<(&str, usize)> = names.into_iter().zip(sizes.iter().copied()).collect();
    Placement::all(Device::Cpu)?.mesh(&axes)
}

/// Multiples of 1/8 in -1.5 ..= 1.5, which halves hold.
fn drawn(draw: &mut Random, n: usize) -> Vec<f32> {
    (0..n).map(|_| draw.below(25) as f32 / 8.0 - 1.5).collect()
}

/// Keys and values of any size go round the ranks, or none do.
fn options(scale: Option<f64>, ring: bool) -> AttentionOptions {
    AttentionOptions { scale, gather_limit: if ring { 0 } else { i64::MAX } }
}

/// A call: sizes, values of q, k, v and of the result's gradient, and how they are laid out on each mesh axis.
#[derive(Debug)]
struct Call {
    shapes: [[usize; 4]; 4],
    values: [Vec<f32>; 4],
    layouts: [[Sbp; 2]; 3],
    causal: bool,
    scale: f64,
    /// Whether keys and values that would be gathered go round the ranks instead.
    ring: bool,
    dtype: DType,
}

impl Call {
    fn drawn(d: &mut Random, dtype: DType) -> Call {
        let [b, h, depth, width] = [1 + d.below(3), 1 + d.below(4), 1 + d.below(5), 1 + d.below(5)];
        // Shorter than the ranks, uneven, none at all, different.
        let mut time = || if d.below(12) == 0 { 0 } else { 1 + d.below(9) };
        let tq = time();
        let tk = time();
        let tk = if d.below(2) == 0 { tq } else { tk };
        let shapes = [[b, h, tq, depth], [b, h, tk, depth], [b, h, tk, width], [b, h, tq, width]];
        let values = shapes.map(|s| drawn(d, s.iter().product()));
        // Split sequences more often than not.
        let each = [Sbp::Split(0), Sbp::Split(1), Sbp::Split(2), Sbp::Split(2), Sbp::Split(2), Sbp::Broadcast];
        let layouts = [(); 3].map(|()| [(); 2].map(|()| each[d.below(each.len())]));
        // Sums of large scores overflow, if nobody takes their maximum away.
        let scale = [0.5, -0.5, 200.0][d.below(if dtype == DType::F32 { 3 } else { 2 })];
        Call { shapes, values, layouts, causal: d.below(3) > 0, scale, ring: d.below(2) > 0, dtype }
    }

    /// The result, and the gradients of q, k and v.
    fn run(&self, mesh: &Placement) -> Result<Vec<Vec<f32>>> {
        let whole = NdSbp::broadcast(mesh.axes());
        let put = |i: usize, sbp: NdSbp, dtype: DType| {
            from_vec(self.values[i].clone(), self.shapes[i], (mesh, sbp))?.cast(dtype)
        };
        let mut leaves = vec![];
        for (i, layout) in self.layouts.iter().enumerate() {
            let sbp: NdSbp = layout[..mesh.axes()].iter().copied().collect();
            leaves.push(put(i, sbp, self.dtype)?.requires_grad_(true)?);
        }
        let options = options(Some(self.scale), self.ring);
        let out = leaves[0].attention_with(&leaves[1], &leaves[2], self.causal, &options)?;
        let loss = out.cast(DType::F32)?.mul(&put(3, whole, DType::F32)?)?.sum(())?;
        loss.backward()?;
        let mut all = vec![out.cast(DType::F32)?.to_vec::<f32>()?];
        for leaf in &leaves {
            all.push(leaf.grad().expect("a gradient").cast(DType::F32)?.to_vec::<f32>()?);
        }
        Ok(all)
    }
}

/// Runs calls on all meshes and compares every rank's numbers with those of one rank.
fn compare(dtype: DType, seed: u64, count: usize, tolerance: f32) {
    let mut d = Random::new(seed);
    let calls: Vec<Call> = (0..count).map(|_| Call::drawn(&mut d, dtype)).collect();
    let one = |c: &Call| c.run(&mesh(&[1])?);
    let want = oflow::run_ranks(1, |_| calls.iter().map(one).collect::<Result<Vec<_>>>()).unwrap().remove(0);
    assert!(want.iter().flatten().flatten().any(|x| *x != 0.0));
    for sizes in MESHES {
        let of_rank = || calls.iter().map(|c| c.run(&mesh(sizes)?)).collect::<Result<Vec<_>>>();
        let ranks = oflow::run_ranks(sizes.iter().product(), |_| of_rank()).unwrap();
        for (rank, have) in ranks.iter().enumerate() {
            for ((call, have), want) in calls.iter().zip(have).zip(&want) {
                for ((have, want), what) in have.iter().zip(want).zip(["out", "dq", "dk", "dv"]) {
                    assert_eq!(have.len(), want.len());
                    for (h, w) in have.iter().zip(want) {
                        // Not a number is never near anything.
                        let near = (h - w).abs() <= tolerance * (1.0 + w.abs());
                        assert!(near, "{what} on {sizes:?}, rank {rank}: {h} instead of {w} of {call:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn random_calls_in_f32() {
    compare(DType::F32, 1, 120, 2e-4);
}

#[test]
fn random_calls_in_bf16() {
    compare(DType::BF16, 2, 60, 0.04);
}

/// The gradient of the squared norms of all gradients.
fn second(mesh: &Placement, layouts: [Sbp; 3], times: [usize; 2], causal: bool, ring: bool) -> Result<Vec<Vec<f64>>> {
    let mut d = Random::new(3);
    let mut leaves = vec![];
    for (sbp, t) in layouts.into_iter().zip([times[0], times[1], times[1]]) {
        let values: Vec<f64> = drawn(&mut d, 2 * t * 3).iter().map(|x| f64::from(*x)).collect();
        let sbp: NdSbp = [sbp].into_iter().collect();
        leaves.push(from_vec(values, [1, 2, t, 3], (mesh, sbp))?.requires_grad_(true)?);
    }
    let out = leaves[0].attention_with(&leaves[1], &leaves[2], causal, &options(None, ring))?;
    let keep = BackwardOptions { create_graph: true, ..Default::default() };
    let firsts = grad([out.tanh()?.sum(())?], &leaves, &keep)?;
    let norms: Vec<Tensor> = firsts.iter().flatten().map(|g| g.square()?.sum(())).collect::<Result<_>>()?;
    let mut total = norms[0].clone();
    for n in &norms[1..] {
        total = total.add(n)?;
    }
    let seconds = grad([total], &leaves, &BackwardOptions::default())?;
    seconds.into_iter().map(|g| g.expect("every input has a gradient").to_f64_vec()).collect()
}

#[test]
fn second_derivatives_of_split_sequences() {
    let (b, t) = (Sbp::Broadcast, Sbp::Split(2));
    for (times, causal) in [([5, 5], true), ([5, 5], false), ([2, 7], true), ([7, 2], true)] {
        let want = oflow::run_ranks(1, |_| second(&mesh(&[1])?, [b, b, b], times, causal, false)).unwrap().remove(0);
        for n in [2, 3] {
            for (layouts, ring) in [([t, b, b], false), ([b, t, t], false), ([t, t, t], false), ([t, t, t], true)] {
                for have in oflow::run_ranks(n, |_| second(&mesh(&[n])?, layouts, times, causal, ring)).unwrap() {
                    for (h, w) in have.iter().flatten().zip(want.iter().flatten()) {
                        let off = (h - w).abs();
                        assert!(off <= 1e-10, "{layouts:?} on {n} ranks, {times:?}: {h} instead of {w}");
                    }
                }
            }
        }
    }
}

/// What a call of attention with these layouts did: its signature, and the bytes that all boxings forward sent.
fn forward(world: usize, heads: usize, layouts: [Sbp; 3], times: [usize; 2], causal: bool) -> (String, u64) {
    forward_with(world, heads, layouts, times, (causal, false))
}

fn forward_with(
    world: usize,
    heads: usize,
    layouts: [Sbp; 3],
    times: [usize; 2],
    (causal, ring): (bool, bool),
) -> (String, u64) {
    let run = |mesh: &Placement| {
        let put = |s: Sbp, t: usize| randn([1, heads, t, 16], (mesh, [s].into_iter().collect::<NdSbp>()));
        let (q, k, v) = (put(layouts[0], times[0])?, put(layouts[1], times[1])?, put(layouts[2], times[1])?);
        oflow::take_comm_trace();
        let (out, called) = list_called(|| q.attention_with(&k, &v, causal, &options(None, ring)));
        out?;
        let sent = oflow::take_comm_trace().iter().map(|r| r.bytes_sent()).sum::<u64>();
        Ok((called[0].signature.to_string(), sent))
    };
    let all = oflow::run_ranks(world, |_| run(&mesh(&[world])?)).unwrap();
    assert!(all.iter().all(|x| *x == all[0]), "{all:?}");
    all[0].clone()
}

#[test]
fn what_moves_forward() {
    let (b, t) = (Sbp::Broadcast, Sbp::Split(2));
    let by_queries = "[S(2)], [B], [B] -> [S(2)], [S(2)]";
    let by_keys = "[B], [S(2)], [S(2)] -> [B], [B] (lowered)";
    for causal in [false, true] {
        for world in [2, 4] {
            // Split queries and whole keys: nothing.
            let all = forward(world, 2, [t, b, b], [64, 64], causal);
            assert_eq!(all, (by_queries.to_string(), 0));
            // Split keys: their number does not matter.
            let few = forward(world, 2, [b, t, t], [4, 2048], causal);
            let many = forward(world, 2, [b, t, t], [4, 8192], causal);
            assert_eq!((few.0.as_str(), few.1), (by_keys, many.1));
            assert!(few.1 > 0 && few.0 == many.0);
            // All split, one head. As many queries as keys: the keys and values are gathered.
            let (signature, sent) = forward(world, 1, [t, t, t], [512, 512], causal);
            assert_eq!((signature.as_str(), sent), (by_queries, 2 * 512 * 16 * 4 * (world as u64 - 1)));
            // Few queries: these are.
            let (signature, sent) = forward(world, 1, [t, t, t], [8, 4096], causal);
            assert_eq!(signature, by_keys);
            assert!(sent < 4096 * 16 * 4 / 16, "{sent}");
            // Enough heads, long sequences: each rank gets whole sequences of some heads.
            let (signature, sent) = forward(world, 4, [t, t, t], [2048, 2048], causal);
            assert_eq!(signature, "[S(1)], [S(1)], [S(1)] -> [S(1)], [S(1)]");
            assert_eq!(sent, 3 * 4 * 2048 * 16 * 4 * (world as u64 - 1) / world as u64);
        }
    }
}

#[test]
fn keys_go_round_where_gathering_takes_too_much() {
    let t = Sbp::Split(2);
    let ring = "[S(2)], [S(2)], [S(2)] -> [S(2)], [S(2)] (lowered)";
    for world in [2u64, 3, 4] {
        // Each rank receives the parts of all others, and where the call is causal of those before it.
        let keys = |count: u64| 2 * count * 16 * 4;
        let all = forward_with(world as usize, 1, [t, t, t], [480, 480], (false, true));
        assert_eq!(all, (ring.to_string(), keys(480) * (world - 1)));
        let all = forward_with(world as usize, 1, [t, t, t], [480, 480], (true, true));
        assert_eq!(all, (ring.to_string(), keys(480) * (world - 1) / 2));
        // Heads that the ranks divide are exchanged for sequences.
        let all = forward_with(world as usize, world as usize, [t, t, t], [2040, 2040], (false, true));
        assert_eq!(all.0, "[S(1)], [S(1)], [S(1)] -> [S(1)], [S(1)]");
    }
}

#[test]
fn the_limit_of_gathered_keys_is_256_mib() {
    // Keys and values of 32 channels of f32.
    for (length, signature) in [
        (1 << 20, "[S(2)], [B], [B] -> [S(2)], [S(2)]"),
        ((1 << 20) + 1, "[S(2)], [S(2)], [S(2)] -> [S(2)], [S(2)] (lowered)"),
    ] {
        let run = |_: &oflow::World| {
            let mesh = mesh(&[4])?;
            let [q, k, v] = [(); 3].map(|()| zeros([1, 1, length, 32], (&mesh, sbp![S(2)])));
            let (q, k, v) = (q?, k?, v?);
            let (out, called) = list_called(|| q.attention(&k, &v, true));
            out?;
            Ok(called[0].signature.to_string())
        };
        assert_eq!(oflow::dry_run(4, 1, run).unwrap(), signature);
    }
}

#[test]
fn a_limit_below_zero_is_refused() {
    let x = zeros([1, 1, 2, 2], Device::Cpu).unwrap();
    let set = AttentionOptions { gather_limit: -1, ..Default::default() };
    let e = x.attention_with(&x, &x, false, &set).unwrap_err().to_string();
    assert!(e.contains("'gather_limit' is -1 bytes"), "{e}");
}

#[test]
fn ranks_whose_keys_nobody_sees() {
    // Two queries: only the first shards of eight keys are seen, and the other ranks add nothing.
    let call = |layout: Sbp| Call {
        shapes: [[1, 1, 2, 3], [1, 1, 8, 3], [1, 1, 8, 2], [1, 1, 2, 2]],
        values: [6, 24, 16, 4].map(|n| drawn(&mut Random::new(4), n)),
        layouts: [[Sbp::Broadcast; 2], [layout; 2], [layout; 2]],
        causal: true,
        scale: 0.7,
        ring: false,
        dtype: DType::F32,
    };
    let want = oflow::run_ranks(1, |_| call(Sbp::Broadcast).run(&mesh(&[1])?)).unwrap().remove(0);
    for sizes in MESHES {
        let all = oflow::run_ranks(sizes.iter().product(), |_| call(Sbp::Split(2)).run(&mesh(sizes)?)).unwrap();
        for have in all {
            for (h, w) in have.iter().flatten().zip(want.iter().flatten()) {
                assert!((h - w).abs() <= 1e-5, "{h} instead of {w} on {sizes:?}");
            }
            // Keys that are not seen have no gradient.
            assert!(have[2][6..].iter().chain(&have[3][4..]).all(|g| *g == 0.0));
        }
    }
}
