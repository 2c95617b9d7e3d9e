//! Messages of an attacker to the ports of a job: HTTP/2 and gRPC by hand, so that any part of them can be wrong.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use crate::Random;

/// Start of every HTTP/2 connection.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The calls of the control service that ranks make.
pub const CALLS: &[&str] =
    &["Join", "Put", "Get", "CompareAndSet", "Meet", "Heartbeat", "Watch", "ReportFailure", "SubmitReport", "Leave"];
/// Largest body of an HTTP/2 frame that nobody has to announce.
const FRAME: usize = 16 << 10;
const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;
const DATA: u8 = 0;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The TCP ports at which a process listens.
pub fn listening(pid: i32) -> BTreeSet<u16> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = descriptors.filter_map(|d| fs::read_link(d.path()).ok()).map(|l| l.display().to_string());
    let own: BTreeSet<String> =
        links.filter_map(|l| Some(l.strip_prefix("socket:[")?.strip_suffix(']')?.to_string())).collect();
    let tables = ["tcp", "tcp6"].map(|t| fs::read_to_string(format!("/proc/{pid}/net/{t}")).unwrap_or_default());
    let rows = tables.iter().flat_map(|t| t.lines().skip(1)).map(|l| l.split_whitespace().collect::<Vec<_>>());
    // Local address in column 1, state in 3 (0A listens), inode in 9.
    rows.filter(|r| r.len() > 9 && r[3] == "0A" && own.contains(r[9]))
        .filter_map(|r| u16::from_str_radix(r[1].rsplit(':').next()?, 16).ok())
        .collect()
}

/// A variable in the environment that a process was started with.
pub fn variable(pid: i32, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let text = String::from_utf8_lossy(&environment).into_owned();
    text.split('\0').find_map(|v| Some(v.strip_prefix(name)?.strip_prefix('=')?.to_string()))
}

/// Connects to a port of this machine.
pub fn connect(port: u16) -> std::io::Result<TcpStream> {
    TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), Duration::from_secs(10))
}

/// Sends bytes to a port and reads what comes until the other side closes, or is silent for `patience`.
pub fn send(port: u16, bytes: &[u8], patience: Duration) -> Vec<u8> {
    connect(port).map_or(vec![], |stream| send_on(stream, bytes, patience))
}

/// The same on a connection that is there.
pub fn send_on(mut stream: TcpStream, bytes: &[u8], patience: Duration) -> Vec<u8> {
    let mut answer = vec![];
    if stream.set_read_timeout(Some(patience)).is_ok() && stream.set_write_timeout(Some(patience)).is_ok() {
        // It may be closed on us at any byte: that is an answer too.
        let _refused = stream.write_all(bytes);
        let mut part = [0; 4096];
        while let Ok(n @ 1..) = stream.read(&mut part) {
            answer.extend_from_slice(&part[..n]);
        }
    }
    answer
}

/// A frame of HTTP/2; the length may be a lie.
pub fn frame(length: usize, kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let mut f = (length as u32).to_be_bytes()[1..].to_vec();
    f.extend([kind, flags]);
    f.extend(stream.to_be_bytes());
    f.extend(body);
    f
}

/// A header field as HPACK writes it without tables or Huffman.
fn field(name: &str, value: &str) -> Vec<u8> {
    let mut f = vec![0];
    for text in [name, value] {
        // Lengths of 127 and more take a second byte.
        match text.len() {
            n @ ..127 => f.push(n as u8),
            n => f.extend([127, (n - 127).min(127) as u8]),
        }
        f.extend(text.as_bytes().iter().take(127 + 127));
    }
    f
}

/// The start of HTTP/2 with one gRPC call, up to its message.
pub fn head(path: &str) -> Vec<u8> {
    let mut fields = vec![];
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ] {
        fields.extend(field(name, value));
    }
    let mut all = PREFACE.to_vec();
    all.extend(frame(0, SETTINGS, 0, 0, &[]));
    all.extend(frame(fields.len(), HEADERS, END_HEADERS, 1, &fields));
    all
}

/// Frames of HTTP/2 for one gRPC call.
pub fn call(path: &str, message: &[u8]) -> Vec<u8> {
    let mut all = head(path);
    let mut body = vec![0];
    body.extend((message.len() as u32).to_be_bytes());
    body.extend(message);
    let frames = body.len().div_ceil(FRAME);
    for (i, part) in body.chunks(FRAME).enumerate() {
        all.extend(frame(part.len(), DATA, if i + 1 == frames { END_STREAM } else { 0 }, 1, part));
    }
    all
}

