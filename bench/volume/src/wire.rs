//! A lower bound for a volume on a bucket server: TLS. Measures how many accesses per second one
//! connection between two threads on this machine carries, if they only send and receive bytes.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use oblivio_wire::keys::SecretKey;
use oblivio_wire::link::{Link, LinkReader, LinkWriter};
use oblivio_wire::tls::{ClientTls, ServerTls};

use crate::growth::Model;
use crate::load::Load;
use crate::spread::Spread;

/// Approximate number of bytes that each of the two measurements (pipelined, sequential) moves in a
/// round.
const ROUND_BYTES: usize = 512 << 20;

/// Timeout of the handshake.
const SOON: Duration = Duration::from_secs(10);

/// The TLS endpoints and the results.
pub struct Wire {
    caller: ClientTls,
    called: ServerTls,
    /// Bytes that an access sends to the server.
    up: usize,
    /// Bytes that an access receives from the server.
    down: usize,
    /// Accesses per second in each round, without waiting for earlier answers.
    at_once: Vec<f64>,
    /// Accesses per second in each round, with a wait for each answer.
    in_turn: Vec<f64>,
}

impl Wire {
    /// Prepares to measure accesses with the sizes of `model`.
    pub fn prepare(model: &Model) -> Result<Self, String> {
        Self::with_bytes(model.written_bytes as usize, model.read_bytes as usize).map_err(failed)
    }

    fn with_bytes(up: usize, down: usize) -> io::Result<Self> {
        let generate = || SecretKey::generate().map_err(io::Error::other);
        let (client, server) = (generate()?, generate()?);
        Ok(Self {
            caller: ClientTls::new(&client, server.public())?,
            called: ServerTls::new(&server, [client.public()])?,
            up,
            down,
            at_once: Vec::new(),
            in_turn: Vec::new(),
        })
    }

    /// Measures pipelined and sequential accesses once.
    pub fn round(&mut self) -> Result<(), String> {
        let accesses = ROUND_BYTES / (self.up + self.down);
        self.at_once.push(self.rate(accesses, Self::send_at_once).map_err(failed)?);
        self.in_turn.push(self.rate(accesses, Self::send_in_turn).map_err(failed)?);
        Ok(())
    }

    /// The number of accesses per second under a load: sequential if its depth is 1, else
    /// pipelined.
    pub fn accesses_per_second(&self, load: &Load) -> Option<f64> {
        let rates = if load.depth == 1 { &self.in_turn } else { &self.at_once };
        (!rates.is_empty()).then(|| Spread::from_values(rates.iter().copied()).median)
    }

    fn rate(
        &self,
        accesses: usize,
        send: fn(&Self, &mut Link, usize) -> io::Result<()>,
    ) -> io::Result<f64> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        thread::scope(|scope| {
            let server = scope.spawn(|| {
                let (mut link, _) = self.called.answer(listener.accept()?.0, SOON)?;
                (0..accesses).try_for_each(|_| {
                    take(&mut *link.reader, self.up)?;
                    write_bytes(&mut *link.writer, self.down)
                })
            });
            let mut link = self.caller.handshake(TcpStream::connect(address)?, SOON)?;
            let clock = Instant::now();
            send(self, &mut link, accesses)?;
            let seconds = clock.elapsed().as_secs_f64();
            server.join().map_err(|_| io::Error::other("a thread has panicked"))??;
            Ok(accesses as f64 / seconds)
        })
    }

    /// Sends accesses without waiting for the answers of earlier ones.
    fn send_at_once(&self, link: &mut Link, accesses: usize) -> io::Result<()> {
        let Link { reader, writer } = link;
        thread::scope(|scope| {
            let sent =
                scope.spawn(|| (0..accesses).try_for_each(|_| write_bytes(&mut **writer, self.up)));
            (0..accesses).try_for_each(|_| take(&mut **reader, self.down))?;
            sent.join().map_err(|_| io::Error::other("a thread has panicked"))?
        })
    }

    fn send_in_turn(&self, link: &mut Link, accesses: usize) -> io::Result<()> {
        (0..accesses).try_for_each(|_| {
            write_bytes(&mut *link.writer, self.up)?;
            take(&mut *link.reader, self.down)
        })
    }
}

fn write_bytes(writer: &mut dyn LinkWriter, bytes: usize) -> io::Result<()> {
    writer.write_all(&vec![1; bytes])?;
    writer.flush()
}

fn take(reader: &mut dyn LinkReader, bytes: usize) -> io::Result<()> {
    reader.read_exact(&mut vec![0; bytes])
}

fn failed(error: io::Error) -> String {
    format!("cannot measure TLS: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{RANDOM_READ, SINGLE_READ};

    #[test]
    fn both_ways_are_measured() {
        let mut wire = Wire::with_bytes(20 << 20, 100 << 20).unwrap();
        assert_eq!(wire.accesses_per_second(&RANDOM_READ), None);
        wire.round().unwrap();
        for load in [RANDOM_READ, SINGLE_READ] {
            let rate = wire.accesses_per_second(&load).unwrap();
            assert!(rate.is_finite() && rate > 0.0, "{rate}");
        }
    }
}
