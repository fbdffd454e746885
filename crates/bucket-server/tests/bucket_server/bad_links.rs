//! Links that end after a number of bytes.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// A proxy in front of a server, until the test ends.
pub(super) struct BadLinks {
    to: SocketAddr,
    end_after: u64,
    ends: Arc<AtomicU32>,
}

impl BadLinks {
    /// Starts a proxy, and returns its address. `ends` counts the links that it cut.
    pub(super) fn start(to: SocketAddr, end_after: u64, ends: &Arc<AtomicU32>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let links = Self { to, end_after, ends: ends.clone() };
        let carry = move || {
            thread::scope(|scope| {
                for caller in listener.incoming() {
                    let (caller, links) = (caller.unwrap(), &links);
                    scope.spawn(move || links.carry(&caller));
                }
            });
        };
        thread::Builder::new().spawn(carry).unwrap();
        address
    }

    /// Bytes in transit at the cut are lost. Any error ends the link.
    fn carry(&self, caller: &TcpStream) {
        let Ok(called) = TcpStream::connect(self.to) else { return };
        thread::scope(|scope| {
            scope.spawn(|| {
                let _ = io::copy(&mut &called, &mut &*caller);
                end(caller, &called);
            });
            let _ = self.carry_there(caller, &called);
            end(caller, &called);
        });
    }

    fn carry_there(&self, mut caller: &TcpStream, mut called: &TcpStream) -> io::Result<()> {
        let (mut bytes, mut carried) = ([0; 4096], 0);
        loop {
            let came = caller.read(&mut bytes)?;
            carried += came as u64;
            if carried >= self.end_after {
                self.ends.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            if came == 0 {
                return Ok(());
            }
            called.write_all(&bytes[..came])?;
        }
    }
}

fn end(caller: &TcpStream, called: &TcpStream) {
    for stream in [caller, called] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}
