//! For `cargo xtask fuzz`: what hosts and ranks say to the control service, over its state machines, each as one call over some
//! bytes. Those who hold the job's token are believed, but nothing that they say may panic, hang or take memory without bound.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use oflow_proto::control as pb;
use pb::down::Item as Down;
use pb::up::Item as Up;
use prost::Message;
use tonic::Status;

use super::agent::{Clock, part};
use super::node::NodeState;
use super::root::{JobOptions, OWN, RootState};
use crate::{Failure, FailureKind};

/// Whether some bytes were taken for something or refused; or what is wrong with what was made of them.
pub type Taken = Result<bool, String>;

/// Ranks of each of the two hosts.
const NPROC: u32 = 2;

fn hello(host: &str, nodes: RangeInclusive<u32>) -> pb::NodeHello {
    pb::NodeHello {
        version: "1".into(),
        host: host.into(),
        nproc: NPROC,
        node_rank: None,
        program: 7,
        min_nodes: *nodes.start(),
        max_nodes: *nodes.end(),
        instance: u64::from(host == "b"),
        outage_ms: 10_000,
    }
}

/// A root whose own host is there.
fn job(how: u8, now: Instant) -> RootState {
    let plan = JobOptions {
        nodes: 2..=2,
        max_restarts: u32::from(how & 3),
        cost_model: b"m".to_vec(),
        settle: Duration::from_secs(5),
        gather: Duration::from_secs(60),
        stall: Duration::from_secs(10),
        outage: Default::default(),
    };
    RootState::new(plan, pb::NodeHello { node_rank: Some(0), ..hello("a", 2..=2) }, now)
}

/// Takes what is to be sent, as bytes: so many of them.
fn sent(root: &mut RootState) -> usize {
    root.take_events();
    root.take_out().iter().map(|(_, down)| down.encode_to_vec().len()).sum()
}

/// Feeds the root messages of the agent of another host.
pub fn to_root(input: &[u8]) -> Taken {
    let Some((&how, bytes)) = input.split_first() else { return Ok(false) };
    let Ok(message) = pb::FromNode::decode(bytes) else { return Ok(false) };
    let mut now = Instant::now();
    let mut root = job(how, now);
    root.show(how & 8 != 0);
    if how & 4 == 0 {
        root.arrive(1, hello("b", 2..=2), now).map_err(|s| s.message().to_string())?;
    }
    let mut taken = false;
    for item in message.items.into_iter().filter_map(|up| up.item) {
        now += Duration::from_millis(u64::from(how) * 4);
        let handled = match item {
            Up::Hello(hello) if how & 4 != 0 => root.arrive(1, hello, now),
            item => root.handle(1, item, now),
        };
        root.tick(now);
        root.sight(now);
        sent(&mut root);
        taken = handled.is_ok();
        if !taken {
            break;
        }
    }
    root.lost(1, "the end", now);
    for _ in 0..3 {
        now += Duration::from_millis(700);
        root.tick(now);
    }
    sent(&mut root);
    Ok(taken)
}

