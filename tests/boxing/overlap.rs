//! One total order of collectives, also when boxing runs beside compute: random mixes of boxings, reads and
//! `local.to_global` on simulated ranks with communication threads. The simulator has no buffering between calls and finds
//! deadlocks; a rank out of step is an error; values are compared with plain vectors.

use oflow::prelude::*;
use oflow::testing::Random;
use oflow::vm::VmMode;
use oflow::{box_many, run_ranks_with};

/// A tensor with the value that it must have.
struct Known {
    tensor: Tensor,
    value: Vec<f32>,
}

fn placement(rng: &mut Random, world: usize, device: Device) -> Result<Placement> {
    let mut ranks: Vec<usize> = (0..world).collect();
    for i in (1..world).rev() {
        ranks.swap(i, rng.below(i + 1));
    }
    ranks.truncate(1 + rng.below(world));
    let dims = if ranks.len() == 4 && rng.below(2) == 0 { vec![2, 2] } else { vec![ranks.len()] };
    Placement::new(device, &ranks, &dims)
}

fn layout(rng: &mut Random, axes: usize) -> NdSbp {
    let all = [Sbp::Broadcast, Sbp::Split(0), Sbp::Split(1), Sbp::PARTIAL_SUM];
    NdSbp::new(&(0..axes).map(|_| all[rng.below(4)]).collect::<Vec<_>>())
}

/// The same program on every rank; integers in f32, so that sums are exact.
fn program(world: usize, rank: usize, seed: u64, devices: &[Device], steps: usize) -> Result<()> {
    let mut rng = Random::new(seed);
    let mut known: Vec<Known> = Vec::new();
    for step in 0..steps {
        // Small ones run on the caller's thread, large ones on the communication thread.
        let shape = [[3, 5], [130, 257], [64, 200]][rng.below(3)];
        let len: usize = shape[0] * shape[1];
        let device = devices[rng.below(devices.len())];
        let pick = rng.below(known.len().max(1));
        match if known.is_empty() { 0 } else { rng.below(8) } {
            0 => {
                let p = placement(&mut rng, world, device)?;
                let value: Vec<f32> = (0..len).map(|i| ((i * 7 + step) % 13) as f32 - 6.0).collect();
                let tensor = distribute(
                    &from_vec(value.clone(), shape, Device::Cpu)?.to_device(device)?,
                    (&p, layout(&mut rng, p.axes())),
                )?;
                known.push(Known { tensor, value });
            }
            1 => {
                // Each rank's tensor as its shard, of all ranks.
                let all = Placement::all(device)?;
                let rows = rng.below(40) + 1;
                let fill = |r: usize| (r * 10 + step % 7) as f32;
                let shard = from_vec(vec![fill(rank); rows * 3], [rows, 3], Device::Cpu)?.to_device(device)?;
                let tensor = shard.to_global((&all, sbp![S(0)]))?;
                let value = (0..world).flat_map(|r| vec![fill(r); rows * 3]).collect();
                known.push(Known { tensor, value });
            }
            2 => {
                let k = &known[pick];
                assert_eq!(k.tensor.to_vec::<f32>()?, k.value, "step {step}");
            }
            3 => {
                let k = &known[pick];
                let tensor = k.tensor.add(&k.tensor)?;
                let value = k.value.iter().map(|v| v + v).collect();
                known.push(Known { tensor, value });
            }
            4 => {
                let other = rng.below(known.len());
                let p = placement(&mut rng, world, device)?;
                let list = [pick, other, pick].map(|i| (i, layout(&mut rng, p.axes())));
                let boxed =
                    box_many(&list.iter().map(|(i, s)| (&known[*i].tensor, (&p, s.clone()))).collect::<Vec<_>>())?;
                for ((i, _), tensor) in list.iter().zip(boxed) {
                    let value = known[*i].value.clone();
                    known.push(Known { tensor, value });
                }
            }
            _ => {
                let p = placement(&mut rng, world, device)?;
                let k = &known[pick];
                let tensor = k.tensor.to_global((&p, layout(&mut rng, p.axes())))?;
                let value = k.value.clone();
                known.push(Known { tensor, value });
            }
        }
        while known.len() > 8 {
            let old = known.remove(rng.below(known.len()));
            if rng.below(2) == 0 {
                assert_eq!(old.tensor.to_vec::<f32>()?, old.value, "step {step}");
            }
        }
    }
    for k in &known {
        assert_eq!(k.tensor.to_vec::<f32>()?, k.value);
    }
    Ok(())
}

#[test]
fn random_programs_with_a_communication_thread() -> Result<()> {
    for seed in 0..40 {
        for world in [2, 3, 4] {
            run_ranks_with(world, VmMode::CommThread, |w| program(world, w.rank(), seed, &[Device::Cpu], 60))?;
        }
    }
    Ok(())
}

#[test]
fn random_programs_with_every_stream_a_delayed_thread() -> Result<()> {
    for seed in 0..30 {
        let mode = VmMode::Async { delay_us: 60, seed: 77 + seed };
        for world in [2, 4] {
            run_ranks_with(world, mode, |w| program(world, w.rank(), seed, &[Device::Cpu], 60))?;
        }
    }
    Ok(())
}

#[test]
fn two_devices_of_a_rank_share_one_order() -> Result<()> {
    for seed in 0..30 {
        for mode in [VmMode::Inline, VmMode::CommThread] {
            run_ranks_with(3, mode, |w| program(3, w.rank(), seed, &[Device::Cpu, Device::Async], 50))?;
        }
    }
    Ok(())
}
