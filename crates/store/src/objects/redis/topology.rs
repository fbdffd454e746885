//! The nodes of a cluster, and the slots of each master.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::slots::{SLOTS, SlotSet};
use crate::objects::resp::Reply;
use crate::remote_location::shown_address;

/// The maximum number of masters, and of replicas.
pub(super) const NODES_MAX: usize = 1000;

/// The error of a topology with more nodes.
const TOO_MANY: &str = "it names more nodes than a cluster has";

/// The maximum length of a host name in bytes.
const HOST_BYTES_MAX: usize = 255;

/// The address of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Address {
    /// A host name or an IP address, without brackets.
    pub(super) host: Arc<str>,
    pub(super) port: u16,
}

impl Address {
    pub(super) fn new(host: &str, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    /// Parses `HOST:PORT` as in a redirection, where an IPv6 address has no brackets. Without a
    /// host, it is that of `asked`, the node that sent the redirection.
    pub(super) fn of_redirection(text: &str, asked: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Self::announced(host, port.parse().ok()?, asked)
    }

    fn announced(host: &str, port: u16, asked: &Self) -> Option<Self> {
        if port == 0 || host.len() > HOST_BYTES_MAX {
            return None;
        }
        if host.is_empty() {
            return Some(Self { host: asked.host.clone(), port });
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:%".contains(c);
        host.chars().all(is_plain).then(|| Self::new(host, port))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown_address(&self.host, self.port))
    }
}

/// The masters of a cluster, each with its slots, and the replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Topology {
    masters: Vec<Address>,
    /// The replicas that are up, each with the index of its master.
    replicas: BTreeSet<(u16, Address)>,
    /// For each slot the index of its master.
    owners: Vec<Option<u16>>,
}

impl Topology {
    /// A single server that is no cluster.
    pub(super) fn single(server: Address) -> Self {
        let owners = vec![Some(0); SLOTS.into()];
        Self { masters: vec![server], replicas: BTreeSet::new(), owners }
    }

    /// Reads the reply to `CLUSTER SLOTS` of the node `asked`.
    ///
    /// # Errors
    /// What is wrong with the reply.
    pub(super) fn read(reply: &Reply, asked: &Address) -> Result<Self, &'static str> {
        let malformed = "its reply to CLUSTER SLOTS is malformed";
        let Reply::Array(ranges) = reply else { return Err(malformed) };
        let mut topology = Self {
            masters: Vec::new(),
            replicas: BTreeSet::new(),
            owners: vec![None; SLOTS.into()],
        };
        for range in ranges {
            let Reply::Array(range) = range else { return Err(malformed) };
            let [Reply::Integer(first), Reply::Integer(last), master, replicas @ ..] = &range[..]
            else {
                return Err(malformed);
            };
            let slot = |slot: i64| u16::try_from(slot).ok().filter(|slot| *slot < SLOTS);
            let (first, last) = slot(*first).zip(slot(*last)).ok_or(malformed)?;
            let master = node(master, asked).ok_or(malformed)?;
            let index = topology.index_of(master)?;
            for owner in topology.owners.get_mut(first.into()..=last.into()).ok_or(malformed)? {
                *owner = Some(index);
            }
            for replica in replicas {
                let replica = node(replica, asked).ok_or(malformed)?;
                topology.replicas.insert((index, replica));
                if topology.replicas.len() > NODES_MAX {
                    return Err(TOO_MANY);
                }
            }
        }
        Ok(topology)
    }

    /// The index of a master, which is added if it is new.
    fn index_of(&mut self, master: Address) -> Result<u16, &'static str> {
        let known = self.masters.iter().position(|known| *known == master);
        let index = known.unwrap_or_else(|| {
            self.masters.push(master);
            self.masters.len() - 1
        });
        u16::try_from(index).ok().filter(|index| usize::from(*index) < NODES_MAX).ok_or(TOO_MANY)
    }

    pub(super) fn masters(&self) -> &[Address] {
        &self.masters
    }

    /// The replicas of a master that are up.
    pub(super) fn replicas_of(&self, master: &Address) -> impl Iterator<Item = &Address> {
        let is_of = |index: u16| self.masters.get(usize::from(index)) == Some(master);
        self.replicas.iter().filter(move |(index, _)| is_of(*index)).map(|(_, replica)| replica)
    }

    /// All masters and all replicas that are up.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Address> {
        self.masters.iter().chain(self.replicas.iter().map(|(_, replica)| replica))
    }

    /// The master of a slot; `None` while the slot has none.
    pub(super) fn owner(&self, slot: u16) -> Option<&Address> {
        let index = (*self.owners.get(usize::from(slot))?)?;
        self.masters.get(usize::from(index))
    }

    /// The slots of a master.
    pub(super) fn slots_of(&self, master: &Address) -> SlotSet {
        let mut slots = SlotSet::default();
        (0..SLOTS).filter(|slot| self.owner(*slot) == Some(master)).for_each(|it| slots.insert(it));
        slots
    }

    /// The first slot without a master.
    pub(super) fn uncovered(&self) -> Option<u16> {
        (0..SLOTS).find(|slot| self.owner(*slot).is_none())
    }
}