/// Feeds an agent messages of the root.
pub fn to_agent(input: &[u8]) -> Taken {
    let Some((&how, bytes)) = input.split_first() else { return Ok(false) };
    let Ok(message) = pb::FromRoot::decode(bytes) else { return Ok(false) };
    let now = Instant::now();
    let mut node = NodeState::new(2..4, 4, true);
    let mut clock = Clock::default();
    let refused = |s: Status| s.message().to_string();
    for rank in 2..4 {
        node.join(join(rank), now).map_err(refused)?;
    }
    if how & 1 == 0 {
        let done = pb::Answer { tickets: vec![1], answer: Some(pb::answer::Answer::Done(true)) };
        node.answered(done);
        node.put("key".into(), b"value".to_vec()).map_err(refused)?;
        node.get("key".into(), true).map_err(refused)?;
    }
    let mut taken = false;
    for item in message.items.into_iter().filter_map(|down| down.item) {
        taken = true;
        match item {
            Down::Begin(begin) => match part(&begin, NPROC as usize) {
                Ok(part) => drop(NodeState::new(part.first_rank..part.first_rank + part.nproc, part.world, true)),
                Err(_) => taken = false,
            },
            Down::Answer(answer) => node.answered(answer),
            Down::Failed(failed) => {
                if let Ok(failure) = serde_json::from_slice::<Failure>(&failed.failure) {
                    node.failed(failure);
                }
            }
            Down::Pong(pong) => clock.heard(&pong, u64::from(how) << 40),
            Down::Ask(ask) => node.ask(ask),
            Down::Watched(on) => node.watch(on),
            Down::Note(_) | Down::Over(_) => {}
        }
        node.heartbeat(pb::HeartbeatRequest { rank: 2, ..Default::default() }, now).map_err(refused)?;
        node.tick();
        node.take_answers();
        node.take_up();
    }
    Ok(taken)
}

fn join(rank: u32) -> pb::JoinRequest {
    pb::JoinRequest { rank, version: "1".into(), registry_hash: 1, program_hash: 2 }
}

/// Feeds the service calls of ranks to the agent of node 0, and through it to the root: calls one after another, each with
/// its number, the length of its message in two bytes, and the message.
pub fn to_service(input: &[u8]) -> Taken {
    let Some((&how, mut rest)) = input.split_first() else { return Ok(false) };
    let mut now = Instant::now();
    let mut root = job(how, now);
    root.arrive(1, hello("b", 2..=2), now).map_err(|s| s.message().to_string())?;
    let mut node = NodeState::new(0..NPROC as usize, 4, how & 8 != 0);
    let mut taken = false;
    while let [call, low, high, more @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(more.len());
        let (message, after) = more.split_at(length);
        rest = after;
        now += Duration::from_millis(u64::from(how) * 4);
        taken |= called(&mut node, *call, message, now).is_some();
        for item in node.take_up().into_iter().filter_map(|up| up.item) {
            root.handle(OWN, item, now).map_err(|s| format!("the root sends its own host away: {}", s.message()))?;
        }
        root.tick(now);
        for (_, down) in root.take_out().into_iter().filter(|(id, _)| *id == OWN) {
            match down.item {
                Some(Down::Answer(answer)) => node.answered(answer),
                Some(Down::Ask(ask)) => node.ask(ask),
                _ => {}
            }
        }
        root.take_events();
        node.tick();
        node.take_answers();
    }
    Ok(taken)
}

/// One call of a rank; nothing if it was refused.
fn called(node: &mut NodeState, call: u8, message: &[u8], now: Instant) -> Option<()> {
    match call % 11 {
        0 => node.join(pb::JoinRequest::decode(message).ok()?, now).map(drop),
        1 => pb::PutRequest::decode(message).ok().map(|r| node.put(r.key, r.value))?.map(drop),
        2 => pb::GetRequest::decode(message).ok().map(|r| node.get(r.key, r.wait_ms > 0))?.map(drop),
        3 => node.compare_and_set(pb::CompareAndSetRequest::decode(message).ok()?).map(drop),
        4 => node.arrive(pb::MeetRequest::decode(message).ok()?).map(drop),
        5 => node.heartbeat(pb::HeartbeatRequest::decode(message).ok()?, now).map(drop),
        6 => node.submit_report(pb::SubmitReportRequest::decode(message).ok()?),
        7 => node.report(pb::ReportFailureRequest::decode(message).ok()?),
        8 => {
            let ticket = u64::from(*message.first()?);
            node.time_is_up(ticket, Duration::from_secs(3));
            node.cancel(ticket);
            Ok(())
        }
        9 => {
            node.leave(usize::from(*message.first()?) % NPROC as usize);
            Ok(())
        }
        _ => node.note_missing(pb::NoteMissingRequest::decode(message).ok()?),
    }
    .ok()
}

