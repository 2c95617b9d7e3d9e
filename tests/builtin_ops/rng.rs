//! Random numbers: the same for every placement and SBP; a rank makes only its shard. The balanced split as properties.

use oflow::Generator;
use oflow::functional::{GumbelSoftmaxOptions, MultinomialOptions, normal, normal_of};
use oflow::kernels::cpu::random;
use oflow::kernels::{ShardBox, View};
use oflow::placement::shard_range;
use oflow::prelude::*;
use oflow::sbp::shard_box;
use oflow::testing::layout::{Value, assemble};
use oflow::testing::{MESHES, mix};

/// Every nd-SBP of S(0), S(1), B on that many axes.
fn layouts(axes: usize) -> Vec<NdSbp> {
    let words = [Sbp::Split(0), Sbp::Split(1), Sbp::Broadcast];
    (0..3usize.pow(axes as u32)).map(|k| (0..axes).map(|a| words[k / 3usize.pow(a as u32) % 3]).collect()).collect()
}

type Draw = fn(&Placement, &NdSbp) -> Result<Tensor>;

/// Each random function, global.
const DRAWS: [(&str, Draw); 20] = [
    ("rand", |p, s| rand([7, 5], (p, s))),
    ("randn", |p, s| randn([7, 5], (p, s))),
    ("randn bf16", |p, s| randn([7, 5], (p, s).dtype(DType::BF16))),
    ("bernoulli", |p, s| bernoulli([7, 5], 0.3, (p, s))),
    ("randint", |p, s| randint(-3, 9, [7, 5], (p, s))),
    ("dropout", |p, s| ones([7, 5], (p, s))?.dropout(0.4)),
    ("feature_dropout", |p, s| ones([7, 5], (p, s))?.feature_dropout(0.4)?.to_global((p, s))),
    ("alpha_dropout", |p, s| ones([7, 5], (p, s))?.alpha_dropout(0.4)?.to_global((p, s))),
    ("feature_alpha_dropout", |p, s| ones([7, 5], (p, s))?.feature_alpha_dropout(0.4)?.to_global((p, s))),
    ("rrelu", |p, s| ones([7, 5], (p, s))?.neg()?.rrelu(0.1, 0.3, true)?.to_global((p, s))),
    ("multinomial", |p, s| rand([7, 5], (p, s))?.multinomial(5, false)?.to_global((p, s))),
    ("multinomial with replacement", |p, s| rand([7, 5], (p, s))?.multinomial(5, true)?.to_global((p, s))),
    ("normal", |p, s| normal(2.0, 0.5, [7, 5], (p, s))),
    ("normal of tensors", |p, s| {
        normal_of(&zeros([5], (p, NdSbp::broadcast(p.axes())))?, &ones([7, 5], (p, s))?)?.to_global((p, s))
    }),
    ("normal_", |p, s| ones([7, 5], (p, s))?.normal_(1.0, 2.0, None).cloned()),
    ("normal_ bf16", |p, s| ones([7, 5], (p, s).dtype(DType::BF16))?.normal_(1.0, 2.0, None).cloned()),
    ("uniform_", |p, s| ones([7, 5], (p, s))?.uniform_(-1.0, 3.0, None).cloned()),
    ("exponential_", |p, s| ones([7, 5], (p, s))?.exponential_(0.5, None).cloned()),
    ("bernoulli_", |p, s| ones([7, 5], (p, s))?.bernoulli_(0.3, None).cloned()),
    ("randperm", |p, s| randperm(35, (p, NdSbp::broadcast(p.axes())))?.reshape([7, 5])?.to_global((p, s))),
];

