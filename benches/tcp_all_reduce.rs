//! All-reduce (f32, sum) over TCP on the loopback interface between two processes, beside gloo and beside raw sockets that
//! move the same bytes: from one tensor to another of the same size, and through one small buffer that stays in the cache.
//!
//! `PYTHON=/path/to/python/with/torch cargo bench --bench tcp_all_reduce [-- BYTES…]`; without PYTHON gloo is left out.

use oflow::comm::hosts::{ALONE_CAPACITY, HostsTransport};
use oflow::comm::shm::ShmOptions;
use oflow::comm::tcp::{Alarm, Listener, MeshOptions};
use oflow::comm::{Collectives, Communicator, DType, Group, ReduceOp, Tag};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CHILD: &str = "OFLOW_BENCH_CHILD";
/// Bytes and repetitions of one sample.
const SIZES: [(usize, u32); 8] = [
    (4 << 10, 1000),
    (16 << 10, 500),
    (64 << 10, 200),
    (256 << 10, 100),
    (1 << 20, 40),
    (4 << 20, 12),
    (16 << 20, 4),
    (64 << 20, 2),
];
const SAMPLES: usize = 7;
/// Bytes of a buffer that stays in a core's cache.
const CACHED: usize = 256 << 10;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The sizes asked for, or all.
fn sizes() -> Vec<(usize, u32)> {
    let asked: Vec<usize> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    SIZES.into_iter().filter(|(bytes, _)| asked.is_empty() || asked.contains(bytes)).collect()
}

/// Best time of a call by size, of a function that runs a sample.
fn times(mut sample: impl FnMut(usize, u32) -> Outcome<Duration>) -> Outcome<Vec<f64>> {
    let mut best = Vec::new();
    for (bytes, n) in sizes() {
        sample(bytes, n.div_ceil(4))?;
        let mut least = f64::MAX;
        for _ in 0..SAMPLES {
            least = least.min(sample(bytes, n)?.as_secs_f64() / f64::from(n) * 1e6);
        }
        best.push(least);
    }
    Ok(best)
}

fn oflow(comm: &impl Communicator) -> Outcome<Vec<f64>> {
    let group = Group { ranks: vec![0, 1], me: comm.rank() };
    let mut ordinal = 0;
    let mut buf = Vec::new();
    times(|bytes, n| {
        // Made once a size, as gloo's tensor is: the warm-up meets its new pages.
        buf.resize(bytes, 0u8);
        let start = Instant::now();
        for _ in 0..n {
            ordinal += 1;
            let tag =
                Tag { ordinal, hash: ordinal, op: "bench", file: file!(), line: line!(), scope: Default::default() };
            comm.all_reduce(&group, &tag, &buf.clone(), &mut buf, DType::F32, ReduceOp::Sum)?;
        }
        Ok(start.elapsed())
    })
}

/// Both processes send as many bytes as an all-reduce between two moves each way, at once, and do nothing with them: from a
/// buffer of `most` bytes at most, again and again, and into another.
fn raw(stream: &mut TcpStream, most: usize) -> Outcome<Vec<f64>> {
    stream.set_nodelay(true)?;
    let mut out = stream.try_clone()?;
    let (mut from, mut into) = (Vec::new(), Vec::new());
    times(|bytes, n| {
        from.resize(bytes.min(most), 1u8);
        into.resize(bytes.min(most), 0u8);
        let start = Instant::now();
        for _ in 0..n {
            if bytes <= CACHED {
                out.write_all(&from)?;
                stream.read_exact(&mut into)?;
                continue;
            }
            // More than the sockets' buffers may hold: written and read as it goes.
            stream.set_nonblocking(true)?;
            let (mut sent, mut got) = (0, 0);
            while sent < bytes || got < bytes {
                let mut idle = true;
                if sent < bytes {
                    let at = sent % from.len();
                    match out.write(&from[at..from.len().min(at + CACHED)]) {
                        Ok(n) => (sent, idle) = (sent + n, false),
                        Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                        Err(e) => return Err(e.into()),
                    }
                }
                if got < bytes {
                    let at = got % into.len();
                    let end = into.len().min(at + CACHED);
                    match stream.read(&mut into[at..end]) {
                        Ok(0) => return Err("the other end has closed".into()),
                        Ok(n) => (got, idle) = (got + n, false),
                        Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                        Err(e) => return Err(e.into()),
                    }
                }
                if idle {
                    std::hint::spin_loop();
                }
            }
            stream.set_nonblocking(false)?;
        }
        Ok(start.elapsed())
    })
}

