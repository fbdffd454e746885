//! Tests of the remote store over TLS links.

use std::io;
use std::net::Shutdown;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use oblivio_conformance::check_store;
use oblivio_store::{Connector, RemoteStore};
use oblivio_wire::keys::SecretKey;
use oblivio_wire::link::Link;
use oblivio_wire::tls::{ClientTls, ServerTls};

use crate::bench::options;
use crate::server::{Server, ServerAction};

const SOON: Duration = Duration::from_secs(5);

struct FakeConnector {
    client_tls: ClientTls,
    address: SocketAddr,
}

impl Connector for FakeConnector {
    fn connect(&mut self, _: Duration) -> io::Result<Link> {
        self.client_tls.handshake(TcpStream::connect(self.address)?, SOON)
    }
}

/// Accepts connections, and serves each on a separate thread.
fn listen(listener: &TcpListener, server_tls: &ServerTls, server: &Server) {
    while let Ok((stream, _)) = listener.accept() {
        let (server_tls, server) = (server_tls.clone(), server.clone());
        let serve = move || {
            let other = stream.try_clone().unwrap();
            let Ok((link, _)) = server_tls.answer(stream, SOON) else { return };
            let close = || {
                let _ = other.shutdown(Shutdown::Both);
            };
            server.serve(link.reader, link.writer, close);
        };
        thread::Builder::new().spawn(serve).unwrap();
    }
}

#[test]
fn conforms_over_tls_while_links_break() {
    let [me, its] = [(); 2].map(|()| SecretKey::generate().unwrap());
    check_store(|shapes| {
        let server = Server::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server_tls = ServerTls::new(&its, [me.public()]).unwrap();
        let of_thread = server.clone();
        thread::Builder::new().spawn(move || listen(&listener, &server_tls, &of_thread)).unwrap();
        let client_tls = ClientTls::new(&me, its.public()).unwrap();
        let line = Box::new(FakeConnector { client_tls, address });
        let store = RemoteStore::create(line, shapes, options()).unwrap();
        server.plan(|n, _| if n % 101 == 100 { ServerAction::Cut } else { ServerAction::Serve });
        store
    });
}
