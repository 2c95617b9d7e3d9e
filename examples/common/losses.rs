//! `--losses FILE` writes one loss per line; `--compare FILE` compares this run's losses with those of a file.

use super::options::Options;
use oflow::prelude::*;
use std::fmt::Write;

/// The options that write and compare losses.
pub struct Losses {
    write: Option<String>,
    /// File and losses of the run to compare with.
    other: Option<(String, Vec<f64>)>,
    tolerance: f64,
}

impl Losses {
    /// Reads `--losses`, `--compare` and `--tolerance`. Reads the file to compare with at once, so that a wrong name is an
    /// error before the training.
    pub fn from_options(o: &mut Options) -> Result<Losses> {
        let (write, compare) = (o.get("--losses")?, o.get::<String>("--compare")?);
        let other = compare.map(|f| Ok::<_, Error>((f.clone(), read(&f)?))).transpose()?;
        Ok(Losses { write, other, tolerance: o.or("--tolerance", 1e-4)? })
    }
    /// Writes and compares the losses; call it on one rank.
    pub fn done(&self, losses: &[f64]) -> Result<()> {
        if let Some(file) = &self.write {
            let text = losses.iter().fold(String::new(), |mut t, l| {
                let _ = writeln!(t, "{l}");
                t
            });
            std::fs::write(file, text).map_err(|e| Error::argument(format!("cannot write --losses {file}: {e}")))?;
        }
        let Some((file, other)) = &self.other else { return Ok(()) };
        if other.len() != losses.len() {
            let (n, m) = (losses.len(), other.len());
            return Err(Error::argument(format!("this run has {n} losses, {file} has {m}")));
        }
        let gap = |(a, b): (&f64, &f64)| (a - b).abs() / b.abs().max(1.0);
        let gaps: Vec<f64> = losses.iter().zip(other).map(gap).collect();
        // A NaN is a difference too.
        if let Some(step) = gaps.iter().position(|g| g.is_nan() || *g > self.tolerance) {
            return Err(Error::argument(format!(
                "step {step}: loss {} here, {} in {file}: they differ by more than {}",
                losses[step], other[step], self.tolerance
            )));
        }
        let most = gaps.iter().fold(0.0, |m: f64, g| m.max(*g));
        println!("{} losses agree with {file}: they differ by {most:.1e} at most", losses.len());
        Ok(())
    }
}

fn read(file: &str) -> Result<Vec<f64>> {
    let bad = |why: String| Error::argument(format!("cannot read --compare {file}: {why}"));
    let text = std::fs::read_to_string(file).map_err(|e| bad(e.to_string()))?;
    text.lines().map(|l| l.trim().parse().map_err(|_| bad(format!("'{l}' is not a number")))).collect()
}
