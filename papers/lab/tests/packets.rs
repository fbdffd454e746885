//! Compares the relay with a link that carries packets. Two network namespaces have a TUN device
//! each; packets are forwarded between the devices at the rate and with the delay of the link. TCP
//! is the system's own, with slow start, acknowledgements and loss at a full queue.
//!
//! Only root can create network namespaces; for other users the test is skipped.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "all of this is tests")]
#![allow(clippy::print_stdout, reason = "shows the measurements")]
#![allow(clippy::disallowed_methods, reason = "the test measures time")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use oblivio_lab::relay::Relay;
use oblivio_models::link::Link;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tempfile::TempDir;

/// Bytes of the longest packet, of which `HEAD_BYTES` are headers.
const PACKET_BYTES: usize = 1500;
const HEAD_BYTES: f64 = 52.0;

/// The queue of a router, as sending time. The router drops packets when its queue is full.
const QUEUE: Duration = Duration::from_millis(60);

/// Time that TCP gets to adapt to the rate before a measurement begins.
const WARM_UP: Duration = Duration::from_millis(1000);
const MEASURED: Duration = Duration::from_millis(1000);

#[test]
fn a_relay_is_as_slow_as_a_link_of_packets() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can make network namespaces");
        return;
    }
    let link = Link::new(40.0, 10.0, 20.0);
    // Repeat the measurement: load on the machine can delay both links, but an error of the relay
    // would appear each time.
    let mut outcomes = (0..3).map(|_| {
        let (packets, relayed) = (over_packets(link), over_relay(link));
        println!("packets: {packets:?}, relayed: {relayed:?}");
        is_near(&packets, &relayed)
    });
    assert!(outcomes.any(|is_near| is_near));
}

/// Whether a relay with the measurements `relayed` is as slow as the link with the measurements
/// `packets`. The relay has no packets, so it carries payload in place of the headers of full
/// packets.
fn is_near(packets: &Measured, relayed: &Measured) -> bool {
    let payload = 1.0 - HEAD_BYTES / PACKET_BYTES as f64;
    let rate_is_near = |packets: f64, relayed: f64| {
        let part = packets / (relayed * payload);
        part > 0.95 && part < 1.01
    };
    rate_is_near(packets.down, relayed.down)
        && rate_is_near(packets.up, relayed.up)
        && packets.trip.abs_diff(relayed.trip) < Duration::from_millis(2)
}

/// The rates and the round trip of a link, as measured by client and server.
#[derive(Debug)]
struct Measured {
    /// Bytes per second from the server. Each direction is measured alone, since acknowledgements
    /// would wait behind data of the other direction.
    down: f64,
    up: f64,
    /// The fastest of several round trips on an idle link.
    trip: Duration,
}

fn over_relay(link: Link) -> Measured {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let relay = Relay::bind("127.0.0.1:0".parse().unwrap(), to, link, None).unwrap();
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| relay.run(&|| start.elapsed()));
        let address = relay.address();
        let measured =
            measure(&listener, || thread::spawn(move || TcpStream::connect(address).unwrap()));
        relay.stop();
        measured
    })
}

fn over_packets(link: Link) -> Measured {
    let folder = TempDir::new().unwrap();
    let client = Machine::start(folder.path(), "client", "10.91.0.1");
    let server = Machine::start(folder.path(), "server", "10.91.0.2");
    let [from_client, from_server] = [&client, &server].map(|it| it.wire.try_clone().unwrap());
    let (up, down) = (link.up_bytes_per_second(), link.down_bytes_per_second());
    let [to_client, to_server] = [&client, &server].map(Machine::way_in);
    thread::spawn(move || carry(&from_client, to_server, up, link.one_way()));
    thread::spawn(move || carry(&from_server, to_client, down, link.one_way()));
    let listener = server.inside(|| TcpListener::bind("10.91.0.2:0").unwrap());
    let address = listener.local_addr().unwrap();
    measure(&listener, || {
        let name_space = client.name_space();
        thread::spawn(move || {
            enter(&name_space);
            TcpStream::connect(address).unwrap()
        })
    })
}

/// A machine with one network device, connected to one end of the wire.
struct Machine {
    tun: Child,
    folder: std::path::PathBuf,
    name: &'static str,
    wire: UnixDatagram,
}

