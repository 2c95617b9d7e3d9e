//! Trains a layer on handwritten digits that are read from a CSV file row by row, and tells how good it is:
//!
//! ```text
//! cargo build -p oflow-readers --example digits_csv
//! cargo run --bin oflaunch -- --nproc 2 target/debug/examples/digits_csv
//! ```
//!
//! Each rank reads only its rows of a batch, on a thread, while the batch before is computed.

use oflow::data::{Dataset, Loader, Row, Sampler};
use oflow::metrics::{Average, ConfusionMatrix, Mean, Metric};
use oflow::nn::{Linear, Module};
use oflow::optim::{Optimizer, Schedule, Sgd, SgdOptions};
use oflow::prelude::*;
use oflow_readers::{Csv, CsvOptions, Kind};

const PIXELS: usize = 64;
const CLASSES: usize = 10;

fn main() -> Result<()> {
    let world = oflow::init()?;
    let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", world.size())])?;

    // A column for each pixel, 0 to 16, and one for the label. The file has no names: columns are called by their numbers.
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/digits.csv");
    let pixels: Vec<String> = (0..PIXELS).map(|i| i.to_string()).collect();
    let pixels: Vec<&str> = pixels.iter().map(String::as_str).collect();
    let digits = Csv::with(file, CsvOptions { header: false, ..CsvOptions::default() })?
        .group("pixels", &pixels, Kind::F32)?
        .column("64", Kind::I64)?
        .map(|row| {
            let pixels: Vec<f32> = row.array("pixels")?.to_vec::<f32>()?.iter().map(|p| p / 16.0).collect();
            let pixels = oflow::data::Array::new(&pixels, &[PIXELS])?;
            Ok(Row::new().with("pixels", pixels).with("label", row.array("64")?.clone()))
        });

    // Every fifth row is for testing.
    let (test, training) = (0..digits.len()).partition(|i| i % 5 == 0);
    let loader = Loader::new(&mesh, 64).split_along("dp")?.dataset(digits)?.prefetch(1, 4);
    let loader = loader.sampler(Sampler::random_subset(training, 3))?;

    let model = Linear::new(PIXELS, CLASSES, (&mesh, sbp![B]))?;
    let mut opt = Sgd::new(model.parameters(), SgdOptions { lr: 0.5, momentum: 0.9, ..Default::default() });
    let epochs = 6;
    let schedule = Schedule::WarmupCosine { warmup: 5, total: epochs as usize * loader.batches(), floor: 0.01 };
    let mut step = 0;
    for epoch in 0..epochs {
        let mut loss = Mean::new();
        for batch in loader.epoch(epoch) {
            let [pixels, labels] = &batch?[..] else { unreachable!("the rows have two fields") };
            opt.set_lr(0.5 * schedule.at(step));
            let l = model.forward(pixels)?.cross_entropy(labels)?;
            opt.zero_grad();
            l.backward()?;
            opt.step()?;
            loss.update(&l)?;
            step += 1;
        }
        if world.rank() == 0 {
            println!("epoch {epoch}: loss {:.3}", loss.value());
        }
    }

    let mut matrix = ConfusionMatrix::new(CLASSES)?;
    let loader = loader.sampler(Sampler::subset(test))?;
    let _guard = no_grad();
    for batch in loader.epoch(0) {
        let [pixels, labels] = &batch?[..] else { unreachable!("the rows have two fields") };
        matrix.update(&model.forward(pixels)?, labels)?;
    }
    let (accuracy, f1) = (matrix.accuracy(), matrix.f1(Average::Macro));
    if world.rank() == 0 {
        println!("accuracy {accuracy:.3}, F1 {f1:.3}");
    }
    assert!(accuracy > 0.9 && f1 > 0.9, "{:?}", matrix.counts());
    Ok(())
}
