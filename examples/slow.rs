//! Trains two layers that are divided over the ranks, and is slow in the way that is asked for. What a report says of it is told in
//! docs/slow.md.
//!
//! ```text
//! oflaunch --nproc 2 --report examples/slow.rs -- layout
//! ```
//!
//! | argument | what is slow | what mends it |
//! |---|---|---|
//! | `layout` | every rank computes the whole first product | `layout-mended`: its weight is split |
//! | `data` | the program waits for its batches | `data-mended`: threads make them |

use oflow::data::{Array, Dataset, Loader, Row, in_memory};
use oflow::optim::{Optimizer, Sgd, SgdOptions};
use oflow::prelude::*;
use std::time::Duration;

const USAGE: &str = "one of layout, layout-mended, data, data-mended, and a number of steps [default: 60]";

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let way = args.next().unwrap_or_else(|| "layout-mended".to_string());
    let steps: usize = args.next().map_or(Ok(60), |n| n.parse()).map_err(|_| Error::argument(USAGE))?;
    if !["layout", "layout-mended", "data", "data-mended"].contains(&way.as_str()) {
        return Err(Error::argument(format!("{way:?} is none of the ways: {USAGE}")));
    }
    let world = oflow::init()?;
    let mesh = Placement::all(Device::Cpu)?.mesh(&[("tp", world.size())])?;
    let (width, hidden, batch) = (256, 2048, 128);

    // Each rank makes some columns of the first product, which the second one takes as they lie.
    let first = if way == "layout" { sbp![B] } else { sbp![S(1)] };
    let weight = |shape, sbp| randn(shape, (&mesh, sbp))?.mul(0.02)?.detach().requires_grad_(true);
    let up = weight([width, hidden], first)?;
    let down = weight([hidden, width], sbp![S(0)])?;
    let mut sgd = Sgd::new(vec![up.clone(), down.clone()], SgdOptions { lr: 1e-3, ..Default::default() });

    let reads_slowly = way.starts_with("data");
    let rows = in_memory((0..(batch * steps) as i64).collect::<Vec<_>>()).map(move |n| {
        if reads_slowly {
            std::thread::sleep(Duration::from_micros(150));
        }
        Ok(Row::new().with("x", Array::new(&vec![(n % 7) as f32 * 0.1; width], &[width])?))
    });
    let mut loader = Loader::new(&mesh, batch).dataset(rows)?;
    if way == "data-mended" {
        loader = loader.prefetch(3, 6);
    }

    let mut last = None;
    for batch in loader.epoch(0) {
        let x = batch?.remove(0);
        let h = x.matmul(&up)?;
        let h = h.relu()?;
        let y = h.matmul(&down)?;
        let loss = y.mul(&y)?.mean(())?;
        sgd.zero_grad();
        loss.backward()?;
        sgd.step()?;
        last = Some(loss);
    }
    let loss = last.map(|l| l.item()).transpose()?;
    assert!(loss.is_none_or(f64::is_finite), "{loss:?}");
    if world.rank() == 0 {
        println!("{way}: {steps} steps, loss {:.4}", loss.unwrap_or(f64::NAN));
    }
    Ok(())
}