/// Whether the call of a connection ([`call`]) was answered, with whatever status: a header frame of its stream came back.
pub fn answered(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let [a, b, c, kind, _, s1, s2, s3, s4, after @ ..] = rest {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        if *kind == HEADERS && u32::from_be_bytes([*s1, *s2, *s3, *s4]) == 1 {
            return true;
        }
        rest = after.get(length..).unwrap_or_default();
    }
    false
}

/// The path of a call of ranks.
pub fn path(call: &str) -> String {
    format!("/oflow.control.v1.Control/{call}")
}

/// Bytes that were right, changed in a few places.
pub fn mutate(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..random.within(1..5) {
        let at = random.within(0..out.len() + 1);
        match random.within(0..6) {
            0 if at < out.len() => out[at] ^= 1 << random.within(0..8),
            1 if at < out.len() => out[at] = random.draw() as u8,
            2 => out.truncate(at),
            3 => {
                // A length or a count that promises too much.
                let huge = [0xff; 9];
                out.splice(at..at, huge[..random.within(1..10)].iter().copied());
            }
            4 if at < out.len() => {
                let end = (at + random.within(1..33)).min(out.len());
                let part = out[at..end].to_vec();
                out.splice(at..at, part);
            }
            _ => {
                let noise: Vec<u8> = (0..random.within(1..17)).map(|_| random.draw() as u8).collect();
                out.splice(at..at, noise);
            }
        }
    }
    out
}

/// A protobuf message of any schema: fields of low numbers and every wire type, with messages, text and JSON in them.
pub fn message(random: &mut Random, depth: usize) -> Vec<u8> {
    let mut out = vec![];
    for _ in 0..random.within(0..6) {
        let number = random.within(1..16) as u8;
        match random.within(0..8) {
            0 | 1 => {
                out.push(number << 3);
                varint(&mut out, interesting(random));
            }
            2 => {
                out.push(number << 3 | 1);
                out.extend(random.draw().to_le_bytes());
            }
            3 => {
                out.push(number << 3 | 5);
                out.extend((random.draw() as u32).to_le_bytes());
            }
            kind => {
                let body = match kind {
                    4 | 5 if depth > 0 => message(random, depth - 1),
                    6 => json(random, 3).into_bytes(),
                    _ => text(random).into_bytes(),
                };
                out.push(number << 3 | 2);
                varint(&mut out, body.len() as u64);
                out.extend(body);
            }
        }
    }
    out
}

