//! cal
#![allow(missing_docs)]
pub mod fit;
pub mod measure;
use crate::Failed;
use clap::{Arg, ArgAction, ArgMatches, Command};
pub fn arguments(command: Command) -> Command {
    command.arg(Arg::new("measure").long("measure").hide(true).action(ArgAction::SetTrue))
}
pub fn run(_m: &ArgMatches) -> Result<u8, Failed> {
    let world = oflow::init().map_err(|e| Failed::new(e.to_string()))?;
    let points = measure::measure(&world).map_err(|e| Failed::new(e.to_string()))?;
    if world.rank() == 0 {
        let (model, quality) = fit::fit(&points);
        println!("{:#?}", model.same_host); println!("{} {} {} {} {}", model.local_ps, model.local_exchange_ps, model.per_kib_copied_ps, model.extra_copied_beyond_kib, model.extra_per_kib_copied_ps);
        for q in quality { println!("{q:?}"); }
        for p in points { println!("{:?} {} peers {} wire {} copied {}: {:.3} us  {:.2} GB/s", p.kind, p.members, p.peers, p.wire, p.copied, p.time_ps as f64 / 1e6, (p.wire.max(p.copied)) as f64 / (p.time_ps as f64 / 1e3)); }
    }
    Ok(0)
}
