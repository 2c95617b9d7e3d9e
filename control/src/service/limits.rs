//! What a call may ask for, and the words in which a refusal is told.

use std::collections::BTreeSet;

use oflow_proto::control as pb;
use tonic::{Code, Status};

/// Longest key or barrier name.
pub const MAX_KEY_BYTES: usize = 1024;
/// Largest value: rendezvous data, not tensors.
pub const MAX_VALUE_BYTES: usize = 1 << 20;
/// All keys and values of a job together.
pub const MAX_STORE_BYTES: usize = 64 << 20;
/// All values of one meeting together; they must fit into one answer.
pub const MAX_MEETING_BYTES: usize = oflow_proto::MAX_MESSAGE_BYTES - (256 << 10);
/// Longest message of a reported failure; more is cut.
pub const MAX_REPORT_BYTES: usize = 4096;
/// Longest topic of what is published, and longest text.
pub const MAX_TOPIC_BYTES: usize = 256;
pub const MAX_EVENT_BYTES: usize = 64 << 10;
/// Most places of a reported failure; more are left out.
pub const MAX_PLACES: usize = 16;

pub fn check_name(name: &str) -> Result<(), Status> {
    if name.is_empty() || name.len() > MAX_KEY_BYTES {
        let length = name.len();
        return Err(Status::invalid_argument(format!(
            "a key or barrier name has 1 to {MAX_KEY_BYTES} bytes, not {length}"
        )));
    }
    Ok(())
}

pub fn check_value(name: &str, value: &[u8]) -> Result<(), Status> {
    if value.len() > MAX_VALUE_BYTES {
        let length = value.len();
        return Err(Status::resource_exhausted(format!(
            "the value of {name:?} has {length} bytes, more than {MAX_VALUE_BYTES}"
        )));
    }
    Ok(())
}

pub fn check_event(event: &pb::NodeEvent) -> Result<(), Status> {
    let (topic, text) = (event.topic.len(), event.text.len());
    if topic == 0 || topic > MAX_TOPIC_BYTES {
        return Err(Status::invalid_argument(format!("a topic has 1 to {MAX_TOPIC_BYTES} bytes, not {topic}")));
    }
    if text > MAX_EVENT_BYTES {
        let topic = &event.topic;
        return Err(Status::resource_exhausted(format!(
            "what is published as {topic:?} has {text} bytes, more than {MAX_EVENT_BYTES}"
        )));
    }
    Ok(())
}

/// What keeps two ranks from working together, as a sentence that names both. Builds of the program are compared on one host
/// only: between hosts the agents do that, by contents.
pub fn difference(reference: &pb::JoinRequest, request: &pb::JoinRequest, one_host: bool) -> Option<String> {
    let (first, rank) = (reference.rank, request.rank);
    if reference.version != request.version {
        return Some(format!(
            "rank {first} runs oflow {}, rank {rank} runs oflow {}",
            reference.version, request.version
        ));
    }
    let hashes = |what: &str, a: u64, b: u64, hint: &str| {
        (a != b).then(|| format!("rank {first} has {what} {a:016x}, rank {rank} has {b:016x}: {hint}"))
    };
    let registry = hashes(
        "op registry",
        reference.registry_hash,
        request.registry_hash,
        "they were built with different ops or load different plug-ins",
    );
    registry.or_else(|| {
        let hint = "they run different builds of the program";
        one_host.then(|| hashes("program", reference.program_hash, request.program_hash, hint)).flatten()
    })
}

/// Ranks as people write them: `rank 3`, `ranks 0, 2, 3`, and not more than a line of them.
pub fn list(ranks: &BTreeSet<usize>) -> String {
    const SHOWN: usize = 16;
    let text: Vec<String> = ranks.iter().take(SHOWN).map(usize::to_string).collect();
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    let more = if ranks.len() > SHOWN { format!(" and {} more", ranks.len() - SHOWN) } else { String::new() };
    format!("{noun} {}{more}", text.join(", "))
}

/// A refusal as it travels between hosts.
pub fn refused(status: &Status) -> pb::answer::Answer {
    let code = status.code() as i32 as u32;
    pb::answer::Answer::Refused(pb::Refused { code, message: status.message().to_string() })
}

/// What [`refused`] made.
pub fn status(refused: pb::Refused) -> Status {
    Status::new(Code::from_i32(refused.code as i32), refused.message)
}
