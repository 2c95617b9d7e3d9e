//! `oflaunch --watch` and `--top`, with real processes and plain connections.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;

use crate::common::*;

const HOSTILE: &str = "<img src=x onerror=alert(1)>";

/// The executable of `scripts/watch.rs`, which trains until it is told to end.
fn trainer() -> &'static str {
    static BUILT: OnceLock<String> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Folder::new();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/watch.rs");
        built(&script, &["--", folder.path().to_str().unwrap(), "8", "2"])
    })
}

/// A job whose page is served.
struct Watched {
    folder: Folder,
    job: Running,
    port: u16,
    token: String,
}

/// An answer: its code, head and body.
struct Answer {
    code: u16,
    head: String,
    body: String,
}

impl Watched {
    fn start(folder: Folder, options: &[&str], program: &str, args: &[&str]) -> Watched {
        let mut job = Running::start(&folder, &[options, &["--watch", program, "--"], args].concat());
        job.said("watch: http://127.0.0.1:");
        let port = job.said("/?token=").trim_end_matches("/?token=").parse().unwrap();
        let token = job.said("\n").trim().to_string();
        assert_eq!(token.len(), 64, "{token}");
        Watched { folder, job, port, token }
    }

    /// Two ranks that train.
    fn trains() -> Watched {
        let folder = Folder::new();
        let path = folder.path().to_str().unwrap().to_string();
        Watched::start(folder, &["-n", "2", "--threads", "1"], trainer(), &[&path])
    }

    /// What is answered to these bytes.
    fn say(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        // A server that has refused may close before all has been sent.
        let _reset = stream.read_to_end(&mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let code = head.split(' ').nth(1).and_then(|c| c.parse().ok()).unwrap_or(0);
        Answer { code, head: head.to_ascii_lowercase(), body: body.to_string() }
    }

    fn ask_as(&self, method: &str, host: &str, path: &str, token: &str) -> Answer {
        self.say(&format!("{method} {path}?token={token} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
    }

    fn get(&self, path: &str) -> Answer {
        self.ask_as("GET", &format!("127.0.0.1:{}", self.port), path, &self.token)
    }

    fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.code, 200, "{path}: {}", answer.head);
        serde_json::from_str(&answer.body).unwrap()
    }

    /// The state once it is so.
    fn state(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        wait_for(what, Duration::from_secs(60), || Some(self.json("/state.json")).filter(&is_so))
    }

    /// Ends the job, which is to end well.
    fn end(self) {
        fs::write(self.folder.path().join("end"), "").unwrap();
        let (status, _, err) = self.job.finish_all();
        assert_eq!(status.code(), Some(0), "{err}");
        assert!(TcpStream::connect(("127.0.0.1", self.port)).is_err(), "the page outlives the job");
    }
}

/// A job that prints and goes on until a file is there.
fn prints(text: &str) -> Watched {
    let folder = Folder::new();
    folder.sh("print", &format!("echo '{text}'; while [ ! -e end ]; do sleep 0.02; done"));
    Watched::start(folder, &["-n", "2"], "./print", &[])
}

#[test]
fn who_has_no_token_or_names_another_host_gets_nothing() {
    let job = prints("hello");
    let here = format!("127.0.0.1:{}", job.port);
    for path in [
        "/",
        "/state.json",
        "/lines.json",
        "/page.js",
        "/style.css",
        "/layout.svg",
        "/metrics.json",
        "/icon.svg",
        "/none",
    ] {
        let mut wrong = job.token.clone();
        wrong.replace_range(63.., if job.token.ends_with('0') { "1" } else { "0" });
        for token in ["", "0", &wrong, &format!("{}0", job.token), &job.token[1..]] {
            let answer = job.ask_as("GET", &here, path, token);
            assert_eq!((answer.code, answer.body.as_str()), (403, ""), "{path} with {token:?}");
        }
        let answer = job.say(&format!("GET {path} HTTP/1.1\r\nHost: {here}\r\n\r\n"));
        assert_eq!((answer.code, answer.body.as_str()), (403, ""), "{path} without a token");
    }
    for host in
        ["evil.example", "127.0.0.1", "127.0.0.1:1", "", "localhost", &format!("127.0.0.1.evil.example:{}", job.port)]
    {
        let answer = job.ask_as("GET", host, "/state.json", &job.token);
        assert_eq!((answer.code, answer.body.as_str()), (403, ""), "{host}");
    }
    for host in [here.as_str(), &format!("localhost:{}", job.port), &format!("[::1]:{}", job.port)] {
        assert_eq!(job.ask_as("GET", host, "/state.json", &job.token).code, 200, "{host}");
    }
    let two = format!("GET /?token={} HTTP/1.1\r\nHost: {here}\r\nHost: evil.example\r\n\r\n", job.token);
    let absolute = format!("GET http://evil.example/?token={} HTTP/1.1\r\nHost: {here}\r\n\r\n", job.token);
    for request in [two, absolute] {
        let answer = job.say(&request);
        assert!((400..=403).contains(&answer.code) && answer.body.is_empty(), "{}", answer.head);
    }
    assert_eq!(job.get("/none").code, 404);
    job.end();
}

#[test]
fn only_small_questions_are_answered() {
    let job = prints("hello");
    let here = format!("127.0.0.1:{}", job.port);
    for method in ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE"] {
        assert_eq!(job.ask_as(method, &here, "/state.json", &job.token).code, 405, "{method}");
    }
    let with = |more: &str| format!("GET /?token={} HTTP/1.1\r\nHost: {here}\r\n{more}\r\n", job.token);
    assert_eq!(job.say(&with("Content-Length: 5\r\n")).code, 413);
    assert_eq!(job.say(&with("Content-Length: 99999999999\r\n")).code, 413);
    assert_eq!(job.say(&with("Transfer-Encoding: chunked\r\n")).code, 413);
    let answer = job.say(&with(&format!("X: {}\r\n", "x".repeat(1 << 20))));
    assert!(answer.code == 431 || answer.code == 0, "{}", answer.head);
    let many: String = (0..1000).map(|i| format!("X{i}: y\r\n")).collect();
    assert!(job.say(&with(&many)).code != 200);
    // Connections that say nothing take places for a limited time, and the job goes on meanwhile.
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(("127.0.0.1", job.port)).unwrap()).collect();
    wait_for("places to be free again", LONG, || (job.get("/").code == 200).then_some(()));
    drop(idle);
    for bytes in ["\0\0\0\0", "GET", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\r\n\r\n\r\n"] {
        let mut stream = TcpStream::connect(("127.0.0.1", job.port)).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
    }
    assert_eq!(job.get("/").code, 200);
    job.end();
}

