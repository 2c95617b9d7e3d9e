//! `cargo xtask fuzz MINUTES`: malformed input for the control plane: from members, from strangers, and as JSON. Nothing may
//! panic, and between the attacks who means well must be served.

use std::error::Error;
use std::panic;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use oflow::Report;
use oflow::control::service::{Agent, AgentOptions};
use oflow::control::{Failure, Token};
use oflow_faults::Random;
use oflow_faults::attack::{self, CALLS, call, json, message, mutate, path, send};

/// Inputs to one agent before a new one takes its place: some of them may end its job.
const OF_AN_AGENT: u64 = 500;
/// Time for an answer that nobody waits for.
const GLANCE: Duration = Duration::from_millis(2);
/// Most memory that this process may have taken in the end.
const MOST_MEMORY: u64 = 2 << 30;

/// What went wrong.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

type Target = fn(&mut Random) -> Result<u64, String>;

/// What is fuzzed: each runs on a thread of its own and counts its inputs.
const TARGETS: &[(&str, Target)] = &[
    ("messages of a member to the control service", member),
    ("bytes of a stranger to the control service", stranger),
    ("failures, reports and events as JSON", documents),
];

/// Fuzzes for so many minutes.
pub fn run(minutes: f64, seed: u64) -> Result<(), Box<dyn Error>> {
    let before = panic::take_hook();
    panic::set_hook(Box::new(|info| {
        let mut panics = PANICS.lock().unwrap_or_else(|e| e.into_inner());
        if panics.len() < 20 {
            panics.push(info.to_string());
        }
    }));
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let counts: Vec<AtomicU64> = TARGETS.iter().map(|_| AtomicU64::new(0)).collect();
    let (stop, wrong) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    std::thread::scope(|s| {
        for (i, (name, target)) in TARGETS.iter().enumerate() {
            let (count, stop, wrong) = (&counts[i], &stop, &wrong);
            s.spawn(move || {
                let mut round = 0;
                while Instant::now() < end && !stop.load(Ordering::Relaxed) {
                    // A seed for each round, so that one round can be done again alone.
                    let own = seed.wrapping_add(round).wrapping_mul(TARGETS.len() as u64).wrapping_add(i as u64);
                    match panic::catch_unwind(|| target(&mut Random::new(own))) {
                        Ok(Ok(inputs)) => drop(count.fetch_add(inputs, Ordering::Relaxed)),
                        Ok(Err(e)) => {
                            wrong.lock().unwrap_or_else(|e| e.into_inner()).push(format!("{name}: {e} (seed {own})"));
                            stop.store(true, Ordering::Relaxed);
                        }
                        Err(_) => stop.store(true, Ordering::Relaxed),
                    }
                    round += 1;
                }
            });
        }
    });
    panic::set_hook(before);
    for ((name, _), count) in TARGETS.iter().zip(&counts) {
        println!("{:>9} inputs: {name}", count.load(Ordering::Relaxed));
    }
    let memory = peak_memory();
    println!("peak memory {} MiB; seed {seed}", memory >> 20);
    let mut wrong = wrong.into_inner().unwrap_or_else(|e| e.into_inner());
    wrong.append(&mut PANICS.lock().unwrap_or_else(|e| e.into_inner()));
    if memory > MOST_MEMORY {
        wrong.push(format!("took {} MiB of memory", memory >> 20));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// An agent that serves, for as long as this lives.
struct Served {
    agent: Agent,
    token: Token,
    _runtime: tokio::runtime::Runtime,
}

impl Served {
    fn start() -> Result<Served, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|e| e.to_string())?;
        let token = Token::random().map_err(|e| e.to_string())?;
        // What it logs of us is as expected, and much.
        let options = AgentOptions { log: Arc::new(|_| ()), ..AgentOptions::alone(4, token.clone()) };
        let agent = runtime.block_on(Agent::start(options)).map_err(|e| e.to_string())?;
        Ok(Served { agent, token, _runtime: runtime })
    }

    fn port(&self) -> u16 {
        self.agent.address().port()
    }

    /// Whether who holds the token gets an answer: status 0, or that the job has failed.
    fn answers(&self) -> Result<(), String> {
        let get = call(&path("Get"), Some(self.token.expose()), b"\x0a\x01k");
        let mut answer = vec![];
        // A busy machine may take its time.
        for _ in 0..30 {
            answer = send(self.port(), &get, Duration::from_millis(300));
            if attack::answered(&answer) {
                return Ok(());
            }
        }
        Err(format!("the service does not answer any more: {answer:?}"))
    }
}

/// Somebody who holds the token and talks nonsense.
fn member(random: &mut Random) -> Result<u64, String> {
    let served = Served::start()?;
    for _ in 0..OF_AN_AGENT {
        let name = CALLS[random.within(0..CALLS.len())];
        let body = message(random, 3);
        let body = if random.within(0..4) == 0 { mutate(&body, random) } else { body };
        send(served.port(), &call(&path(name), Some(served.token.expose()), &body), GLANCE);
    }
    served.answers()?;
    Ok(OF_AN_AGENT)
}

/// Somebody who does not, or whose connection is damaged.
fn stranger(random: &mut Random) -> Result<u64, String> {
    let served = Served::start()?;
    for _ in 0..OF_AN_AGENT / 25 {
        for (_, bytes) in attack::without_token(random) {
            let bytes = if random.within(0..2) == 0 { mutate(&bytes, random) } else { bytes };
            send(served.port(), &bytes, GLANCE);
        }
        let valid = call(&path("Put"), Some(served.token.expose()), b"\x0a\x01k\x12\x01v");
        send(served.port(), &mutate(&valid, random), GLANCE);
    }
    served.answers()?;
    Ok(OF_AN_AGENT)
}

/// What arrives as text.
fn documents(random: &mut Random) -> Result<u64, String> {
    let valid = r#"{"rank":1,"kind":"diverged","message":"m","places":[{"rank":1,"op":"relu","ordinal":3,"file":"t.rs","line":10}]}"#;
    for _ in 0..1000 {
        let text = match random.within(0..2) {
            0 => json(random, 5),
            _ => String::from_utf8_lossy(&mutate(valid.as_bytes(), random)).into_owned(),
        };
        let failure = Failure::from_wire(Some(2), "said".into(), &text);
        // What is read can be written and read again.
        let again = Failure::from_wire(None, String::new(), &failure.to_json());
        if again != failure {
            return Err(format!("{text} reads as {failure:?} and then as {again:?}"));
        }
        if let Ok(report) = Report::from_json(&text) {
            let _as_people_see_it = Report::merge(vec![report]).to_string();
        }
    }
    Ok(1000)
}

fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    #[test]
    fn some_seconds_of_it() {
        super::run(0.05, 1).unwrap();
    }
}
