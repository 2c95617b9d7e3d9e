//! A peer of a bench: a Python program in a process of its own that reads what to measure, a line each, and answers each with a number.

// Not every bench measures calls.
#[allow(dead_code)]
pub mod calls;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

pub struct Peer {
    process: Child,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts `benches/peers/SCRIPT` with the Python that the variable PYTHON names; without the variable there is no peer.
    pub fn start(script: &str) -> Option<Peer> {
        let python = std::env::var("PYTHON").ok()?;
        // The bench of a member of the workspace has the scripts of the root.
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = if here.join("benches/peers").exists() { here.to_path_buf() } else { here.join("..") };
        let script = root.join("benches/peers").join(script);
        let mut process =
            Command::new(python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("PYTHON runs");
        let answers = BufReader::new(process.stdout.take().expect("piped"));
        Some(Peer { process, answers })
    }

    pub fn ask(&mut self, line: &str) -> f64 {
        let mut answer = String::new();
        writeln!(self.process.stdin.as_mut().expect("piped"), "{line}").expect("the peer reads");
        self.answers.read_line(&mut answer).expect("the peer answers");
        answer.trim().parse().expect("the peer answers with a number")
    }
}

pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