/// Numbers at which code breaks, and some others.
fn interesting(random: &mut Random) -> u64 {
    match random.within(0..8) {
        0 => 0,
        1 => 1,
        2 => u64::from(u32::MAX),
        3 => u64::MAX,
        4 => 1 << 63,
        5 => random.draw(),
        _ => random.within(0..6) as u64,
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn text(random: &mut Random) -> String {
    let words = ["", "a", "key", "0.1.0", "é\u{0}\u{1b}[31m", "%n%s", "../../etc/passwd", "[", "rank"];
    let word = words[random.within(0..words.len())];
    word.repeat(if random.within(0..20) == 0 { 5000 } else { random.within(0..4) })
}

/// JSON with the names that oflow's own has, mostly of the wrong types.
pub fn json(random: &mut Random, depth: usize) -> String {
    const NAMES: &[&str] =
        &["rank", "kind", "message", "places", "op", "ordinal", "file", "line", "rows", "ranks", "time"];
    match random.within(0..if depth == 0 { 5 } else { 8 }) {
        0 => "null".into(),
        1 => interesting(random).to_string(),
        2 => "-1.5e999".into(),
        3 => "\"killed\"".into(),
        4 => format!("{:?}", text(random)),
        5 => format!("[{}]", (0..random.within(0..4)).map(|_| json(random, depth - 1)).collect::<Vec<_>>().join(",")),
        _ => {
            let field = |random: &mut Random| {
                let name = NAMES[random.within(0..NAMES.len())];
                format!("\"{name}\":{}", json(random, depth - 1))
            };
            format!("{{{}}}", (0..random.within(0..5)).map(|_| field(random)).collect::<Vec<_>>().join(","))
        }
    }
}

/// Bytes without any meaning.
pub fn noise(length: usize, random: &mut Random) -> Vec<u8> {
    (0..length).map(|_| random.draw() as u8).collect()
}

/// Start of a connection to the control plane: magic, version, whether TLS follows, nonce.
fn hello(version: u32, tls: u8) -> Vec<u8> {
    [&b"oflowctl"[..], &version.to_le_bytes(), &[tls, 0, 0, 0], &[7; 16]].concat()
}

/// Everything that is wrong without a token: what is sent to a port, by name.
pub fn without_token(random: &mut Random) -> Vec<(&'static str, Vec<u8>)> {
    let oversized = frame(0xff_ffff, DATA, 0, 1, &[0; 1000]);
    let mut lying = head(&path("Put"));
    lying.extend(frame(5, DATA, 0, 1, &[0, 0xff, 0xff, 0xff, 0xff]));
    let mut compressed = head(&path("Put"));
    compressed.extend(frame(6, DATA, END_STREAM, 1, &[1, 0, 0, 0, 1, 0]));
    let many = |kind: u8, body: &[u8]| -> Vec<u8> {
        let first = [PREFACE, &frame(0, SETTINGS, 0, 0, &[])].concat();
        (0..2000u32).fold(first, |mut all, i| {
            let stream = if kind == HEADERS { 2 * i + 1 } else { 0 };
            all.extend(frame(body.len(), kind, if kind == HEADERS { END_HEADERS } else { 0 }, stream, body));
            all
        })
    };
    vec![
        ("nothing", vec![]),
        ("noise", noise(random.within(1..2000), random)),
        ("much noise", noise(200_000, random)),
        ("zeros", vec![0; 5000]),
        ("ones", vec![0xff; 5000]),
        ("HTTP/1", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("TLS", [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &noise(500, random)].concat()),
        ("half a preface", PREFACE[..10].to_vec()),
        ("a preface and noise", [PREFACE, &noise(500, random)].concat()),
        ("an oversized frame", [PREFACE, &frame(0, SETTINGS, 0, 0, &[]), &oversized].concat()),
        ("a length that lies", lying),
        ("a compression that is none", compressed),
        // Each with an acknowledgement that the other side must send.
        ("a flood of settings", many(SETTINGS, &[])),
        ("a flood of pings", many(6, &[0; 8])),
        ("a flood of streams", many(HEADERS, &field(":method", "POST"))),
        ("a call without a handshake", call(&path("Get"), &[])),
        ("a failure without a handshake", call(&path("ReportFailure"), b"\x08\x01\x12\x04boom")),
        ("an unknown call", call("/oflow.control.v1.Control/Nothing", &[])),
        ("an unknown service", call("/x/y", &[])),
        ("a node without a handshake", call("/oflow.control.v1.Nodes/Attach", &[])),
        ("half a hello", hello(1, 0)[..17].to_vec()),
        ("a hello and no proof", hello(1, 0)),
        ("a hello and a proof of noise", [hello(1, 0), noise(32, random)].concat()),
        ("a hello, zeros and a call", [hello(1, 0), vec![0; 32], call(&path("Get"), &[])].concat()),
        ("a hello and a call", [hello(1, 0), call(&path("Get"), &[])].concat()),
        ("a hello with TLS", hello(1, 1)),
        ("a hello of no meaning", hello(1, 9)),
        ("a hello of another version", [hello(u32::MAX, 0), noise(32, random)].concat()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn own_ports_are_found() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let own = std::process::id() as i32;
        assert!(listening(own).contains(&port));
        drop(listener);
        assert!(!listening(own).contains(&port));
    }

    #[test]
    fn frames_are_as_the_standard_has_them() {
        assert_eq!(frame(8, 6, 0, 0, &[0; 8]), [0, 0, 8, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(field("te", "trailers"), b"\0\x02te\x08trailers");
        let ping = frame(2, 6, 0, 0, &[0, 1]);
        assert!(answered(&[&ping[..], &frame(1, HEADERS, END_HEADERS, 1, b"x")].concat()));
        assert!(!answered(&[&ping[..], &frame(1, HEADERS, END_HEADERS, 3, b"x"), &ping[..5]].concat()));
        let long = field("t", &"x".repeat(200));
        assert_eq!((long[2], long[3], long[4], long.len()), (b't', 127, 73, 205));
    }

    #[test]
    fn mutations_differ_and_any_length_will_do() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            mutate(&[], &mut random);
        }
        assert!((0..100).any(|_| mutate(b"hello", &mut random) != b"hello"));
    }
}
