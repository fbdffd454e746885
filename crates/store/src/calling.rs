//! How a bucket server is reached: its address, its key, and the client's own.

use std::io;
use std::path::Path;
use std::time::Duration;

use oblivio_wire::keys::{PublicKey, SecretKey};
use oblivio_wire::link::Link;
use oblivio_wire::tls::{Caller, reach};

use crate::error::{OpenError, OpenErrorKind};
use crate::remote::Dial;
use crate::remote_place::{RemotePlace, shown_address};
use crate::shares::ShareServer;
use crate::shares_place::{SharesAddress, SharesPlace};

/// Calls one server, again and again.
#[derive(Clone)]
struct Calling {
    host: String,
    port: u16,
    caller: Caller,
}

/// What reaches the server of a place.
///
/// # Errors
/// When the client's key cannot be read.
pub(crate) fn dial(place: &RemotePlace) -> Result<Box<dyn Dial>, OpenError> {
    let key = secret_key(place.key())?;
    Ok(Box::new(Calling::new(&key, place.host(), place.port(), place.server())?))
}

/// The servers of a place, and what reaches each of them.
///
/// # Errors
/// When the client's key cannot be read.
pub(crate) fn share_servers(place: &SharesPlace) -> Result<Vec<ShareServer>, OpenError> {
    let key = secret_key(place.key())?;
    let server = |SharesAddress { host, port, server }: &SharesAddress| {
        let calling = Calling::new(&key, host, *port, *server)?;
        let dialing = Box::new(move || Box::new(calling.clone()) as Box<dyn Dial>);
        Ok(ShareServer { address: shown_address(host, *port), key: *server, dialing })
    };
    place.servers().iter().map(server).collect()
}

fn secret_key(path: &Path) -> Result<SecretKey, OpenError> {
    SecretKey::read(path)
        .map_err(|error| OpenError::new(OpenErrorKind::NoCredential, error.to_string()))
}

impl Calling {
    fn new(key: &SecretKey, host: &str, port: u16, server: PublicKey) -> Result<Self, OpenError> {
        let caller = Caller::new(key, server)
            .map_err(|cause| OpenError::io("use the client's key", cause))?;
        Ok(Self { host: host.to_owned(), port, caller })
    }
}

impl Dial for Calling {
    fn dial(&mut self, within: Duration) -> io::Result<Link> {
        let Self { host, port, caller } = self;
        reach((&**host, *port), within, |stream, left| caller.call(stream, left))
    }
}
