//! Limits of calls, and the messages of refused calls.

use std::collections::BTreeSet;

use oflow_proto::control as pb;
use tonic::{Code, Status};

/// Longest key or barrier name, in bytes.
pub const MAX_KEY_BYTES: usize = 1024;
/// Largest value in bytes: values are rendezvous data, not tensors.
pub const MAX_VALUE_BYTES: usize = 1 << 20;
/// Largest sum of all keys and values of a job, in bytes.
pub const MAX_STORE_BYTES: usize = 64 << 20;
/// Largest sum of the values of one meeting, in bytes; they must fit into one answer.
pub const MAX_MEETING_BYTES: usize = oflow_proto::MAX_MESSAGE_BYTES - (256 << 10);
/// Longest message of a reported failure, in bytes; the rest is cut.
pub const MAX_REPORT_BYTES: usize = 4096;
/// Longest topic and longest text of a published event, in bytes.
pub const MAX_TOPIC_BYTES: usize = 256;
pub const MAX_EVENT_BYTES: usize = 64 << 10;
/// Largest number of places of a reported failure; further ones are dropped.
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

/// Returns why two ranks cannot be in one job, as a sentence that names both, or `None`. Builds of the program are compared on
/// one host only; between hosts the agents compare the program's contents.
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

/// Returns ranks as text, at most a line: `rank 3`, `ranks 0, 2, 3`.
pub fn list(ranks: &BTreeSet<usize>) -> String {
    const SHOWN: usize = 16;
    let text: Vec<String> = ranks.iter().take(SHOWN).map(usize::to_string).collect();
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    let more = if ranks.len() > SHOWN { format!(" and {} more", ranks.len() - SHOWN) } else { String::new() };
    format!("{noun} {}{more}", text.join(", "))
}

/// Metadata of a refusal: the rank that has left the job although the call needs it.
const MISSING_KEY: &str = "oflow-missing";

/// Adds the rank that has left the job although the call needs it.
pub fn for_want_of(mut status: Status, rank: usize) -> Status {
    status.metadata_mut().insert(MISSING_KEY, rank.into());
    status
}

/// Returns the rank that has left the job although the refused call needs it, or `None`.
pub fn missing_rank(status: &Status) -> Option<usize> {
    status.metadata().get(MISSING_KEY)?.to_str().ok()?.parse().ok()
}

/// Encodes a refusal for another host.
pub fn refused(status: &Status) -> pb::answer::Answer {
    let code = status.code() as i32 as u32;
    let missing = missing_rank(status).and_then(|rank| u32::try_from(rank).ok());
    pb::answer::Answer::Refused(pb::Refused { code, message: status.message().to_string(), missing })
}

/// Decodes a refusal made by [`refused`].
pub fn status(refused: pb::Refused) -> Status {
    let status = Status::new(Code::from_i32(refused.code as i32), refused.message);
    match refused.missing {
        Some(rank) => for_want_of(status, rank as usize),
        None => status,
    }
}
