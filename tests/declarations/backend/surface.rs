//! Names, memory, boxings, kernels and errors of a registered device.

use super::{device, fenced};
use oflow::backend::{Backend, DeviceRt, OpKernel, Opening, register, staged};
use oflow::memory::MemoryStats;
use oflow::nn::{Linear, Module};
use oflow::ops::KernelDef;
use oflow::optim::{AdamW, Optimizer};
use oflow::prelude::*;
use oflow::{ErrorKind, box_many, from_boxes, run_ranks};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The rights with which an address is mapped, as `/proc/self/maps` says.
fn rights(at: usize) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|l| {
        let ends = l.split(' ').next().and_then(|r| r.split_once('-')).unwrap();
        let [from, to] = [ends.0, ends.1].map(|e| usize::from_str_radix(e, 16).unwrap());
        (from..to).contains(&at)
    });
    line.and_then(|l| l.split(' ').nth(1)).unwrap_or("unmapped").to_string()
}

#[test]
fn the_host_may_not_touch_its_memory() {
    let ctx = oflow::context::current();
    let storage = ctx.device(device()).unwrap().alloc.alloc(100).unwrap();
    assert_eq!((rights(storage.ptr() as usize).as_str(), storage.device()), ("---p", device()));
    let x = ones([3, 5], device()).unwrap();
    assert_eq!(x.sum(()).unwrap().item().unwrap(), 15.0);
    assert_eq!(rights(storage.ptr() as usize), "---p");
}

#[test]
fn its_name_is_read_and_written() {
    assert_eq!("fenced".parse::<Device>().unwrap(), device());
    let x = full([2], 1.5, device()).unwrap();
    assert_eq!(format!("{x}"), "tensor([1.5000, 1.5000], f32[2] on fenced)");
    assert_eq!(x.to_device(Device::Cpu).unwrap().to_device(device()).unwrap().to_vec::<f32>().unwrap(), [1.5; 2]);
    let placement = Placement::of_world(device(), 2).unwrap();
    assert_eq!(placement.to_string(), "fenced[2]");
}

#[test]
fn a_second_of_a_name_is_an_error() {
    device();
    for name in ["fenced", "cuda", "gpu"] {
        let e = register(name, fenced::Fenced).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Registry);
        assert!(e.to_string().contains(&format!("there is a device named '{name}' already")), "{e}");
    }
    assert_eq!(register("a device", fenced::Fenced).unwrap_err().kind(), ErrorKind::Argument);
}

#[test]
fn boxings_pass_through_the_host_in_every_direction() {
    let ends = run_ranks(4, |_| {
        let mut seen = vec![];
        let all = [Device::Cpu, device(), Device::Async];
        let layouts = [sbp![B], sbp![S(0)], sbp![S(1)], sbp![P]];
        for (from, to) in
            all.into_iter().flat_map(|a| all.map(|b| (a, b))).filter(|(a, b)| [*a, *b].contains(&device()))
        {
            for (src, dst) in layouts.iter().flat_map(|a| layouts.iter().map(move |b| (a, b))) {
                // Meshes that share some ranks only, and a source with gaps.
                let (p, q) = (Placement::new(from, &[0, 1, 2], &[3])?, Placement::new(to, &[2, 1, 3], &[3])?);
                let x = arange(35, from)?.cast(DType::F32)?.reshape([7, 5])?;
                let x = distribute(&x, (&p, sbp![B]))?.t()?.to_global(src.clone())?;
                let y = x.to_global((&q, dst.clone()))?;
                seen.push(y.to_vec::<f32>()?);
            }
        }
        Ok(seen)
    });
    let want: Vec<f32> = (0..35).map(|i| (i % 7 * 5 + i / 7) as f32).collect();
    for seen in ends.unwrap() {
        assert_eq!(seen.len(), 5 * 16);
        seen.iter().for_each(|s| assert_eq!(*s, want));
    }
}

