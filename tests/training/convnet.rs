//! A convolutional network with batch norm: loss, gradients and running statistics on every mesh and in any layout are those of one
//! rank.

use oflow::nn::{BatchNorm, Conv2d, ConvOptions, GroupNorm, Module};
use oflow::prelude::*;

#[derive(oflow::nn::Module)]
struct Net {
    conv1: Conv2d,
    norm1: BatchNorm,
    conv2: Conv2d,
    norm2: GroupNorm,
}

impl Net {
    fn new(target: impl IntoTarget) -> Result<Net> {
        let target = target.into_target();
        let strided = ConvOptions { stride: [2, 2], padding: [1, 1], groups: 2, ..Default::default() };
        Ok(Net {
            conv1: Conv2d::with(
                2,
                4,
                [3, 3],
                ConvOptions { padding: [1, 1], bias: false, ..Default::default() },
                &target,
            )?,
            norm1: BatchNorm::new(4, &target)?,
            conv2: Conv2d::with(4, 6, [3, 3], strided, &target)?,
            norm2: GroupNorm::new(3, 6, &target)?,
        })
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.norm1.forward(&self.conv1.forward(x)?)?.relu()?.max_pool2d(2, 1, 1, 1, false)?;
        let x = self.norm2.forward(&self.conv2.forward(&x)?)?.gelu()?.avg_pool2d(2, 1, 0, false, true, None)?;
        x.adaptive_avg_pool2d(1)?.reshape([x.shape()[0], 6])
    }
}

/// Loss, gradients, statistics after two batches, and the result in evaluation mode.
fn numbers(mesh: &Placement, x: &NdSbp, w: &NdSbp, statistics: &NdSbp) -> Result<Vec<Vec<f64>>> {
    manual_seed(11);
    let whole = NdSbp::broadcast(mesh.axes());
    let mut net = Net::new((mesh, whole.clone()).dtype(DType::F64))?;
    net.to_global(mesh, &[("conv*.weight", w.clone()), ("norm1.running*", statistics.clone())])?;
    let target = distribute(&from_vec(vec![0i64, 5, 2, 3, 1], [5], Device::Cpu)?, (mesh, whole))?;
    let x = randn([5, 2, 7, 6], (mesh, x.clone()).dtype(DType::F64))?.requires_grad_(true)?;
    net.forward(&x)?;
    let loss = net.forward(&x)?.cross_entropy(&target)?;
    loss.backward()?;
    let mut all = vec![loss.to_f64_vec()?, x.grad().expect("gradient").to_f64_vec()?];
    for (name, p) in net.named_parameters() {
        all.push(p.grad().unwrap_or_else(|| panic!("{name} has no gradient")).to_f64_vec()?);
    }
    for (_, buffer) in net.named_buffers() {
        all.push(buffer.tensor().to_f64_vec()?);
    }
    net.train(false);
    all.push(net.forward(&x)?.to_f64_vec()?);
    Ok(all)
}

#[test]
fn every_mesh_gives_the_numbers_of_one_rank() {
    let alone = oflow::run_ranks(1, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let b = sbp![B];
        numbers(&mesh, &b, &b, &b)
    });
    let alone = alone.unwrap().remove(0);
    // After two batches with a momentum of 0.1 a statistic has 0.19 of the batch's and 0.81 of what it was.
    assert!(alone[10].iter().zip(&alone[9]).all(|(var, mean)| *var > 0.81 && mean.abs() < 1.0), "{alone:?}");
    let rows: [(&[usize], [NdSbp; 3]); 13] = [
        (&[2], [sbp![S(0)], sbp![B], sbp![B]]),
        (&[3], [sbp![S(0)], sbp![S(0)], sbp![S(0)]]),
        (&[2], [sbp![B], sbp![S(0)], sbp![S(0)]]),
        (&[2], [sbp![S(1)], sbp![S(1)], sbp![B]]),
        (&[3], [sbp![S(2)], sbp![B], sbp![B]]),
        (&[2], [sbp![S(3)], sbp![S(0)], sbp![B]]),
        (&[8], [sbp![S(2)], sbp![B], sbp![B]]),
        (&[8], [sbp![S(0)], sbp![B], sbp![B]]),
        (&[2, 2], [sbp![S(0), S(2)], sbp![B, B], sbp![B, B]]),
        (&[2, 3], [sbp![S(3), S(2)], sbp![B, B], sbp![B, B]]),
        (&[2], [sbp![P], sbp![B], sbp![B]]),
        (&[2, 2], [sbp![S(0), B], sbp![B, S(0)], sbp![B, S(0)]]),
        (&[2, 3], [sbp![S(0), S(3)], sbp![B, B], sbp![S(0), B]]),
    ];
    for (mesh, [x, w, statistics]) in rows {
        let n = mesh.iter().product();
        let all = oflow::run_ranks(n, |_| {
            let place = Placement::new(Device::Cpu, &(0..n).collect::<Vec<_>>(), mesh)?;
            numbers(&place, &x, &w, &statistics)
        });
        for (rank, got) in all.unwrap().iter().enumerate() {
            for (i, (got, want)) in got.iter().zip(&alone).enumerate() {
                let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * (1.0 + b.abs());
                assert_eq!(got.len(), want.len());
                assert!(got.iter().zip(want).all(close), "{mesh:?} {x} {w}, rank {rank}, number {i}: {got:?} {want:?}");
            }
        }
    }
}

#[test]
fn layers_refuse_what_does_not_fit() {
    let grouped = |groups| ConvOptions::<1> { groups, ..Default::default() };
    let e = oflow::nn::Conv1d::with(4, 6, [3], grouped(4), Device::Cpu).err().unwrap();
    assert_eq!(e.message(), "Conv1d: 4 and 6 channels do not fall in 4 groups");
    assert!(oflow::nn::Conv1d::with(4, 6, [3], grouped(0), Device::Cpu).is_err());
    assert!(GroupNorm::new(4, 6, Device::Cpu).is_err());
    let conv = oflow::nn::Conv1d::new(4, 6, [3], Device::Cpu).unwrap();
    let said = |shape: &[usize]| conv.forward(&ones(shape, Device::Cpu).unwrap()).unwrap_err().to_string();
    for (shape, part) in [
        (&[2, 3, 8][..], "the image [2, 3, 8] has 3 channels"),
        (&[2, 4, 2], "the kernel reaches over 3 elements; spatial dim 0 has 2 with its padding"),
        (&[8], "x has 1 dims"),
        (&[1, 2, 4, 8], "x has 4 dims"),
    ] {
        let e = said(shape);
        assert!(e.contains(part) && e.contains("conv") && e.contains(file!()), "{e}");
    }
    let norm = BatchNorm::new(3, Device::Cpu).unwrap();
    let e = norm.forward(&ones([1, 3], Device::Cpu).unwrap()).unwrap_err().to_string();
    assert!(e.contains("a channel has 1 elements; training needs 2 or more"), "{e}");
    let e = norm.forward(&ones([4, 2], Device::Cpu).unwrap()).unwrap_err().to_string();
    assert!(e.contains("running_mean has shape [3]; x has 2 channels"), "{e}");
}