/// Reads a node in a reply to `CLUSTER SLOTS`: host, port, identifier, and more.
fn node(reply: &Reply, asked: &Address) -> Option<Address> {
    let Reply::Array(parts) = reply else { return None };
    let [host, Reply::Integer(port), ..] = &parts[..] else { return None };
    let host = match host {
        Reply::Bulk(host) => str::from_utf8(host).ok()?,
        // The node does not know its own address.
        Reply::Null => "",
        _ => return None,
    };
    // Redis writes "?" for a host that it does not know.
    let host = if host == "?" { "" } else { host };
    Address::announced(host, u16::try_from(*port).ok()?, asked)
}

/// What a master knows about itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OwnView {
    pub(super) is_master: bool,
    /// The slots that this master serves.
    pub(super) slots: SlotSet,
    /// The slots that are being moved from or to this master.
    pub(super) moving: SlotSet,
    /// The number of this master's replicas, failed ones included.
    pub(super) replicas: usize,
}

impl OwnView {
    /// Reads the reply to `CLUSTER NODES`; `None` if it is malformed.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let text = str::from_utf8(text).ok()?;
        let lines = || text.lines().filter_map(NodeLine::read);
        let own = lines().find(|line| line.has("myself"))?;
        let mut view = Self {
            is_master: own.has("master"),
            slots: SlotSet::default(),
            moving: SlotSet::default(),
            replicas: lines().filter(|line| line.has("slave") && line.master == own.id).count(),
        };
        for field in own.slots.split_whitespace() {
            match field.strip_prefix('[') {
                Some(moving) => view.moving.insert(moving.split('-').next()?.parse().ok()?),
                None => {
                    let (first, last) = field.split_once('-').unwrap_or((field, field));
                    let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
                    (first..=last.min(SLOTS)).for_each(|slot| view.slots.insert(slot));
                }
            }
        }
        Some(view)
    }
}

/// A line of `CLUSTER NODES`.
struct NodeLine<'a> {
    id: &'a str,
    flags: &'a str,
    master: &'a str,
    slots: &'a str,
}

