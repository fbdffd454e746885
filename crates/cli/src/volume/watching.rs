//! The page that shows a volume in use.

use std::sync::Arc;

use oblivio_core::durable::{Fact, find_number};
use oblivio_shares::view::{servers_of, tree_of_server};
use oblivio_store::BoxedStore;
use oblivio_volume::device::BlockDevice;
use oblivio_volume::insight::Insight;
use oblivio_volume::volume::trees_of_scheme;
use oblivio_watch::{
    BoundWatch, DrawnTree, OwnerSide, Shown, StorageSide, WatchLimits, WatchServer, bind,
    drawn_trees,
};

use super::recording::recorded;
use crate::args::WatchArgs;
use crate::error::CliError;

/// A page whose address is bound, before the volume is open.
pub(super) struct BoundWatchPage {
    bound: BoundWatch,
    shows_secrets: bool,
    storage: Option<StorageSide>,
    levels_on_client: u64,
}

/// Serves the page, if one was requested. Returns the disk through which clients must send their
/// requests, so that the page can show them.
pub(super) fn start(
    watching: Option<BoundWatchPage>,
    disk: Arc<dyn BlockDevice>,
    insight: Insight,
) -> Result<(Option<WatchPage>, Arc<dyn BlockDevice>), CliError> {
    let Some(watching) = watching else { return Ok((None, disk)) };
    let (page, disk) = watching.start(disk, insight)?;
    Ok((Some(page), disk))
}

/// A served page. Dropping it stops the page.
pub(super) struct WatchPage(WatchServer);

impl BoundWatchPage {
    /// Binds the address, if a page was requested. Call this before opening the volume, which takes
    /// time, so that a bad address is reported early.
    pub(super) fn bind(args: &WatchArgs) -> Result<Option<Self>, CliError> {
        let Some(address) = args.watch else { return Ok(None) };
        let bound = bind(address, WatchLimits::DEFAULT)?;
        Ok(Some(Self {
            bound,
            shows_secrets: args.watch_secrets,
            storage: None,
            levels_on_client: 0,
        }))
    }

    /// Wraps `store`, so that the page gets all events that storage sees. `facts` are the facts
    /// that the volume's scheme reports.
    pub(super) fn record(
        &mut self,
        store: BoxedStore,
        facts: &[Fact],
    ) -> Result<BoxedStore, CliError> {
        let levels = find_number(facts, "levels");
        self.levels_on_client = find_number(facts, "tree_top_levels").unwrap_or(0);
        let trees = match levels.filter(|_| servers_of(facts).is_some()) {
            // All servers see the same paths.
            Some(levels) => {
                let buckets = (0..levels.min(u64::BITS.into())).map(|level| 1 << level).collect();
                vec![DrawnTree { tree: tree_of_server(0), buckets }]
            }
            None => drawn_trees(&*store, trees_of_scheme()),
        };
        let side = StorageSide::new(trees, self.bound.limits());
        self.storage = Some(side.clone());
        recorded(store, side, facts)
    }

    fn start(
        self,
        disk: Arc<dyn BlockDevice>,
        insight: Insight,
    ) -> Result<(WatchPage, Arc<dyn BlockDevice>), CliError> {
        let Self { bound, shows_secrets, storage, levels_on_client } = self;
        let owner = shows_secrets.then(|| OwnerSide::new(insight, bound.limits()));
        let (disk_bytes, block_bytes) = (disk.bytes(), disk.block_bytes());
        let watched = match &owner {
            Some(owner) => owner.watched(disk),
            None => disk,
        };
        let storage = storage.unwrap_or_else(|| StorageSide::new(Vec::new(), bound.limits()));
        let server =
            bound.serve(Shown { storage, owner, levels_on_client, disk_bytes, block_bytes })?;
        Ok((WatchPage(server), watched))
    }
}

impl WatchPage {
    /// The URL of the page. Secret.
    pub(super) fn url(&self) -> &str {
        self.0.url()
    }

    /// The URL as a line of text.
    pub(super) fn line(&self) -> String {
        format!("watch it at {}", self.url())
    }
}
