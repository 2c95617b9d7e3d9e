use crate::owned::{Owned, read};
use crate::threads::with_threads;
use oflow_kernels::cpu::random::*;
use oflow_kernels::{DType, Result, ShardBox, View};

type Fill = fn(&View, &ShardBox) -> Result<()>;

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

const ALL: [(&str, Fill); 4] = [
    ("uniform", |v, b| uniform(v, b, 7, 3, -1.0, 2.0)),
    ("normal", |v, b| normal(v, b, 7, 3, 0.5, 2.0)),
    ("bernoulli", |v, b| bernoulli(v, b, 7, 3, 0.3)),
    ("randint", |v, b| randint(v, b, 7, 3, -5, 9)),
];

fn make(dtype: DType, shard: &ShardBox, f: impl Fn(&View, &ShardBox) -> Result<()>) -> Vec<f64> {
    let t = Owned::zeros(dtype, &shard.size);
    f(&t.view(), shard).unwrap();
    read(&t.view())
}

/// Known answers published with Random123.
#[test]
fn known_answers() {
    let ones = u32::MAX;
    assert_eq!(philox4x32([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
    assert_eq!(philox4x32([ones; 4], [ones; 2]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
    let pi = philox4x32([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]);
    assert_eq!(pi, [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
}

#[test]
fn a_shard_is_a_slice_of_the_whole() {
    let dims = [5, 7, 150];
    let whole = ShardBox::whole(&dims);
    for (name, f) in ALL {
        for d in [DType::F32, DType::F64, DType::BF16] {
            let all = make(d, &whole, f);
            for (offset, size) in [
                ([0, 0, 0], [5, 7, 150]),
                ([2, 0, 0], [3, 7, 150]),
                ([1, 2, 0], [2, 3, 150]),
                ([0, 1, 37], [5, 6, 101]),
                ([4, 6, 149], [1, 1, 1]),
                ([5, 0, 0], [0, 7, 150]),
            ] {
                let shard = ShardBox {
                    logical: dims.as_slice().into(),
                    offset: offset.as_slice().into(),
                    size: size.as_slice().into(),
                };
                let got = make(d, &shard, f);
                for (i, x) in got.iter().enumerate() {
                    let at = [i / (size[1] * size[2]), i / size[2] % size[1], i % size[2]];
                    let logical = ((at[0] + offset[0]) * 7 + at[1] + offset[1]) * 150 + at[2] + offset[2];
                    assert_eq!(*x, all[logical], "{name} {d} {offset:?} {size:?} {at:?}");
                }
            }
        }
    }
}

#[test]
fn strides_and_threads_do_not_matter() {
    let dims = [300, 401];
    let whole = ShardBox::whole(&dims);
    for (name, f) in ALL {
        let plain = make(DType::F32, &whole, f);
        let t = Owned::zeros(DType::F32, &[401, 300]);
        f(&t.permuted(&[1, 0]), &whole).unwrap();
        assert_eq!(read(&t.permuted(&[1, 0])), plain, "{name}");
        assert_eq!(with_threads(2, || make(DType::F32, &whole, f)), plain, "{name}");
    }
}

/// The far end of a tensor of 2^40 elements: the counter's high words are in use.
#[test]
fn huge_tensors() {
    let at = |offset: usize| {
        let shard = ShardBox {
            logical: [1 << 20, 1 << 20].as_slice().into(),
            offset: [offset, (1 << 20) - 4].as_slice().into(),
            size: [1, 4].as_slice().into(),
        };
        make(DType::F64, &shard, ALL[0].1)
    };
    let index = ((1u64 << 40) - 4) / 4;
    let high = philox4x32([index as u32, (index >> 32) as u32, 3, 0], [7, 0])[0];
    let u = (at((1 << 20) - 1)[0] + 1.0) / 3.0;
    assert_eq!((u * (1u64 << 32) as f64) as u32, high);
    assert_ne!(at(0), at(1 << 18));
}

#[test]
fn moments() {
    let n = 200_000;
    let whole = ShardBox::whole(&[n]);
    let moment = |x: &[f64], mean: f64, k: i32| x.iter().map(|v| (v - mean).powi(k)).sum::<f64>() / x.len() as f64;
    for d in FLOATS {
        let u = make(d, &whole, ALL[0].1);
        assert!((moment(&u, 0.0, 1) - 0.5).abs() < 0.01 && (moment(&u, 0.5, 2) - 0.75).abs() < 0.01, "{d}");
        assert!(u.iter().all(|x| (-1.0..2.0).contains(x)), "{d}");
        let z = make(d, &whole, ALL[1].1);
        let m = moment(&z, 0.0, 1);
        assert!((m - 0.5).abs() < 0.03 && (moment(&z, 0.5, 2) - 4.0).abs() < 0.06, "{d} {m}");
        assert!(moment(&z, 0.5, 3).abs() < 0.4 && (moment(&z, 0.5, 4) - 48.0).abs() < 2.0, "{d}");
        assert!(z.iter().all(|x| x.is_finite()));
        // Neighbours are uncorrelated, also the two of one Box-Muller pair.
        let lagged = z.windows(2).map(|w| (w[0] - 0.5) * (w[1] - 0.5)).sum::<f64>() / n as f64;
        assert!(lagged.abs() < 0.05, "{d} {lagged}");
    }
    let b = make(DType::Bool, &whole, ALL[2].1);
    assert!((moment(&b, 0.0, 1) - 0.3).abs() < 0.005);
    let r = make(DType::I32, &whole, ALL[3].1);
    for v in -5..9 {
        let share = r.iter().filter(|x| **x == v as f64).count() as f64 / n as f64;
        assert!((share - 1.0 / 14.0).abs() < 0.004, "{v} {share}");
    }
    assert!(r.iter().all(|x| (-5.0..9.0).contains(x)));
}

#[test]
fn seeds_and_ordinals_differ() {
    let whole = ShardBox::whole(&[64]);
    let with = |seed, ordinal| {
        let t = Owned::zeros(DType::F32, &[64]);
        uniform(&t.view(), &whole, seed, ordinal, 0.0, 1.0).unwrap();
        read(&t.view())
    };
    let base = with(1, 1);
    for (s, o) in [(2, 1), (1, 2), (1 << 32 | 1, 1), (1, 1 << 32 | 1)] {
        assert_ne!(with(s, o), base, "{s} {o}");
    }
}

#[test]
fn dropout_keeps_scales_and_works_in_place() {
    let dims = [40, 130];
    let n = 40 * 130;
    let whole = ShardBox::whole(&dims);
    for d in FLOATS {
        let x = Owned::from_f64(d, &dims, &vec![1.0; n]);
        let out = Owned::zeros(d, &dims);
        dropout(&x.view(), &out.view(), &whole, 1, 2, 0.5).unwrap();
        let y = read(&out.view());
        assert!(y.iter().all(|v| *v == 0.0 || *v == 2.0));
        let kept = y.iter().filter(|v| **v == 2.0).count() as f64 / n as f64;
        assert!((kept - 0.5).abs() < 0.03, "{kept}");
        dropout(&x.view(), &x.view(), &whole, 1, 2, 0.5).unwrap();
        assert_eq!(read(&x.view()), y);
        dropout(&out.view(), &x.view(), &whole, 1, 2, 0.0).unwrap();
        assert_eq!(read(&x.view()), y);
        dropout(&out.view(), &x.view(), &whole, 1, 2, 1.0).unwrap();
        assert_eq!(read(&x.view()), vec![0.0; n]);
    }
}

#[test]
fn refusals() {
    let t = Owned::zeros(DType::I32, &[4]);
    let whole = ShardBox::whole(&[4]);
    assert_eq!(uniform(&t.view(), &whole, 0, 0, 0.0, 1.0).unwrap_err().0, "i32 is not a float dtype");
    assert_eq!(bernoulli(&t.view(), &whole, 0, 0, 1.5).unwrap_err().0, "1.5 is not a probability");
    assert_eq!(randint(&t.view(), &whole, 0, 0, 3, 3).unwrap_err().0, "randint from an empty range 3..3");
    assert!(bernoulli(&t.view(), &ShardBox::whole(&[5]), 0, 0, 0.5).unwrap_err().0.contains("is not the box"));
}

/// Every float dtype, bounds of either sign, around zero, far from it, and with no number of the dtype between them.
#[test]
fn uniform_numbers_never_reach_the_upper_bound() {
    let whole = ShardBox::whole(&[1 << 14]);
    let bounds =
        [(0.0, 1.0), (-1.0, 0.0), (-1.0, 2.0), (-3.0, -2.0), (0.1, 0.3), (1000.0, 1001.0), (1.0, 1.0001), (2.0, 2.0)];
    for d in FLOATS {
        let rounded = |x: f64| oflow_kernels::Scalar::Float(x).in_dtype(d.computed().unwrap()).to_f64();
        for (lo, hi) in bounds {
            let x = make(d, &whole, |v, b| uniform(v, b, 7, 3, lo, hi));
            let (least, most) = x.iter().fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
            let top = top_below(d.computed().unwrap(), lo, hi);
            assert!(least >= rounded(lo) && most <= top, "{d} {lo}..{hi}: {least} to {most}, at most {top}");
            // It is a number of the dtype, and below the bound where one is.
            assert_eq!(rounded(top), top, "{d} {lo}..{hi}");
            assert!(top < hi || top == rounded(lo), "{d} {lo}..{hi}: {top}");
            if d.is_half() && (lo, hi) == (0.0, 1.0) {
                assert_eq!(most, top, "{d}: among 2**14 numbers is one that rounding takes to 1");
            }
        }
    }
}