#[test]
fn several_at_once_and_boxes() {
    run_ranks(2, |w| {
        let mesh = Placement::all(device())?;
        let x = ones([4, 6], (&mesh, sbp![P]))?;
        let y = arange(8, (&mesh, sbp![S(0)]))?;
        let boxed = box_many(&[(&x, sbp![S(1)]), (&y, sbp![B])])?;
        assert_eq!(boxed[0].to_vec::<f32>()?, [1.0; 24]);
        assert_eq!(boxed[1].to_vec::<i64>()?, (0..8).collect::<Vec<_>>());
        // The ranks hold the rows of a tensor in the other order.
        let row = full([1, 3], w.rank() as f64, device())?;
        let whole = from_boxes(&[(&[1 - w.rank(), 0], &row)], [2, 3], (&mesh, sbp![S(1)]))?;
        assert_eq!(whole.to_vec::<f32>()?, [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
        Ok(())
    })
    .unwrap();
}

/// Memory of the device and of the host after some boxings and kernels.
fn program() -> oflow::Result<[MemoryStats; 2]> {
    let mesh = Placement::all(device())?;
    let x = ones([300, 70], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
    let y = x.t()?.to_global(sbp![B])?.matmul(&x)?.to_global(sbp![S(1)])?;
    y.sum(())?.backward()?;
    Ok([oflow::memory_stats(device())?, oflow::memory_stats(Device::Cpu)?])
}

#[test]
fn a_dry_run_tells_its_memory() {
    let real = run_ranks(2, |_| program()).unwrap();
    for (rank, want) in real.iter().enumerate() {
        let dry = oflow::dry_run(2, rank, |_| program()).unwrap();
        assert_eq!((dry[0].peak, dry[0].live), (want[0].peak, want[0].live), "the device's");
        assert_eq!(dry[1].peak, want[1].peak, "the host's");
    }
}

/// The other device of this file: with a kernel of its own.
struct Doubting;

static OWN: AtomicU64 = AtomicU64::new(0);

impl Backend for Doubting {
    fn open(&self, at: &Opening<'_>) -> oflow::Result<DeviceRt> {
        Ok(staged(at, Arc::new(fenced::Board)))
    }
    fn kernels(&self, device: Device) -> Vec<OpKernel> {
        let run = |cx: &oflow::ops::KernelCx<'_>| {
            OWN.fetch_add(1, Ordering::Relaxed);
            Ok(oflow::kernels::cpu::softmax::softmax(cx.input(0)?, cx.output(0), cx.dim("dim", 0)?)?)
        };
        vec![("softmax", KernelDef::on(device, "softmax_own", run))]
    }
    fn kernels_of(&self) -> Option<Device> {
        Some(Device::Cpu)
    }
}

#[test]
fn its_own_kernels_come_first_and_two_such_devices_meet_on_the_host() {
    let own = register("doubting", Doubting).unwrap();
    let x = arange(6, own).unwrap().cast(DType::F32).unwrap().reshape([2, 3]).unwrap();
    let y = x.softmax(1).unwrap();
    assert_eq!(OWN.load(Ordering::Relaxed), 1);
    let on = |op: &str| oflow::backend::kernels_of(oflow::ops::find(op).unwrap());
    assert!(on("softmax").iter().any(|k| k.device == own && k.name == "softmax_own"));
    assert!(!on("sum").iter().any(|k| k.device == own));
    assert!((y.sum(()).unwrap().item().unwrap() - 2.0).abs() < 1e-6);
    assert_eq!(y.to_device(device()).unwrap().to_vec::<f32>().unwrap(), y.to_vec::<f32>().unwrap());
    let ends = run_ranks(2, |_| {
        let (a, b) = (Placement::all(own)?, Placement::all(device())?);
        let e = ones([4], (&a, sbp![S(0)]))?.to_global((&b, sbp![B])).unwrap_err();
        assert!(e.to_string().contains("a tensor goes from doubting to fenced only through the host"), "{e}");
        assert!(e.to_string().contains(file!()), "{e}");
        assert!(e.is_logical() && e.help_text().unwrap().contains("Device::Cpu"), "{e}");
        let c = Placement::all(Device::Cpu)?;
        let there = ones([4], (&a, sbp![S(0)]))?.to_global((&c, sbp![B]))?.to_global((&b, sbp![B]))?;
        there.to_vec::<f32>()
    });
    assert_eq!(ends.unwrap(), [[1.0; 4], [1.0; 4]]);
}

/// Losses of some training steps on a mesh of that device.
fn losses(on: Device, dims: &[usize]) -> oflow::Result<Vec<f64>> {
    manual_seed(3);
    let ranks: Vec<usize> = (0..dims.iter().product()).collect();
    let mesh = Placement::new(on, &ranks, dims)?;
    let whole = NdSbp::broadcast(dims.len());
    let model = Linear::new(6, 4, (&mesh, whole.clone()))?;
    let mut optimizer = AdamW::new(model.parameters(), Default::default());
    let x = randn([8, 6], (&mesh, whole.clone()))?;
    let x = x.to_global((0..dims.len()).map(|_| Sbp::Split(0)).collect::<NdSbp>())?;
    let target = distribute(&from_vec(vec![0i64, 1, 2, 3, 3, 2, 1, 0], [8], on)?, (&mesh, whole))?;
    let step = |_| {
        let loss = model.forward(&x)?.gelu()?.cross_entropy(&target)?;
        loss.backward()?;
        optimizer.step()?;
        optimizer.zero_grad();
        loss.item()
    };
    (0..5).map(step).collect()
}

#[test]
fn training_gives_the_cpus_losses_bit_for_bit() {
    for dims in [&[1][..], &[2], &[2, 2]] {
        let n = dims.iter().product();
        let on = |device| run_ranks(n, |_| losses(device, dims)).unwrap();
        assert_eq!(on(device()), on(Device::Cpu), "{dims:?}");
    }
}
