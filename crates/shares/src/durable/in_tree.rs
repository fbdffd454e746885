//! Servers, of one of the trees that they keep for a volume.

use crate::message::bytes::in_tree;
use crate::servers::{Patience, ServerAnswer, ShareServers};

/// Servers all of whose messages are for the tree of this number.
pub(super) struct InTree<'s> {
    pub(super) servers: &'s mut dyn ShareServers,
    pub(super) tree: u8,
}

impl ShareServers for InTree<'_> {
    fn count(&self) -> usize {
        self.servers.count()
    }

    fn ask(
        &mut self,
        messages: Vec<Option<Vec<u8>>>,
        patience: Patience,
    ) -> Vec<Option<ServerAnswer>> {
        let to_tree = |message: Option<Vec<u8>>| Some(in_tree(self.tree, message?));
        let messages = messages.into_iter().map(to_tree).collect();
        self.servers.ask(messages, patience)
    }

    fn begin_retries(&mut self) {
        self.servers.begin_retries();
    }

    fn wait_for_missing(&mut self) {
        self.servers.wait_for_missing();
    }

    fn wait_for_links(&mut self, failed: u32) -> bool {
        self.servers.wait_for_links(failed)
    }

    fn key(&self, server: usize) -> [u8; 32] {
        self.servers.key(server)
    }

    fn name(&self, server: usize) -> String {
        self.servers.name(server)
    }
}
