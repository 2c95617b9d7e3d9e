//! What is remembered of a tensor (the f32 master of a half parameter, its boxed and cast copies) beside a run that remembers nothing:
//! random programs with a write between every two uses. Python's ways to write are in `python/tests/test_remembered.py`.

use oflow::nn::{Linear, Module};
use oflow::optim::{Ema, OptimizerConfig, Sgd, SgdOptions, Trainer};
use oflow::prelude::*;
use oflow::testing::Random;

/// Numbers that halves hold.
fn drawn(draw: &mut Random, n: usize) -> Vec<f32> {
    (0..n).map(|_| (draw.below(128) as f32 - 64.0) / 32.0).collect()
}

/// Where the parameter lies.
#[derive(Clone)]
struct CachedLayout(Option<(Placement, NdSbp)>);

impl CachedLayout {
    /// A tensor of these values, `[4, 3]`.
    fn made(&self, values: &[f32], dtype: DType) -> Result<Tensor> {
        let t = from_vec(values.to_vec(), [4, 3], Device::Cpu)?.cast(dtype)?;
        match &self.0 {
            Some((mesh, sbp)) => distribute(&t, (mesh, sbp.clone())),
            None => Ok(t),
        }
    }
}

/// The ways to write.
const WAYS: usize = 14;

/// Writes to the weight of a module in one of the ways.
fn write(way: usize, net: &Linear, place: &CachedLayout, values: &[f32]) -> Result<()> {
    let (w, new) = (&net.weight, place.made(values, net.weight.dtype())?);
    let _quiet = no_grad();
    match way {
        0 => w.copy_(&new).map(drop),
        1 => w.add_(&new).map(drop),
        2 => w.mul_(0.5).map(drop),
        3 => w.fill_(values[0]).map(drop),
        4 => w.zero_().map(drop),
        5 => w.neg_().map(drop),
        6 => w.masked_fill_(&new.eq(w)?.logical_not()?, values[1]).map(drop),
        // Through a view; a global view is a value, so its shard is written instead.
        7 if !w.is_global() => w.t()?.narrow(0, 1, 1)?.fill_(values[2]).map(drop),
        7 => w.write_shard(&new.to_local()?.copy()?).map(drop),
        8 if !w.is_global() => w.detach().select(0, 2)?.mul_(2.0).map(drop),
        8 => w.copy_(&w.detach().mul(2.0)?).map(drop),
        9 => net
            .load_tensors(&[("weight".into(), from_vec(values.to_vec(), [4, 3], Device::Cpu)?.cast(w.dtype())?)], true)
            .map(drop),
        10 => w.lerp_(&new, 0.5).map(drop),
        11 => {
            // Another optimizer of the same parameter.
            let kept = w.grad();
            w.set_grad(Some(new))?;
            Sgd::new(vec![w.clone()], SgdOptions { lr: 0.5, master_weights: false, ..Default::default() }).step()?;
            w.set_grad(kept)?;
            Ok(())
        }
        12 => {
            let mut ema = Ema::new(vec![w.clone()], 0.5)?;
            w.copy_(&new)?;
            ema.update()?;
            ema.swap()
        }
        // No write: what is remembered is used again.
        _ => Ok(()),
    }
}

/// Both runs of a program.
struct Runs {
    place: CachedLayout,
    ours: Linear,
    opt: Box<dyn Trainer>,
    plain: Linear,
    /// In f32 what the master of `plain` would be, and an optimizer of it.
    master: Tensor,
    plain_opt: Box<dyn Trainer>,
}

