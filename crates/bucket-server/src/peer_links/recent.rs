//! The latest sent messages, which may be missing at the other server if the link is lost.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use oblivio_shares::host::TILES_AT_ONCE;

/// Maximum number of times that messages are repeated before a new message is added. The limit
/// stops a server that keeps dropping its links from keeping others busy.
pub(super) const REPEATS_MAX: u32 = 16;

/// A message to another server, and its lane.
#[derive(Clone)]
pub(super) struct DealtMessage {
    pub(super) lane: usize,
    pub(super) message: Arc<[u8]>,
}

/// The latest messages of each lane.
#[derive(Default)]
pub(super) struct Recent {
    /// The messages in the order of sending.
    messages: VecDeque<DealtMessage>,
    /// The number of times that the messages were repeated since the latest one was added.
    repeats: u32,
}

impl Recent {
    /// The maximum number of messages of a lane that can be missing (see
    /// [`Peers::send`](oblivio_shares::host::Peers::send)).
    const OF_LANE_MAX: usize = 2;

    pub(super) fn add(&mut self, dealt: DealtMessage) {
        let is_of_it = |other: &DealtMessage| other.lane == dealt.lane;
        let of_it = || self.messages.iter().filter(|other| is_of_it(other));
        if of_it().count() == Self::OF_LANE_MAX
            && let Some(oldest) = self.messages.iter().position(is_of_it)
        {
            self.messages.remove(oldest);
        }
        self.messages.push_back(dealt);
        self.repeats = 0;
        let most = Self::OF_LANE_MAX * TILES_AT_ONCE;
        debug_assert!(self.messages.len() <= most, "more messages than lanes allow");
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns an error if the messages were repeated too often.
    pub(super) fn check_may_be_repeated(&self) -> io::Result<()> {
        if self.repeats < REPEATS_MAX {
            return Ok(());
        }
        Err(io::Error::other("its links were lost too often"))
    }

    /// Returns all messages, for a new link.
    pub(super) fn repeat(&mut self) -> Vec<DealtMessage> {
        self.repeats += u32::from(!self.messages.is_empty());
        self.messages.iter().cloned().collect()
    }
}