fn comm(rank: usize, listener: Listener, addresses: &[SocketAddr]) -> Outcome<impl Communicator> {
    let own_core = std::thread::available_parallelism()?.get() >= 2;
    let options = MeshOptions::new(ALONE_CAPACITY, own_core);
    let names = ["a".to_string(), "b".to_string()];
    let links = listener.connect(rank, &[0, 1], &names, addresses, b"bench", Alarm::new()?, &options)?;
    let shm = ShmOptions::default();
    Ok(Collectives::new(HostsTransport::new(rank, vec![0, 1], None, shm, links, ALONE_CAPACITY)?))
}

fn line(from: &mut impl BufRead) -> Outcome<String> {
    let mut text = String::new();
    from.read_line(&mut text)?;
    Ok(text.trim().to_string())
}

fn gloo(python: &str) -> Outcome<Vec<f64>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/all_reduce_gloo.py");
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port().to_string();
    let sizes: Vec<String> = sizes().iter().map(|(b, n)| format!("{b}:{n}")).collect();
    let start =
        |rank: &str| Command::new(python).args([script, rank, &port, &sizes.join(",")]).stdout(Stdio::piped()).spawn();
    let (zero, mut one) = (start("0")?, start("1")?);
    let out = zero.wait_with_output()?;
    one.wait()?;
    let text = String::from_utf8(out.stdout)?;
    Ok(text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
}

fn main() -> Outcome<()> {
    let listener = Listener::bind(Ipv4Addr::LOCALHOST.into())?;
    if let Some(first) = std::env::var_os(CHILD) {
        let first = first.to_string_lossy().into_owned();
        let mut parts = first.split(' ');
        let (peer, sink) = (parts.next().unwrap_or("").parse()?, parts.next().unwrap_or("").to_string());
        println!("{}", listener.address());
        let own = listener.address();
        oflow(&comm(1, listener, &[peer, own])?)?;
        let mut stream = TcpStream::connect(sink)?;
        raw(&mut stream, usize::MAX)?;
        raw(&mut stream, CACHED)?;
        return Ok(());
    }
    let sink = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let told = format!("{} {}", listener.address(), sink.local_addr()?);
    let mut child = Command::new(std::env::current_exe()?)
        .args(std::env::args().skip(1))
        .env(CHILD, told)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = BufReader::new(child.stdout.take().ok_or("the child says nothing")?);
    let peer: SocketAddr = line(&mut said)?.parse()?;
    let own = listener.address();
    let ours = oflow(&comm(0, listener, &[own, peer])?)?;
    let mut stream = sink.accept()?.0;
    let (bare, cached) = (raw(&mut stream, usize::MAX)?, raw(&mut stream, CACHED)?);
    child.wait()?;
    let peers: BTreeMap<&str, Vec<f64>> = match std::env::var("PYTHON") {
        Ok(python) => BTreeMap::from([("gloo", gloo(&python)?)]),
        Err(_) => BTreeMap::new(),
    };
    println!("    bytes    oflow us      raw us   raw/oflow   cached us  cached/oflow     gloo us  gloo/oflow");
    for (i, (bytes, _)) in sizes().into_iter().enumerate() {
        let gloo = peers.get("gloo").and_then(|g| g.get(i));
        let (time, ratio) =
            gloo.map_or(("-".into(), "-".into()), |g| (format!("{g:.1}"), format!("{:.2}", g / ours[i])));
        let (us, raw, in_cache) = (ours[i], bare[i], cached[i]);
        println!(
            "{bytes:>9} {us:>11.1} {raw:>11.1} {:>11.2} {in_cache:>11.1} {:>13.2} {time:>11} {ratio:>11}",
            raw / us,
            in_cache / us
        );
    }
    Ok(())
}