#[test]
fn what_a_rank_prints_arrives_as_data_and_the_page_is_safe() {
    let text = "<script>alert(1)</script> \"quoted\" \\ & ünï";
    let job = prints(text);
    let lines = wait_for("the lines", LONG, || {
        Some(job.json("/lines.json")).filter(|l| l["lines"].as_array().is_some_and(|all| all.len() == 2))
    });
    let ranks: Vec<&Value> = lines["lines"].as_array().unwrap().iter().collect();
    assert!(ranks.iter().all(|l| l[4] == text && l[2] == false), "{lines}");
    let mut of: Vec<u64> = ranks.iter().map(|l| l[1].as_u64().unwrap()).collect();
    of.sort_unstable();
    assert_eq!((of, lines["last"].as_u64()), (vec![0, 1], Some(2)));
    let after = |query: &str| {
        let path =
            format!("GET /lines.json?{query}&token={} HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", job.token, job.port);
        serde_json::from_str::<Value>(&job.say(&path).body).unwrap()["lines"].as_array().unwrap().len()
    };
    assert_eq!((after("after=1"), after("after=0&rank=1"), after("after=9")), (1, 1, 0));
    let page = job.get("/");
    for part in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "nosniff",
        "no-referrer",
        "no-store",
        "frame-ancestors 'none'",
    ] {
        assert!(page.head.contains(part), "{part}: {}", page.head);
    }
    assert!(page.body.starts_with("<!doctype html>") && !page.body.contains("{token}") && !page.body.contains("alert"));
    for (path, kind) in
        [("/page.js", "text/javascript"), ("/style.css", "text/css"), ("/state.json", "application/json")]
    {
        let answer = job.get(path);
        assert!(answer.code == 200 && answer.head.contains(kind), "{path}: {}", answer.head);
    }
    // Programs that do not use oflow have output and no more.
    let state = job.json("/state.json");
    assert_eq!((state["world"].as_u64(), state["ranks"].as_array().map(Vec::len)), (Some(2), Some(0)));
    job.end();
}

