//! Connects the ranks of different hosts: ranks exchange the addresses at which they listen, and open their links.

use crate::boxing::Hosts;
use crate::comm::hosts::{ALONE_CAPACITY, HostsComm, HostsTransport};
use crate::comm::shm::{ShmArena, ShmOptions};
use crate::comm::tcp::{Alarm, Listener, MeshOptions, local_address};
use crate::comm::{Collectives, Communicator};
use crate::control::{ControlClient, LaunchEnv};
use crate::error::{Error, Result};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The address that a rank sends: `node capacity address host`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Card {
    node: usize,
    capacity: usize,
    address: SocketAddr,
    host: String,
}

impl Card {
    fn text(&self) -> String {
        format!("{} {} {} {}", self.node, self.capacity, self.address, self.host)
    }
    fn parse(rank: usize, bytes: &[u8]) -> Result<Card> {
        let text = std::str::from_utf8(bytes).unwrap_or("");
        let mut parts = text.splitn(4, ' ');
        let mut next = || parts.next().unwrap_or("");
        match (next().parse(), next().parse(), next().parse(), next()) {
            (Ok(node), Ok(capacity), Ok(address), host) => Ok(Card { node, capacity, address, host: host.to_string() }),
            _ => Err(Error::comm(format!("the address that rank {rank} has sent cannot be parsed"))),
        }
    }
}

/// The communicator of a rank in a job on several hosts, and which ranks are on which.
pub(super) fn join(
    env: &LaunchEnv,
    control: &ControlClient,
    arena: Option<Arc<ShmArena>>,
) -> Result<(Arc<dyn Communicator>, Hosts)> {
    let capacity = arena.as_ref().map_or(ALONE_CAPACITY, |a| a.capacity());
    let listener = Listener::bind(own_address(env)?)?;
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host.trim().chars().take(64).collect();
    let card = Card { node: env.node, capacity, address: listener.address(), host };
    let cards = control.meet("data plane", env.world, card.text().as_bytes(), env.wait_limit())?;
    let cards = cards.iter().enumerate().map(|(r, b)| Card::parse(r, b)).collect::<Result<Vec<_>>>()?;
    if cards.len() != env.world {
        return Err(Error::comm(format!("{} of {} ranks have sent their addresses", cards.len(), env.world)));
    }
    let alarm = Alarm::new()?;
    let raised = alarm.clone();
    control.on_failure(move |failure| raised.raise(failure.to_string()));
    let capacity = cards.iter().map(|c| c.capacity).min().unwrap_or(capacity);
    let hosts: Vec<usize> = cards.iter().map(|c| c.node).collect();
    let names: Vec<String> = cards.iter().map(|c| format!("{} (node {})", c.host, c.node)).collect();
    let addresses: Vec<SocketAddr> = cards.iter().map(|c| c.address).collect();
    let timeout = env.wait_limit();
    let shm = ShmOptions { timeout, ..Default::default() };
    // All ranks have opened the arena of their host before they sent their addresses.
    let own_core = arena.as_ref().is_none_or(|arena| arena.cores().is_some_and(|cores| env.local_world <= cores));
    let options = MeshOptions { timeout, outage: env.outage, ..MeshOptions::new(capacity, own_core) };
    let token = env.token.expose().as_bytes();
    let links = listener.connect(env.rank, &hosts, &names, &addresses, token, alarm, &options)?;
    let known = Hosts::of(&hosts);
    let comm: HostsComm = Collectives::new(HostsTransport::new(env.rank, hosts, arena, shm, links, capacity)?);
    Ok((Arc::new(comm), known))
}

/// The host of each rank, by all ranks' telling.
pub(super) fn of_ranks(env: &LaunchEnv, control: &ControlClient) -> Result<Vec<usize>> {
    let answers = control.meet("hosts", env.world, &(env.node as u64).to_le_bytes(), env.wait_limit())?;
    let host = |bytes: &Vec<u8>| Some(u64::from_le_bytes(bytes.as_slice().try_into().ok()?) as usize);
    let hosts: Option<Vec<usize>> = answers.iter().map(host).collect();
    hosts.filter(|h| h.len() == env.world).ok_or_else(|| Error::comm("the ranks have sent no hosts"))
}

/// The address by which other hosts reach this one.
fn own_address(env: &LaunchEnv) -> Result<IpAddr> {
    env.address.map_or_else(|| local_address((env.master_addr.as_str(), env.master_port)), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_read_back_and_others_refused() {
        let card = Card { node: 3, capacity: 4096, address: "[::1]:77".parse().unwrap(), host: "a b".into() };
        assert_eq!(Card::parse(0, card.text().as_bytes()).unwrap(), card);
        for bad in ["", "1", "1 2 3 4", "x 1 127.0.0.1:1 h", "1 -1 127.0.0.1:1 h"] {
            let e = Card::parse(5, bad.as_bytes()).unwrap_err();
            assert_eq!(e.message(), "the address that rank 5 has sent cannot be parsed");
        }
        assert!(Card::parse(5, &[0xff, 0xfe]).is_err());
    }
}
