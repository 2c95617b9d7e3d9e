//! Convolutions and pooling of images that are split along their rows or columns: each rank gets the elements beside its shard and no
//! more, and the numbers are those of one rank.

use oflow::functional::{Arg, call};
use oflow::ops::AttrValue;
use oflow::prelude::*;
use oflow::testing::Random;
use oflow::vm::VmMode;
use oflow::{Policy, boxing_policy};

/// Bytes that the ranks sent since the last time, by all calls together.
fn sent() -> u64 {
    oflow::report().lines.iter().map(|l| l.bytes).sum()
}

#[test]
fn a_convolution_moves_the_rows_beside_the_shards() {
    let ranks = oflow::run_ranks(4, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = randn([2, 3, 32, 5], (&mesh, sbp![S(2)]))?.requires_grad_(true)?;
        let w = randn([4, 3, 3, 3], (&mesh, sbp![B]))?.requires_grad_(true)?;
        sent();
        let y = x.conv2d(&w, None, 1, 1, 1, 1)?;
        assert_eq!(y.sbp()?, &sbp![S(2)]);
        // Each of the 3 borders is crossed by a row in both directions: 2 images, 3 channels, 5 columns of f32.
        let report = oflow::report();
        let [line] = &report.lines[..] else { panic!("{report}") };
        assert_eq!((line.op.as_str(), line.bytes), ("conv", 3 * 2 * (2 * 3 * 5) * 4));
        assert_eq!(line.steps, ["exchange of boxes"]);
        y.sum(())?.backward()?;
        // The gradient of x is its part; those of the output cross the borders, the rows of x do once more, and the scalar and the
        // gradient of the weight are reduced.
        assert_eq!(x.grad().expect("gradient").sbp()?, &sbp![S(2)]);
        assert!(sent() < 20_000);
        // Windows that lie in the shards move nothing.
        let y = x.max_pool2d(2, (), 0, 1, false)?;
        assert_eq!((y.sbp()?, sent()), (&sbp![S(2)], 0));
        let y = x.avg_pool2d(4, (), 0, false, true, None)?;
        assert_eq!((y.sbp()?, sent()), (&sbp![S(2)], 0));
        Ok(())
    });
    ranks.unwrap();
}

#[test]
fn policies_see_what_windows_move() {
    let ranks = oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = randn([1, 1, 4096], (&mesh, sbp![S(2)]))?;
        let w = randn([1, 1, 3], (&mesh, sbp![B]))?;
        let said = |policy| -> Result<String> {
            let _guard = boxing_policy(policy);
            Ok(x.conv1d(&w, None, 1, 1, 1, 1).err().map_or(String::new(), |e| e.to_string()))
        };
        let [denied, all, allowed] = [said(Policy::Deny)?, said(Policy::DenyAll)?, said(Policy::Allow)?];
        assert!(
            denied.contains("denied") && denied.contains("conv") && denied.contains("beside the shards"),
            "{denied}"
        );
        assert!(all.contains("denied"), "{all}");
        // The call that was allowed: each rank sends the row beside its shard.
        let records = oflow::take_comm_trace();
        let of_it: Vec<_> = records.iter().filter(|r| r.op == "conv").collect();
        assert!(of_it.len() == 1 && of_it[0].plan().is_none() && of_it[0].bytes_sent() == 8);
        assert!(of_it[0].to_string().ends_with("forward of conv: exchange of boxes: 8 B"), "{}", of_it[0]);
        Ok([denied, all, allowed])
    });
    let ranks = ranks.unwrap();
    assert_eq!(ranks[0], ranks[1]);
    assert_eq!(ranks[0][2], "");
}

fn list(r: &mut Random, n: usize, from: usize, to: usize) -> Vec<i64> {
    (0..n).map(|_| r.within(from..to + 1) as i64).collect()
}