#[test]
fn ranks_are_shown_with_ops_metrics_boxings_and_steps() {
    let job = Watched::trains();
    let state = job.state("two ranks with steps, and metrics", |s| {
        let ranks = s["ranks"].as_array().unwrap();
        ranks.len() == 2 && ranks.iter().all(|r| r["steps"].as_f64() > Some(0.0)) && s["metrics"].as_u64() > Some(20)
    });
    assert_eq!((state["status"].as_str(), state["hosts"].as_array().map(Vec::len)), (Some("running"), Some(1)));
    for rank in state["ranks"].as_array().unwrap() {
        assert!(rank["place"].as_str().unwrap().contains("watch.rs:"), "{rank}");
        assert!(rank["resident"].as_u64() > Some(1 << 20) && rank["memory"][0][0] == "cpu", "{rank}");
        let shares: f64 = rank["shares"].as_array().unwrap().iter().filter_map(Value::as_f64).sum();
        assert!((0.99..1.01).contains(&shares), "{rank}");
    }
    let metrics = job.json("/metrics.json");
    let names: Vec<&str> = metrics["curves"].as_array().unwrap().iter().filter_map(|c| c["name"].as_str()).collect();
    assert_eq!(names, ["loss", HOSTILE]);
    let loss = metrics["curves"][0]["points"].as_array().unwrap();
    assert!(loss.len() > 5 && loss.iter().all(|p| p[3].as_f64() > Some(0.0)), "{metrics}");
    let drawn =
        job.state("a boxing of a tensor", |s| s["boxings"].as_array().unwrap().iter().any(|b| b["drawn"] == true));
    let boxing = drawn["boxings"].as_array().unwrap().iter().find(|b| b["drawn"] == true).unwrap().clone();
    assert!(boxing["mesh"].as_str().unwrap().starts_with("cpu[dp=2"), "{boxing}");
    let picture = job.say(&format!(
        "GET /layout.svg?boxing={}&end=to&token={} HTTP/1.1\r\nHost: localhost:{}\r\n\r\n",
        boxing["number"], job.token, job.port
    ));
    // It may have been replaced by later ones meanwhile.
    assert!(picture.code == 404 || (picture.body.starts_with("<svg") && picture.head.contains("image/svg+xml")));
    job.end();
}

#[test]
fn a_stall_is_shown_long_before_it_ends_the_job() {
    let job = Watched::trains();
    job.state("both ranks", |s| s["ranks"].as_array().map(Vec::len) == Some(2));
    let hold = job.folder.path().join("hold");
    fs::write(&hold, "").unwrap();
    let state = job.state("the wait", |s| s["held"].as_array().is_some_and(|h| !h.is_empty()));
    let held = &state["held"][0];
    assert_eq!(
        (held["rank"].as_u64(), held["waiting"].as_u64(), state["status"].as_str()),
        (Some(1), Some(1), Some("waiting"))
    );
    let text = held["text"].as_str().unwrap();
    assert!(text.starts_with("rank 0 ") && text.contains("rank 1"), "{held}");
    assert_eq!(state["stall"].as_f64(), Some(300.0));
    let state = job.state("rank 0 to be shown as waiting", |s| s["ranks"][0]["phase"] == "waiting");
    assert_eq!(state["ranks"][0]["wait"]["ranks"][0].as_u64(), Some(1));
    fs::remove_file(&hold).unwrap();
    job.state("the job to go on", |s| s["held"].as_array().is_some_and(Vec::is_empty));
    job.end();
}

#[test]
fn a_port_that_is_taken_is_said_before_the_job() {
    let folder = Folder::new();
    folder.sh("hello", "echo hello");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let output = run(&folder, &["-n", "1", &format!("--watch={port}"), "./hello"]);
    assert_eq!((code(&output), stdout(&output).as_str()), (1, ""));
    assert!(stderr(&output).contains(&format!("cannot be served on port {port}")), "{}", stderr(&output));
    let output = run(&folder, &["-n", "1", "--watch=x", "./hello"]);
    assert_eq!(code(&output), 2);
}

