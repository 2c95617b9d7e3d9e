//! Ports for jobs to meet at.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::TcpListener;

use crate::Random;

/// The lowest port that is tried: below are those of well-known services.
const LOWEST: usize = 10_000;
const TRIES: usize = 100;

/// A port of the loopback interface at which nobody listens now. It is chosen from below those that the kernel gives to
/// connections, or some connection of a busy machine might have it before the job does.
pub fn free_port() -> io::Result<u16> {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let end = range.split_whitespace().next().and_then(|low| low.parse().ok()).unwrap_or(32_768);
    let mut random = Random::new(RandomState::new().hash_one(()));
    let chosen = (LOWEST < end).then(|| (0..TRIES).map(|_| random.within(LOWEST..end) as u16));
    match chosen.into_iter().flatten().find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()) {
        Some(port) => Ok(port),
        None => Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_free_and_seldom_the_same() {
        let ports: std::collections::BTreeSet<u16> = (0..20).map(|_| free_port().unwrap()).collect();
        assert!(ports.len() > 15, "{ports:?}");
        let _listener = TcpListener::bind(("127.0.0.1", free_port().unwrap())).unwrap();
    }
}
