//! Loads the initial contents of an array (Algorithm 3). Each block goes to a random leaf, and
//! shares of all slots of all leaves go to the servers.
//!
//! A loaded array counts as having evicted the path to each leaf, so that the number of evictions
//! still determines which buckets are in use. Some buckets between the root and the leaves then
//! count as used. They hold zeros, which are valid shares of zero.

use oblivio_core::Error;
use oblivio_core::durable::Contents;
use oblivio_core::seal::BlockName;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::array::ShareArray;
use super::client_state::{ClientState, Positions};
use super::impossible;
use super::servers::{self, TreeServers};
use crate::client::ClientError;
use crate::message::{Request, Slots, TreePoint};
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
        let Self { params, store, sealer, state: ClientState { positions, .. }, .. } = self;
        let Positions::OnClient(map) = positions else { return Ok(()) };
        let at = TreePoint { evictions: params.tree.leaves(), written: 0 };
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
            let results = servers.ask(puts.collect()).into_iter().map(servers::expect_done);
            servers::require_all(&*servers, results, ADVICE).map(drop).map_err(LoadError)
        };
        let loaded = map.load(Slots::at_once(params.slot_bytes()), coins, block, send);
        loaded.map_err(|LoadError(error)| error)?;
        let set_points = vec![Request::SetPoint { at }; servers.count()];
        let results = servers.ask(set_points);
        servers::require_all(&*servers, results.into_iter().map(servers::expect_done), ADVICE)?;
        self.state.set_accesses(self.params.accesses_at(at));
        self.durable_accesses = self.state.accesses();
        self.done = Some(vec![at]);
        Ok(())
    }
}

/// The error that stopped loading. If it is an error of the client, its message advises the user to
/// create the volume again.
pub(super) struct LoadError(Error);

impl From<Error> for LoadError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<ClientError> for LoadError {
    fn from(error: ClientError) -> Self {
        Self(impossible(format!(
            "{error}. Create the volume again: its blocks will get other leaves"
        )))
    }
}
