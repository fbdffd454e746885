//! What an array holds from its beginning (Algorithm 3): each block goes to a leaf that is drawn, and shares of all slots of all leaves go to the servers.
//!
//! The array is taken for one in which something was evicted to each leaf: so what a server holds follows from the number of evictions, as it always does. Buckets between root and leaves that
//! would not be empty then hold zeros, whose shares are zeros.

use oblivio_core::Error;
use oblivio_core::durable::Contents;
use oblivio_core::seal::BlockName;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::array::ShareArray;
use super::impossible;
use super::known::{Known, Positions};
use super::servers::{self, TreeServers};
use crate::client::ClientError;
use crate::message::{Point, Request, Slots};
use crate::sharing::Share;

/// What is said of a server that has not done it.
const ADVICE: &str = "A new volume needs all of its servers: see to it, and make the volume again";

impl ShareArray {
    pub(super) fn load_all(
        &mut self,
        contents: &mut dyn Contents,
        coins: &mut dyn CryptoRng,
    ) -> Result<(), Error> {
        let Self { params, store, sealer, known: Known { positions, .. }, .. } = self;
        let Positions::OnClient(map) = positions else { return Ok(()) };
        let at = Point { evictions: params.tree.leaves(), written: 0 };
        let mut servers = TreeServers { servers: &mut **store, tree: 0 };
        let mut data = Zeroizing::new(vec![0; params.block_bytes as usize]);
        let block = |name: BlockName, slot: &mut [u8]| {
            data.fill(0);
            let is_some = contents.block(name.address, &mut data)?;
            // Sealed in any case: servers see how long it takes.
            let sealed = sealer.seal(name, &data);
            if is_some {
                slot.copy_from_slice(&sealed);
            }
            Ok(is_some)
        };
        let send = |slots, shares: Vec<Share<u8>>| {
            let puts = shares.into_iter().map(|share| Request::Put { at, slots, share });
            let said = servers.ask(puts.collect()).into_iter().map(servers::done);
            servers::all(&*servers, said, ADVICE).map(drop).map_err(Failed)
        };
        let loaded = map.load(Slots::at_once(params.slot_bytes()), coins, block, send);
        loaded.map_err(|Failed(error)| error)?;
        let adopts = vec![Request::Adopt { at }; servers.count()];
        let said = servers.ask(adopts);
        servers::all(&*servers, said.into_iter().map(servers::done), ADVICE)?;
        self.known.go_to(self.params.accesses_at(at));
        self.kept = self.known.accesses();
        self.done = Some(vec![at]);
        Ok(())
    }
}

/// Why nothing was loaded.
pub(super) struct Failed(Error);

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<ClientError> for Failed {
    fn from(error: ClientError) -> Self {
        Self(impossible(format!("{error}. Make the volume again: blocks go elsewhere then")))
    }
}
