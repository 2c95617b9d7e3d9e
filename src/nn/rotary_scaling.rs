//! Angles of rotary position embeddings for sequences longer than those of the training.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// How the frequencies of a rotary position embedding are changed so that a model serves sequences longer than those that it was trained
/// on. Names, defaults and formulas are those of `rope_scaling` in configurations of models for transformers, so that it is read from them:
///
/// ```
/// use oflow::nn::RotaryScaling;
/// let scaling: RotaryScaling = serde_json::from_str(
///     r#"{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
///         "original_max_position_embeddings": 8192}"#,
/// )?;
/// let [first, .., last] = scaling.frequencies(500_000.0, 128, 131_072)?[..] else { unreachable!() };
/// // Fast pairs turn as they did in the training, slow ones 8 times more slowly.
/// assert_eq!(first, 1.0);
/// assert!((last * 8.0 * 500_000f64.powf(126.0 / 128.0) - 1.0).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rope_type", rename_all = "lowercase")]
pub enum RotaryScaling {
    /// The frequencies of the training.
    #[default]
    Default,
    /// Positions are divided by the factor.
    Linear {
        /// By how many times sequences are longer than those of the training.
        factor: f64,
    },
    /// The base is larger, so that the slowest pair turns slower by the factor and the fastest one as before ("NTK-aware").
    Ntk {
        /// By how many times sequences are longer.
        factor: f64,
    },
    /// As `Ntk`, by as much as the number of positions of the tables needs; nothing is changed for as many positions as the training had.
    /// Make tables of as many positions as there are in use.
    Dynamic {
        /// By how many times sequences are longer.
        factor: f64,
        /// Number of positions of the training.
        #[serde(rename = "original_max_position_embeddings", alias = "max_position_embeddings")]
        trained: usize,
    },
    /// Slow pairs are slowed down by the factor, fast ones are not, with a ramp between (Peng et al., 2023).
    Yarn(Yarn),
    /// As Llama 3.1: by wavelength, slow pairs are slowed down by the factor, fast ones are not, with a smooth step between.
    Llama3 {
        /// By how many times sequences are longer.
        factor: f64,
        /// Pairs that turn fewer times than this in a sequence of the training are slow.
        low_freq_factor: f64,
        /// Pairs that turn more times than this are fast.
        high_freq_factor: f64,
        /// Number of positions of the training.
        #[serde(rename = "original_max_position_embeddings")]
        trained: usize,
    },
}

/// Settings of [`RotaryScaling::Yarn`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Yarn {
    /// By how many times sequences are longer than those of the training.
    pub factor: f64,
    /// Number of positions of the training.
    #[serde(rename = "original_max_position_embeddings")]
    pub trained: usize,
    /// Pairs that turn more times than this in a sequence of the training are fast.
    #[serde(default = "beta_fast")]
    pub beta_fast: f64,
    /// Pairs that turn fewer times than this are slow.
    #[serde(default = "beta_slow")]
    pub beta_slow: f64,
    /// Factor of cosines and sines; not given, it is 0.1 ln(`factor`) + 1, or follows from the next two.
    #[serde(default)]
    pub attention_factor: Option<f64>,
    /// With `mscale_all_dim`: the factor is (0.1 `mscale` ln(`factor`) + 1) / (0.1 `mscale_all_dim` ln(`factor`) + 1).
    #[serde(default)]
    pub mscale: Option<f64>,
    /// Denominator of the factor; see `mscale`.
    #[serde(default)]
    pub mscale_all_dim: Option<f64>,
    /// Whether the bounds of the ramp are whole pairs.
    #[serde(default = "truncate")]
    pub truncate: bool,
}

fn beta_fast() -> f64 {
    32.0
}

fn beta_slow() -> f64 {
    1.0
}

fn truncate() -> bool {
    true
}

impl Yarn {
    /// Makes the settings of a factor and a number of positions of the training, the others being those of the paper.
    pub fn new(factor: f64, trained: usize) -> Yarn {
        Yarn {
            factor,
            trained,
            beta_fast: beta_fast(),
            beta_slow: beta_slow(),
            attention_factor: None,
            mscale: None,
            mscale_all_dim: None,
            truncate: true,
        }
    }
    fn attention_factor(&self) -> f64 {
        let scale = |m: f64| if self.factor <= 1.0 { 1.0 } else { 0.1 * m * self.factor.ln() + 1.0 };
        match (self.attention_factor, self.mscale, self.mscale_all_dim) {
            (Some(given), ..) => given,
            // 0 counts as not given.
            (_, Some(a), Some(b)) if a != 0.0 && b != 0.0 => scale(a) / scale(b),
            _ => scale(1.0),
        }
    }
    /// How much of the frequency of the training pair `i` keeps, from 0 to 1.
    fn kept(&self, base: f64, width: usize) -> impl Fn(usize) -> f64 {
        // The pair, as a number with a fraction, that turns so many times.
        let pair = |turns: f64| width as f64 * (self.trained as f64 / (turns * 2.0 * PI)).ln() / (2.0 * base.ln());
        let (mut low, mut high) = (pair(self.beta_fast), pair(self.beta_slow));
        if self.truncate {
            (low, high) = (low.floor(), high.ceil());
        }
        (low, high) = (low.max(0.0), high.min(width as f64 - 1.0));
        if low == high {
            high += 0.001;
        }
        move |i| 1.0 - ((i as f64 - low) / (high - low)).clamp(0.0, 1.0)
    }
}