fn beat(rank: u32) -> pb::HeartbeatRequest {
    let op = |ordinal: u64| pb::OpRecord {
        ordinal,
        hash: ordinal * 3 + u64::from(rank),
        op: "relu".into(),
        file: "train.rs".into(),
        line: 7,
        call: "relu(f32[4] [B])".into(),
    };
    let interval = pb::Interval { after: 3, to: 5 };
    pb::HeartbeatRequest {
        rank,
        progress: 5,
        marks: (1..6).map(|o| pb::Mark { ordinal: o, hash: o * 3 + u64::from(rank) }).collect(),
        wait: Some(pb::Wait {
            ranks: vec![0, 3 - rank.min(3)],
            call: "all_reduce of 'sum' #5 (train.rs:9)".into(),
            since_ms: 9000,
        }),
        last: Some(op(5)),
        last_ms: 9000,
        records: Some(pb::Records { of: Some(interval), ops: vec![op(4), op(5)] }),
        cpu_ms: 100,
        waited_ms: 50,
        calls: 4,
        queued_ms: 3,
        marks_only: false,
        links: vec![pb::LinkEnd { peer: 3 - rank.min(3), sent: 900, sent_ms: 4000, received: 5, looks: 16 }],
        asked: 1,
        moved: 2,
        absent: false,
        node: Some(pb::GraphNode { graph: 5, number: 3, op: "exp".into(), file: "train.rs".into(), line: 8 }),
        glimpse: Some(glimpse(rank)),
    }
}

fn glimpse(rank: u32) -> pb::Glimpse {
    let mesh = pb::Mesh { device: "cpu".into(), dims: vec![2, 2], names: vec![], ranks: vec![0, 1, 2, 3] };
    let boxing = pb::SeenBoxing { op: "matmul".into(), shape: vec![4, 2], mesh: Some(mesh), ..Default::default() };
    let point = pb::Point { number: 1, name: "loss".into(), step: 3, value: 0.5 };
    pb::Glimpse { rank, boxings: vec![boxing], points: vec![point], resident: 1 << 20, ..Default::default() }
}

fn failure(rank: usize) -> Vec<u8> {
    Failure::of_rank(rank, FailureKind::Panicked, "rank 2 panicked").to_json().into_bytes()
}

