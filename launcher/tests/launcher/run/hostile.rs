//! Lines that no line should be: each is answered, and the next one runs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Talk, answers};
use oflow::testing::Random;

const GOOD: &str = r#"{"call":"relu","args":{"x":{"data":[-1.5,2],"sbp":["S(0)"]}},"mesh":[2],"id":"good"}"#;

#[test]
fn every_hostile_line_is_answered_and_the_next_one_runs() {
    let line = |text: &str| text.as_bytes().to_vec();
    let call = |call: &str, args: &str| line(&format!(r#"{{"call":"{call}","args":{args}}}"#));
    let many = |n: usize| "1,".repeat(n) + "1";
    let hostile: Vec<(Vec<u8>, &[&str])> = vec![
        (line("{"), &["json"]),
        (line("\u{0}\u{0}"), &["json"]),
        (vec![0xff, 0xfe, b'{'], &["json"]),
        ([&b"{\"call\":\""[..], &[0xc3, 0x28], b"\"}"].concat(), &["json"]),
        (line(&"[".repeat(1 << 20)), &["json"]),
        (line(&format!("{{\"call\":\"relu\",\"id\":{}}}", "[".repeat(5000) + &"]".repeat(5000))), &["json"]),
        (line(&"{\"a\":".repeat(100_000)), &["json"]),
        (line("1e999999"), &["json"]),
        (line(&"9".repeat(100_000)), &["json"]),
        (line("null"), &["argument"]),
        (line("\"relu\""), &["argument"]),
        (call("zeros", r#"{"shape":[1000000,1000000,1000000]}"#), &["shape", "memory"]),
        (call("zeros", r#"{"shape":[4294967296,4294967296]}"#), &["shape", "memory"]),
        (call("zeros", r#"{"shape":[1099511627776]}"#), &["memory"]),
        (call("zeros", r#"{"shape":[-1]}"#), &["argument", "shape"]),
        (call("zeros", r#"{"shape":[9223372036854775808]}"#), &["argument"]),
        (call("zeros", r#"{"shape":[33554432]}"#), &["memory"]),
        (call("relu", r#"{"x":{"data":[1],"shape":[9223372036854775807,2]}}"#), &["argument"]),
        (call("expand", r#"{"x":{"data":[[1]]},"shape":[1099511627776,1]}"#), &["memory"]),
        (call("reshape", r#"{"x":{"data":[1]},"shape":[-9223372036854775808]}"#), &["shape", "argument"]),
        (
            call(
                "slice",
                r#"{"x":{"data":[1]},"dim":0,"start":-9223372036854775808,"end":9223372036854775807,"step":0}"#,
            ),
            &["argument"],
        ),
        (call("permute", r#"{"x":{"data":[1]},"dims":[9223372036854775807]}"#), &["argument"]),
        (call("embedding", r#"{"weight":{"data":[[1.5]]},"ids":{"data":[7]}}"#), &["value"]),
        // One rank finds it, and the other misses that one.
        (
            line(
                r#"{"call":"embedding","args":{"weight":{"data":[[1.5],[2]]},"ids":{"data":[0,7],"sbp":["S(0)"]}},"mesh":[2]}"#,
            ),
            &["value"],
        ),
        (call("cat", r#"{"xs":[],"dim":0}"#), &["argument", "shape"]),
        (call("add", r#"{"a":{"data":[1,2]},"b":{"data":[1,2,3]}}"#), &["shape"]),
        (call("relu", r#"{"x":{"data":[1.5],"mesh":[64],"sbp":["S(0)"]}}"#), &["placement", "argument"]),
        (call("no such function", "{}"), &["registry"]),
        (call(&"x".repeat(1 << 20), "{}"), &["argument"]),
        (call(&"x".repeat(200), "{}"), &["registry"]),
        (line(r#"{"call":"relu","args":{"x":{"data":[1]}},"mesh":[65]}"#), &["argument"]),
        (line(r#"{"call":"relu","args":{"x":{"data":[1]}},"mesh":[2,0]}"#), &["argument"]),
        // Two million numbers for three places.
        (call("relu", &format!("{{\"x\":{{\"data\":[{}],\"shape\":[3]}}}}", many(2_000_000))), &["argument"]),
        // More than the process may take.
        (call("relu", &format!("{{\"x\":{{\"data\":[{}null]}}}}", "[],".repeat(8_000_000))), &["memory", "argument"]),
    ];
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for (bad, _) in &hostile {
        lines.extend([bad.clone(), GOOD.as_bytes().to_vec()]);
    }
    let (all, code) = answers(&lines, &["--memory", "512M"]);
    assert_eq!((all.len(), code), (lines.len(), 0));
    for (i, (bad, kinds)) in hostile.iter().enumerate() {
        let (answer, next) = (&all[2 * i], &all[2 * i + 1]);
        let shown = String::from_utf8_lossy(&bad[..bad.len().min(200)]).to_string();
        let kind = answer["kind"].as_str().unwrap_or_else(|| panic!("{shown}: {answer:.300}"));
        assert!(kinds.contains(&kind), "{shown}: {answer:.600}");
        assert_eq!(next["outputs"][0]["data"], json!([0.0, 2.0]), "after {shown}");
        assert_eq!((&next["id"], &next["line"]), (&json!("good"), &json!(2 * i + 2)));
    }
}

#[test]
fn a_line_longer_than_lines_may_be_is_skipped() {
    let long = vec![b' '; (256 << 20) + 10];
    let (all, code) = answers(&[long, GOOD.as_bytes().to_vec()], &[]);
    assert_eq!((all.len(), code), (2, 0));
    assert_eq!(all[0]["error"], "the line has more than 268435456 bytes");
    assert_eq!(all[1]["id"], "good");
}

/// More numbers than the machine makes in the time.
const SLOW: &str = r#"{"call":"randn","args":{"shape":[500000000]},"id":[1,{"a":"slow"}]}"#;

#[test]
fn a_line_that_takes_too_long_is_ended() {
    let mut talk = Talk::start(&["--timeout", "1.5"]);
    assert_eq!(talk.ask(GOOD)["id"], "good");
    let start = Instant::now();
    let answer = talk.ask(SLOW);
    assert_eq!((&answer["kind"], &answer["id"]), (&json!("timeout"), &json!([1, {"a": "slow"}])), "{answer:.300}");
    assert!(answer["error"].as_str().unwrap().contains("had not ended after 1.5 s"), "{answer}");
    assert!(start.elapsed() < Duration::from_secs(30));
    assert_eq!(talk.ask(GOOD)["id"], "good");
    assert_eq!(talk.end(), 0);
}

#[test]
fn a_process_that_is_killed_is_the_error_of_its_line() {
    let mut talk = Talk::start(&[]);
    talk.ask(GOOD);
    talk.say(SLOW);
    let pid = talk.process.id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let child: i32 = children.trim().parse().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    rustix::process::kill_process(rustix::process::Pid::from_raw(child).unwrap(), rustix::process::Signal::KILL)
        .unwrap();
    let answer = talk.hear();
    assert_eq!((&answer["kind"], &answer["id"]), (&json!("memory"), &json!([1, {"a": "slow"}])), "{answer:.300}");
    assert!(answer["error"].as_str().unwrap().contains("was killed (signal: 9 (SIGKILL))"), "{answer}");
    assert_eq!(talk.ask(GOOD)["id"], "good");
    assert_eq!(talk.end(), 0);
}

fn read(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap()
}

/// A random value inside another.
fn inside<'a>(v: &'a mut Value, random: &mut Random) -> &'a mut Value {
    let stop = random.below(12) == 0;
    let n = match v {
        Value::Array(all) => all.len(),
        Value::Object(all) => all.len(),
        _ => 0,
    };
    if stop || n == 0 {
        return v;
    }
    let at = random.below(n);
    let next = match v {
        Value::Array(all) => &mut all[at],
        Value::Object(all) => all.values_mut().nth(at).unwrap(),
        v => v,
    };
    inside(next, random)
}

/// Changes a value somewhere in a case: to an extreme one, to one of another case, or its name or place.
fn mutate(case: &mut Value, other: &Value, random: &mut Random) {
    let words = [
        json!(i64::MAX),
        json!(i64::MIN),
        json!(1u64 << 40),
        json!(1e308),
        json!("nan"),
        json!(null),
        json!([]),
        json!({}),
        json!(true),
        json!([2, 2]),
        json!("S(9)"),
        json!(["S(1)"]),
        json!(["P", "S(0)"]),
        json!(65),
        json!({"data": [1.5, -2]}),
        json!({"data": [[1], [0]], "sbp": null}),
        json!([-1]),
        json!({"mesh": [2]}),
        json!("cuda"),
    ];
    let texts = [
        "S(0)",
        "S(1)",
        "P",
        "P(max)",
        "P(min)",
        "B",
        "f16",
        "bf16",
        "f32",
        "f64",
        "i64",
        "i32",
        "u8",
        "i8",
        "bool",
        "nan",
        "inf",
        "-inf",
        "cpu",
        "add",
        "matmul",
        "sum",
        "cat",
        "softmax",
        "pow",
        "maximum",
        "prod",
        "cumsum",
        "embedding",
        "copy",
    ];
    let numbers = [
        json!(-1),
        json!(0),
        json!(1),
        json!(2),
        json!(3),
        json!(0.5),
        json!(-0.0),
        json!(1e30),
        json!(5e-324),
        json!(255),
        json!(i64::MAX),
        json!("nan"),
        json!("-inf"),
    ];
    let mut other = other.clone();
    let from = inside(&mut other, random).clone();
    let place = inside(case, random);
    match (random.below(8), place) {
        (0, Value::Object(all)) if !all.is_empty() => {
            let name = all.keys().nth(random.below(all.len())).cloned().unwrap();
            all.remove(&name);
        }
        (0, Value::Array(all)) if !all.is_empty() => drop(all.remove(random.below(all.len()))),
        (1, Value::Array(all)) => all.push(from),
        (2, Value::Object(all)) => {
            let name = (*random.of(&[
                "sbp", "mesh", "dtype", "shape", "grad", "dim", "x", "id", "kwargs", "ranks", "addends", "target",
            ]))
            .to_string();
            all.insert(name, random.of(&words).clone());
        }
        (3, place) => *place = from,
        (4, place) => *place = random.of(&words).clone(),
        (_, Value::Number(n)) if random.below(2) == 0 => {
            *n = (n.as_i64().unwrap_or(0).wrapping_add(random.below(5) as i64 - 2)).into();
        }
        (_, place @ Value::Number(_)) => *place = random.of(&numbers).clone(),
        (_, place @ Value::String(_)) => *place = json!(random.of(&texts)),
        (_, Value::Array(all)) if !all.is_empty() => {
            let at = random.below(all.len());
            let one = all[random.below(all.len())].clone();
            all[at] = one;
        }
        (_, place) => *place = random.of(&words).clone(),
    }
}

/// Valid lines, mutated at random: bytes changed, parts doubled, cut out, or taken from other lines, and numbers made extreme.
#[test]
fn mutated_lines_are_all_answered_and_none_is_a_fault() {
    let samples: Vec<Vec<u8>> = super::calls::cases().iter().map(|(case, _)| case.to_string().into_bytes()).collect();
    let mut random = Random::new(7);
    let words: &[&[u8]] = &[
        b"-1",
        b"0",
        b"9223372036854775807",
        b"-9223372036854775808",
        b"1e308",
        b"1e-320",
        b"\"nan\"",
        b"\"-inf\"",
        b"null",
        b"[]",
        b"{}",
        b"true",
        b"[2,2]",
        b"\"S(0)\"",
        b"\"S(9)\"",
        b"\"P\"",
        b"\"P(max)\"",
        b"\"B\"",
        b"65",
        b"\"bf16\"",
        b"\"i64\"",
        b"\"bool\"",
    ];
    let count = std::env::var("OFLOW_RUN_MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000);
    let mut lines: Vec<Vec<u8>> = Vec::new();
    while lines.len() < count {
        let mut line = random.of(&samples).clone();
        // Most stay JSON: only what is in it changes.
        if random.below(10) < 7 {
            let (mut case, other) = (read(&line), read(random.of::<Vec<u8>>(&samples)));
            for _ in 0..1 + random.below(2) {
                mutate(&mut case, &other, &mut random);
            }
            lines.push(case.to_string().into_bytes());
            continue;
        }
        for _ in 0..1 + random.below(3) {
            let at = random.below(line.len());
            // The number or word that begins here or later.
            let from = line[at..].iter().position(|b| b.is_ascii_digit() || *b == b'"').map_or(at, |n| at + n);
            let to = line[from..]
                .iter()
                .position(|b| matches!(b, b',' | b']' | b'}' | b':'))
                .map_or(line.len(), |n| from + n);
            match random.below(10) {
                0 => line[at] = random.below(256) as u8,
                1 => drop(line.drain(at..(at + random.below(20)).min(line.len()))),
                2 => {
                    let part = line[at..(at + random.below(40)).min(line.len())].to_vec();
                    line.splice(at..at, part);
                }
                3 => {
                    let other = random.of(&samples);
                    let start = random.below(other.len());
                    let part = other[start..(start + random.below(60)).min(other.len())].to_vec();
                    line.splice(at..at, part);
                }
                4 => line[at] ^= 1 << random.below(8),
                _ => drop(line.splice(from..to, random.of(words).to_vec())),
            }
            if line.is_empty() {
                line = b"{".to_vec();
            }
        }
        line.iter_mut().filter(|b| **b == b'\n').for_each(|b| *b = b' ');
        let text = line.trim_ascii();
        if !text.is_empty() && !text.starts_with(b"#") {
            lines.push(line);
        }
    }
    let (all, code) = answers(&lines, &["--memory", "1G", "--timeout", "20"]);
    assert_eq!((all.len(), code), (lines.len(), 0));
    let mut kinds = std::collections::BTreeMap::<String, usize>::new();
    let mut wrong = vec![];
    for (line, answer) in lines.iter().zip(&all) {
        let kind = answer["kind"].as_str().unwrap_or("outputs");
        *kinds.entry(kind.to_string()).or_default() += 1;
        if ["fault", "timeout", "diverged", "peer", "comm"].contains(&kind) {
            wrong.push(format!("{}\n    {answer:.2000}", String::from_utf8_lossy(line)));
        }
    }
    println!("{} mutated lines: {kinds:?}", lines.len());
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
    assert!(kinds["outputs"] > lines.len() / 20, "{kinds:?}");
}
