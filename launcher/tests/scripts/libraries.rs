//! Loads a library of ops whose build differs by rank, or does not: `libraries CACHE SOURCE same|other|late`.

use oflow::libraries::{BuildOptions, build_and_load};
use oflow::prelude::*;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [cache, source, mode] = args.as_slice() else { return Err(Error::argument("three arguments")) };
    let rank: usize = std::env::var("RANK").ok().and_then(|r| r.parse().ok()).unwrap_or(0);
    let factor = if mode == "same" { 2 } else { 2 + rank };
    let load = || build_and_load(&[source], BuildOptions::new().cache(cache).flag(&format!("-DFACTOR={factor}")).flag("-DWRONG=0"));
    if mode != "late" {
        load()?;
    }
    let world = oflow::init()?;
    if mode == "late" {
        load()?;
    }
    let ranks = Placement::all(Device::Cpu)?;
    let x = ones([4], (&ranks, sbp![S(0)]))?;
    let y = oflow::call("hostile.twice", &[x.into()], &[])?.remove(0).sum(())?.item()?;
    if world.rank() == 0 {
        println!("sum {y}");
    }
    Ok(())
}