impl<'a> NodeLine<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(9, ' ');
        let (id, _address) = (fields.next()?, fields.next()?);
        let (flags, master) = (fields.next()?, fields.next()?);
        // Ping, pong, epoch, link state.
        let slots = fields.nth(4).unwrap_or_default();
        Some(Self { id, flags, master, slots })
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.split(',').any(|it| it == flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.to_owned().into())
    }

    fn at(host: Reply, port: i64) -> Reply {
        Reply::Array(vec![host, Reply::Integer(port), bulk("id"), Reply::Array(vec![])])
    }

    fn range(first: i64, last: i64, nodes: Vec<Reply>) -> Reply {
        let slots = [Reply::Integer(first), Reply::Integer(last)];
        Reply::Array(slots.into_iter().chain(nodes).collect())
    }

    #[test]
    fn masters_replicas_and_slots_are_read() {
        let asked = Address::new("seed", 9);
        let reply = Reply::Array(vec![
            range(0, 99, vec![at(bulk("10.0.0.1"), 1), at(bulk("10.0.0.2"), 2)]),
            range(100, 16383, vec![at(Reply::Null, 3)]),
        ]);
        let read = Topology::read(&reply, &asked).unwrap();
        let (one, three) = (Address::new("10.0.0.1", 1), Address::new("seed", 3));
        assert_eq!(read.masters(), [one.clone(), three.clone()]);
        let replicas = |master| read.replicas_of(master).cloned().collect::<Vec<_>>();
        assert_eq!(replicas(&one), [Address::new("10.0.0.2", 2)]);
        assert_eq!(replicas(&three), []);
        assert_eq!(read.nodes().count(), 3);
        assert_eq!((read.owner(99), read.owner(100)), (Some(&one), Some(&three)));
        assert_eq!((read.owner(SLOTS), read.uncovered()), (None, None));
        assert_eq!(read.slots_of(&one).iter().count(), 100);
    }

    #[test]
    fn malformed_topologies_are_refused() {
        let asked = Address::new("seed", 9);
        let host = || bulk("h");
        for ranges in [
            vec![Reply::Null],
            vec![range(0, 16384, vec![at(host(), 1)])],
            vec![range(-1, 1, vec![at(host(), 1)])],
            vec![range(5, 1, vec![at(host(), 1)])],
            vec![range(0, 1, vec![])],
            vec![range(0, 1, vec![at(host(), 0)])],
            vec![range(0, 1, vec![at(host(), 65536)])],
            vec![range(0, 1, vec![at(bulk("h\n"), 1)])],
            vec![range(0, 1, vec![at(bulk(&"h".repeat(256)), 1)])],
            vec![range(0, 1, (1..=1002).map(|port| at(host(), port)).collect())],
        ] {
            assert!(Topology::read(&Reply::Array(ranges.clone()), &asked).is_err(), "{ranges:?}");
        }
        assert!(Topology::read(&Reply::Integer(1), &asked).is_err());
        let nothing = Topology::read(&Reply::Array(vec![]), &asked).unwrap();
        assert_eq!(nothing.uncovered(), Some(0));
    }

    #[test]
    fn a_node_knows_its_slots_and_counts_failed_replicas() {
        let text = "aa h:1@11 myself,master - 0 0 1 connected 0-2 7 [8->-bb] [9-<-cc]\n\
                    bb h:2@12 master - 0 0 2 connected 10-20\n\
                    cc h:3@13,name slave aa 0 0 1 connected\n\
                    dd h:4@14 slave,fail aa 0 0 1 disconnected\n\
                    ee h:5@15 slave bb 0 0 1 connected\n";
        let view = OwnView::read(text.as_bytes()).unwrap();
        assert!(view.is_master);
        assert_eq!(view.slots.iter().collect::<Vec<_>>(), [0, 1, 2, 7]);
        assert_eq!(view.moving.iter().collect::<Vec<_>>(), [8, 9]);
        assert_eq!(view.replicas, 2);
        for text in ["", "aa h:1@11 master - 0 0 1 connected 0-2", "a myself", "\u{0}"] {
            assert_eq!(OwnView::read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(OwnView::read(b"aa h:1@1 myself,master - 0 0 1 connected x-"), None);
    }

    #[test]
    fn redirections_name_an_address() {
        let asked = Address::new("seed", 9);
        let read = |text| Address::of_redirection(text, &asked);
        assert_eq!(read("10.0.0.1:7000"), Some(Address::new("10.0.0.1", 7000)));
        assert_eq!(read(":7000"), Some(Address::new("seed", 7000)));
        assert_eq!(read("::1:7000"), Some(Address::new("::1", 7000)));
        for text in ["", "h", "h:0", "h:x", "h:70000", "h h:1"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
