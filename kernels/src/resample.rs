//! Where the elements of a resampled dim come from: what the kernels of all devices share. Each element of the result is a weighted sum of
//! at most four elements of the image, or zero. Several dims are resampled one after the other.

use crate::{KernelError, Result};

/// How a dim is resampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Elements before and after the image are its own, mirrored at the first and the last one.
    Reflect,
    /// Elements outside are the first or the last one.
    Replicate,
    /// The image begins again.
    Circular,
    /// The element at the floor of the scaled index.
    Nearest,
    /// The element whose centre is nearest to that of the result's.
    NearestExact,
    /// Weights of the two elements around.
    Linear,
    /// Weights of the four elements around (a = -0.75).
    Cubic,
    /// Windows of elements: element j of window o is element `j * count + o` of the result; outside the image it is zero.
    Windows,
}

const RULES: [(&str, Rule); 8] = [
    ("reflect", Rule::Reflect),
    ("replicate", Rule::Replicate),
    ("circular", Rule::Circular),
    ("nearest", Rule::Nearest),
    ("nearest-exact", Rule::NearestExact),
    ("linear", Rule::Linear),
    ("cubic", Rule::Cubic),
    ("windows", Rule::Windows),
];

impl Rule {
    /// The rule of that name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<Rule> {
        let unknown = || KernelError::new(format!("unknown way to resample '{name}'"));
        RULES.iter().find(|(n, _)| *n == name).map(|(_, r)| *r).ok_or_else(unknown)
    }
    /// Whether a dim is padded: elements before the image may be asked for.
    pub fn pads(self) -> bool {
        matches!(self, Rule::Reflect | Rule::Replicate | Rule::Circular)
    }
    /// Whether elements are moved only: each of the result is one of the image, or zero.
    pub fn moves(self) -> bool {
        !matches!(self, Rule::Linear | Rule::Cubic)
    }
    /// Numbers that a dim needs: pads what stands before the image, windows their number, stride, padding and dilation.
    fn steps(self) -> usize {
        match self {
            Rule::Windows => 4,
            r if r.pads() => 1,
            _ => 0,
        }
    }
}

/// One resampled dim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Elements of the image.
    pub image: usize,
    /// Elements of the result.
    pub result: usize,
    /// How it is resampled.
    pub rule: Rule,
    /// Interpolation: the first and the last elements lie on each other.
    pub aligned: bool,
    /// Pads: elements before the image; a negative number leaves out elements.
    pub before: i64,
    /// Windows: how many there are.
    pub count: i64,
    /// Windows: elements from window to window.
    pub stride: i64,
    /// Windows: zeros before the image.
    pub padding: i64,
    /// Windows: from element to element.
    pub dilation: i64,
    /// Interpolation: elements of the image for an element of the result; computed of the sizes where it is 0.
    pub scale: f64,
}

/// The elements that one of the result is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taps {
    /// Number of elements that are used.
    pub n: usize,
    /// Positions of the elements.
    pub at: [usize; 4],
    /// Weights of the elements.
    pub weight: [f64; 4],
}

impl Taps {
    fn one(at: usize) -> Taps {
        Taps { n: 1, at: [at, 0, 0, 0], weight: [1.0, 0.0, 0.0, 0.0] }
    }
}

/// The lines of the last dims of an image, by a rule and its numbers: `steps` as many for each dim as the rule needs, `scales` (result to
/// image; 0 is none) one for each dim, or none at all.
///
/// # Errors
/// If numbers are missing or out of range, or sizes have no elements to choose from.
pub fn lines(
    rule: Rule,
    aligned: bool,
    steps: &[i64],
    scales: &[f64],
    image: &[usize],
    result: &[usize],
) -> Result<Vec<Line>> {
    let (n, each) = (image.len(), rule.steps());
    if !(1..=3).contains(&n) || result.len() != n {
        return Err(KernelError::new(format!("{image:?} cannot be resampled to {result:?}; 1 to 3 dims can")));
    }
    if steps.len() != n * each || !(scales.is_empty() || scales.len() == n) {
        return Err(KernelError::new(format!(
            "{n} resampled dims need {} steps and {n} scales or none, not {steps:?} and {scales:?}",
            n * each
        )));
    }
    if scales.iter().any(|s| !s.is_finite() || *s < 0.0) {
        return Err(KernelError::new(format!("the scales {scales:?} must be positive")));
    }
    (0..n)
        .map(|d| {
            let of = &steps[d * each..][..each];
            let scale = scales.get(d).copied().unwrap_or(0.0);
            let mut line = Line {
                image: image[d],
                result: result[d],
                rule,
                aligned,
                before: 0,
                count: 0,
                stride: 1,
                padding: 0,
                dilation: 1,
                scale: if scale > 0.0 { 1.0 / scale } else { 0.0 },
            };
            match of {
                [before] => line.before = *before,
                [count, stride, padding, dilation] => {
                    (line.count, line.stride, line.padding, line.dilation) = (*count, *stride, *padding, *dilation);
                }
                _ => {}
            }
            line.check()?;
            Ok(line)
        })
        .collect()
}

