//! Targets of the fuzzer: the table of decoders, each with valid inputs and a call that takes any.

use oflaunch::run::{self, Functions};
use oflow::Report;
use oflow::comm::tcp;
use oflow::control::{Failure, fuzz as control};
use oflow_faults::Random;
use oflow_faults::attack;

use super::disk::{self, Folder};
use super::ops;
use super::programs;
use super::service;

/// Whether an input was taken or refused; or what is wrong with what was made of it.
pub type Taken = Result<bool, String>;

/// A decoder and its inputs.
pub struct Target {
    /// Name of the target, for people and `--only`.
    pub name: &'static str,
    /// How it is fed.
    pub kind: InputSource,
}

/// How a target is fed.
pub enum InputSource {
    /// Inputs are made from valid ones; one at a time, on one thread.
    Bytes {
        /// Prepares what the calls need, and gives the valid inputs.
        start: fn() -> Started,
        /// Most bytes that the thread may take for one input.
        memory: usize,
    },
    /// The target makes its own inputs, and serves many in one round: how many of them.
    Rounds(fn(&mut Random) -> Result<u64, String>),
}

/// A call that is ready, and valid inputs of it.
pub type Started = Result<(Decoder, Vec<Vec<u8>>), String>;

/// Takes one input.
pub type Decoder = Box<dyn FnMut(&[u8]) -> Taken>;

/// Inputs have a few KiB, so no honest reader needs more than some MiB for one.
const MEMORY: usize = 4 << 20;

const fn bytes(name: &'static str, start: fn() -> Started) -> Target {
    Target { name, kind: InputSource::Bytes { start, memory: MEMORY } }
}

fn of(call: fn(&[u8]) -> Taken, samples: Vec<Vec<u8>>) -> Started {
    Ok((Box::new(call), samples))
}

fn in_folder(
    call: impl Fn(&Folder, &[u8]) -> Taken + 'static,
    samples: impl Fn(&Folder) -> Result<Vec<Vec<u8>>, String>,
) -> Started {
    let folder = Folder::new()?;
    let samples = samples(&folder)?;
    Ok((Box::new(move |input| call(&folder, input)), samples))
}

