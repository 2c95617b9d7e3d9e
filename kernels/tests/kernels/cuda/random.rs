use crate::rig::Rig;
use crate::samples::Tensor;
use oflow_base::Random;
use oflow_kernels::cpu::random as cpu;
use oflow_kernels::cuda::random::*;
use oflow_kernels::{DType, Dims, ShardBox};

fn boxes() -> Vec<ShardBox> {
    let part = |logical: &[usize], offset: &[usize], size: &[usize]| ShardBox {
        logical: Dims::from_slice(logical),
        offset: Dims::from_slice(offset),
        size: Dims::from_slice(size),
    };
    vec![
        ShardBox::whole(&[1031]),
        ShardBox::whole(&[3, 4, 5]),
        ShardBox::whole(&[]),
        part(&[10, 7], &[3, 0], &[4, 7]),
        part(&[10, 8], &[2, 0], &[5, 8]),
        part(&[6, 5, 9], &[1, 2, 3], &[3, 2, 5]),
        part(&[4, 9], &[3, 2], &[1, 6]),
    ]
}

#[test]
fn numbers_have_the_bits_of_the_cpu() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(1);
    for shard in boxes() {
        for dtype in [DType::F32, DType::F64, DType::BF16, DType::I64, DType::U8] {
            for kind in 0..4 {
                let skip = matches!(kind, 0 | 1) && !dtype.is_float();
                if skip || (kind == 3 && dtype.is_float()) || (kind == 2 && dtype == DType::U8) {
                    continue;
                }
                let out = Tensor::contiguous(&mut rng, dtype, &shard.size);
                let gpu = rig.put(&out);
                let (q, v, g) = (rig.queue(), out.view(), gpu.view());
                let (seed, ordinal) = (0x1234_5678_9abc_def0, 1 << 33 | 5);
                match kind {
                    0 => cpu::uniform(&v, &shard, seed, ordinal, -1.5, 2.25).unwrap(),
                    1 => cpu::normal(&v, &shard, seed, ordinal, 0.5, 2.0).unwrap(),
                    2 => cpu::bernoulli(&v, &shard, seed, ordinal, 0.3).unwrap(),
                    _ => cpu::randint(&v, &shard, seed, ordinal, -5, 1 << 40).unwrap(),
                }
                match kind {
                    0 => uniform(&q, &g, &shard, seed, ordinal, -1.5, 2.25).unwrap(),
                    1 => normal(&q, &g, &shard, seed, ordinal, 0.5, 2.0).unwrap(),
                    2 => bernoulli(&q, &g, &shard, seed, ordinal, 0.3).unwrap(),
                    _ => randint(&q, &g, &shard, seed, ordinal, -5, 1 << 40).unwrap(),
                }
                assert_eq!(rig.get(&gpu), out.bytes(), "{kind} {dtype} {shard:?}");
            }
        }
    }
}

#[test]
fn dropout_of_any_strides() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(2);
    for shard in boxes() {
        for dtype in [DType::F32, DType::F16, DType::F64] {
            for p in [0.0, 0.4, 1.0] {
                let x = Tensor::random(&mut rng, dtype, &shard.size);
                let y = Tensor::contiguous(&mut rng, dtype, &shard.size);
                let (gx, gy) = (rig.put(&x), rig.put(&y));
                cpu::dropout(&x.view(), &y.view(), &shard, 9, 4, p).unwrap();
                dropout(&rig.queue(), &gx.view(), &gy.view(), &shard, 9, 4, p).unwrap();
                rig.expect(&gy, &y, 0.0, &format!("dropout {p} {shard:?}"));
                cpu::dropout(&x.view(), &x.view(), &shard, 9, 4, p).unwrap();
                dropout(&rig.queue(), &gx.view(), &gx.view(), &shard, 9, 4, p).unwrap();
                rig.expect(&gx, &x, 0.0, "dropout in place");
            }
        }
    }
}