/// Conversations of an agent with the root, of the root with an agent, and of ranks with the service.
pub fn recorded() -> [Vec<Vec<u8>>; 3] {
    let ups = [
        Up::Join(pb::NodeJoin { ticket: 1, hello: Some(join(2)) }),
        Up::Put(pb::NodePut { ticket: 2, key: "k".into(), value: b"value".to_vec() }),
        Up::Glimpse(glimpse(2)),
        Up::Get(pb::NodeGet { ticket: 3, key: "later".into(), wait: true }),
        Up::CompareAndSet(pb::NodeCompareAndSet { ticket: 4, key: "later".into(), expected: None, value: vec![1] }),
        Up::Arrive(pb::NodeArrive {
            name: "start".into(),
            participants: 2,
            arrivals: (2..4).map(|r| pb::Arrival { ticket: u64::from(3 + r), rank: r, value: vec![r as u8] }).collect(),
            members: vec![2, 3],
        }),
        Up::Arrive(pb::NodeArrive {
            name: "never".into(),
            participants: 4,
            arrivals: vec![pb::Arrival { ticket: 8, rank: 2, value: vec![] }],
            members: vec![],
        }),
        Up::Cancel(pb::NodeCancel { ticket: 8, waited_ms: Some(100) }),
        Up::Beat(pb::NodeBeat { sent_ns: 5, ranks: vec![] }),
        Up::Beat(pb::NodeBeat { sent_ns: 0, ranks: vec![beat(2), beat(3)] }),
        Up::Report(pb::SubmitReportRequest { rank: 2, report: "{}".into() }),
        Up::Event(pb::NodeEvent { rank: Some(2), topic: "metric".into(), text: "loss 3".into() }),
        Up::Fail(pb::NodeFail { failure: failure(2), code: Some(101), r#final: false }),
        Up::Left(3),
        Up::Gone(pb::NodeGone { rank: 2, how: "rank 2 exited with code 0".into() }),
        Up::Done(1),
    ];
    let up = |items: &[Up]| -> Vec<u8> {
        pb::FromNode { items: items.iter().map(|i| pb::Up { item: Some(i.clone()) }).collect() }.encode_to_vec()
    };
    let hello = up(&[Up::Hello(hello("b", 2..=2))]);
    let to_root = vec![
        [&[0][..], &up(&ups)].concat(),
        [&[4][..], &hello, &up(&ups)].concat(),
        [&[254][..], &hello, &up(&ups)].concat(),
    ];
    let begin =
        pb::Begin { restart: 1, node: 1, nodes: 2, first_rank: 2, nproc: NPROC, world: 4, cost_model: b"{}".to_vec() };
    let met = pb::MeetReply { values: vec![vec![1], vec![2, 3]] }.encode_to_vec();
    use pb::answer::Answer;
    let answer = |ticket: u64, answer: Answer| Down::Answer(pb::Answer { tickets: vec![ticket], answer: Some(answer) });
    let downs = [
        Down::Begin(begin),
        answer(1, Answer::Done(true)),
        answer(2, Answer::Value(pb::GetReply { value: Some(vec![5]) })),
        answer(3, Answer::Met(met)),
        answer(4, Answer::Refused(pb::Refused { code: 9, message: "no".into(), missing: Some(1) })),
        Down::Pong(pb::Pong { sent_ns: 7, root_ns: 1 << 60 }),
        Down::Ask(pb::Ask { rank: 2, interval: Some(pb::Interval { after: 1, to: 4 }), links: vec![0, 3], asked: 1 }),
        Down::Note("waits for node 2".into()),
        Down::Failed(pb::Failed { failure: failure(0), code: Some(1), restarts: true }),
        Down::Over(3),
    ];
    let down = pb::FromRoot { items: downs.into_iter().map(|i| pb::Down { item: Some(i) }).collect() }.encode_to_vec();
    let to_agent = vec![[&[0][..], &down].concat(), [&[7][..], &down].concat()];
    let meet = |rank: u32| pb::MeetRequest {
        name: "m".into(),
        rank,
        participants: 2,
        wait_ms: 9,
        value: vec![3],
        members: vec![0, 1],
    };
    let cas = pb::CompareAndSetRequest { key: "k".into(), expected: Some(b"v".to_vec()), value: vec![2] };
    let failed = pb::ReportFailureRequest { rank: 1, message: "boom".into(), detail: String::new() };
    let calls: Vec<(u8, Vec<u8>)> = vec![
        (0, join(0).encode_to_vec()),
        (0, join(1).encode_to_vec()),
        (1, pb::PutRequest { key: "k".into(), value: b"v".to_vec() }.encode_to_vec()),
        (2, pb::GetRequest { key: "k".into(), wait_ms: 5 }.encode_to_vec()),
        (3, cas.encode_to_vec()),
        (4, meet(0).encode_to_vec()),
        (4, meet(1).encode_to_vec()),
        (5, beat(0).encode_to_vec()),
        (5, beat(1).encode_to_vec()),
        (2, pb::GetRequest { key: "none".into(), wait_ms: 5 }.encode_to_vec()),
        (8, vec![7]),
        (6, pb::SubmitReportRequest { rank: 0, report: "{}".into() }.encode_to_vec()),
        (7, failed.encode_to_vec()),
        (9, vec![0]),
    ];
    let mut all = Vec::new();
    for (call, message) in calls {
        all.push(call);
        all.extend((message.len() as u16).to_le_bytes());
        all.extend(message);
    }
    let to_service = [0, 9, 251].map(|how| [&[how][..], &all].concat()).to_vec();
    [to_root, to_agent, to_service]
}
