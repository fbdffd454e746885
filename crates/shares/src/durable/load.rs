//! Loads the initial contents of an array (Algorithm 3). Each block goes to a random leaf, and
//! shares of all slots of all leaves go to the servers.
//!
//! The array counts as having evicted to each leaf, so that, as always, the number of evictions
//! determines which buckets are in use. Buckets between the root and the leaves that then count as
//! used hold zeros, and zeros are shares of zero.

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

/// The advice if a server fails.
const ADVICE: &str =
    "A new volume needs all of its servers: fix this one, and create the volume again";

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
            // Always seal the block: servers see how long it takes.
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

/// Why loading failed.
pub(super) struct Failed(Error);

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<ClientError> for Failed {
    fn from(error: ClientError) -> Self {
        Self(impossible(format!(
            "{error}. Create the volume again: its blocks will get other leaves"
        )))
    }
}
