//! Records of plans: the decisions of planning for a rank, as saved graphs have them.
//!
//! A program that is loaded is lowered again, which chooses nothing: kernels and boxings follow from the signatures that it states. What took a
//! search, the places in the arenas, comes from the record, if what is lowered is what it was. So nothing of a record is believed: kernels,
//! sizes and lifetimes are compared, and places are checked.

use super::act::{Arena, What};
use super::arenas::lifetimes;
use super::lower::Lowered;
use crate::error::{CallSite, Error, Result};
use crate::placement::Device;
use crate::plan::{Lifetime, Packing};
use crate::vm::listed::Walk;
use std::hash::Hasher;

/// The record of a planned program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlanRecord {
    /// The kernels of the acts, each with its scratch memory; the steps of a boxing.
    pub(crate) acts: Vec<String>,
    /// The arenas.
    pub(crate) arenas: Vec<ArenaRecord>,
}

/// The record of an arena.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArenaRecord {
    /// Device that holds it.
    pub(crate) device: Device,
    /// Hash of sizes and lifetimes of what it holds.
    pub(crate) lifetimes: u64,
    /// Places.
    pub(crate) packing: Packing,
}

const AGAIN: &str = "build the graph again here, and save it";

/// Text of an act.
fn act(what: &What) -> String {
    match what {
        What::Kernel(k) => {
            let place = k.workspace.map_or(String::new(), |_| format!(" with {} bytes of scratch", k.plan.workspace));
            format!("{} of {}{place}", k.plan.name, k.plan.op.full_name())
        }
        What::Box(b) => match &b.walk {
            None => "a boxing that moves nothing".to_string(),
            Some(Walk::Plans(plans)) => {
                format!("boxing {}", plans.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
            }
            Some(Walk::Boxes(plan, dtype)) => {
                format!("an exchange of boxes of {dtype}{:?}, {} elements", &plan.shape[..], plan.elements_sent())
            }
        },
    }
}

fn hash(lifetimes: &[Lifetime]) -> u64 {
    let mut h = crate::intern::FixedHasher::default();
    for l in lifetimes {
        [l.bytes, l.first, l.last].iter().for_each(|n| h.write_usize(*n));
    }
    h.finish()
}

impl PlanRecord {
    /// The record of a lowered program with these arenas.
    pub(super) fn of(lowered: &Lowered, arenas: &[Arena]) -> PlanRecord {
        let arena = |a: &Arena| ArenaRecord {
            device: a.device,
            lifetimes: hash(&lifetimes(lowered, &a.roots)),
            packing: a.packing.clone(),
        };
        PlanRecord {
            acts: lowered.acts.iter().map(|a| act(&a.what)).collect(),
            arenas: arenas.iter().map(arena).collect(),
        }
    }

    /// Refuses a record of other acts than these.
    ///
    /// # Errors
    /// The first one that differs, with its line.
    pub(super) fn check(&self, lowered: &Lowered) -> Result<()> {
        let here = lowered.acts.len();
        for (n, a) in lowered.acts.iter().enumerate() {
            let (now, saved) = (act(&a.what), self.acts.get(n));
            if saved != Some(&now) {
                let saved = saved.map_or("nothing more", String::as_str);
                return Err(differs(n, saved, &now, Some(a.site)));
            }
        }
        match self.acts.get(here) {
            Some(saved) => Err(differs(here, saved, "nothing more", None)),
            None => Ok(()),
        }
    }

    /// The places of an arena.
    ///
    /// # Errors
    /// Something else lives in it than when it was packed, or the places are none.
    pub(super) fn packing(&self, n: usize, device: Device, living: &[Lifetime]) -> Result<Packing> {
        let saved = self.arenas.get(n).filter(|a| a.device == device && a.lifetimes == hash(living));
        match saved {
            Some(a) if a.packing.is_of(living) => Ok(a.packing.clone()),
            Some(_) => Err(Error::parse(format!("the saved plan gives two values on {device} the same memory"))
                .help("the file is damaged: save the graph again")),
            None => Err(Error::argument(format!(
                "the saved plan packs other values on {device} than the graph has here: their sizes or the time for which they \
                 are needed differ"
            ))
            .help(AGAIN)),
        }
    }
}

#[cold]
fn differs(n: usize, saved: &str, now: &str, site: Option<CallSite>) -> Error {
    let e = Error::argument(format!("step {} of the saved plan is {saved}, here it is {now}", n + 1)).help(AGAIN);
    match site {
        Some(site) => e.at(site),
        None => e,
    }
}
