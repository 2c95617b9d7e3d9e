//! Malformed input over the network, for the control service as a whole: from members, and from strangers. Between the attacks who
//! means well must be served.

use std::sync::Arc;
use std::time::Duration;

use oflow::control::Token;
use oflow::control::handshake::Connector;
use oflow::control::service::{Agent, AgentOptions};
use oflow_faults::Random;
use oflow_faults::attack::{self, CALLS, call, message, mutate, path, send};

/// Inputs to one agent before a new one takes its place: some of them may end its job.
const OF_AN_AGENT: u64 = 500;
/// Time for an answer that nobody waits for.
const GLANCE: Duration = Duration::from_millis(2);

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

    /// Answer of the service to a member that sends these bytes after its handshake.
    fn member_says(&self, bytes: &[u8], patience: Duration) -> Result<Vec<u8>, String> {
        let connector = Connector { token: self.token.clone(), tls: false, outage: Default::default() };
        let stream = connector.blocking(("127.0.0.1", self.port())).map_err(|e| e.to_string())?;
        Ok(attack::send_on(stream, bytes, patience))
    }

    /// Whether who holds the token gets an answer: status 0, or that the job has failed.
    fn answers(&self) -> Result<(), String> {
        let get = call(&path("Get"), b"\x0a\x01k");
        let mut answer = vec![];
        // A busy machine may take its time.
        for _ in 0..30 {
            answer = self.member_says(&get, Duration::from_millis(300))?;
            if attack::answered(&answer) {
                return Ok(());
            }
        }
        Err(format!("the service does not answer any more: {answer:?}"))
    }
}

/// Somebody who holds the token and talks nonsense.
pub fn member(random: &mut Random) -> Result<u64, String> {
    let served = Served::start()?;
    for _ in 0..OF_AN_AGENT {
        let name = CALLS[random.within(0..CALLS.len())];
        let body = message(random, 3);
        let body = if random.within(0..4) == 0 { mutate(&body, random) } else { body };
        served.member_says(&call(&path(name), &body), GLANCE)?;
    }
    served.answers()?;
    Ok(OF_AN_AGENT)
}

/// Somebody who does not, or whose connection is damaged.
pub fn stranger(random: &mut Random) -> Result<u64, String> {
    let served = Served::start()?;
    for _ in 0..OF_AN_AGENT / 25 {
        for (_, bytes) in attack::without_token(random) {
            let bytes = if random.within(0..2) == 0 { mutate(&bytes, random) } else { bytes };
            send(served.port(), &bytes, GLANCE);
        }
        // Its connection is damaged after the handshake.
        let valid = call(&path("Put"), b"\x0a\x01k\x12\x01v");
        served.member_says(&mutate(&valid, random), GLANCE)?;
    }
    served.answers()?;
    Ok(OF_AN_AGENT)
}