impl RotaryScaling {
    /// Returns by how much each of the `width` / 2 pairs turns from a position to the next, for tables of that many positions.
    ///
    /// # Errors
    /// If a number of the scaling is not positive, or others do not fit together.
    pub fn frequencies(&self, base: f64, width: usize, positions: usize) -> Result<Vec<f64>> {
        self.check(width)?;
        let pairs = width / 2;
        let of_base = |base: f64| (0..pairs).map(move |i| base.powf(-(i as f64) / pairs as f64));
        let grown = |by: f64| base * by.powf(width as f64 / (width as f64 - 2.0));
        Ok(match *self {
            RotaryScaling::Default => of_base(base).collect(),
            RotaryScaling::Linear { factor } => of_base(base).map(|f| f / factor).collect(),
            RotaryScaling::Ntk { factor } => of_base(grown(factor)).collect(),
            RotaryScaling::Dynamic { factor, trained } => {
                let longer = positions.max(trained) as f64 / trained as f64;
                of_base(grown(factor * longer - (factor - 1.0))).collect()
            }
            RotaryScaling::Yarn(yarn) => {
                let kept = yarn.kept(base, width);
                let slowed = |(i, f): (usize, f64)| f / yarn.factor * (1.0 - kept(i)) + f * kept(i);
                of_base(base).enumerate().map(slowed).collect()
            }
            RotaryScaling::Llama3 { factor, low_freq_factor: low, high_freq_factor: high, trained } => {
                let slowed = |f: f64| {
                    let turns = trained as f64 * f / (2.0 * PI);
                    let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                    (1.0 - kept) * f / factor + kept * f
                };
                of_base(base).map(slowed).collect()
            }
        })
    }
    /// Returns the factor of cosines and sines: 1 but for YaRN.
    pub fn attention_factor(&self) -> f64 {
        match self {
            RotaryScaling::Yarn(yarn) => yarn.attention_factor(),
            _ => 1.0,
        }
    }
    fn check(&self, width: usize) -> Result<()> {
        let positive: &[(&str, f64)] = match self {
            RotaryScaling::Default => &[],
            RotaryScaling::Linear { factor } | RotaryScaling::Ntk { factor } => &[("factor", *factor)],
            RotaryScaling::Dynamic { factor, trained } => &[("factor", *factor), ("trained", *trained as f64)],
            RotaryScaling::Yarn(y) => &[
                ("factor", y.factor),
                ("trained", y.trained as f64),
                ("beta_fast", y.beta_fast),
                ("beta_slow", y.beta_slow),
                ("attention_factor", y.attention_factor()),
            ],
            RotaryScaling::Llama3 { factor, low_freq_factor, high_freq_factor, trained } => &[
                ("factor", *factor),
                ("low_freq_factor", *low_freq_factor),
                ("high_freq_factor less low_freq_factor", high_freq_factor - low_freq_factor),
                ("trained", *trained as f64),
            ],
        };
        if let Some((name, n)) = positive.iter().find(|(_, n)| !(*n > 0.0 && n.is_finite())) {
            return Err(Error::argument(format!("{name} is {n}; it must be positive")));
        }
        if width == 2 && matches!(self, RotaryScaling::Ntk { .. } | RotaryScaling::Dynamic { .. }) {
            return Err(Error::argument("a head of one pair has the frequency 1 for every base"));
        }
        if let RotaryScaling::Dynamic { factor, .. } = self
            && *factor < 1.0
        {
            return Err(Error::argument(format!("the factor {factor} would make the base smaller; it is 1 or more")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn frequencies_are_those_of_transformers() {
        let golden: Vec<Value> = serde_json::from_str(include_str!("../../tests/golden/rotary.json")).unwrap();
        assert!(golden.len() > 10);
        for case in golden {
            let number = |name: &str| case[name].as_f64().unwrap();
            let scaling: RotaryScaling = serde_json::from_value(case["scaling"].clone()).unwrap();
            let (base, width, positions) = (number("base"), number("width") as usize, number("positions") as usize);
            let got = scaling.frequencies(base, width, positions).unwrap();
            let want: Vec<f64> = serde_json::from_value(case["frequencies"].clone()).unwrap();
            assert_eq!(got.len(), want.len());
            for (i, (g, w)) in got.iter().zip(&want).enumerate() {
                assert!((g - w).abs() <= 1e-12 * w.abs(), "{scaling:?}, pair {i}: {g} instead of {w}");
            }
            assert!((scaling.attention_factor() - number("attention_factor")).abs() < 1e-12, "{scaling:?}");
        }
    }

    #[test]
    fn numbers_that_give_no_angles_are_refused() {
        let refused = |s: RotaryScaling| s.frequencies(1e4, 8, 10).unwrap_err().message().to_string();
        assert_eq!(refused(RotaryScaling::Linear { factor: 0.0 }), "factor is 0; it must be positive");
        assert_eq!(refused(RotaryScaling::Yarn(Yarn::new(4.0, 0))), "trained is 0; it must be positive");
        assert!(refused(RotaryScaling::Dynamic { factor: 0.5, trained: 8 }).contains("1 or more"));
        let swapped = RotaryScaling::Llama3 { factor: 8.0, low_freq_factor: 4.0, high_freq_factor: 1.0, trained: 8192 };
        assert!(refused(swapped).contains("high_freq_factor less low_freq_factor is -3"));
        assert!(RotaryScaling::Ntk { factor: 2.0 }.frequencies(1e4, 2, 10).is_err());
    }
}
