//! For `cargo xtask fuzz`: what this room reads that others wrote, each as one call over some bytes.

use prost::Message;

use super::flight::Recorder;
use super::{Failure, Place};
use oflow_base::CallSite;
use oflow_proto::control as pb;

pub use super::flight::fuzz as ring;
pub use super::handshake::fuzz as handshake;
pub use super::local::fuzz as local;
pub use super::service::fuzz as service;

/// Feeds a rank an answer of its agent: first byte modulo 3 says which answer.
pub fn answers(input: &[u8]) -> Result<bool, String> {
    let Some((&how, bytes)) = input.split_first() else { return Ok(false) };
    match how % 3 {
        0 => {
            let Ok(reply) = pb::HeartbeatReply::decode(bytes) else { return Ok(false) };
            let recorder = Recorder::new(0, 2, None);
            for key in 0..3 {
                recorder.next("relu", key, CallSite::here(), None);
            }
            let Some(pb::Interval { after, to }) = reply.ask else { return Ok(false) };
            let told = recorder.ops(after, to, 2);
            if told.len() > 2 { Err(format!("told {} records", told.len())) } else { Ok(true) }
        }
        1 => {
            let Ok(event) = pb::WatchEvent::decode(bytes) else { return Ok(false) };
            let rank = event.rank.map(|r| r as usize);
            let failure = Failure::from_wire(rank, event.message, &event.detail);
            let again = Failure::from_wire(None, String::new(), &failure.to_json());
            if again == failure { Ok(true) } else { Err(format!("{failure:?} is read back as {again:?}")) }
        }
        _ => Ok(pb::MeetReply::decode(bytes).is_ok()),
    }
}

/// Answers of each kind.
pub fn recorded_answers() -> Vec<Vec<u8>> {
    let ask = pb::HeartbeatReply {
        ask: Some(pb::Interval { after: 1, to: 3 }),
        clock_offset_ns: -5,
        clock_error_ns: Some(7),
        links: vec![1],
        asked: 2,
        watched: true,
    };
    let place = Place { rank: 1, op: "relu".into(), ordinal: 3, file: "t.rs".into(), line: 4 };
    let failure = Failure::of_job(super::FailureKind::Diverged, "m").in_places([place]);
    let event = pb::WatchEvent { rank: Some(1), message: "m".into(), detail: failure.to_json() };
    let met = pb::MeetReply { values: vec![vec![1, 2], vec![]] };
    vec![
        [vec![0], ask.encode_to_vec()].concat(),
        [vec![1], event.encode_to_vec()].concat(),
        [vec![2], met.encode_to_vec()].concat(),
    ]
}
