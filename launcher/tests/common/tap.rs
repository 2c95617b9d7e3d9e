//! A proxy that passes connections on and keeps what is said.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

type Recording = Arc<Mutex<Vec<u8>>>;

/// Stands before a server.
pub struct Tap {
    pub address: SocketAddr,
    said: Recording,
    answered: Recording,
}

impl Tap {
    /// Clients that connect to its address speak with the server at `server`, which may come later.
    pub fn before(server: impl ToString) -> Tap {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let tap =
            Tap { address: listener.local_addr().unwrap(), said: Recording::default(), answered: Recording::default() };
        let (server, said, answered) = (server.to_string(), tap.said.clone(), tap.answered.clone());
        // The threads end with the connections.
        std::thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                // Who finds nobody comes again.
                let Ok(far) = TcpStream::connect(&server) else { continue };
                pass(near.try_clone().unwrap(), far.try_clone().unwrap(), said.clone());
                pass(far, near, answered.clone());
            }
        });
        tap
    }

    /// What the clients have said so far.
    pub fn said(&self) -> Vec<u8> {
        self.said.lock().unwrap().clone()
    }

    /// What the server has answered so far.
    pub fn answered(&self) -> Vec<u8> {
        self.answered.lock().unwrap().clone()
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, tape: Recording) {
    std::thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut part) {
            tape.lock().unwrap().extend_from_slice(&part[..n]);
            if to.write_all(&part[..n]).is_err() {
                return;
            }
        }
        let _may_be_closed = to.shutdown(std::net::Shutdown::Write);
    });
}
