//! A state as large jobs have it.

use super::*;
use crate::output::Stream;
use oflow::control::service::{Glimpse, Held, HostPart, Sight};
use oflow_proto::control as pb;

/// What is seen of a job of so many ranks after some seconds; one of them holds up the others if `stalled`.
fn sight(world: u32, t: u64, stalled: bool) -> Sight {
    let mesh = |dims: [u32; 2]| pb::Mesh {
        device: "cpu".into(),
        dims: dims.to_vec(),
        names: vec!["dp".into(), "tp".into()],
        ranks: (0..world).collect(),
    };
    let slow = world * 5 / 8;
    let glimpse = |rank: u32| {
        let noise = |n: u64| (u64::from(rank) * 7919 + n * 104_729) % 100;
        let late = if rank == slow { 2 } else { 25 + noise(1) / 4 };
        let data = if rank % 37 == 3 { 45 } else { noise(2) / 20 };
        let part = |percent: u64| t * percent * 10_000_000;
        let spent = pb::Spent {
            whole: t * 1_000_000_000,
            compute: part(if rank == slow { 90 } else { 40 }),
            communication: part(8 + noise(3) / 10),
            late_ranks: part(late),
            data: part(data),
            checkpoint: 0,
        };
        let op = if rank.is_multiple_of(5) { "matmul" } else { "layer_norm" };
        let last = pb::OpRecord {
            ordinal: 1200 + t,
            op: op.into(),
            file: "examples/train.rs".into(),
            line: 40 + rank % 5,
            call: format!("{op}(f32[64, 512] [S(0), B], f32[512, 2048] [B, S(1)])"),
            ..Default::default()
        };
        let call = format!("all_reduce of 'matmul' #{} (examples/train.rs:41)", 1200 + t);
        let boxing = pb::SeenBoxing {
            op: "matmul".into(),
            file: "examples/train.rs".into(),
            line: 41,
            scope: "blocks.3.mlp".into(),
            backward: t.is_multiple_of(2),
            shape: vec![512, 2048],
            dtype: "bf16".into(),
            from: "[P(sum), S(1)]".into(),
            to: "[S(0), S(1)]".into(),
            mesh: Some(mesh([world / 4, 4])),
            to_mesh: None,
            bytes: 2_097_152,
            ns: 310_000,
        };
        let value = |name: &str, value: f64| pb::Point { number: t, name: name.into(), step: 10 * t, value };
        let x = t as f64;
        Glimpse {
            rank,
            last: Some(last),
            scope: format!("blocks.{}.mlp", rank % 12),
            wait: (stalled && rank != slow).then(|| pb::Wait { ranks: vec![slow], call, since_ms: 14_000 }),
            resident: (900 + 8 * noise(4)) << 20,
            memory: vec![pb::DeviceMemory { device: "cpu".into(), bytes: (600 + 4 * noise(4)) << 20 }],
            steps: 3 * t,
            rows: 96 * t,
            watched: t * 1_000_000_000,
            spent: Some(spent),
            boxings: if rank == 0 { vec![boxing] } else { Vec::new() },
            points: if rank == 0 {
                let wave = (x * 1.7).sin();
                vec![
                    value("loss/train", 6.0 / (1.0 + x / 15.0) + 0.2 * wave),
                    value("loss/validation", 6.2 / (1.0 + x / 17.0)),
                    value("lr", 1e-3 * (x / 30.0).min(1.0)),
                    value("<img src=x onerror=alert(1)>", if t % 9 == 4 { f64::NAN } else { 1.0 + wave }),
                ]
            } else {
                Vec::new()
            },
            ..Default::default()
        }
    };
    let text = format!(
        "rank 0 and {} other ranks have waited 14 s for rank {slow}, in all_reduce of 'matmul' #1240 (examples/train.rs:41); \
         rank {slow} has issued nothing since 'layer_norm' #1239 (examples/train.rs:40), 14 s ago; it computes",
        world - 2
    );
    let held = Held { rank: slow as usize, waiting: world as usize - 1, since: Duration::from_secs(14), text };
    let half = world as usize / 2;
    Sight {
        restart: 0,
        hosts: vec![
            HostPart { name: "node-a".into(), ranks: 0..half },
            HostPart { name: "node-b".into(), ranks: half..world as usize },
        ],
        glimpses: (0..world).map(glimpse).collect(),
        left: Vec::new(),
        held: if stalled { vec![held] } else { Vec::new() },
        stall: Duration::from_secs(300),
    }
}

#[test]
fn the_state_of_a_thousand_ranks_is_bounded() {
    let mut state = State::new("train".into());
    for t in 1..2000 {
        state.update(sight(if t < 1999 { 4 } else { 1024 }, t, t == 1999), None, Instant::now());
    }
    let now = Instant::now();
    let (text, curves) = (state.to_json(now).to_string(), state.metrics.to_json().to_string());
    assert!(text.len() < 1 << 20 && curves.len() < 1 << 18, "{} and {} bytes", text.len(), curves.len());
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let lens: Vec<usize> =
        ["ranks", "boxings", "rates", "held"].iter().map(|k| json[k].as_array().unwrap().len()).collect();
    assert_eq!(lens, [1024, 24, 3, 1]);
    assert_eq!(json["ranks"][7]["wait"]["ranks"][0], 640);
    assert_eq!(json["status"], "waiting");
}

/// To look at: `WATCH_RANKS=256 WATCH_STALLED=1 cargo test -p oflaunch --lib watch::tests::serves -- --ignored --nocapture` serves such a
/// state until standard input is closed.
#[test]
#[ignore = "serves a page to look at"]
fn serves_a_page_to_look_at() {
    let number = |name: &str, usual: u32| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual);
    let (world, stalled) = (number("WATCH_RANKS", 256), number("WATCH_STALLED", 0) > 0);
    let watch = Watch::of(Wanted { page: Some(0), top: false }, "train".into()).unwrap();
    println!("{}", watch.serve().unwrap().unwrap());
    let shared = watch.shared.clone();
    let began = Instant::now();
    std::thread::spawn(move || {
        for t in 1.. {
            let now = began + Duration::from_secs(t);
            for rank in 0..4 {
                let line = format!("step {t}: rank {rank} has seen <b>{}</b> rows\n", 96 * t);
                shared.lines().push(rank, Stream::Out, line.as_bytes());
            }
            shared.state().update(sight(world, t, stalled), None, now);
            if t > 120 {
                std::thread::sleep(EVERY);
            }
        }
    });
    // Until whoever looks has seen enough.
    let _closed = std::io::stdin().lines().next();
}
