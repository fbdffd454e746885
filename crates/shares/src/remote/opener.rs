//! Opens the servers that a [`SharesLocation`] names.

use oblivio_core::durable::AnyStore;
use oblivio_core::store::TreeShape;
use oblivio_store::connector::{TlsConnector, secret_key};
use oblivio_store::opener::{no_direct, remote_mode, remote_options};
use oblivio_store::remote_location::shown_address;
use oblivio_store::{
    Connector, OpenError, OpenErrorKind, OpenedStore, Remnants, RemoteMode, StoreOptions,
};

use super::{ShareServer, SharedStore, SharesAddress, SharesLocation};
use crate::servers::into_store;

impl SharesLocation {
    /// Creates a volume with record trees of these shapes, `TreeId(0)` first.
    ///
    /// # Errors
    /// The errors of [`SharedStore::create`], an unreadable key, and the option `direct`, which
    /// applies only to local files.
    pub fn create(
        &self,
        shapes: &[TreeShape],
        options: &StoreOptions,
    ) -> Result<AnyStore, OpenError> {
        if options.direct {
            return Err(no_direct());
        }
        let (servers, options) = (self.reached()?, remote_options(self.name(), options));
        Ok(into_store(SharedStore::create(servers, shapes, self.colluding(), options)?))
    }

    /// Opens the volume on all servers.
    ///
    /// # Errors
    /// The errors of [`SharedStore::open`], and an unreadable key.
    pub fn open(&self, options: &StoreOptions) -> Result<OpenedStore, OpenError> {
        self.open_as(remote_mode(options)?, options)
    }

    /// Opens the volume for inspection. A client that has the volume open is not fenced off.
    ///
    /// # Errors
    /// The errors of [`Self::open`].
    pub fn look(&self, options: &StoreOptions) -> Result<OpenedStore, OpenError> {
        self.open_as(RemoteMode::Look, options)
    }

    fn open_as(&self, mode: RemoteMode, options: &StoreOptions) -> Result<OpenedStore, OpenError> {
        let servers = self.reached()?;
        let allow_incomplete = options.allow_incomplete;
        let options = remote_options(self.name(), options);
        let open = if allow_incomplete { SharedStore::open_damaged } else { SharedStore::open };
        let (store, condition) = open(servers, mode, self.colluding(), options)?;
        Ok(OpenedStore { store: into_store(store), condition })
    }

    /// Fails if the volume already exists, so that [`Self::create`] would fail, too.
    ///
    /// # Errors
    /// [`OpenErrorKind::Exists`] if a server has a volume of this name. Also if a server does not
    /// answer.
    pub fn check_vacant(&self) -> Result<(), OpenError> {
        let name = self.name();
        let Some(server) = SharedStore::look(&self.reached()?, name)? else { return Ok(()) };
        let message = format!(
            "{server} already has a volume {name} of this client: choose another name, or remove \
             the remains of an interrupted creation (oblivio remove)"
        );
        Err(OpenError::new(OpenErrorKind::Exists, message))
    }

    /// Determines what remains of the volume on the servers.
    ///
    /// # Errors
    /// The errors of [`SharedStore::remnants`].
    pub fn remnants(&self) -> Result<Remnants, OpenError> {
        let options = remote_options(self.name(), &StoreOptions::default());
        SharedStore::remnants(&self.reached()?, &options)
    }

    /// Removes the volume from all servers.
    ///
    /// # Errors
    /// The errors of [`SharedStore::remove`].
    pub fn remove(&self) -> Result<(), OpenError> {
        SharedStore::remove(&self.reached()?, self.name())
    }

    /// Opens the volume to rebuild a server, counted from 0. With [`RemoteMode::Look`], another
    /// client may use the volume, and this client cannot change it.
    ///
    /// # Errors
    /// The errors of [`SharedStore::open_to_repair`].
    pub fn open_to_repair(
        &self,
        server: usize,
        mode: RemoteMode,
        options: &StoreOptions,
    ) -> Result<SharedStore, OpenError> {
        let options = remote_options(self.name(), options);
        SharedStore::open_to_repair(self.reached()?, server, mode, self.colluding(), options)
    }

    /// The servers, each with a function that creates connectors for it.
    fn reached(&self) -> Result<Vec<ShareServer>, OpenError> {
        let key = secret_key(self.key())?;
        let server = |SharesAddress { host, port, server }: &SharesAddress| {
            let connector = TlsConnector::new(&key, host, *port, *server)?;
            let make_connector =
                Box::new(move || Box::new(connector.clone()) as Box<dyn Connector>);
            Ok(ShareServer { address: shown_address(host, *port), key: *server, make_connector })
        };
        self.servers().iter().map(server).collect()
    }
}