impl Machine {
    fn start(folder: &Path, name: &'static str, address: &str) -> Self {
        let wire = UnixDatagram::bind(folder.join(format!("{name}.wire"))).unwrap();
        let tun = Command::new("unshare")
            .args(["--net", "socat"])
            .arg(format!("TUN:{address}/24,up,iff-no-pi"))
            .arg(format!("UNIX-SENDTO:{name}.wire,bind={name}.tun"))
            .current_dir(folder)
            .spawn()
            .unwrap();
        let machine = Self { tun, folder: folder.to_owned(), name, wire };
        let until = Instant::now() + Duration::from_secs(10);
        while !folder.join(format!("{name}.tun")).exists() || !machine.is_up(address) {
            assert!(Instant::now() < until, "the device of {name} did not come up");
            thread::sleep(Duration::from_millis(5));
        }
        machine
    }

    fn is_up(&self, address: &str) -> bool {
        self.inside(|| TcpListener::bind((address, 0)).is_ok())
    }

    fn name_space(&self) -> File {
        File::open(format!("/proc/{}/ns/net", self.tun.id())).unwrap()
    }

    /// Runs a function in the namespace.
    fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        let name_space = self.name_space();
        thread::scope(|scope| {
            let inside = scope.spawn(move || {
                enter(&name_space);
                act()
            });
            inside.join().unwrap()
        })
    }

    /// A socket that sends packets to this machine.
    fn way_in(&self) -> UnixDatagram {
        let way = UnixDatagram::unbound().unwrap();
        way.connect(self.folder.join(format!("{}.tun", self.name))).unwrap();
        way
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.tun.kill().unwrap();
        self.tun.wait().unwrap();
    }
}

/// Moves the calling thread into the namespace.
fn enter(name_space: &File) {
    move_into_link_name_space(name_space.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
}

/// Carries packets until none has arrived for two seconds. Drops packets that do not fit the queue.
fn carry(from: &UnixDatagram, to: UnixDatagram, bytes_per_second: f64, delay: Duration) {
    let (queue, queued) = mpsc::channel::<(Instant, Vec<u8>)>();
    let deliver = thread::spawn(move || {
        for (arrives, packet) in queued {
            thread::sleep(arrives.saturating_duration_since(Instant::now()));
            // A packet is lost if the machine is too busy to receive it.
            let _ = to.send(&packet);
        }
    });
    let mut packet = [0; 2 * PACKET_BYTES];
    let mut is_free_from = Instant::now();
    from.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    while let Ok(bytes) = from.recv(&mut packet) {
        let now = Instant::now();
        if is_free_from > now + QUEUE {
            continue;
        }
        let takes = Duration::from_secs_f64(bytes as f64 / bytes_per_second);
        is_free_from = is_free_from.max(now) + takes;
        if queue.send((is_free_from + delay, packet[..bytes].to_vec())).is_err() {
            break;
        }
    }
    drop(queue);
    deliver.join().unwrap();
}

fn measure(
    listener: &TcpListener,
    connect: impl Fn() -> thread::JoinHandle<TcpStream>,
) -> Measured {
    let pair = || {
        let client = connect();
        let (server, _) = listener.accept().unwrap();
        let client = client.join().unwrap();
        client.set_nodelay(true).unwrap();
        server.set_nodelay(true).unwrap();
        (client, server)
    };
    let (client, server) = pair();
    let trip = fastest_trip(client, server);
    let (client, server) = pair();
    let down = rate(server, client);
    let (client, server) = pair();
    let up = rate(client, server);
    Measured { down, up, trip }
}

fn fastest_trip(mut client: TcpStream, mut server: TcpStream) -> Duration {
    let answer = thread::spawn(move || {
        let mut asked = [0; 100];
        while server.read_exact(&mut asked).is_ok() {
            server.write_all(&asked).unwrap();
        }
    });
    let trip = |_| {
        let start = Instant::now();
        client.write_all(&[0; 100]).unwrap();
        client.read_exact(&mut [0; 100]).unwrap();
        start.elapsed()
    };
    let fastest = (0..20).map(trip).min().unwrap();
    drop(client);
    answer.join().unwrap();
    fastest
}

/// Measures the bytes per second that arrive, if the sender sends as fast as possible.
fn rate(mut from: TcpStream, mut to: TcpStream) -> f64 {
    thread::scope(|scope| {
        scope.spawn(move || {
            let bytes = vec![7; 64 << 10];
            while from.write_all(&bytes).is_ok() {}
        });
        let mut buffer = vec![0; 64 << 10];
        let mut arrived_within = |time: Duration| {
            let (start, mut bytes) = (Instant::now(), 0);
            while start.elapsed() < time {
                bytes += to.read(&mut buffer).unwrap();
            }
            bytes as f64 / start.elapsed().as_secs_f64()
        };
        arrived_within(WARM_UP);
        let rate = arrived_within(MEASURED);
        to.shutdown(Shutdown::Both).unwrap();
        rate
    })
}
