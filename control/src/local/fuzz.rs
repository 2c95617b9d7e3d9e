//! For `cargo xtask fuzz`: the messages that ranks of one host send each other, as one call over some bytes.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use super::wire::{Hello, Surroundings, Welcome, receive, send};

/// Feeds a rank bytes from the socket of its host: first byte even, the first rank reads a hello; odd, another one the
/// answer.
///
/// # Errors
/// When there is no socket.
pub fn wire(input: &[u8]) -> Result<bool, String> {
    let Some((&how, bytes)) = input.split_first() else { return Ok(false) };
    let failed = |e: std::io::Error| format!("the test itself has failed: {e}");
    let (mut far, near) = UnixStream::pair().map_err(failed)?;
    far.write_all(bytes).map_err(failed)?;
    far.shutdown(Shutdown::Write).map_err(failed)?;
    if how & 1 != 0 {
        return Ok(receive::<Welcome>(&near).is_ok());
    }
    let Ok((hello, _)) = receive::<Hello>(&near) else { return Ok(false) };
    let own = Hello { local_rank: 0, ..sample() };
    Ok(hello.misfit(&own).is_none())
}

fn sample() -> Hello {
    Hello { version: "1".into(), rank: 4, world: 8, local_rank: 1, local_world: 4, cores: vec![0, 1] }
}

/// Messages of both kinds.
///
/// # Errors
/// When there is no socket.
pub fn recorded() -> Result<Vec<Vec<u8>>, String> {
    let token = "0".repeat(64);
    let place = Surroundings { token, address: "127.0.0.1".into(), port: 29400, threads: 2 };
    let hello = Hello { rank: 5, ..sample() };
    Ok(vec![
        [vec![0], said(&hello)?].concat(),
        [vec![1], said(&Welcome::Surroundings(place))?].concat(),
        [vec![1], said(&Welcome::Refused("no".into()))?].concat(),
    ])
}

fn said<T: serde::Serialize>(message: &T) -> Result<Vec<u8>, String> {
    let failed = |e: std::io::Error| format!("the test itself has failed: {e}");
    let (mut far, near) = UnixStream::pair().map_err(failed)?;
    send(&near, message, None).map_err(failed)?;
    drop(near);
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut far, &mut bytes).map_err(failed)?;
    Ok(bytes)
}
