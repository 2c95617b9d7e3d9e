use crate::samples::*;
use oflow_base::Random;
use oflow_kernels::cpu::loss::*;
use oflow_kernels::cpu::softmax::logsumexp;
use oflow_kernels::{DType, Scalar};

const IGNORE: i64 = -100;

fn targets(rng: &mut Random, dims: &[usize], classes: usize) -> Tensor {
    let mut t = Tensor::random(rng, DType::I64, dims);
    for i in 0..t.len() {
        let value = if rng.below(4) == 0 { IGNORE } else { rng.below(classes) as i64 };
        t.set(i, Scalar::Int(value));
    }
    t
}

fn oracle(x: &[f64], target: &[f64], classes: usize, smoothing: f64) -> (Vec<f64>, Vec<f64>) {
    x.chunks(classes)
        .zip(target)
        .map(|(row, target)| {
            let lse = row.iter().map(|x| x.exp()).sum::<f64>().ln();
            if *target == IGNORE as f64 {
                return (0.0, lse);
            }
            let mean = row.iter().sum::<f64>() / classes as f64;
            (lse - (1.0 - smoothing) * row[*target as usize] - smoothing * mean, lse)
        })
        .unzip()
}

const SHAPES: [&[usize]; 5] = [&[5], &[4, 3], &[2, 3, 65], &[7, 300], &[0, 4]];

#[test]
fn loss_and_gradient() {
    let mut rng = Random::new(1);
    for dims in SHAPES {
        let (classes, leading) = dims.split_last().unwrap();
        for (dtype, smoothing) in FLOATS.into_iter().flat_map(|d| [(d, 0.0), (d, 0.3)]) {
            let settings = Classes { ignore: Some(IGNORE), smoothing, ..Classes::whole(*classes) };
            let acc = statistic(dtype);
            let x = Tensor::random(&mut rng, dtype, dims);
            let target = targets(&mut rng, leading, *classes);
            let (loss, lse) = (Tensor::random(&mut rng, dtype, leading), Tensor::random(&mut rng, acc, leading));
            cross_entropy(&x.view(), &target.view(), &loss.view(), &lse.view(), &settings).unwrap();
            let (losses, lses) = oracle(&x.values(), &target.values(), *classes, smoothing);
            loss.expect(&losses, tolerance(dtype), "loss");
            lse.expect(&lses, tolerance(acc), "lse");

            let (dloss, dx) = (Tensor::random(&mut rng, dtype, leading), Tensor::random(&mut rng, dtype, dims));
            cross_entropy_grad(&x.view(), &target.view(), &lse.view(), &dloss.view(), &dx.view(), &settings).unwrap();
            let value = |x: &[f64]| inner(&dloss.values(), &oracle(x, &target.values(), *classes, smoothing).0);
            dx.expect(&differences(&x.values(), value), tolerance(dtype).max(1e-8) * 2.0, "dlogits");
        }
    }
}

#[test]
fn shards_of_the_classes_add_up() {
    let mut rng = Random::new(2);
    let (rows, classes, cut) = (9, 50, 21);
    let x = Tensor::contiguous(&mut rng, DType::F64, &[rows, classes]);
    let target = targets(&mut rng, &[rows], classes);
    let whole = Classes { ignore: Some(IGNORE), ..Classes::whole(classes) };
    let one = || Tensor::of(DType::F64, &[rows], &[0.0; 9]);
    let (loss, lse, picked) = (one(), one(), one());
    cross_entropy(&x.view(), &target.view(), &loss.view(), &lse.view(), &whole).unwrap();
    nll_pick(&x.view(), &target.view(), &picked.view(), &whole).unwrap();
    let dloss = Tensor::contiguous(&mut rng, DType::F64, &[rows]);
    let full = x.reshaped(&[rows, classes]);
    cross_entropy_grad(&x.view(), &target.view(), &lse.view(), &dloss.view(), &full.view(), &whole).unwrap();

    let (mut picks, mut sums) = (vec![0.0; rows], vec![0.0; rows]);
    let assembled = x.reshaped(&[rows, classes]);
    for (first, end) in [(0, cut), (cut, classes)] {
        let part = |t: &Tensor| t.view().sub_box(&[0, first], &[rows, end - first]).unwrap();
        let here = Classes { first: first as i64, ..whole };
        let (pick, part_lse) = (one(), one());
        nll_pick(&part(&x), &target.view(), &pick.view(), &here).unwrap();
        logsumexp(&part(&x), &part_lse.view(), 1).unwrap();
        for row in 0..rows {
            picks[row] += pick.values()[row];
            sums[row] += part_lse.values()[row].exp();
        }
        let to = part(&assembled);
        cross_entropy_grad(&part(&x), &target.view(), &lse.view(), &dloss.view(), &to, &here).unwrap();
    }
    picked.expect(&picks, 0.0, "picks");
    lse.expect(&sums.iter().map(|s| s.ln()).collect::<Vec<_>>(), 1e-12, "lse");
    assembled.expect(&full.values(), 0.0, "gradients of the parts");
    let losses: Vec<f64> =
        (0..rows).map(|r| if target.values()[r] == IGNORE as f64 { 0.0 } else { lse.values()[r] - picks[r] }).collect();
    loss.expect(&losses, 1e-12, "loss");
}

#[test]
fn refusals_say_why() {
    let x = Tensor::of(DType::F32, &[2, 3], &[0.0; 6]);
    let out = Tensor::of(DType::F32, &[2], &[0.0; 2]);
    let run = |targets: [f64; 2], classes: Classes| {
        let target = Tensor::of(DType::I64, &[2], &targets);
        cross_entropy(&x.view(), &target.view(), &out.view(), &out.view(), &classes).unwrap_err().0
    };
    assert_eq!(run([0.0, 3.0], Classes::whole(3)), "target 3 (row 1) is not a class; there are 3 classes");
    assert_eq!(run([-100.0, 0.0], Classes::whole(3)), "target -100 (row 0) is not a class; there are 3 classes");
    assert_eq!(
        run([0.0, 0.0], Classes { first: 3, ..Classes::whole(6) }),
        "the fused loss needs all 6 classes in one place; here are 3, from class 3"
    );
    let float = nll_pick(&x.view(), &out.view(), &out.view(), &Classes::whole(3)).unwrap_err().0;
    assert_eq!(float, "the target is f32, expected i64");
}