impl Runs {
    fn new(place: CachedLayout, dtype: DType, config: OptimizerConfig, start: &[f32]) -> Result<Runs> {
        let net = || -> Result<Linear> {
            let mut net = Linear::without_bias(3, 4, Device::Cpu)?;
            net.weight = place.made(start, dtype)?.requires_grad_(true)?;
            Ok(net)
        };
        let (ours, plain) = (net()?, net()?);
        let master = place.made(start, DType::F32)?.requires_grad_(true)?;
        let (opt, plain_opt) = (config.build(vec![ours.weight.clone()]), config.build(vec![master.clone()]));
        Ok(Runs { place, ours, opt, plain, master, plain_opt })
    }
    fn write(&mut self, way: usize, values: &[f32]) -> Result<()> {
        write(way, &self.ours, &self.place, values)?;
        write(way, &self.plain, &self.place, values)?;
        // Elements that were written are the parameter's now; the others keep their bits.
        let (here, kept) = (self.plain.weight.to_f64_vec()?, self.master.to_f64_vec()?);
        let rounded = self.master.detach().cast(self.plain.weight.dtype())?.to_f64_vec()?;
        let new: Vec<f32> =
            (0..12).map(|i| if here[i] == rounded[i] { kept[i] as f32 } else { here[i] as f32 }).collect();
        let _quiet = no_grad();
        self.master.copy_(&self.place.made(&new, DType::F32)?).map(drop)
    }
    fn step(&mut self, gradient: &[f32]) -> Result<()> {
        let gradient = self.place.made(gradient, self.ours.weight.dtype())?;
        self.ours.weight.set_grad(Some(gradient.copy()?))?;
        self.opt.step()?;
        self.master.set_grad(Some(gradient.cast(DType::F32)?))?;
        self.plain_opt.step()?;
        let _quiet = no_grad();
        self.plain.weight.copy_(&self.master).map(drop)
    }
    /// Whether both have the same values. Kernels of a half gradient may round the last bit of a master otherwise.
    fn same(&self) -> Result<bool> {
        let (a, b) = (self.ours.weight.to_f64_vec()?, self.plain.weight.to_f64_vec()?);
        Ok(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 0.004 + 0.01 * b.abs()))
    }
    /// A use that remembers casts and boxed copies, with its gradient, and the same of a new tensor of the same values, which has none.
    fn forward(&self, x: &[f32], mode: Autocast) -> Result<[(Vec<f64>, Vec<f64>); 2]> {
        let mut fresh = Linear::without_bias(3, 4, Device::Cpu)?;
        fresh.weight = self.ours.weight.detach().copy()?.requires_grad_(true)?;
        let mut seen: [(Vec<f64>, Vec<f64>); 2] = Default::default();
        for (net, seen) in [&self.ours, &fresh].into_iter().zip(&mut seen) {
            net.weight.set_grad(None)?;
            let x = from_vec(x.to_vec(), [4, 3], Device::Cpu)?.cast(net.weight.dtype())?;
            let x = match &self.place.0 {
                Some((mesh, _)) => distribute(&x, (mesh, sbp![S(0)]))?,
                None => x,
            };
            let y = {
                let _amp = autocast(mode);
                net.forward(&x)?.add(&net.forward(&x)?)?
            };
            y.cast(DType::F32)?.sum(())?.backward()?;
            *seen = (y.to_f64_vec()?, net.weight.grad().map(|g| g.to_f64_vec()).transpose()?.unwrap_or_default());
            net.weight.set_grad(None)?;
        }
        Ok(seen)
    }
}

/// Programs on that many ranks. Returns how many programs and uses there were.
fn programs(ranks: usize, seeds: u64) -> (usize, usize) {
    let counts = oflow::run_ranks(ranks, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let layouts = [sbp![B], sbp![S(0)], sbp![S(1)]];
        let (mut programs, mut uses) = (0, 0);
        for seed in 0..seeds {
            for kind in OptimizerConfig::KINDS {
                let mut draw = Random::new(seed * 977 + ranks as u64);
                let place = CachedLayout((ranks > 1).then(|| (mesh.clone(), layouts[draw.below(3)].clone())));
                let dtype = [DType::BF16, DType::F16, DType::F32][draw.below(3)];
                let config: OptimizerConfig =
                    serde_json::from_value(serde_json::json!({"kind": kind, "lr": 0.0625})).unwrap();
                let start = drawn(&mut draw, 12);
                let mut runs = Runs::new(place, dtype, config, &start)?;
                let mut said = vec![format!("{kind} {dtype}")];
                for n in 0..6 {
                    // Each way in turn, and some that are drawn.
                    let way = if n % 2 == 0 { (programs + n) % WAYS } else { draw.below(WAYS) };
                    said.push(format!("write {way}"));
                    let values = drawn(&mut draw, 12);
                    runs.write(way, &values)?;
                    assert!(runs.same()?, "{said:?}");
                    if draw.below(5) < 3 {
                        said.push("step".into());
                        let gradient = drawn(&mut draw, 12);
                        runs.step(&gradient)?;
                        assert!(runs.same()?, "{said:?}");
                    } else {
                        let mode = [Autocast::Off, Autocast::Bf16, Autocast::F16][draw.below(3)];
                        said.push(format!("forward {mode:?}"));
                        let x = drawn(&mut draw, 12);
                        let [ours, fresh] = runs.forward(&x, mode)?;
                        assert_eq!(ours, fresh, "{said:?}");
                    }
                    uses += 1;
                }
                programs += 1;
            }
        }
        Ok((programs, uses))
    });
    counts.unwrap()[0]
}

#[test]
fn a_write_between_two_uses_is_seen_by_the_next() {
    let kinds = OptimizerConfig::KINDS.len();
    assert_eq!(programs(1, 30), (30 * kinds, 180 * kinds));
}

#[test]
fn and_so_it_is_in_every_layout() {
    let kinds = OptimizerConfig::KINDS.len();
    assert_eq!(programs(2, 20), (20 * kinds, 120 * kinds));
}

