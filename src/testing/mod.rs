//! Tests of ops, for oflow's own ops and for everyone's: [`conformance`] checks all that a declaration promises.
//!
//! An op brings its tests as [`samples`](crate::ops::OpDef::samples): calls as text. Samples become calls with values
//! ([`sample`]); the call on one device is the [`Reference`]. A [`Case`] is that call with layouts on a mesh. It runs on simulated
//! ranks, and its result is put together by a second, plain definition of SBP ([`layout`]), without any boxing of the library.
//!
//! ```
//! use oflow::ops::{OpDef, register};
//! let op = OpDef::elementwise("soft_sign(x: float) -> y", "x / (1 + abs(x))")?;
//! let op = register(op.domain("mine").samples(&["f32[4, 3]", "f64[5]"]))?;
//! let report = oflow::testing::conformance(op)?;
//! assert!(report.meshes.iter().all(|m| m.signatures > 0));
//! println!("{report}");
//! # Ok::<(), oflow::Error>(())
//! ```
//!
//! Nothing here runs in a program that does not ask for it, and no room imports this one.

mod arguments;
mod case;
mod complete;
mod conformance;
mod differences;
mod exact;
mod gradcheck;
mod inputs;
pub mod layout;
mod ranks;
mod report;
pub mod sample;
mod signatures;
mod special;

pub use arguments::bad_arguments;
pub use case::{Case, Outcome, Reference, check_device, differentiable, differentiable_outputs, reference};
pub use complete::{Completeness, UndeclaredSignature, completeness};
pub use conformance::{Trial, conformance, trials};
pub use differences::{Function, float_samples};
pub use gradcheck::{GradCheck, gradcheck, gradcheck_with};
pub use layout::Value;
pub use oflow_base::Random;
pub use ranks::{run_cases, run_cases_on};
pub use report::{MeshReport, Report};
pub use sample::{Sample, derive_all, variants};
pub use signatures::{mixed_cases, nd_signatures, signature_cases};
pub use special::{SETS, Set, SpecialTrial, special_trials};

use crate::context::run_ranks;
use crate::error::{Error, Result, panic_text};
use crate::ops::Op;
use crate::placement::{Device, Placement};
use std::panic::{AssertUnwindSafe, catch_unwind};

use case::reference_of;

/// The meshes that every op is tested on.
pub const MESHES: [&[usize]; 6] = [&[1], &[2], &[3], &[4], &[2, 2], &[2, 3]];

/// Fault, as a sentence that begins with the name of the op and names sample, layouts and mesh.
pub type Complaint = String;

/// Whether an op computes something. Changes of layout and users' functions have no kernel to compare.
pub fn computes(op: &Op) -> bool {
    op.layout.is_none() && op.name() != "apply_custom"
}

/// The device on which a call is taken for right: the CPU, or that of the kernels of an op that has none for the CPU.
pub(crate) fn home(op: &Op) -> Device {
    let other = op.kernels.iter().all(|k| k.device != Device::Cpu) && op.expr.is_none();
    op.kernels.first().filter(|_| other).map_or(Device::Cpu, |k| k.device)
}

/// Runs what needs the device of [`home`]: a GPU is there for ranks only.
pub(crate) fn at_home<R: Send>(op: &Op, f: impl Fn() -> Result<R> + Sync) -> Result<R> {
    if home(op) == Device::Cpu {
        return f();
    }
    let mut found = run_ranks(1, |_| f())?;
    found.pop().ok_or_else(|| Error::registry("a world of one without a rank"))
}

/// A small mixing function: the harness's only source of "random" choices, the same in every run.
pub fn mix(words: &[u64]) -> u64 {
    words.iter().fold(0x9e37_79b9_7f4a_7c15, |h, w| {
        let x = (h ^ w).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (x ^ x >> 29).wrapping_mul(0xc4ce_b9fe_1a85_ec53) ^ x >> 32
    })
}

/// A hash of a text, to spread choices over ops and samples.
pub fn seed(text: &str) -> u64 {
    mix(&text.bytes().map(u64::from).collect::<Vec<_>>())
}

/// The mesh of these sizes on the first ranks.
fn mesh_of(device: Device, dims: &[usize]) -> Result<Placement> {
    let n: usize = dims.iter().product();
    Placement::new(device, &(0..n).collect::<Vec<_>>(), dims)
}

/// Runs code of the op's author. A panic there is a finding about the op, and must not end the check of the others.
fn guarded<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        let text = panic_text(&*payload).unwrap_or("(no message)");
        Err(Error::registry(format!("{PANICKED}: {text}")).help("return an error where the op refuses its arguments"))
    })
}

/// How the message of a panic begins.
const PANICKED: &str = "panicked";

/// An error in one line: the call and what is wrong with it. The help is for who called, and here nobody did.
fn said(e: &Error) -> String {
    e.to_string().lines().next().unwrap_or_default().to_string()
}

/// Whether an error is a panic that [`guarded`] has caught.
fn panicked(e: &Error) -> bool {
    e.message().starts_with(PANICKED)
}
