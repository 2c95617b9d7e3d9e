//! `oflow run`: calls of functions by name, one JSON object a line, on simulated ranks.
//!
//! The command (this file) reads lines and writes answers. A process of its own runs the calls (`worker.rs`): a call that hangs,
//! takes all memory or ends its process is an error of its line, and the next line has a new process. There a line is read
//! (`json.rs`, `line.rs`), its arguments are read as the function's signature says (`bind.rs`, `tensor.rs`, `numbers.rs`; partial
//! tensors by `addends.rs`), the ranks run (`call.rs`) and the answer is written (`answer.rs`).

pub mod addends;
mod answer;
mod bind;
mod call;
pub mod fuzz;
mod json;
mod line;
pub mod numbers;
mod tensor;
mod worker;

pub use bind::Functions;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::{EXIT_FAILED, Failed, cli};
use worker::{Limits, Worker};

/// Most bytes of a line. A longer one is skipped without being kept.
const MOST_BYTES: usize = 256 << 20;

/// Adds the arguments.
pub fn arguments(command: Command) -> Command {
    command
        .arg(Arg::new("file").value_name("FILE").default_value("-").help("Cases, one JSON object a line; - is standard input"))
        .arg(
            Arg::new("timeout")
                .long("timeout")
                .value_name("SECONDS")
                .default_value("60")
                .value_parser(seconds)
                .help("Time that a line may take; then its answer is an error"),
        )
        .arg(
            Arg::new("memory")
                .long("memory")
                .value_name("SIZE")
                .default_value("4G")
                .value_parser(cli::memory)
                .help("Address space of the process that runs the calls, e.g. 512M"),
        )
        .arg(
            Arg::new("strict")
                .long("strict")
                .action(ArgAction::SetTrue)
                .help("Exit with 1 if the answer of any line is an error"),
        )
        .arg(Arg::new("worker").long("worker").value_name("NAME").hide(true))
        .after_help(
            r#"Examples:
  oflow run cases.jsonl > answers.jsonl
  echo '{"call":"sum","args":{"x":{"data":[1,2,3,4],"dtype":"f32","sbp":["S(0)"]}},"mesh":[2]}' | oflow run

A line:
  {"call":"matmul","args":{"a":{"shape":[2,2],"dtype":"f64","data":[1,2,3,4],"sbp":["S(1)"]},
   "b":{"data":[[1,0],[0,1]],"dtype":"f64","sbp":["S(0)"]}},"mesh":[2],"grad":true,"id":"m1"}
Its answer, in one line:
  {"id":"m1","line":1,"outputs":[{"data":[1.0,2.0,3.0,4.0],"shape":[2,2],"dtype":"f64","sbp":["P(sum)"]}],
   "signature":"[S(1)], [S(0)] -> [P(sum)]","grads":{"a":{...},"b":{...}}}
or, and then the next line runs:
  {"id":"m1","line":1,"error":"...","kind":"shape"}

The mesh says how many ranks run: up to 64, as threads. A tensor of a line with a mesh is B unless it says otherwise; with
"sbp":null, or without a mesh, it is local. A P tensor is made of addends whose sum has the bits of its data. Empty lines and
lines that begin with # are skipped. docs/cases.md describes every name. Exit codes: 0 when all lines were answered."#,
        )
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|s| *s > 0.0 && *s <= 1e6);
    seconds.map(Duration::from_secs_f64).ok_or_else(|| format!("'{text}' is not a number of seconds"))
}

/// Runs the command.
pub fn run(matches: &ArgMatches) -> Result<u8, Failed> {
    let missing = || Failed::new("an argument is missing");
    let file = matches.get_one::<String>("file").ok_or_else(missing)?;
    let timeout = *matches.get_one::<Duration>("timeout").ok_or_else(missing)?;
    let memory = *matches.get_one::<u64>("memory").ok_or_else(missing)?;
    if let Some(name) = matches.get_one::<String>("worker") {
        return worker::serve(name, memory);
    }
    let name = if file == "-" { "stdin" } else { file };
    let mut input: Box<dyn BufRead> = match file.as_str() {
        "-" => Box::new(io::stdin().lock()),
        path => {
            let opened = File::open(path).map_err(|e| Failed::new(format!("{path} cannot be read: {e}")))?;
            Box::new(BufReader::new(opened))
        }
    };
    let mut worker = Worker::new(Limits { timeout, memory }, name);
    let mut errors = false;
    let mut out = io::stdout().lock();
    for number in 1u64.. {
        let line = read_line(&mut input).map_err(|e| Failed::new(format!("{name} cannot be read: {e}")))?;
        let answer = match line {
            Read::End => break,
            Read::Line(line) if is_skipped(&line) => continue,
            Read::Line(line) => worker.answer(number, line),
            Read::TooLong => worker::refused(number, &format!("the line has more than {MOST_BYTES} bytes"), "argument"),
        };
        errors |= answer.is_error;
        // Another program may wait for this answer before it writes the next line.
        match out.write_all(&answer.line).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
            Ok(()) => {}
            // Nobody wants the others.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => break,
            Err(e) => return Err(Failed::new(format!("cannot print: {e}"))),
        }
    }
    Ok(if errors && matches.get_flag("strict") { EXIT_FAILED } else { 0 })
}

/// A line of the input.
enum Read {
    /// Without its end.
    Line(Vec<u8>),
    /// One with more bytes than are kept.
    TooLong,
    End,
}

fn read_line(input: &mut dyn BufRead) -> io::Result<Read> {
    let mut line = Vec::new();
    if input.take(MOST_BYTES as u64 + 1).read_until(b'\n', &mut line)? == 0 {
        return Ok(Read::End);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > MOST_BYTES {
        input.skip_until(b'\n')?;
        return Ok(Read::TooLong);
    }
    Ok(Read::Line(line))
}

/// Whether a line asks for nothing: it is empty, or a comment.
fn is_skipped(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    text.is_empty() || text.starts_with(b"#")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_newlines_and_at_the_end() {
        let mut input: &[u8] = b"a\n\nbc\r\nlast";
        let mut lines = vec![];
        while let Read::Line(line) = read_line(&mut input).unwrap() {
            lines.push(String::from_utf8(line).unwrap());
        }
        assert_eq!(lines, ["a", "", "bc\r", "last"]);
        assert!(is_skipped(b" \r") && is_skipped(b"  # {}") && !is_skipped(b"{}#"));
    }
}
