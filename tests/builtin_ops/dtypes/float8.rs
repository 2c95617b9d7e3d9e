//! 8-bit floats: moved by every op that looks at no element, cast both ways, refused by what computes; gradients pass them in the dtype
//! that they come in. The numbers of each code are PyTorch's (`tests/builtin_ops/golden.rs`).

use oflow::comm::ReduceOp;
use oflow::functional::grad;
use oflow::interpreter::Call;
use oflow::kernels::{F8E4M3FN, F8E5M2};
use oflow::ops::{DTypeClass, Grad, Op};
use oflow::prelude::*;
use oflow::testing::Sample;
use oflow::{BackwardOptions, run_ranks};
use oflow_tests::{built_in_ops, selected, settle};

const FLOAT8: [DType; 2] = [DType::F8E4M3FN, DType::F8E5M2];

type Numbers = Vec<f64>;

/// The op's first result, its floats being cast to `dtype` before and to f32 after; then the gradients of those floats.
fn through(op: &'static Op, sample: &Sample, dtype: DType) -> oflow::Result<(Numbers, Vec<Option<Numbers>>)> {
    let (attrs, runtime) = sample.attributes(op)?;
    let (mut leaves, mut inputs) = (vec![], vec![]);
    for v in sample.values(1, true) {
        let Some(v) = v else {
            inputs.push(None);
            continue;
        };
        let mut t = v.local(Device::Cpu)?;
        if v.ty.dtype.is_float() {
            // Numbers that all of the dtypes hold.
            t = t.cast(DType::F8E5M2)?.cast(DType::F32)?.requires_grad_(true)?;
            leaves.push(t.clone());
            t = t.cast(dtype)?;
        }
        inputs.push(Some(t));
    }
    let refs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
    let y = Call::new(op, &refs).attrs(attrs).runtime(runtime).run()?[0].clone();
    let y = y.cast(DType::F32)?;
    let factors = (0..y.numel()).map(|i| (i % 7) as f32 - 2.9).collect::<Vec<_>>();
    let loss = y.mul(&from_vec(factors, y.shape(), Device::Cpu)?)?.sum(())?;
    let grads = grad(&[loss], &leaves, &BackwardOptions::default())?;
    let numbers = |g: &Option<Tensor>| g.as_ref().map(Tensor::to_f64_vec).transpose();
    Ok((y.to_f64_vec()?, grads.iter().map(numbers).collect::<oflow::Result<_>>()?))
}

#[test]
fn what_moves_elements_moves_them_and_passes_their_gradients() {
    let ops = built_in_ops().into_iter().filter(|o| !o.writes_inputs());
    let moves = |o: &&'static Op| {
        !matches!(o.grad, Grad::None) && o.sig.inputs.iter().any(|i| i.dtypes.class() == Some(DTypeClass::Any))
    };
    let (mut wrong, mut count) = (vec![], 0);
    for op in ops.filter(moves) {
        for (i, sample) in Sample::all(op).unwrap().iter().enumerate() {
            if !sample.inputs.iter().flatten().any(|s| s.dtype.is_float()) {
                continue;
            }
            let want = match through(op, sample, DType::F32) {
                Ok(want) => want,
                Err(e) => {
                    wrong.push(format!("{} sample {i} in f32: {e}", op.name()));
                    continue;
                }
            };
            for dtype in FLOAT8 {
                count += 1;
                match through(op, sample, dtype) {
                    Ok(have) if have == want => {}
                    Ok(have) => {
                        wrong.push(format!("{} sample {i} in {dtype}: {have:?} instead of {want:?}", op.name()))
                    }
                    Err(e) => wrong.push(format!("{} sample {i} in {dtype}: {e}", op.name())),
                }
            }
        }
    }
    assert!(count > 40 || selected(), "{count}");
    settle("float8", count, &wrong);
}

#[test]
fn what_computes_refuses_them_and_says_what_to_do() {
    let x = from_vec(vec![1.0f32, -0.5], [2], Device::Cpu).unwrap().cast(DType::F8E4M3FN).unwrap();
    assert_eq!(x.to_vec::<F8E4M3FN>().unwrap(), [F8E4M3FN(0x38), F8E4M3FN(0xb0)]);
    let refused = |r: oflow::Result<Tensor>, name: &str| {
        let e = r.unwrap_err();
        assert_eq!(e.kind(), oflow::ErrorKind::DType, "{e}");
        assert!(e.to_string().contains(name) && e.to_string().contains(".cast(dtype)"), "{e}");
    };
    refused(x.add(&x), "add(");
    refused(x.add(1), "add_scalar(");
    refused(x.sum(()), "sum(");
    refused(x.neg(), "neg(");
    refused(x.matmul(&x), "matmul(");
    refused(x.add(&ones([2], Device::Cpu).unwrap()), "add(");
    refused(x.sort(0, false).map(|mut y| y.remove(0)), "sort(");
    refused(oflow::functional::rand([2], Device::Cpu.dtype(DType::F8E5M2)), "rand");
    let e = x.clone().requires_grad_(true).unwrap_err().to_string();
    assert!(e.contains("cast it: gradients pass the cast"), "{e}");
    // Filled and read, and as text.
    let y = full([3], 0.3, Device::Cpu.dtype(DType::F8E5M2)).unwrap();
    assert_eq!(y.to_vec::<F8E5M2>().unwrap(), [F8E5M2(0x35); 3]);
    assert_eq!(y.to_f64_vec().unwrap(), [0.3125; 3]);
    assert_eq!(format!("{}", DType::F8E5M2), "f8_e5m2");
}

#[test]
fn layouts_are_split_and_broadcast_only() {
    run_ranks(2, |_| {
        let mesh = Placement::new(Device::Cpu, &[0, 1], &[2])?;
        for dtype in FLOAT8 {
            let whole: Vec<f32> = (0..6).map(|i| i as f32 - 2.0).collect();
            let leaf =
                distribute(&from_vec(whole.clone(), [6], Device::Cpu)?, (&mesh, sbp![B]))?.requires_grad_(true)?;
            let x = leaf.cast(dtype)?;
            let split = x.to_global(&sbp![S(0)])?;
            assert_eq!(split.to_local()?.numel(), 3);
            let back = split.to_global(&sbp![B])?.cast(DType::F32)?;
            assert_eq!(back.to_vec::<f32>()?, whole);
            back.mul(&back)?.sum(())?.backward()?;
            let want: Vec<f64> = whole.iter().map(|x| 2.0 * f64::from(*x)).collect();
            assert_eq!(leaf.grad().map(|g| g.to_f64_vec()).transpose()?, Some(want));
            let e = x.to_global(&sbp![P]).unwrap_err().to_string();
            assert!(
                e.contains(&format!("a tensor of {dtype} cannot be P(sum)")) && e.contains("lay it out as S or B"),
                "{e}"
            );
            let e = x.to_global(&NdSbp::new(&[oflow::sbp::Sbp::Partial(ReduceOp::Max)])).unwrap_err().to_string();
            assert!(e.contains("cannot be P(max)"), "{e}");
        }
        Ok(())
    })
    .unwrap();
}