impl Line {
    fn check(&self) -> Result<()> {
        let bad = |why: String| Err(KernelError::new(why));
        let (image, result) = (self.image as i64, self.result as i64);
        let after = result.saturating_sub(image).saturating_sub(self.before);
        match self.rule {
            _ if self.rule.pads() && result > 0 && image == 0 => {
                bad("a dim without elements has none to pad with".into())
            }
            Rule::Reflect if result > 0 && (self.before >= image || after >= image) => bad(format!(
                "{} and {after} elements around {image} cannot be mirrored: there must be fewer than {image}",
                self.before
            )),
            Rule::Circular if self.before > image || after > image => {
                bad(format!("{} and {after} elements around {image} would go around more than once", self.before))
            }
            _ if self.rule.pads() && (self.before < -image || after < -image) => {
                bad(format!("{} and {after} elements around {image} leave none", self.before))
            }
            Rule::Windows => {
                let most = isize::MAX as i64 >> 24;
                let within = |v: i64, least: i64| (least..most).contains(&v);
                let fits = within(self.count, 0) && within(self.stride, 1) && within(self.dilation, 1);
                if !fits || !within(self.padding, 0) || self.result > most as usize {
                    return bad(format!(
                        "{} windows with the stride {}, the padding {} and the dilation {} are out of bounds",
                        self.count, self.stride, self.padding, self.dilation
                    ));
                }
                match self.count {
                    0 if self.result == 0 => Ok(()),
                    n if n > 0 && result % n == 0 => Ok(()),
                    n => bad(format!("{} elements cannot be divided into {n} windows of equal size", self.result)),
                }
            }
            r if !r.pads() && (image == 0 || result == 0) => {
                bad(format!("{image} elements cannot be interpolated to {result}; sizes must be at least 1"))
            }
            _ => Ok(()),
        }
    }

    /// Elements of the image for one of the result. Coordinates are f32 unless `wide`, as in PyTorch, so that the same elements are
    /// chosen.
    pub fn step(&self, wide: bool) -> f64 {
        let ratio = |a: usize, b: usize| if wide { a as f64 / b as f64 } else { f64::from(a as f32 / b as f32) };
        if self.aligned {
            if self.result > 1 { ratio(self.image.saturating_sub(1), self.result - 1) } else { 0.0 }
        } else if self.scale > 0.0 {
            if wide { self.scale } else { f64::from(self.scale as f32) }
        } else {
            ratio(self.image, self.result)
        }
    }

    /// The coordinate in the image of element `o` of the result.
    fn coordinate(&self, o: usize, wide: bool) -> f64 {
        let (step, half) = (self.step(wide), self.rule != Rule::Nearest && !self.aligned);
        match (half, wide) {
            (false, true) => step * o as f64,
            (false, false) => f64::from(step as f32 * o as f32),
            (true, true) => step * (o as f64 + 0.5) - 0.5,
            (true, false) => f64::from(step as f32 * (o as f32 + 0.5) - 0.5),
        }
    }

    /// Elements and weights that element `o` of the result is made of.
    pub fn taps(&self, o: usize, wide: bool) -> Taps {
        let (n, last) = (self.image as i64, self.image as i64 - 1);
        let i = o as i64 - self.before;
        match self.rule {
            Rule::Reflect => Taps::one(
                (if i < 0 {
                    -i
                } else if i > last {
                    2 * last - i
                } else {
                    i
                }) as usize,
            ),
            Rule::Replicate => Taps::one(i.clamp(0, last) as usize),
            Rule::Circular => Taps::one(i.rem_euclid(n) as usize),
            Rule::Windows => {
                let (j, window) = (o as i64 / self.count, o as i64 % self.count);
                let at = window * self.stride + j * self.dilation - self.padding;
                if (0..n).contains(&at) { Taps::one(at as usize) } else { Taps::default() }
            }
            // The floor is taken of an f32 there.
            Rule::Nearest => Taps::one(((self.coordinate(o, wide) as f32).floor() as i64).clamp(0, last) as usize),
            Rule::NearestExact => {
                let at = ((self.coordinate(o, wide).max(0.0) + 0.5) as f32).floor() as i64;
                Taps::one(at.clamp(0, last) as usize)
            }
            Rule::Linear if self.image == self.result => Taps::one(o),
            Rule::Linear => {
                let x = self.coordinate(o, wide).max(0.0);
                let at = (x.floor() as i64).min(last);
                let w = (x - at as f64).clamp(0.0, 1.0);
                Taps { n: 2, at: [at as usize, (at + 1).min(last) as usize, 0, 0], weight: [1.0 - w, w, 0.0, 0.0] }
            }
            Rule::Cubic => {
                let x = self.coordinate(o, wide);
                let at = (x.floor() as i64).min(last);
                let w = (x - at as f64).clamp(0.0, 1.0);
                Taps {
                    n: 4,
                    at: std::array::from_fn(|k| (at - 1 + k as i64).clamp(0, last) as usize),
                    weight: cubic(w),
                }
            }
        }
    }
}

/// Weights of the elements at -1, 0, 1 and 2 for a point at `t` of 0..=1.
pub fn cubic(t: f64) -> [f64; 4] {
    const A: f64 = -0.75;
    let near = |x: f64| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let far = |x: f64| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
    [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]
}
