//! Links that end after a number of bytes.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// A proxy in front of a server. It runs until the test ends.
pub(super) struct BadLinks {
    to: SocketAddr,
    end_after: u64,
    ends: Arc<AtomicU32>,
}

impl BadLinks {
    /// Starts a proxy, and returns its address. `ends` counts the links that the proxy cut.
    pub(super) fn start(to: SocketAddr, end_after: u64, ends: &Arc<AtomicU32>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let links = Self { to, end_after, ends: ends.clone() };
        let carry = move || {
            thread::scope(|scope| {
                for client in listener.incoming() {
                    let (client, links) = (client.unwrap(), &links);
                    scope.spawn(move || links.carry(&client));
                }
            });
        };
        thread::Builder::new().spawn(carry).unwrap();
        address
    }

    /// Relays a connection until the client has sent `end_after` bytes, and then cuts it. Bytes in
    /// transit at the cut are lost. Any error ends the link.
    fn carry(&self, client: &TcpStream) {
        let Ok(server) = TcpStream::connect(self.to) else { return };
        thread::scope(|scope| {
            scope.spawn(|| {
                let _ = io::copy(&mut &server, &mut &*client);
                end(client, &server);
            });
            let _ = self.forward(client, &server);
            end(client, &server);
        });
    }

    fn forward(&self, mut client: &TcpStream, mut server: &TcpStream) -> io::Result<()> {
        let (mut bytes, mut carried) = ([0; 4096], 0);
        loop {
            let received = client.read(&mut bytes)?;
            carried += received as u64;
            if carried >= self.end_after {
                self.ends.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            if received == 0 {
                return Ok(());
            }
            server.write_all(&bytes[..received])?;
        }
    }
}

fn end(client: &TcpStream, server: &TcpStream) {
    for stream in [client, server] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}
