use crate::rig::Rig;
use crate::samples::{FLOATS, Tensor, tolerance};
use oflow_base::Random;
use oflow_kernels::DType;
use oflow_kernels::cpu::norm as cpu;
use oflow_kernels::cpu::norm::{Norm, NormGrads};
use oflow_kernels::cuda::norm::*;

struct Case<'a> {
    dtype: DType,
    affine: DType,
    lead: &'a [usize],
    tail: &'a [usize],
    weight: bool,
    bias: bool,
    random: bool,
}

fn check(rig: &Rig, rng: &mut Random, case: &Case, centered: bool) {
    let Case { dtype, affine, lead, tail, weight, bias, random } = *case;
    let dims = [lead, tail].concat();
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let mut make = |d, dims: &[usize]| match random {
        true => Tensor::random(rng, d, dims),
        false => Tensor::contiguous(rng, d, dims),
    };
    let [x, dy] = [0; 2].map(|_| make(dtype, &dims));
    let (w, b) = (make(affine, tail), make(affine, tail));
    let plain = |rng: &mut Random, d, dims: &[usize]| Tensor::contiguous(rng, d, dims);
    let [y, dx] = [0; 2].map(|_| plain(rng, dtype, &dims));
    let [mean, rstd] = [0; 2].map(|_| plain(rng, wide, lead));
    let [dw, db] = [0; 2].map(|_| plain(rng, dtype, tail));
    let [gx, gdy, gw, gb, gy, gdx, gm, gr, gdw, gdb] =
        [&x, &dy, &w, &b, &y, &dx, &mean, &rstd, &dw, &db].map(|t| rig.put(t));
    let (count, len): (usize, usize) = (lead.iter().product(), tail.iter().product());
    let room = rig.scratch(workspace(count, len, dtype).max(8));
    let what = format!("{dtype} and {affine}, {lead:?} of {tail:?}, {weight} {bias} {centered} {random}");
    let q = rig.queue();

    let (vw, vb) = (w.view(), b.view());
    let n = Norm { dims: tail.len(), eps: 1e-5, weight: weight.then_some(&vw), bias: bias.then_some(&vb) };
    let grads = [&dx, &dw, &db].map(Tensor::view);
    let g = NormGrads { dx: Some(&grads[0]), dweight: Some(&grads[1]), dbias: centered.then_some(&grads[2]) };
    let (vgw, vgb) = (gw.view(), gb.view());
    let on_gpu = Norm { weight: weight.then_some(&vgw), bias: bias.then_some(&vgb), ..n };
    let gpu_grads = [&gdx, &gdw, &gdb].map(|v| v.view());
    let gg =
        NormGrads { dx: Some(&gpu_grads[0]), dweight: Some(&gpu_grads[1]), dbias: centered.then_some(&gpu_grads[2]) };
    let (m, r) = (mean.view(), rstd.view());
    if centered {
        cpu::layer_norm(&x.view(), &n, &y.view(), &m, &r).unwrap();
        layer_norm(&q, &gx.view(), &on_gpu, &gy.view(), &gm.view(), &gr.view()).unwrap();
        cpu::layer_norm_grad(&dy.view(), &x.view(), &m, &r, &n, &g).unwrap();
        let room = Some(room.view());
        layer_norm_grad(&q, &gdy.view(), &gx.view(), &gm.view(), &gr.view(), &on_gpu, &gg, room.as_ref()).unwrap();
        rig.expect(&gm, &mean, tolerance(wide), &what);
    } else {
        cpu::rms_norm(&x.view(), &n, &y.view(), &r).unwrap();
        rms_norm(&q, &gx.view(), &on_gpu, &gy.view(), &gr.view()).unwrap();
        cpu::rms_norm_grad(&dy.view(), &x.view(), &r, &n, &g).unwrap();
        let room = Some(room.view());
        rms_norm_grad(&q, &gdy.view(), &gx.view(), &gr.view(), &on_gpu, &gg, room.as_ref()).unwrap();
    }
    rig.expect(&gr, &rstd, 4.0 * tolerance(wide), &what);
    rig.expect(&gy, &y, 2.0 * tolerance(dtype), &what);
    rig.expect(&gdx, &dx, 8.0 * tolerance(dtype), &format!("dx of {what}"));
    let long = (count as f64).sqrt().max(1.0);
    rig.expect(&gdw, &dw, 4.0 * long * tolerance(dtype), &format!("dweight of {what}"));
    rig.expect(&gdb, &db, 4.0 * long * tolerance(dtype), &format!("dbias of {what}"));
}

#[test]
fn both_norms_forward_and_backward() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(1);
    let base = Case {
        dtype: DType::F32,
        affine: DType::F32,
        lead: &[11],
        tail: &[24],
        weight: true,
        bias: true,
        random: false,
    };
    for centered in [true, false] {
        let mut run = |case: Case| check(&rig, &mut rng, &Case { bias: case.bias && centered, ..case }, centered);
        for dtype in FLOATS {
            run(Case { dtype, affine: dtype, ..base });
        }
        run(Case { dtype: DType::BF16, ..base });
        run(Case { weight: false, bias: false, ..base });
        // One row, one element, no row; rows of a warp, of a block, longer than what registers hold.
        for (lead, tail) in [
            (&[][..], &[5usize][..]),
            (&[7], &[1]),
            (&[0], &[4]),
            (&[300], &[33]),
            (&[2, 3], &[4, 6]),
            (&[5], &[768]),
            (&[3], &[2050]),
            (&[40], &[9000]),
        ] {
            run(Case { lead, tail, ..base });
        }
        for _ in 0..4 {
            run(Case { lead: &[3, 4], tail: &[5, 6], random: true, ..base });
        }
        run(Case { lead: &[3], tail: &[9001], random: true, ..base });
    }
}
