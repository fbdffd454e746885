//! The handshake between a bucket server and its clients: with a stranger whose bytes come from the
//! fuzzer, and with an attacker in the middle who changes bytes.
//!
//! ```text
//! input = setup, bytes from a stranger
//! input = setup, (offset 2, bits)*     changes to the bytes of one side
//! setup = whether a client meets a server (or one of them a stranger), whether the fuzzer controls
//!         the client's bytes (or the server's), whether the client is unknown, whether the server
//!         is unknown (1 bit each)
//! ```
//!
//! A stranger is never accepted by either side. A client and a server that know each other accept
//! each other if no byte is changed. Changes never make either accept another peer.
#![no_main]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use oblivio_wire::keys::SecretKey;
use oblivio_wire::tls::{ClientTls, ServerTls};

/// Timeout if bytes are changed. A change may alter a length and leave a side waiting.
const SOON: Duration = Duration::from_millis(25);

/// Timeout if no byte is changed.
const LONG: Duration = Duration::from_secs(30);

/// A client and a server that know each other, and an unknown client and an unknown server.
struct World {
    me: SecretKey,
    caller: ClientTls,
    unknown_caller: ClientTls,
    called: ServerTls,
    unknown_called: ServerTls,
    listener: TcpListener,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let [me, stranger, server, other] = [(); 4].map(|()| SecretKey::generate().unwrap());
    World {
        caller: ClientTls::new(&me, server.public()).unwrap(),
        unknown_caller: ClientTls::new(&stranger, server.public()).unwrap(),
        called: ServerTls::new(&server, [me.public()]).unwrap(),
        unknown_called: ServerTls::new(&other, [me.public(), stranger.public()]).unwrap(),
        listener: TcpListener::bind("127.0.0.1:0").unwrap(),
        me,
    }
});

/// The setup, one bit for each field.
struct Setup {
    two_meet: bool,
    fuzzer_is_client: bool,
    caller_is_known: bool,
    called_is_known: bool,
}

impl Setup {
    fn from_bits(bits: u8) -> Self {
        let is_set = |bit: u8| bits >> bit & 1 == 1;
        Self {
            two_meet: is_set(0),
            fuzzer_is_client: is_set(1),
            caller_is_known: !is_set(2),
            called_is_known: !is_set(3),
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((bits, sent)) = input.split_first() else { return };
    let setup = Setup::from_bits(*bits);
    match setup.two_meet {
        true => meet(&setup, sent),
        false => hear_a_stranger(&setup, sent),
    }
});

fn hear_a_stranger(setup: &Setup, sent: &[u8]) {
    let (mut stranger, stream) = pair();
    stranger.write_all(sent).unwrap();
    stranger.shutdown(Shutdown::Write).unwrap();
    let is_let_in = match setup.fuzzer_is_client {
        true => WORLD.called.answer(stream, LONG).is_ok(),
        false => WORLD.caller.handshake(stream, LONG).is_ok(),
    };
    assert!(!is_let_in, "a stranger was accepted");
}

fn meet(setup: &Setup, changes: &[u8]) {
    let world = &*WORLD;
    let caller = if setup.caller_is_known { &world.caller } else { &world.unknown_caller };
    let called = if setup.called_is_known { &world.called } else { &world.unknown_called };
    let changes = changes.as_chunks::<3>().0;
    let is_honest = changes.iter().all(|[.., bits]| *bits == 0);
    let within = if is_honest { LONG } else { SOON };
    let ((client, near), (far, server)) = (pair(), pair());
    let (to_server, to_client) = match setup.fuzzer_is_client {
        true => (changes, &[][..]),
        false => (&[][..], changes),
    };
    let (link, answered) = thread::scope(|scope| {
        scope.spawn(|| pass_on(&near, &far, to_server));
        scope.spawn(|| pass_on(&far, &near, to_client));
        let answered = scope.spawn(move || called.answer(server, within).map(|(_, peer)| peer));
        // The client closes its link after the handshake, which ends the relay threads.
        let link = caller.handshake(client, within).map(drop);
        (link, answered.join().unwrap())
    });
    if let Ok(peer) = &answered {
        assert!(*peer == world.me.public() && setup.caller_is_known, "{peer} was accepted");
    }
    assert!(link.is_err() || setup.called_is_known, "the wrong server was accepted");
    if is_honest && setup.caller_is_known && setup.called_is_known {
        assert!(link.is_ok() && answered.is_ok(), "{link:?} {answered:?}");
    }
}

/// Relays bytes with `changes` until the connection ends.
fn pass_on(mut from: &TcpStream, mut to: &TcpStream, changes: &[[u8; 3]]) {
    let (mut passed, mut bytes) = (0, [0; 4096]);
    while let Ok(came @ 1..) = from.read(&mut bytes) {
        for [low, high, bits] in changes {
            let place = usize::from(u16::from_le_bytes([*low, *high]));
            if let Some(byte) = place.checked_sub(passed).and_then(|at| bytes[..came].get_mut(at)) {
                *byte ^= bits;
            }
        }
        passed += came;
        // The receiver may have closed the connection.
        if to.write_all(&bytes[..came]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// Returns both ends of a connection.
fn pair() -> (TcpStream, TcpStream) {
    let near = TcpStream::connect(WORLD.listener.local_addr().unwrap()).unwrap();
    (near, WORLD.listener.accept().unwrap().0)
}
