//! What has been sent last, and may be missing at the other server if the link is lost.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use oblivio_shares::host::TILES_AT_ONCE;

/// What may be missing is sent again so often, at most, until the other server has dealt what the next message waits for: one that ends its links is not to keep others busy.
pub(super) const REPEATS_MAX: u32 = 16;

/// A message, and its lane.
#[derive(Clone)]
pub(super) struct Dealt {
    pub(super) lane: usize,
    pub(super) message: Arc<[u8]>,
}

/// The latest messages of each lane.
#[derive(Default)]
pub(super) struct Recent {
    /// In the order in which they were sent.
    messages: VecDeque<Dealt>,
    /// How often they were sent once more since the latest one was added.
    repeats: u32,
}

impl Recent {
    /// Of a lane, as many messages can be missing at the other server (see [`Peers::send`](oblivio_shares::host::Peers::send)).
    const OF_LANE_MAX: usize = 2;

    pub(super) fn add(&mut self, dealt: Dealt) {
        let is_of_it = |other: &Dealt| other.lane == dealt.lane;
        let of_it = || self.messages.iter().filter(|other| is_of_it(other));
        if of_it().count() == Self::OF_LANE_MAX
            && let Some(oldest) = self.messages.iter().position(is_of_it)
        {
            self.messages.remove(oldest);
        }
        self.messages.push_back(dealt);
        self.repeats = 0;
        let most = Self::OF_LANE_MAX * TILES_AT_ONCE;
        debug_assert!(self.messages.len() <= most, "there are no more lanes");
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Refuses to send them over yet another link.
    pub(super) fn check_may_be_repeated(&self) -> io::Result<()> {
        if self.repeats < REPEATS_MAX {
            return Ok(());
        }
        Err(io::Error::other("its links are lost again and again"))
    }

    /// All of them, for a new link.
    pub(super) fn repeat(&mut self) -> Vec<Dealt> {
        self.repeats += u32::from(!self.messages.is_empty());
        self.messages.iter().cloned().collect()
    }
}
