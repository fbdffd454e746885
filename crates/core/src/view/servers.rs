//! Share servers in a view, and the messages between them.

use super::EventSink;
use crate::pieces::TreeId;

/// The servers of a view. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ViewServers {
    count: u8,
    colluding: u8,
    watched: u8,
}

/// Maximum number of servers. They are numbered from 1.
pub const SERVERS_MAX: u8 = 7;

/// Maximum number of trees of a server. Tree 0 holds the data, the other trees hold the position
/// map.
pub const TREES_OF_SERVER_MAX: u8 = 8;

/// The lowest number that a view uses for a tree of a share server. Lower numbers are trees for
/// records.
const FIRST_SERVER: u16 = 100;

/// The difference between the numbers that a view uses for consecutive trees of one server.
const NEXT_TREE: u16 = 10;

impl ViewServers {
    /// `count` servers, of which `colluding` may collude. `None` if `count` is below 2 or above
    /// [`SERVERS_MAX`], or if `colluding` is 0 or not below `count`.
    pub fn new(count: u8, colluding: u8) -> Option<Self> {
        let is_sound = count <= SERVERS_MAX && colluding >= 1 && colluding < count;
        is_sound.then_some(Self { count, colluding, watched: 0 })
    }

    /// Adds the messages between servers as the servers in `watched` saw them: bit *i* is for
    /// server *i* + 1. `None` if `watched` has a bit without a server.
    pub fn watching(self, watched: u8) -> Option<Self> {
        (u32::from(watched) >> self.count == 0).then_some(Self { watched, ..self })
    }

    /// The number of servers.
    pub fn count(self) -> u8 {
        self.count
    }

    /// The number of servers that may collude.
    pub fn colluding(self) -> u8 {
        self.colluding
    }

    /// The servers whose messages are in the view, as bits: see [`Self::watching`].
    pub fn watched(self) -> u8 {
        self.watched
    }

    /// Whether `server` is one of the servers.
    pub fn has(self, server: u8) -> bool {
        (1..=self.count).contains(&server)
    }

    /// Whether a tree can occur in the view: a tree of one of the servers, or a tree for records,
    /// which has a lower number.
    pub fn have_tree(self, tree: TreeId) -> bool {
        tree.0 < FIRST_SERVER
            || server_of_view_tree(tree).is_some_and(|(server, _)| self.has(server))
    }

    /// Whether the view has the messages between `server` and other servers.
    pub fn watches(self, server: u8) -> bool {
        self.has(server) && self.watched >> (server - 1) & 1 == 1
    }
}

/// The number that stands in a view for tree `tree` of server `server`. It also identifies the
/// server. `server` is from 1 to [`SERVERS_MAX`], `tree` below [`TREES_OF_SERVER_MAX`].
pub fn view_tree(server: u8, tree: u8) -> TreeId {
    TreeId(FIRST_SERVER + NEXT_TREE * u16::from(tree) + u16::from(server) - 1)
}

/// The server and its tree with a given number in a view; `None` for other numbers.
pub fn server_of_view_tree(tree: TreeId) -> Option<(u8, u8)> {
    let behind = tree.0.checked_sub(FIRST_SERVER)?;
    let (tree, place) = (behind / NEXT_TREE, behind % NEXT_TREE);
    let is_one = tree < TREES_OF_SERVER_MAX.into() && place < SERVERS_MAX.into();
    is_one.then_some((place as u8 + 1, tree as u8))
}

/// Whether a server sent or received a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// The server sent the message to its partner.
    Sent,
    /// The server received the message from its partner.
    Received,
}

impl Direction {
    /// The name of the direction, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sent => "send",
            Self::Received => "receive",
        }
    }
}

/// A message between two servers in an eviction, as one of them saw it. Public by nature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerMessage {
    /// The number of this message. Messages and [calls](super::Event::trip) are numbered in one
    /// sequence.
    pub trip: u64,
    /// The server that saw the message, from 1.
    pub party: u8,
    /// Whether the server that saw the message sent or received it.
    pub direction: Direction,
    /// The server on the other side of the message.
    pub partner: u8,
    /// The tree whose path is evicted. `None` if the server did not know it yet.
    pub tree: Option<u8>,
    /// The number of the eviction, according to the message.
    pub eviction: u64,
    /// The number of the attempt at the eviction.
    pub attempt: u64,
    /// The level of the buckets being written; 0 for the message that ends the data that the sender
    /// deals.
    pub round: u8,
    /// Every block is sent in parts: the index of the part in this message.
    pub part: u32,
    /// The number of shares in the message.
    pub shares: u8,
    /// The number of shares in the message that are sent as seeds, from which the receiver computes
    /// the shares.
    pub seeds: u8,
    /// The length of the message in bytes.
    pub bytes: u64,
}

impl PeerMessage {
    /// Whether the message fits a view of these servers: it is between two different servers, and
    /// the view has the messages of the server that saw it.
    pub fn is_between(&self, servers: ViewServers) -> bool {
        servers.watches(self.party) && servers.has(self.partner) && self.partner != self.party
    }

    /// The sender and the receiver of the message, numbered from 1.
    pub fn from_to(&self) -> (u8, u8) {
        match self.direction {
            Direction::Sent => (self.party, self.partner),
            Direction::Received => (self.partner, self.party),
        }
    }
}

/// A consumer of messages between servers, in addition to events.
pub trait PeerMessageSink: EventSink {
    /// Records the next message, and its [`PeerMessage::bytes`] bytes.
    fn record_message(&mut self, exchange: &PeerMessage, contents: &[u8]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_number_belongs_to_one_server_or_none() {
        let mut trees = alloc::collections::BTreeSet::new();
        for (server, tree) in
            (1..=SERVERS_MAX).flat_map(|server| (0..8).map(move |tree| (server, tree)))
        {
            let id = view_tree(server, tree);
            assert_eq!(server_of_view_tree(id), Some((server, tree)));
            assert!(trees.insert(id));
        }
        let strangers = (0..=u16::MAX).filter(|id| !trees.contains(&TreeId(*id)));
        assert!(strangers.into_iter().all(|id| server_of_view_tree(TreeId(id)).is_none()));
    }

    #[test]
    fn a_view_has_only_existing_servers() {
        assert!(
            [(1, 1), (3, 0), (3, 3), (8, 3)]
                .iter()
                .all(|it| ViewServers::new(it.0, it.1).is_none())
        );
        let servers = ViewServers::new(3, 1).unwrap();
        assert!(servers.watching(8).is_none());
        let servers = servers.watching(0b101).unwrap();
        assert_eq!(
            [0, 1, 2, 3, 4].map(|server| servers.watches(server)),
            [false, true, false, true, false]
        );
        let [low, high] = [0, 3].map(|tree| view_tree(3, tree));
        assert!([TreeId(0), TreeId(99), low, high].iter().all(|tree| servers.have_tree(*tree)));
        let foreign =
            [view_tree(4, 0), view_tree(7, 7), TreeId(107), TreeId(180), TreeId(u16::MAX)];
        assert!(foreign.iter().all(|tree| !servers.have_tree(*tree)));
        let most = ViewServers::new(7, 3).unwrap();
        assert!(most.watching(0x80).is_none() && most.watching(0x7F).is_some());
    }
}
