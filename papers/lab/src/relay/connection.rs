//! A connection between a client and a server, and the bytes in flight.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;
use std::thread;

use super::counts::Direction;
use super::queue::{Chunk, Queue, Then};
use super::{Clock, Shared, lock};

pub(super) struct Connection {
    client: TcpStream,
    server: TcpStream,
    down: Queue,
    up: Queue,
    course: Mutex<Course>,
}

/// The progress of a connection.
#[derive(Default)]
struct Course {
    carried_bytes: u64,
    last_way: Option<Direction>,
    is_cut: bool,
}

impl Connection {
    pub(super) fn new(client: TcpStream, server: TcpStream, shared: &Shared) -> Self {
        Self {
            client,
            server,
            down: Queue::new(shared.down.queue_bytes_max()),
            up: Queue::new(shared.up.queue_bytes_max()),
            course: Mutex::default(),
        }
    }

    /// Breaks the connection.
    pub(super) fn close(&self) {
        // Either end may be closed already.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
        self.down.close();
        self.up.close();
    }

    /// Forwards bytes in both directions until both directions have ended or the connection breaks.
    pub(super) fn carry(&self, shared: &Shared, clock: Clock<'_>) {
        let unless_broken = |done: io::Result<()>| {
            if done.is_err() {
                self.close();
            }
        };
        thread::scope(|scope| {
            for way in [Direction::Down, Direction::Up] {
                scope.spawn(move || unless_broken(self.read(way, shared, clock)));
                scope.spawn(move || unless_broken(self.write(way, clock)));
            }
        });
    }

    /// Reads from a sender, and puts the bytes on the link.
    fn read(&self, way: Direction, shared: &Shared, clock: Clock<'_>) -> io::Result<()> {
        let (mut sender, queue, lane) = match way {
            Direction::Down => (&self.server, &self.down, &shared.down),
            Direction::Up => (&self.client, &self.up, &shared.up),
        };
        let mut buffer = vec![0; lane.chunk_bytes()];
        // Wait for queue space before reading, so that a blocked connection takes none of the
        // shared rate.
        while queue.has_room() {
            let read = match sender.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read?,
            };
            let Some((bytes, then)) = self.count(way, read, shared) else { break };
            let passage = lane.take(clock(), bytes);
            queue.push(Chunk { arrives: passage.arrives, bytes: buffer[..bytes].to_vec(), then });
            if then != Then::More || !queue.is_open_at(passage.next_from, clock) {
                break;
            }
        }
        Ok(())
    }

    /// Counts `read` bytes that were read; 0 means that the sender has closed its half. Returns the
    /// number of bytes to forward, and the event that follows them. `None` if the connection was
    /// already cut.
    fn count(&self, way: Direction, read: usize, shared: &Shared) -> Option<(usize, Then)> {
        let mut course = lock(&self.course);
        if course.is_cut {
            return None;
        }
        if read == 0 {
            return Some((0, Then::End));
        }
        let cuts = shared.cuts.as_ref();
        let end = cuts.and_then(|cuts| cuts.end_within(course.carried_bytes, read as u64));
        let bytes = end.map_or(read, |end| end as usize);
        course.is_cut = end.is_some();
        course.carried_bytes += bytes as u64;
        let is_turn = course.last_way.replace(way) != Some(way);
        let mut counts = lock(&shared.counts);
        counts.cuts += u64::from(course.is_cut);
        let of_way = counts.in_direction(way);
        of_way.bytes += bytes as u64;
        of_way.turns += u64::from(is_turn);
        Some((bytes, if course.is_cut { Then::Cut } else { Then::More }))
    }

    /// Writes the bytes that have arrived to the receiver.
    fn write(&self, way: Direction, clock: Clock<'_>) -> io::Result<()> {
        let (mut receiver, queue) = match way {
            Direction::Down => (&self.client, &self.down),
            Direction::Up => (&self.server, &self.up),
        };
        while let Some(chunk) = queue.next(clock) {
            receiver.write_all(&chunk.bytes)?;
            queue.written(chunk.bytes.len());
            match chunk.then {
                Then::More => (),
                Then::End => {
                    receiver.shutdown(Shutdown::Write)?;
                    break;
                }
                Then::Cut => {
                    self.close();
                    break;
                }
            }
        }
        Ok(())
    }
}
