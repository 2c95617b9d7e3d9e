//! Memory reports of training: the sums are the allocator's counters, and the memory at the peak has its owners.

use oflow::memory::{DeviceMemory, MemoryHolder};
use oflow::nn::{Block, BlockOptions, Linear, Module};
use oflow::optim::{AdamW, AdamWOptions, Optimizer};
use oflow::prelude::*;
use oflow::{memory_report, reset_peak_memory};

#[derive(oflow::nn::Module)]
struct Net {
    h: Vec<Block>,
    head: Linear,
}

impl Net {
    fn new(mesh: &Placement) -> Result<Net> {
        let t = (mesh, NdSbp::broadcast(mesh.axes()));
        let block = BlockOptions { width: 64, heads: 2, hidden: 256, dropout: 0.0 };
        Ok(Net {
            h: vec![Block::new(&block, t.clone())?, Block::new(&block, t.clone())?],
            head: Linear::new(64, 96, t)?,
        })
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        for (n, block) in self.h.iter().enumerate() {
            let _scope = oflow::name_scope(&format!("h.{n}"));
            x = block.forward(&x)?;
        }
        let _scope = oflow::name_scope("head");
        self.head.forward(&x)
    }
}

fn sum<'a>(held: impl IntoIterator<Item = &'a MemoryHolder>) -> usize {
    held.into_iter().map(|h| h.bytes as usize).sum()
}

fn of_use(held: &[MemoryHolder], name: &str) -> usize {
    sum(held.iter().filter(|h| h.used_for == name))
}

/// Steps of training, and the memory of the CPU after the last one.
fn trained(steps: usize, mesh: &Placement) -> Result<(DeviceMemory, usize)> {
    let net = Net::new(mesh)?;
    let mut opt = AdamW::new(net.parameters(), AdamWOptions::default());
    for step in 0..steps {
        // The first step makes the states.
        if step == 1 {
            reset_peak_memory(Device::Cpu)?;
        }
        let x = randn([4, 32, 64], (mesh, sbp![S(0)]))?;
        net.forward(&x)?.square()?.mean(())?.backward()?;
        opt.step()?;
        if step + 1 < steps {
            opt.zero_grad();
        }
    }
    let parameters = net.parameters().iter().map(|p| p.shape().iter().product::<usize>() * 4).sum();
    Ok((memory_report().devices.swap_remove(0), parameters))
}

/// Bytes of blocks, which are rounded up, for tensors of so many bytes.
fn holds(found: usize, bytes: usize) -> bool {
    (bytes * 9 / 10..=bytes * 9 / 8).contains(&found)
}

#[test]
fn the_peak_of_training_has_its_owners() -> Result<()> {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let (cpu, parameters) = trained(3, &mesh)?;
        for (held, counted) in [(&cpu.now, cpu.stats.live), (&cpu.peak, cpu.stats.peak)] {
            assert_eq!(sum(held), counted);
        }
        let named = sum(cpu.peak.iter().filter(|h| h.is_named()));
        assert!(named * 100 >= cpu.stats.peak * 95, "{named} of {}", cpu.stats.peak);
        // What a model holds is known to the byte, but for small blocks.
        assert!(holds(of_use(&cpu.peak, "parameters"), parameters), "{parameters}: {:?}", cpu.peak);
        assert!(holds(of_use(&cpu.now, "gradients"), parameters), "{parameters}: {:?}", cpu.now);
        assert!(holds(of_use(&cpu.peak, "optimizer state"), 2 * parameters), "{parameters}: {:?}", cpu.peak);
        assert!(of_use(&cpu.peak, "activations") > 0);
        // Lines are those of the program, and parameters are named by the modules that use them.
        let mine = |h: &&MemoryHolder| h.used_for == "parameters" && h.is_named();
        for h in cpu.peak.iter().filter(mine) {
            assert!(h.scope.starts_with("h.0") || h.scope.starts_with("h.1") || h.scope == "head", "{h:?}");
            assert!(h.file.ends_with("memory_report.rs") || h.file.contains("/nn/"), "{h:?}");
        }
        Ok(())
    })?;
    Ok(())
}

#[test]
fn a_dry_run_has_the_report_of_the_run() -> Result<()> {
    let uses = |of: &DeviceMemory| -> Vec<(String, u64)> {
        let mut all: Vec<_> =
            of.peak.iter().map(|h| (format!("{} {} {} {}", h.used_for, h.op, h.line, h.scope), h.bytes)).collect();
        all.sort();
        all
    };
    let real = oflow::run_ranks(2, |_| Ok(trained(3, &Placement::all(Device::Cpu)?)?.0))?;
    let dry = oflow::dry_run(2, 0, |_| Ok(trained(3, &Placement::all(Device::Cpu)?)?.0))?;
    // Boxings run beside the program, so the peaks of two runs need not be at one instant.
    let (real, dry) = (&real[0], &dry);
    assert_eq!(of_use(&real.peak, "parameters"), of_use(&dry.peak, "parameters"));
    assert_eq!(of_use(&real.peak, "optimizer state"), of_use(&dry.peak, "optimizer state"));
    assert_eq!(real.now.len(), dry.now.len(), "{:?}\n{:?}", uses(real), uses(dry));
    assert_eq!(sum(&dry.peak), dry.stats.peak);
    Ok(())
}

#[test]
fn without_memory_the_error_and_the_report_name_the_holders() -> Result<()> {
    let held = {
        let _scope = oflow::name_scope("cache");
        zeros([1 << 20], Device::Cpu)?
    };
    let line = line!() + 1;
    let e = zeros([1 << 44], Device::Cpu).unwrap_err();
    let text = e.to_string();
    assert!(text.contains("cannot allocate 70368744177664 bytes on cpu"), "{text}");
    assert!(text.contains("held by") && text.contains("4.2 MB") && text.contains(" in cache"), "{text}");
    let report = memory_report();
    let failure = report.devices[0].failure.as_ref().unwrap();
    assert_eq!((failure.bytes, sum(&failure.held)), (1 << 46, failure.live));
    assert!(failure.line.ends_with(&format!("memory_report.rs:{line}")), "{failure:?}");
    assert!(report.to_string().contains("no memory for 70368.74 GB of "), "{report}");
    drop(held);
    Ok(())
}