#[test]
fn top_needs_a_terminal() {
    let folder = Folder::new();
    folder.sh("hello", "echo hello");
    let output = run(&folder, &["-n", "1", "--top", "./hello"]);
    assert_eq!((code(&output), stdout(&output).as_str()), (2, ""));
    assert!(stderr(&output).contains("--top draws on a terminal, and standard error is none"), "{}", stderr(&output));
}

/// Text as a terminal shows it at the end, line by line, of the few sequences that are used.
fn shown(text: &str) -> Vec<String> {
    let (mut lines, mut at) = (vec![String::new()], 0);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\n' => {
                at += 1;
                if at == lines.len() {
                    lines.push(String::new());
                }
            }
            '\r' => {}
            '\x1b' => {
                let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                match (&rest[1..end], &rest[end..=end]) {
                    (n, "A") => at -= n.parse::<usize>().unwrap(),
                    ("", "J") => {
                        lines.truncate(at);
                        lines.push(String::new());
                    }
                    ("?7", "l" | "h") => {}
                    other => panic!("{other:?}"),
                }
                rest = &rest[end + 1..];
            }
            c => lines[at].push(c),
        }
    }
    lines
}

#[test]
fn top_draws_below_the_output_and_leaves_the_terminal_clean() {
    let folder = Folder::new();
    let (ours, programs) = super::terminal::terminal();
    let mut command = oflaunch(&folder);
    let path = folder.path().to_str().unwrap();
    command
        .args(["-n", "2", "--threads", "1", "--top", trainer(), "--", path, "32", "1000000000"])
        .env("NO_COLOR", "1");
    command.stdout(programs.try_clone().unwrap()).stderr(programs);
    let mut child = command.spawn().unwrap();
    drop(command);
    // The test reads until the job has ended, and ends it once a frame with both ranks has been drawn.
    let (mut text, mut buffer, mut ours) = (Vec::new(), [0; 4096], ours);
    let mut ending = false;
    while let Ok(n @ 1..) = ours.read(&mut buffer) {
        text.extend_from_slice(&buffer[..n]);
        let seen = String::from_utf8_lossy(&text);
        if !ending && seen.contains("steps/s") && seen.contains("loss ") && seen.contains("watch.rs:") {
            ending = true;
            fs::write(folder.path().join("end"), "").unwrap();
        }
    }
    let text = String::from_utf8(text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    assert!(ending, "{text}");
    let lines = shown(&text.replace("\r\n", "\n"));
    // Nothing of the frame is left, and no line of a rank is lost or torn.
    assert!(lines.iter().all(|l| l.is_empty() || l.starts_with("[rank ") || l.starts_with("oflaunch: ")), "{lines:#?}");
    for rank in 0..2 {
        let hello = format!("[rank {rank}] {HOSTILE} of rank {rank}");
        assert!(
            lines.contains(&hello)
                && lines.iter().any(|l| l.starts_with(&format!("[rank {rank}] ")) && l.ends_with(" s")),
            "{lines:#?}"
        );
    }
}

#[test]
fn node_0_shows_the_ranks_of_all_hosts() {
    let folder = Folder::new();
    let path = folder.path().to_str().unwrap().to_string();
    let port = hosts::free_port();
    let rdzv = format!("127.0.0.1:{port}");
    let token = folder.write("token", &format!("{}\n", "ab".repeat(32)));
    fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let common = ["-n", "1", "--threads", "1", "--nnodes", "2", "--rdzv", &rdzv, "--token-file", "token"];
    let mut other =
        Running::start(&folder, &[&common[..], &["--node-rank", "1", "--watch", trainer(), "--", &path]].concat());
    let job = Watched::start(folder, &[&common[..], &["--node-rank", "0"]].concat(), trainer(), &[&path]);
    other.said("--watch and --top show the job on node 0; this host is another one");
    let state = job.state("ranks of both hosts", |s| {
        s["ranks"].as_array().is_some_and(|all| all.len() == 2 && all.iter().all(|r| r["steps"].as_f64() > Some(0.0)))
    });
    assert_eq!((state["hosts"].as_array().map(Vec::len), state["world"].as_u64()), (Some(2), Some(2)));
    job.end();
    let (status, err) = other.finish();
    assert_eq!(status.code(), Some(0), "{err}");
}