/// Groups in the saved state are those of the optimizer, or the state is refused with a sentence and nothing is changed.
#[test]
fn a_state_of_other_groups_is_refused() {
    use oflow::state::{LoadState, SaveState, Stateful};
    let leaf = || ones([2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let config = |kind: &str, lr: f64| -> OptimizerConfig {
        let config: OptimizerConfig = serde_json::from_value(serde_json::json!({"kind": kind, "lr": lr})).unwrap();
        config.with_weight_decay(lr)
    };
    let groups = |kind: &str, lr: f64, sizes: &[usize]| {
        let group = |(i, n): (usize, &usize)| config(kind, lr + i as f64).build((0..*n).map(|_| leaf()).collect());
        oflow::optim::Groups::new(sizes.iter().enumerate().map(group).collect())
    };
    let state = |of: &dyn Stateful| {
        let mut to = SaveState::new();
        of.save_state(&mut to).unwrap();
        to.into_parts().1
    };
    let mut cases = 0;
    for kind in OptimizerConfig::KINDS {
        for sizes in [&[1][..], &[2, 1], &[1, 0, 2]] {
            let mut saved = groups(kind, 0.5, sizes);
            saved.set_notes(0, [("initial_lr".to_string(), 0.25.into())].into());
            let values = state(&saved);
            for other in OptimizerConfig::KINDS {
                for own in [&[1][..], &[2, 1], &[1, 0, 2], &[1, 2], &[3], &[1, 1]] {
                    let mut opt = groups(other, 8.0, own);
                    let before = state(&opt);
                    let loaded = opt.load_state(&mut LoadState::new([], &values));
                    cases += 1;
                    if kind == other && sizes == own {
                        loaded.unwrap();
                        assert_eq!(state(&opt), values, "every option and note comes back");
                    } else {
                        let e = loaded.unwrap_err().to_string();
                        assert!(e.contains("the saved state has") || e.contains("of the saved state"), "{e}");
                        assert_eq!(state(&opt), before, "{e}");
                    }
                }
            }
        }
    }
    assert_eq!(cases, OptimizerConfig::KINDS.len().pow(2) * 3 * 6);
    // One optimizer alone is one group.
    let mut alone = config("adamw", 3.0).build(vec![leaf()]);
    alone.load_state(&mut LoadState::new([], &state(&groups("adamw", 0.5, &[1])))).unwrap();
    assert_eq!(alone.config(), config("adamw", 0.5));
    let e = alone.load_state(&mut LoadState::new([], &state(&groups("adamw", 0.5, &[1, 1])))).unwrap_err().to_string();
    assert!(e.contains("the saved state has 2 groups of parameters, this optimizer has 1"), "{e}");
}

/// Source files of a folder, without tests.
fn sources(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, found);
        } else if name.ends_with(".rs") && !name.contains("test") {
            found.push(path);
        }
    }
}

/// Each file with a table of the process or of a thread stands in `docs/remembered.md`, and each file that the page names is there.
#[test]
fn the_page_has_every_table() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(root.join("docs/remembered.md")).unwrap();
    let mut files = vec![];
    for folder in [
        "src",
        "base/src",
        "comm/src",
        "kernels/src",
        "fft/src",
        "linalg/src",
        "flight/src",
        "op-abi/src",
        "python/src",
    ] {
        sources(&root.join(folder), &mut files);
    }
    let (mut tables, mut missing) = (0, vec![]);
    let holders = ["Mutex<", "RwLock<", "OnceLock<", "LazyLock<", "RefCell<", "Cell<", "Interner<", "Scratch"];
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let is_table = |line: &str| {
            let line = line.trim_start().trim_start_matches("pub(super) ").trim_start_matches("pub(crate) ");
            let name = line.strip_prefix("static ").and_then(|l| l.split_once(": "));
            name.is_some_and(|(name, ty)| {
                name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
                    && holders.iter().any(|holder| ty.contains(holder))
            })
        };
        if code.lines().any(is_table) {
            tables += 1;
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            if !page.contains(&format!("`{name}`")) {
                missing.push(name);
            }
        }
    }
    assert!(missing.is_empty(), "docs/remembered.md lacks {missing:?}");
    assert!(tables > 40, "{tables} files with tables");
    for name in
        page.split('`').skip(1).step_by(2).filter(|n| n.contains('/') && (n.ends_with(".rs") || n.ends_with(".py")))
    {
        assert!(root.join(name).exists(), "docs/remembered.md names {name}, which is not there");
    }
    // Rows of five columns: what, key, bound, stale, test; none is empty.
    for row in page.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| what")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        assert!(cells.len() == 5 && cells.iter().all(|c| !c.is_empty()), "{row}");
    }
}
