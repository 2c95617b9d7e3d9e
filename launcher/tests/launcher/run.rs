//! `oflow run` from outside: lines in, answers out.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use oflow::testing::Random;
use serde_json::{Value, json};

mod calls;
mod hostile;
mod indices;
mod layouts;

/// Numbers from -2 to 2, in eighths: sums and products of few are exact in f32.
pub fn eighths(random: &mut Random, n: usize) -> Vec<f64> {
    (0..n).map(|_| (random.below(33) as f64 - 16.0) / 8.0).collect()
}

/// A running `oflow run`.
pub struct Talk {
    /// The command.
    pub process: Child,
    answers: BufReader<ChildStdout>,
}

impl Talk {
    /// With these options.
    pub fn start(args: &[&str]) -> Talk {
        let mut process = Command::new(env!("CARGO_BIN_EXE_oflow"))
            .arg("run")
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Talk { process, answers }
    }
    /// Writes a line.
    pub fn say(&mut self, line: &str) {
        let stdin = self.process.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
    }
    /// Waits for an answer.
    pub fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:.500}"))
    }
    /// Writes a line and waits for its answer.
    pub fn ask(&mut self, line: &str) -> Value {
        self.say(line);
        self.hear()
    }
    /// Ends the input; the exit code.
    pub fn end(mut self) -> i32 {
        drop(self.process.stdin.take());
        self.process.wait().unwrap().code().unwrap_or(-1)
    }
}

/// The answers to some lines, and the exit code.
pub fn answers(lines: &[Vec<u8>], args: &[&str]) -> (Vec<Value>, i32) {
    let mut talk = Talk::start(args);
    let mut stdin = talk.process.stdin.take().unwrap();
    let text = lines.join(&b'\n');
    let writer = std::thread::spawn(move || stdin.write_all(&text));
    let all = talk.answers.by_ref().lines().map(|l| serde_json::from_str(&l.unwrap()).unwrap()).collect();
    writer.join().unwrap().unwrap();
    (all, talk.end())
}

/// The answers to some cases, of which none may be an error.
pub fn outputs(cases: &[Value]) -> Vec<Value> {
    let lines: Vec<Vec<u8>> = cases.iter().map(|c| c.to_string().into_bytes()).collect();
    let (all, code) = answers(&lines, &["--strict"]);
    assert_eq!(all.len(), cases.len());
    for (case, answer) in cases.iter().zip(&all) {
        assert!(answer["error"].is_null(), "{case}\n{answer}");
    }
    assert_eq!(code, 0);
    all
}

/// The number that JSON stands for.
pub fn number(v: &Value) -> f64 {
    match v {
        Value::String(t) if t == "nan" => f64::NAN,
        Value::String(t) if t == "inf" => f64::INFINITY,
        Value::String(t) if t == "-inf" => f64::NEG_INFINITY,
        Value::Bool(b) => f64::from(u8::from(*b)),
        v => v.as_f64().unwrap_or_else(|| panic!("{v} is not a number")),
    }
}

/// The numbers of a list.
pub fn numbers(v: &Value) -> Vec<f64> {
    v.as_array().unwrap_or_else(|| panic!("{v} is not a list")).iter().map(number).collect()
}

/// Whether numbers are equal up to a part of the largest of them.
pub fn close(a: &[f64], b: &[f64], part: f64) -> bool {
    let finite = a.iter().chain(b).filter(|x| x.is_finite());
    let size = finite.fold(1.0f64, |m, x| m.max(x.abs()));
    let alike = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= part * size;
    a.len() == b.len() && a.iter().zip(b).all(alike)
}

#[test]
fn an_answer_comes_before_the_next_line_is_written() {
    let mut talk = Talk::start(&[]);
    for i in 0..20 {
        let answer = talk.ask(&json!({"call": "add", "args": [{"data": [i]}, 1], "id": {"n": i}}).to_string());
        assert_eq!(answer["outputs"][0]["data"], json!([i + 1]));
        assert_eq!((&answer["id"], &answer["line"]), (&json!({"n": i}), &json!(i + 1)));
    }
    assert_eq!(talk.end(), 0);
}

/// `UPDATE_EXPECT=1` writes the answers of the page anew.
#[test]
fn the_answers_of_the_page_are_what_the_program_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cases.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (mut told, mut examples) = (page.clone(), 0);
    for block in page.split("```jsonl\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let (case, answer) = block.trim_end().split_once('\n').unwrap();
        let output = Command::new("sh")
            .args(["-c", "printf '%s\\n' \"$2\" | \"$1\" run", "sh", env!("CARGO_BIN_EXE_oflow"), case])
            .output()
            .unwrap();
        told = told.replace(answer, String::from_utf8(output.stdout).unwrap().trim_end());
        examples += 1;
    }
    if std::env::var("UPDATE_EXPECT").is_ok_and(|v| v == "1") {
        std::fs::write(path, &told).unwrap();
    }
    assert!(examples >= 2 && told == page, "docs/cases.md should have:\n{told}");
}

#[test]
fn exit_codes() {
    let lines =
        [&b"{\"call\":\"relu\"}"[..], b"", b"# a comment", b"{\"call\":\"relu\",\"args\":{\"x\":{\"data\":[-1.5]}}}"];
    let lines = lines.map(<[u8]>::to_vec);
    let (all, code) = answers(&lines, &[]);
    assert_eq!((all.len(), code), (2, 0));
    assert_eq!(all[0]["line"], 1);
    assert_eq!(
        all[1],
        json!({"line": 4, "outputs": [{"data": [0.0], "shape": [1], "dtype": "f32", "sbp": null}], "signature": null})
    );
    assert_eq!(answers(&lines, &["--strict"]).1, 1);
    assert_eq!(answers(&lines[3..], &["--strict", "-"]).1, 0);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cases.jsonl");
    std::fs::write(&file, lines.join(&b'\n')).unwrap();
    let (all, code) = answers(&[], &[file.to_str().unwrap()]);
    assert_eq!((all.len(), code), (2, 0));
    assert!(all[0]["error"].as_str().unwrap().contains("cases.jsonl:1\n"), "{}", all[0]);
    for (args, code) in
        [(&["no-such-file"][..], 1), (&["--timeout", "0"], 2), (&["--memory", "x"], 2), (&["a", "b"], 2)]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_oflow")).arg("run").args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}");
    }
    // Nobody reads the answers any more.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut process = Command::new(env!("CARGO_BIN_EXE_oflow")).arg("run").arg(&file).stdout(writer).spawn().unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0));
}
