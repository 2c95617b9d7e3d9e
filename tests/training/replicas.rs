//! Data parallelism of local tensors: mean gradients, parameters without one, and the same steps on every rank.

use oflow::nn::{BatchNorm, Linear, Module, Replicas, checkpoint};
use oflow::optim::{AdamW, AdamWOptions, Optimizer};
use oflow::prelude::*;
use oflow::take_comm_trace;

#[derive(oflow::nn::Module)]
struct Net {
    one: Linear,
    two: Linear,
    never: Linear,
    norm: BatchNorm,
    frozen: Linear,
}

impl Net {
    fn new() -> Result<Net> {
        let linear = |dtype| Linear::new(4, 4, Device::Cpu.dtype(dtype));
        Ok(Net {
            one: linear(DType::F64)?,
            two: linear(DType::F64)?,
            never: linear(DType::F32)?,
            norm: BatchNorm::new(4, Device::Cpu.dtype(DType::F64))?,
            frozen: linear(DType::F64)?,
        })
    }
    /// Which layers there are depends on the rows.
    fn forward(&self, x: &Tensor, layers: usize) -> Result<Tensor> {
        let y = self.one.forward(x)?;
        let y = if layers > 1 { checkpoint(|y: &Tensor| self.two.forward(&y.tanh()?)?.sin(), &y)? } else { y };
        self.frozen.forward(&y)?.square()?.mean(())
    }
}

fn rows(rank: usize, step: usize) -> Result<Tensor> {
    let of = |i: usize| ((i * 7 + rank * 5 + step * 3) % 11) as f64 / 11.0;
    from_vec((0..12).map(of).collect(), [3, 4], Device::Cpu)
}

/// Parameters and losses of each rank after three steps; `ranks` that take part in `world`.
fn trained(ranks: usize, bucket: usize) -> Vec<Vec<Vec<f64>>> {
    oflow::run_ranks(ranks, |world| {
        // Other values on every rank: those of the first count.
        manual_seed(world.rank() as u64);
        let net = Net::new()?;
        net.freeze("frozen.*")?;
        let replicas = Replicas::new(&net, &Placement::all(Device::Cpu)?)?.with_bucket_bytes(bucket);
        let mut opt = AdamW::new(net.parameters(), AdamWOptions { lr: 0.05, ..Default::default() });
        let mut all = vec![];
        for step in 0..3 {
            opt.zero_grad();
            // Only the last rank has the second layer, and in the last step none has.
            let layers = if step < 2 && world.rank() == ranks - 1 { 2 } else { 1 };
            net.forward(&rows(world.rank(), step)?, layers)?.backward()?;
            let unused = replicas.reduce_gradients(&net)?;
            let never = ["never.weight", "never.bias", "norm.weight", "norm.bias"];
            let second = ["two.weight", "two.bias"];
            let want: Vec<&str> = if step < 2 { never.to_vec() } else { second.into_iter().chain(never).collect() };
            assert_eq!(unused, want, "step {step}");
            for p in [&net.one.weight, &net.two.weight] {
                all.push(p.grad().map_or(Ok(vec![]), |g| g.to_vec::<f64>())?);
            }
            opt.step()?;
        }
        all.extend(net.parameters().iter().map(Tensor::to_f64_vec).collect::<Result<Vec<_>>>()?);
        Ok(all)
    })
    .unwrap()
}

#[test]
fn every_rank_takes_the_step_of_the_mean_gradient() {
    for ranks in [1, 2, 3] {
        let all = trained(ranks, 25 << 20);
        assert!(all.iter().all(|rank| rank == &all[0]), "{ranks} ranks differ");
        // In buckets of one parameter, and of any size.
        assert_eq!(trained(ranks, 0), all);
        assert_eq!(trained(ranks, 150), all);
    }
    // The first gradient is the mean of those of the ranks, each alone.
    let mut want = [vec![0.0; 16], vec![0.0; 16]];
    for rank in 0..3 {
        let found = oflow::run_ranks(1, |_| {
            manual_seed(0);
            let net = Net::new()?;
            net.forward(&rows(rank, 0)?, if rank == 2 { 2 } else { 1 })?.backward()?;
            let of = |p: &Tensor| p.grad().map_or(Ok(vec![0.0; 16]), |g| g.to_vec::<f64>());
            Ok([of(&net.one.weight)?, of(&net.two.weight)?])
        });
        for (sum, g) in want.iter_mut().zip(&found.unwrap()[0]) {
            sum.iter_mut().zip(g).for_each(|(s, g)| *s += g / 3.0);
        }
    }
    let have = &trained(3, 25 << 20)[0][..2];
    for (have, want) in have.iter().zip(&want) {
        assert!(have.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-12), "{have:?} {want:?}");
    }
}

#[test]
fn gradients_can_be_changed_in_place_and_are_few_messages() {
    oflow::run_ranks(2, |world| {
        let layers: Vec<Linear> =
            (0..10).map(|_| Linear::new(8, 8, Device::Cpu.dtype(DType::BF16))).collect::<Result<_>>()?;
        let replicas = Replicas::new(&layers[0], &Placement::all(Device::Cpu)?)?;
        #[derive(oflow::nn::Module)]
        struct All {
            list: Vec<Linear>,
        }
        let all = All { list: layers };
        let x = full([2, 8], world.rank() as f64, Device::Cpu.dtype(DType::BF16))?;
        for l in &all.list {
            l.forward(&x)?.sum(())?.backward()?;
        }
        take_comm_trace();
        assert!(replicas.reduce_gradients(&all)?.is_empty());
        assert_eq!(
            take_comm_trace().iter().filter(|r| r.plan().is_some_and(|p| p.bytes_sent() > 0)).count(),
            2,
            "one of flags, one of all"
        );
        oflow::optim::clip_grad_norm(all.parameters(), 1.0)?;
        let g = all.list[3].weight.grad().expect("a gradient");
        assert_eq!((g.dtype(), g.shape(), g.is_global()), (DType::BF16, &[8, 8][..], false));
        // Micro-batches add up.
        all.list[3].forward(&x)?.sum(())?.backward()?;
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_does_not_fit_is_an_error() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let e = Replicas::new(&Linear::new(2, 2, (&mesh, sbp![B]))?, &mesh).err().expect("an error").to_string();
        assert!(e.contains("'weight'") && e.contains("is global") && e.contains(file!()), "{e}");
        let one = Placement::new(Device::Cpu, &[0], &[1])?;
        let e = Replicas::new(&Linear::new(2, 2, Device::Cpu)?, &one).err().expect("an error").to_string();
        assert!(e.contains("1 of the 2 ranks of the job"), "{e}");
        Ok(())
    })
    .unwrap();
    let other = oflow::run_ranks(2, |world| {
        let net = Linear::new(2 + world.rank(), 2, Device::Cpu)?;
        Replicas::new(&net, &Placement::all(Device::Cpu)?).map(drop)
    });
    assert!(other.is_err());
}