/// Everything that reads what a stranger, a peer or a damaged disk wrote.
pub const TARGETS: &[Target] = &[
    // From the network.
    bytes("tcp: header of a frame", || of(tcp::fuzz::frame, tcp::fuzz::recorded_frames()?)),
    bytes("tcp: stream of frames into a link", || of(tcp::fuzz::link, tcp::fuzz::recorded_frames()?)),
    bytes("tcp: stream of a peer during collectives", || {
        of(tcp::fuzz::collectives, tcp::fuzz::recorded_collectives()?)
    }),
    bytes("tcp: handshake, at the door", || of(tcp::fuzz::door, tcp::fuzz::recorded_handshakes().0)),
    bytes("tcp: handshake, of who connects", || of(tcp::fuzz::dial, tcp::fuzz::recorded_handshakes().1)),
    bytes("control: handshake, both ends", || of(control::handshake::heard, control::handshake::recorded())),
    bytes("control: a host to the root", || of(control::service::to_root, control::service::recorded()[0].clone())),
    bytes("control: the root to a host", || of(control::service::to_agent, control::service::recorded()[1].clone())),
    bytes("control: ranks to the service", || {
        of(control::service::to_service, control::service::recorded()[2].clone())
    }),
    bytes("control: the service to a rank", || of(control::answers, control::recorded_answers())),
    bytes("control: ranks of one host to each other", || of(control::local::wire, control::local::recorded()?)),
    Target { name: "control: messages of a member, over the network", kind: InputSource::Rounds(service::member) },
    Target { name: "control: bytes of a stranger, over the network", kind: InputSource::Rounds(service::stranger) },
    bytes("control: failures and reports as JSON", || of(documents, json_samples())),
    // From whoever writes cases.
    Target {
        name: "run: lines of cases",
        // A hundred numbers on 64 ranks are many bytes for one line.
        kind: InputSource::Bytes { start: cases, memory: 4 * MEMORY },
    },
    // From whoever writes ops.
    bytes("ops: declarations in a .cu file", || in_folder(ops::cuda_file, ops::cuda_files)),
    bytes("ops: structs of a shared library", || of(ops::library, oflow::libraries::fuzz::recorded())),
    bytes("programs: texts of captured programs", || of(programs::text, programs::recorded())),
    Target {
        name: "programs: bytes of captured programs",
        // A node of two bytes is some hundred in memory, and a program is held four times here.
        kind: InputSource::Bytes { start: || of(programs::bytes, programs::encoded()), memory: 8 * MEMORY },
    },
    // From the disk.
    Target {
        name: "disk: saved graphs",
        // As programs, of which it has two.
        kind: InputSource::Bytes { start: || in_folder(disk::graph, disk::graphs), memory: 16 * MEMORY },
    },
    Target {
        name: "disk: memory files of flight recorders",
        // Half a megabyte, whatever the input; each of its records is told with its texts.
        kind: InputSource::Bytes { start: || in_folder(disk::ring, disk::rings), memory: 16 * MEMORY },
    },
    Target {
        name: "disk: flight records and events as JSON",
        // Ranks without a record are counted, of the largest job there may be.
        kind: InputSource::Bytes { start: || in_folder(disk::flight, disk::flights), memory: 8 * MEMORY },
    },
    bytes("disk: manifests of checkpoints", || in_folder(disk::manifest, disk::manifests)),
    bytes("disk: plain values of checkpoints", || of(disk::plain, disk::plains())),
    bytes("disk: checksums of the blocks of checkpoints", || in_folder(disk::side, disk::sides)),
    bytes("disk: pointers to the latest checkpoint", || in_folder(disk::latest, disk::pointers)),
    bytes("disk: safetensors files", || in_folder(disk::safetensors, disk::safetensors_files)),
    bytes("disk: indices of models in several files", || in_folder(disk::index, disk::indices)),
    bytes("disk: calibrated cost models", || in_folder(disk::model, disk::models)),
];

/// Lines of `oflow run`, up to the point where ranks would be started.
fn cases() -> Started {
    let functions = Functions::here();
    Ok((Box::new(move |input| run::fuzz::line(&functions, input)), run::fuzz::recorded()))
}

/// A failure or a report, as text. What is read can be written and read again.
fn documents(input: &[u8]) -> Taken {
    let text = String::from_utf8_lossy(input);
    let failure = Failure::from_wire(Some(2), "said".into(), &text);
    let again = Failure::from_wire(None, String::new(), &failure.to_json());
    if again != failure {
        return Err(format!("it reads as {failure:?} and then as {again:?}"));
    }
    match Report::from_json(&text) {
        Ok(report) => {
            let _as_people_see_it = Report::merge(vec![report.clone(), report]).to_string();
            Ok(true)
        }
        Err(_) => Ok(failure.message != "said"),
    }
}

fn json_samples() -> Vec<Vec<u8>> {
    let mut all = vec![
        br#"{"rank":1,"kind":"diverged","message":"m","places":[{"rank":1,"op":"relu","ordinal":3,"file":"t.rs","line":10}]}"#
            .to_vec(),
        br#"{"world":2,"ranks":[0],"dropped":1,"lines":[{"file":"t.rs","line":3,"op":"matmul","backward":false,"tensor":"f32[8, 4]","on":"cpu[2]","from":"[S(0)]","to":"[B]","steps":["all-gather along d0"],"count":2,"bytes":64,"links":{"same_host":64},"predicted_ps":5000,"measured":{"count":2,"median_ns":7,"total_ns":15}}],"hints":[{"file":"t.rs","line":3,"call":"matmul(f32[8, 4] [S(1)])","advice":"ask"}]}"#
            .to_vec(),
    ];
    let mut random = Random::new(1);
    all.extend((0..50).map(|_| attack::json(&mut random, 5).into_bytes()));
    all
}
