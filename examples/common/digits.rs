//! 8x8 images of handwritten digits.

use oflow::data::Loader;
use oflow::prelude::*;

/// Pixels of an image.
pub const PIXELS: usize = 64;
/// Digits.
pub const CLASSES: usize = 10;

/// Batches of images `f32[batch, 64]` (0 to 1) and labels `i64[batch]`, split along mesh axis "dp". Every fifth row is for
/// testing, the others are for training.
pub fn digits(mesh: &Placement, batch: usize, test: bool) -> Result<Loader> {
    let (mut images, mut labels) = (vec![], vec![]);
    for (i, line) in include_str!("../data/digits.csv").lines().enumerate() {
        let row: Vec<u8> = line.split(',').filter_map(|x| x.parse().ok()).collect();
        let (label, pixels) = row
            .split_last()
            .filter(|(_, pixels)| pixels.len() == PIXELS)
            .ok_or_else(|| Error::parse(format!("digits.csv, line {}: not 65 numbers", i + 1)))?;
        if (i % 5 == 0) == test {
            images.extend(pixels.iter().map(|p| f32::from(*p) / 16.0));
            labels.push(i64::from(*label));
        }
    }
    Loader::new(mesh, batch).split_along("dp")?.column(images, &[PIXELS])?.column(labels, &[])
}

/// Fraction of the test digits that a model, images to logits, recognises.
pub fn accuracy(model: impl Fn(&Tensor) -> Result<Tensor>, test: &Loader, dtype: DType) -> Result<f64> {
    let _guard = no_grad();
    let mut correct = 0.0;
    for batch in test.epoch(0) {
        let [x, y] = &batch?[..] else { continue };
        correct += model(&x.cast(dtype)?)?.argmax(-1)?.eq(y)?.sum(())?.item()?;
    }
    Ok(correct / test.rows() as f64)
}