/// A call with one image and attributes by name, and its other tensor.
struct Program {
    op: &'static str,
    image: Vec<usize>,
    weight: Option<Vec<usize>>,
    args: Vec<(&'static str, AttrValue)>,
}

fn ints(v: &[i64]) -> AttrValue {
    AttrValue::Ints(v.iter().copied().collect())
}

/// A call of one of the ops with random sizes, strides, paddings and dilations.
fn program(r: &mut Random) -> Program {
    let n = 1 + r.below(2);
    let (batch, channels) = (1 + r.below(2), 1 + r.below(2));
    let sizes: Vec<i64> = list(r, n, 1, 9);
    let (stride, dilation, kernel) = (list(r, n, 1, 3), list(r, n, 1, 2), list(r, n, 1, 3));
    let reach = |d: usize| (kernel[d] - 1) * dilation[d] + 1;
    let image = |size: &[i64]| [batch, channels].into_iter().chain(size.iter().map(|s| *s as usize)).collect();
    let with = |padding: &[i64], size: &[i64]| {
        vec![("stride", ints(&stride)), ("padding", ints(padding)), ("dilation", ints(&dilation)), ("size", ints(size))]
    };
    let weight = || [1 + channels % 2, channels].into_iter().chain(kernel.iter().map(|k| *k as usize)).collect();
    match r.below(6) {
        0 | 1 => {
            // Negative paddings leave out elements.
            let padding: Vec<i64> = list(r, n, 0, 4).iter().map(|p| p - 1).collect();
            let size: Vec<i64> =
                (0..n).map(|d| ((sizes[d] + 2 * padding[d] - reach(d)).div_euclid(stride[d]) + 1).max(0)).collect();
            Program { op: "conv", image: image(&sizes), weight: Some(weight()), args: with(&padding, &size) }
        }
        2 => {
            let padding = list(r, n, 0, 2);
            let size: Vec<i64> =
                (0..n).map(|d| ((sizes[d] - 1) * stride[d] - 2 * padding[d] + reach(d)).max(0)).collect();
            let weight: Vec<usize> = [channels, 2].into_iter().chain(kernel.iter().map(|k| *k as usize)).collect();
            Program { op: "conv_transpose", image: image(&sizes), weight: Some(weight), args: with(&padding, &size) }
        }
        3 => {
            let padding: Vec<i64> = (0..n).map(|d| (r.below(2) as i64).min(reach(d) / 2)).collect();
            let size: Vec<i64> =
                (0..n).map(|d| ((sizes[d] + 2 * padding[d] - reach(d)).div_euclid(stride[d]) + 1).max(0)).collect();
            let mut args = with(&padding, &size);
            args.insert(0, ("kernel", ints(&kernel)));
            Program { op: "max_pool", image: image(&sizes), weight: None, args }
        }
        4 => {
            let padding: Vec<i64> = (0..n).map(|d| (r.below(2) as i64).min(kernel[d] / 2)).collect();
            let size: Vec<i64> =
                (0..n).map(|d| ((sizes[d] + 2 * padding[d] - kernel[d]).div_euclid(stride[d]) + 1).max(0)).collect();
            let mut args = with(&padding, &size);
            args.remove(2);
            args.insert(0, ("kernel", ints(&kernel)));
            args.push(("count_padding", (r.below(2) == 0).into()));
            Program { op: "avg_pool", image: image(&sizes), weight: None, args }
        }
        _ => {
            let op = if r.below(2) == 0 { "adaptive_avg_pool" } else { "adaptive_max_pool" };
            Program { op, image: image(&sizes), weight: None, args: vec![("size", ints(&list(r, n, 1, 9)))] }
        }
    }
}

/// The result and the gradients of image and weight, of whole numbers.
fn numbers(p: &Program, seed: u64, at: impl Fn(bool) -> (Placement, NdSbp)) -> Result<Vec<Vec<f64>>> {
    let mut r = Random::new(seed);
    let mut filled = |shape: &[usize], image: bool| {
        let (mesh, sbp) = at(image);
        let values: Vec<f64> = (0..shape.iter().product()).map(|_| r.below(15) as f64 - 7.0).collect();
        let whole = from_vec(values, shape, (&mesh, NdSbp::broadcast(mesh.axes())))?;
        whole.to_global((&mesh, sbp))?.detach().requires_grad_(true)
    };
    let x = filled(&p.image, true)?;
    let w = p.weight.as_ref().map(|w| filled(w, false)).transpose()?;
    let inputs: Vec<&Tensor> = std::iter::once(&x).chain(&w).collect();
    let args: Vec<Arg> = inputs.iter().map(|t| Arg::from(*t)).collect();
    let named: Vec<(&str, Arg)> = p.args.iter().map(|(name, value)| (*name, Arg::Attr(value.clone()))).collect();
    let y = call(p.op, &args, &named)?.remove(0);
    y.mul(&y.mul(0.5)?.detach())?.sum(())?.backward()?;
    let mut all = vec![y.to_f64_vec()?];
    for t in inputs {
        all.push(t.grad().map_or(Ok(vec![]), |g| g.to_f64_vec())?);
    }
    Ok(all)
}

/// Random calls in random layouts, most of them split along the image, against one rank.
#[test]
fn random_calls_give_the_numbers_of_one_rank() {
    let mut r = Random::new(0x5851_f42d_4c95_7f2d);
    let (mut wrong, mut ran, mut refused) = (vec![], 0, 0);
    for n in 0..240 {
        let (p, seed) = (program(&mut r), 77 + n);
        let rank = p.image.len();
        let dims: &[usize] = [&[2][..], &[3], &[5], &[2, 2], &[2, 3]][r.below(5)];
        let one = |r: &mut Random| match r.below(8) {
            0 => Sbp::Broadcast,
            1 => Sbp::PARTIAL_SUM,
            2 => Sbp::Split(r.below(2)),
            _ => Sbp::Split(2 + r.below(rank - 2)),
        };
        let sbp: NdSbp = dims.iter().map(|_| one(&mut r)).collect();
        let mode = if n % 3 == 0 { VmMode::Async { delay_us: 20, seed } } else { VmMode::Inline };
        let whole = NdSbp::broadcast(dims.len());
        let alone = oflow::run_ranks(1, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            numbers(&p, seed, |_| (mesh.clone(), sbp![B]))
        });
        let said = format!("{} {:?} {:?} {:?} as {sbp} on {dims:?}", p.op, p.image, p.weight, p.args);
        let Ok(alone) = alone else {
            refused += 1;
            continue;
        };
        let all = oflow::run_ranks_with(dims.iter().product(), mode, |_| {
            let axes: Vec<(&str, usize)> = ["a", "b"].into_iter().zip(dims.iter().copied()).collect();
            let mesh = Placement::all(Device::Cpu)?.mesh(&axes)?;
            numbers(&p, seed, |image| (mesh.clone(), if image { sbp.clone() } else { whole.clone() }))
        });
        ran += 1;
        let close = |a: &[f64], b: &[f64]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-9 * a.abs().max(1.0))
        };
        match all {
            Err(e) => wrong.push(format!("{said}: {e}")),
            Ok(ranks) => {
                let fits = |got: &Vec<Vec<f64>>| got.iter().zip(&alone[0]).all(|(a, b)| close(a, b));
                wrong.extend((!ranks.iter().all(fits)).then(|| format!("{said}: {:?} for {:?}", ranks[0], alone[0])));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {ran} are wrong:\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
    assert!(ran > 150 && refused < 80, "{ran} ran, {refused} were refused");
}

/// The exchange is part of a call: run again by a checkpoint, in halves, of a weight that ZeRO stores split.
#[test]
fn windows_are_exchanged_again_by_checkpoints() {
    let ranks = oflow::run_ranks(3, |_| {
        let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 3)])?;
        let x = randn([2, 4, 17, 5], (&mesh, sbp![S(2)]))?.requires_grad_(true)?;
        let w = randn([8, 4, 3, 3], (&mesh, sbp![B]))?.requires_grad_(true)?;
        let options = oflow::nn::ZeroOptions { min_elements: 1, ..oflow::nn::ZeroOptions::new(3) };
        let split = oflow::nn::zero_parameter(&w, &options)?;
        let gradients = |w: &Tensor, again: bool| -> Result<Vec<Vec<f64>>> {
            x.set_grad(None).unwrap();
            w.set_grad(None).unwrap();
            let _guard = autocast(Autocast::Bf16);
            let net = |x: &Tensor| x.conv2d(w, None, 2, 1, 1, 1)?.relu()?.max_pool2d(3, 2, 1, 1, false);
            let y = if again { oflow::nn::checkpoint(net, &x) } else { net(&x) }?;
            y.cast(DType::F32)?.square()?.sum(())?.backward()?;
            [&x, w].iter().map(|t| t.grad().expect("gradient").to_f64_vec()).collect()
        };
        let plain = gradients(&w, false)?;
        assert_eq!(gradients(&w, true)?, plain);
        assert_eq!(gradients(&split, false)?, plain);
        assert_eq!(gradients(&split, true)?, plain);
        Ok(())
    });
    ranks.unwrap();
}
