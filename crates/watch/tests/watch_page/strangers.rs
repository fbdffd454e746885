//! Clients without the page's address get nothing.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use oblivio_watch::{WatchError, bind};
use sha2::{Digest, Sha256};

use super::reader::Address;
use super::{LIMITS, Watched};

#[test]
fn the_page_is_complete_uncached_and_fetches_nothing_from_elsewhere() {
    let watched = Watched::start(LIMITS, false);
    let address = watched.address();
    let answer = address.get(&format!("/{}/", address.token), &address.host());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    for header in [
        "cache-control: no-store",
        "referrer-policy: no-referrer",
        "cross-origin-resource-policy: same-origin",
        "content-security-policy: default-src 'none'; script-src 'sha256-",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "cross-origin-opener-policy: same-origin",
    ] {
        assert!(head.contains(header), "{header} is not in {head}");
    }
    for loosening in ["access-control", "unsafe", "set-cookie"] {
        assert!(!head.contains(loosening), "{head}");
    }
    // A browser runs only what the policy names.
    for (element, directive) in [("script", "script-src"), ("style", "style-src")] {
        let (_, text) = body.split_once(&format!("<{element}>")).unwrap();
        let (text, _) = text.split_once(&format!("</{element}>")).unwrap();
        let digest = STANDARD.encode(Sha256::digest(text));
        assert!(head.contains(&format!("{directive} 'sha256-{digest}'")), "{element}: {head}");
    }
    assert!(body.contains("What storage sees") && body.trim_end().ends_with("</html>"));
    for fetch in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!body.contains(fetch), "{fetch}");
    }
    assert!(!body.contains(&address.token), "the page contains its address");
}

#[test]
fn without_the_token_there_is_nothing() {
    let watched = Watched::start(LIMITS, true);
    let address = watched.address();
    let other = "A".repeat(address.token.len());
    for path in ["/", "/events", &format!("/{other}/"), &format!("/{other}/events"), "/favicon.ico"]
    {
        let answer = address.get(path, &address.host());
        assert!(answer.starts_with("HTTP/1.1 404 "), "{path}: {answer}");
        assert!(!answer.contains("event:") && !answer.contains(&address.token), "{answer}");
    }
    assert_ne!(Watched::start(LIMITS, true).address().token, address.token);
}

/// The address must become worthless after its first use: the process list shows the arguments of a
/// browser to all users of the machine.
#[test]
fn the_printed_address_works_once() {
    let watched = Watched::start(LIMITS, true);
    let ticket_address = Address::of(watched.server.url());
    assert_ne!(ticket_address.token, watched.address().token);
    for path in ["", "/", "/events"] {
        let answer =
            ticket_address.get(&format!("/{}{path}", ticket_address.token), &ticket_address.host());
        let expected = if path == "/events" { "HTTP/1.1 404 " } else { "HTTP/1.1 410 " };
        assert!(answer.starts_with(expected), "{path}: {answer}");
        assert!(!answer.contains("location") && !answer.contains("event:"), "{answer}");
        assert!(!answer.contains(&watched.address().token), "{answer}");
    }
    // The page itself can be reloaded.
    let page = watched.address();
    for _ in 0..2 {
        let answer = page.get(&format!("/{}/", page.token), &page.host());
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(!answer.contains(&ticket_address.token), "{answer}");
    }
}

/// A request with another host name or from a page of another origin is refused, even with the
/// token. Otherwise a foreign page whose name resolves to this machine (DNS rebinding) could read
/// the page.
#[test]
fn other_names_and_other_pages_are_refused_even_with_the_token() {
    let watched = Watched::start(LIMITS, true);
    let address = watched.address();
    let port = address.socket.port();
    for path in [format!("/{}/", address.token), format!("/{}/events", address.token)] {
        let rebound = address.get(&path, &format!("Host: evil.example:{port}\r\n"));
        assert!(rebound.starts_with("HTTP/1.1 421 "), "{rebound}");
        let foreign = format!("Host: evil.example:{port}\r\n");
        for twice in [[address.host(), address.host()], [address.host(), foreign]] {
            let twice = address.get(&path, &twice.concat());
            assert!(twice.starts_with("HTTP/1.1 400 "), "{twice}");
        }
        let origin = format!("{}Origin: http://evil.example\r\n", address.host());
        let foreign = address.get(&path, &origin);
        assert!(foreign.starts_with("HTTP/1.1 403 "), "{foreign}");
        for answer in [rebound, foreign] {
            assert!(!answer.contains("access-control"), "{answer}");
            assert!(!answer.contains("event:") && !answer.contains("<html"), "{answer}");
        }
    }
}

#[test]
fn other_machines_cannot_reach_it() {
    for address in ["0.0.0.0:0", "192.0.2.1:80", "[::]:0"] {
        let address: SocketAddr = address.parse().unwrap();
        let refused = bind(address, LIMITS).err().unwrap();
        assert!(matches!(refused, WatchError::NotLoopback(_)), "{refused}");
    }
}

#[test]
fn silent_or_malformed_clients_do_not_keep_the_owner_from_the_page() {
    let watched = Watched::start(LIMITS, false);
    let address = watched.address();
    let mut silent: Vec<_> = (0..LIMITS.connections_max - 1).map(|_| address.connect()).collect();
    for nonsense in
        [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"GET / HTTP/9.9\r\n\r\n", b"\0", &[b'x'; 40_000]]
    {
        let mut stream = address.connect();
        // The server may close the connection first.
        let _ = stream.write_all(nonsense);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    // A connection slot may become free a moment later.
    let page = || address.try_get(&format!("/{}/", address.token), &address.host()).ok();
    let answer = (0..100).find_map(|_| {
        page().filter(|answer| !answer.is_empty()).or_else(|| {
            thread::sleep(Duration::from_millis(100));
            None
        })
    });
    assert!(answer.is_some_and(|answer| answer.starts_with("HTTP/1.1 200 OK")));
    for stream in &mut silent {
        assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
}