#[test]
fn i10_numbers_do_not_depend_on_placement_or_sbp() {
    let draw_all = |p: &Placement, s: &NdSbp| -> Result<Vec<Value>> {
        manual_seed(11);
        DRAWS.iter().map(|(_, f)| Value::of(&f(p, s)?.to_local()?)).collect()
    };
    let single = oflow::run_ranks(1, |_| draw_all(&Placement::all(Device::Cpu)?, &sbp![B])).unwrap().remove(0);
    assert!(single.iter().all(|v| v.data.iter().any(|x| *x != v.data[0])), "constant numbers prove nothing");
    let mut count = 0;
    for mesh in MESHES {
        let n: usize = mesh.iter().product();
        let place = Placement::new(Device::Cpu, &(0..n).collect::<Vec<_>>(), mesh).unwrap();
        let sbps = layouts(mesh.len());
        let ranks =
            oflow::run_ranks(n, |_| sbps.iter().map(|s| draw_all(&place, s)).collect::<Result<Vec<_>>>()).unwrap();
        for (k, s) in sbps.iter().enumerate() {
            for (i, (name, _)) in DRAWS.iter().enumerate() {
                let shards: Vec<Value> = ranks.iter().map(|r| r[k][i].clone()).collect();
                let have = assemble(&single[i].ty, &place, s, &shards).unwrap();
                assert_eq!(have, single[i].data, "{name} as {s} on {mesh:?}");
                count += 1;
            }
        }
    }
    println!("{count} layouts of random tensors");
}

/// Mean, standard deviation, least and greatest number.
fn moments(x: &Tensor) -> [f64; 4] {
    let v = x.to_f64_vec().unwrap();
    let mean = v.iter().sum::<f64>() / v.len() as f64;
    let var = v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / v.len() as f64;
    [mean, var.sqrt(), v.iter().copied().fold(f64::MAX, f64::min), v.iter().copied().fold(f64::MIN, f64::max)]
}

