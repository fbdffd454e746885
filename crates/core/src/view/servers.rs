//! Storage that is several servers which hold shares: who they are in a view, and what they send to each other.

use super::EventSink;
use crate::pieces::TreeId;

/// The servers of a view. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ViewServers {
    count: u8,
    colluding: u8,
    watched: u8,
}

/// Servers, at most. They are numbered from 1.
pub const SERVERS_MAX: u8 = 7;

/// Trees of a server, at most: that of the data, which is number 0, and those of its position map.
pub const TREES_OF_SERVER_MAX: u8 = 8;

/// Trees of a view before it are for records.
const FIRST_SERVER: u16 = 100;

/// From a tree of a server to its next one.
const NEXT_TREE: u16 = 10;

impl ViewServers {
    /// So many servers, of which so many may collude. None if there is no such thing: fewer than two, more than [`SERVERS_MAX`], or all may collude, or none.
    pub fn new(count: u8, colluding: u8) -> Option<Self> {
        let is_sound = count <= SERVERS_MAX && colluding >= 1 && colluding < count;
        is_sound.then_some(Self { count, colluding, watched: 0 })
    }

    /// The view has the messages between servers as the servers of `watched` saw them: bit *i* is for server *i* + 1. None if there is no such server.
    pub fn watching(self, watched: u8) -> Option<Self> {
        (u32::from(watched) >> self.count == 0).then_some(Self { watched, ..self })
    }

    /// How many there are.
    pub fn count(self) -> u8 {
        self.count
    }

    /// How many may put together what they see.
    pub fn colluding(self) -> u8 {
        self.colluding
    }

    /// Whose messages from and to other servers the view has, as bits: see [`Self::watching`].
    pub fn watched(self) -> u8 {
        self.watched
    }

    /// Whether this is one of them.
    pub fn has(self, party: u8) -> bool {
        (1..=self.count).contains(&party)
    }

    /// Whether a tree can be one of their view: one of theirs, or one of those before them, which are for records.
    pub fn have_tree(self, tree: TreeId) -> bool {
        tree.0 < FIRST_SERVER || party_of_tree(tree).is_some_and(|(party, _)| self.has(party))
    }

    /// Whether the view has what this one and other servers sent to each other.
    pub fn watches(self, party: u8) -> bool {
        self.has(party) && self.watched >> (party - 1) & 1 == 1
    }
}

/// The tree of a view that stands for a tree of a server. An event names with it which server has seen it. `party` is from 1 to [`SERVERS_MAX`], `tree`
/// below [`TREES_OF_SERVER_MAX`].
pub fn tree_of_party(party: u8, tree: u8) -> TreeId {
    TreeId(FIRST_SERVER + NEXT_TREE * u16::from(tree) + u16::from(party) - 1)
}

/// The server for which a tree of a view stands, and which of its trees; none if it stands for none.
pub fn party_of_tree(tree: TreeId) -> Option<(u8, u8)> {
    let behind = tree.0.checked_sub(FIRST_SERVER)?;
    let (tree, place) = (behind / NEXT_TREE, behind % NEXT_TREE);
    let is_one = tree < TREES_OF_SERVER_MAX.into() && place < SERVERS_MAX.into();
    is_one.then_some((place as u8 + 1, tree as u8))
}

/// Whether a server sent or got something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// It went to the partner.
    Sent,
    /// It came from the partner.
    Received,
}

impl Direction {
    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sent => "send",
            Self::Received => "receive",
        }
    }
}

/// A message that a server dealt to another in an eviction, as one of the two saw it. Public by nature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exchange {
    /// The running number, among those of [calls](super::Event::trip).
    pub trip: u64,
    /// Who saw it, from 1.
    pub party: u8,
    /// Whether that one sent it.
    pub direction: Direction,
    /// The other one.
    pub partner: u8,
    /// Of which of the server's trees a path is evicted. None if the server had not been told when the message came.
    pub tree: Option<u8>,
    /// The number of the eviction, as the message says it.
    pub eviction: u64,
    /// Of the attempt.
    pub attempt: u64,
    /// The level of the buckets that are made; 0 for a message that says that the sender has come to the end.
    pub round: u8,
    /// Which part of every block.
    pub part: u32,
    /// Its shares, and how many of them are seeds.
    pub shares: u8,
    /// See [`Self::shares`].
    pub seeds: u8,
    /// Bytes of the message.
    pub bytes: u64,
}

impl Exchange {
    /// Whether two servers of these can have exchanged it, and the view has what one of them saw.
    pub fn is_between(&self, servers: ViewServers) -> bool {
        servers.watches(self.party) && servers.has(self.partner) && self.partner != self.party
    }

    /// From which server to which.
    pub fn from_to(&self) -> (u8, u8) {
        match self.direction {
            Direction::Sent => (self.party, self.partner),
            Direction::Received => (self.partner, self.party),
        }
    }
}

/// Where messages between servers go, beside what clients ask.
pub trait ExchangeSink: EventSink {
    /// Takes the next message, and its bytes: [`Exchange::bytes`] of them.
    fn exchanged(&mut self, exchange: &Exchange, contents: &[u8]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_stands_for_one_server_or_none() {
        let mut trees = alloc::collections::BTreeSet::new();
        for (party, tree) in
            (1..=SERVERS_MAX).flat_map(|party| (0..8).map(move |tree| (party, tree)))
        {
            let id = tree_of_party(party, tree);
            assert_eq!(party_of_tree(id), Some((party, tree)));
            assert!(trees.insert(id));
        }
        let strangers = (0..=u16::MAX).filter(|id| !trees.contains(&TreeId(*id)));
        assert!(strangers.into_iter().all(|id| party_of_tree(TreeId(id)).is_none()));
    }

    #[test]
    fn a_view_names_servers_that_there_are() {
        assert!(
            [(1, 1), (3, 0), (3, 3), (8, 3)]
                .iter()
                .all(|it| ViewServers::new(it.0, it.1).is_none())
        );
        let servers = ViewServers::new(3, 1).unwrap();
        assert!(servers.watching(8).is_none());
        let servers = servers.watching(0b101).unwrap();
        assert_eq!(
            [0, 1, 2, 3, 4].map(|party| servers.watches(party)),
            [false, true, false, true, false]
        );
        let [low, high] = [0, 3].map(|tree| tree_of_party(3, tree));
        assert!([TreeId(0), TreeId(99), low, high].iter().all(|tree| servers.have_tree(*tree)));
        let foreign =
            [tree_of_party(4, 0), tree_of_party(7, 7), TreeId(107), TreeId(180), TreeId(u16::MAX)];
        assert!(foreign.iter().all(|tree| !servers.have_tree(*tree)));
        let most = ViewServers::new(7, 3).unwrap();
        assert!(most.watching(0x80).is_none() && most.watching(0x7F).is_some());
    }
}