#[test]
fn numbers_drawn_in_place_follow_their_distribution() {
    manual_seed(3);
    let x = zeros([40_000], Device::Cpu).unwrap();
    let near = |have: f64, want: f64| assert!((have - want).abs() < 0.05, "{have} and not {want}");
    let [mean, std, ..] = moments(x.normal_(1.0, 2.0, None).unwrap());
    near(mean, 1.0);
    near(std, 2.0);
    let [mean, std, least, most] = moments(x.uniform_(-1.0, 3.0, None).unwrap());
    near(mean, 1.0);
    near(std, 4.0 / 12f64.sqrt());
    assert!((-1.0..-0.99).contains(&least) && (2.99..3.0).contains(&most));
    let [mean, std, least, _] = moments(x.exponential_(0.5, None).unwrap());
    near(mean, 2.0);
    near(std, 2.0);
    assert!(least >= 0.0);
    let [mean, _, least, most] = moments(x.bernoulli_(0.3, None).unwrap());
    near(mean, 0.3);
    assert_eq!((least, most), (0.0, 1.0));
    let (means, stds) = (arange(2, Device::Cpu.dtype(DType::F32)).unwrap(), ones([40_000, 1], Device::Cpu).unwrap());
    let [mean, ..] = moments(&normal_of(&means, &stds.mul(2.0).unwrap()).unwrap().select(1, 1).unwrap());
    near(mean, 1.0);
    // The same numbers from the same generator; views are written through.
    let (a, b) = (zeros([6], Device::Cpu).unwrap(), zeros([2, 3], Device::Cpu).unwrap());
    a.normal_(0.0, 1.0, Some(&Generator::new(4))).unwrap();
    b.reshape([6]).unwrap().normal_(0.0, 1.0, Some(&Generator::new(4))).unwrap();
    assert_eq!(a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
    // What is refused: no floats, no distribution, a leaf.
    let ints = arange(3, Device::Cpu).unwrap();
    let leaf = zeros([2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    for (made, words) in [
        (ints.normal_(0.0, 1.0, None), "normal_(i64[3])"),
        (a.normal_(0.0, -1.0, None), "the standard deviation is -1"),
        (a.uniform_(1.0, 0.0, None), "from 1 to 0"),
        (a.exponential_(0.0, None), "the rate is 0"),
        (a.bernoulli_(1.5, None), "p is 1.5"),
        (a.normal_(0.0, f64::NAN, None), "NaN"),
        (leaf.uniform_(0.0, 1.0, None), "leaf"),
    ] {
        let e = made.map(|t| format!("{t:?}")).expect_err("refused");
        assert!(e.to_string().contains(words) && e.site().is_some_and(|site| site.file == file!()), "{e}");
    }
    let _guard = oflow::no_grad();
    assert!(leaf.fill_(2.5).and_then(|x| x.to_vec::<f32>()).unwrap() == [2.5, 2.5]);
}

#[test]
fn gumbel_softmax_draws_categories() {
    manual_seed(5);
    let logits = from_vec(vec![0.0f64, 1.0, 2.0], [3], Device::Cpu).unwrap().expand([20_000, 3]).unwrap();
    let drawn = logits.gumbel_softmax(1.0, true, -1).unwrap();
    let shares = drawn.mean(0).unwrap().to_f64_vec().unwrap();
    let sum: f64 = (0..3).map(|k| f64::from(k).exp()).sum();
    for (k, share) in shares.iter().enumerate() {
        assert!((share - (k as f64).exp() / sum).abs() < 0.02, "{shares:?}");
    }
    // One-hot up to rounding; the gradient is that of the soft numbers.
    let x = zeros([4, 3], Device::Cpu.dtype(DType::F64)).unwrap().requires_grad_(true).unwrap();
    let weight = arange(3, Device::Cpu.dtype(DType::F64)).unwrap();
    let options = || GumbelSoftmaxOptions { generator: Some(Generator::new(9)) };
    let grad = |hard: bool| {
        x.set_grad(None).unwrap();
        x.gumbel_softmax_with(0.7, hard, -1, &options())
            .unwrap()
            .mul(&weight)
            .unwrap()
            .sum(())
            .unwrap()
            .backward()
            .unwrap();
        x.grad().unwrap().to_f64_vec().unwrap()
    };
    let (soft, hard) = (grad(false), grad(true));
    assert!(soft.iter().any(|g| g.abs() > 1e-3) && soft.iter().zip(&hard).all(|(a, b)| (a - b).abs() < 1e-12));
}

#[test]
fn drawn_indices_follow_their_weights() {
    let generator = Generator::new(5);
    let weights = from_vec(vec![3.0f32, 0.0, 1.0, 4.0, 0.0, 0.0, 2.0, 2.0], [2, 4], Device::Cpu).unwrap();
    let options = MultinomialOptions { generator: Some(generator.clone()) };
    let drawn = weights.multinomial_with(8000, true, &options).unwrap().to_vec::<i64>().unwrap();
    let share = |row: usize, i: i64| drawn[row * 8000..][..8000].iter().filter(|d| **d == i).count() as f64 / 8000.0;
    for (row, i, want) in [(0, 0, 0.375), (0, 1, 0.0), (0, 2, 0.125), (0, 3, 0.5), (1, 1, 0.0), (1, 2, 0.5)] {
        assert!((share(row, i) - want).abs() < 0.03 && (want > 0.0 || share(row, i) == 0.0), "{row} {i}");
    }
    // The first of two drawn without replacement has these shares too; what has no weight comes last.
    let many = weights.slice(0, 0, 1, 1).unwrap().expand([8000, 4]).unwrap();
    let drawn = many.multinomial_with(4, false, &options).unwrap().to_vec::<i64>().unwrap();
    let first = |i: i64| drawn.chunks(4).filter(|d| d[0] == i).count() as f64 / 8000.0;
    assert!((first(0) - 0.375).abs() < 0.03 && (first(3) - 0.5).abs() < 0.03 && first(1) == 0.0);
    for row in drawn.chunks(4) {
        let mut all = row.to_vec();
        all.sort();
        assert_eq!((all, row[3]), (vec![0, 1, 2, 3], 1));
    }
    // Every place of a permutation is as likely for every number.
    let mut at = [0; 6];
    for _ in 0..1200 {
        let order = randperm(6, Device::Cpu.generator(&generator)).unwrap().to_vec::<i64>().unwrap();
        at[order.iter().position(|i| *i == 2).unwrap()] += 1;
    }
    assert!(at.iter().all(|n| (140..260).contains(n)), "{at:?}");
    assert_eq!(randperm(0, Device::Cpu).unwrap().shape(), [0]);
    assert_eq!(randperm(3, Device::Cpu.dtype(DType::I32)).unwrap().dtype(), DType::I32);
}

#[test]
fn i10_ranks_outside_a_placement_advance_the_generator_too() {
    let ranks = oflow::run_ranks(3, |w| {
        manual_seed(5);
        let part = Placement::new(Device::Cpu, &[0, 2], &[2])?;
        let all = Placement::all(Device::Cpu)?;
        randn([4], (&part, sbp![S(0)]))?;
        let then = randn([6], (&all, sbp![B]))?.to_vec::<f32>()?;
        Ok((w.ctx().generator().ordinal, then))
    })
    .unwrap();
    assert!(ranks.iter().all(|r| *r == ranks[0] && r.0 == 2), "{ranks:?}");
}

#[test]
fn local_draws_do_not_move_the_global_generator() {
    let ordinals = oflow::run_ranks(2, |w| {
        for _ in 0..w.rank() {
            rand([3], Device::Cpu)?;
        }
        Ok(w.ctx().generator().ordinal)
    });
    assert_eq!(ordinals.unwrap(), [0, 0]);
}

/// A shard of a logical tensor of 2^40 elements, made alone. A *global* tensor of that size cannot be held by any test (a
/// balanced split over a few ranks leaves each some 2^38 elements), so this is the kernel that every rank runs, given the
/// box that a rank of a mesh of 2^36 would hold.
#[test]
fn i10_one_shard_of_a_tensor_of_2_to_the_40_is_made_without_the_rest() {
    let make = |at: usize, len: usize| {
        let mut data = vec![0f32; len];
        // SAFETY: the vector outlives the view, which this call alone uses.
        let out = unsafe { View::from_mut(&mut data, &[1, len]) };
        let shard = ShardBox {
            logical: [1 << 30, 1 << 10].as_slice().into(),
            offset: [(1 << 30) - 1, at].as_slice().into(),
            size: [1, len].as_slice().into(),
        };
        random::normal(&out, &shard, 3, 8, 0.0, 1.0).unwrap();
        data
    };
    let whole = make(0, 1024);
    assert!(whole.iter().any(|x| *x != whole[0]));
    for (at, len) in [(0, 16), (13, 7), (509, 515), (1023, 1)] {
        assert_eq!(make(at, len), whole[at..at + len], "{len} numbers from {at}");
    }
    // Far ends of the counter: the numbers of the first row are others.
    let mut first = vec![0f32; 1024];
    // SAFETY: as above.
    let out = unsafe { View::from_mut(&mut first, &[1, 1024]) };
    let logical = [1 << 30, 1 << 10].as_slice().into();
    let shard = ShardBox { logical, offset: [0, 0].as_slice().into(), size: [1, 1024].as_slice().into() };
    random::normal(&out, &shard, 3, 8, 0.0, 1.0).unwrap();
    assert!(first != whole);
}

#[test]
fn i1_the_split_is_a_balanced_ordered_partition_at_every_size() {
    for k in 0..20_000u64 {
        let bits = mix(&[k, 1]) % 60;
        let len = (mix(&[k, 2]) & ((1 << bits) - 1)) as usize;
        let parts = 1 + (mix(&[k, 3]) % 4096) as usize;
        let i = (mix(&[k, 4]) % parts as u64) as usize;
        let r = shard_range(len, parts, i);
        assert!(r.len() == len / parts || r.len() == len / parts + 1, "{len} over {parts}");
        assert_eq!(shard_range(len, parts, 0).start, 0);
        assert_eq!(shard_range(len, parts, parts - 1).end, len);
        if i > 0 {
            let before = shard_range(len, parts, i - 1);
            assert_eq!(before.end, r.start, "{len} over {parts} at {i}");
            assert!(before.len() >= r.len(), "longer parts come first");
        }
    }
}

#[test]
fn i1_nested_splits_divide_the_outer_part() {
    for k in 0..2_000u64 {
        let (n, a, b) = (mix(&[k, 5]) % 50, 1 + mix(&[k, 6]) % 5, 1 + mix(&[k, 7]) % 5);
        let (n, a, b) = (n as usize, a as usize, b as usize);
        let mesh = Placement::new(Device::Cpu, &(0..a * b).collect::<Vec<_>>(), &[a, b]).unwrap();
        let mut next = 0;
        for p in 0..a * b {
            let s = shard_box(&[n], &mesh, &sbp![S(0), S(0)], p);
            let outer = shard_range(n, a, p / b);
            let inner = shard_range(outer.len(), b, p % b);
            assert_eq!((s.offset[0], s.size[0]), (outer.start + inner.start, inner.len()));
            assert_eq!(s.offset[0], next, "in order");
            next += s.size[0];
        }
        assert_eq!(next, n);
    }
}
