//! The compared schemes, and counts of the work of an access for client and servers.

use std::fmt;

use oblivio_core::seal::BLOCK_SEAL_BYTES;
use oblivio_shares::tree::{Preset, Tree};
use serde::{Deserialize, Serialize};
use statrs::distribution::{DiscreteCDF, Poisson};

use super::rates::Rates;
use crate::LabError;
use crate::links::{SERVERS, ShareEncoding, matrix_elements, path};
use oblivio_models::link::{FRAME_BYTES, Traffic};

/// A scheme with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Path ORAM with five blocks per bucket and no tree top on the client.
    Path,
    /// Ring ORAM Z16 S25 A20, with `PoissCDF(S, A)` read as the probability of at least *S*
    /// touches.
    RingAtLeast,
    /// Ring ORAM Z16 S25 A20, with `PoissCDF` read as the probability of at most *S* touches, as
    /// the name says.
    RingAtMost,
    /// S³ORAM as published, with Z = A = 333 and elements of eight bytes. All shares are sent.
    Published,
    /// This project's S³ORAM, with Z = 333, A = 176 and elements of one byte. One of three shares
    /// is derived from a seed.
    Large,
    /// This project's S³ORAM with short buckets: Z = 74, A = 16.
    Small,
}

/// The work of an access or an eviction. Fields about *a server* count one server; all servers work
/// at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Bytes from all servers to the client.
    pub down_bytes: f64,
    /// Bytes from the client to all servers.
    pub up_bytes: f64,
    /// Round trips of the client.
    pub trips: f64,
    /// Bytes that a server sends to the other servers.
    pub between_bytes: f64,
    /// Sequential messages between servers.
    pub hops: f64,
    /// Bytes that a server reads from its disk.
    pub disk_read_bytes: f64,
    /// Bytes that a server writes to its disk.
    pub disk_written_bytes: f64,
    /// Number of times that a server waits until a write is durable.
    pub syncs: f64,
    /// Elements that a server multiplies in inner products.
    pub selected: f64,
    /// Elements that a server multiplies in products with matrices.
    pub multiplied: f64,
    /// Elements that a server shares.
    pub dealt: f64,
    /// Elements that a server reconstructs.
    pub reduced: f64,
    /// Elements that a server derives from seeds that it received instead of shares.
    pub drawn: f64,
    /// Elements that the client shares.
    pub shared: f64,
    /// Elements that the client reconstructs.
    pub recovered: f64,
}

/// The work of an access without an eviction, and of an eviction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Works {
    /// The work of selecting a block and writing it to the root. For schemes without servers that
    /// compute, the work of an access with its share of evictions.
    pub access: Work,
    /// The work of evicting a path.
    pub eviction: Work,
    /// The number of accesses per eviction.
    pub accesses: f64,
}

/// The number of servers, and the number that may collude.
pub(super) type Sizes = (u8, u8);

/// The sizes of the paper's evaluation.
pub(super) const THREE: Sizes = (3, 1);

/// Ring ORAM's parameters: blocks of a bucket, dummies of a bucket, accesses per eviction.
const RING: [f64; 3] = [16.0, 25.0, 20.0];

impl Scheme {
    /// All schemes.
    pub const ALL: [Self; 6] = [
        Self::Path,
        Self::RingAtLeast,
        Self::RingAtMost,
        Self::Published,
        Self::Large,
        Self::Small,
    ];

    /// The work of an access to a database of `database_bytes` in blocks of `block_bytes`.
    ///
    /// # Errors
    /// [`LabError::Plan`] if such a tree is impossible.
    pub fn works(self, database_bytes: u64, block_bytes: u32) -> Result<Works, LabError> {
        let blocks = (database_bytes / u64::from(block_bytes)).max(1);
        // The tree has one to two blocks per leaf.
        let levels = blocks.ilog2() + 1;
        Ok(match self {
            Self::Path => Works::of_traffic(&path(levels, 5, block_bytes)),
            Self::RingAtLeast | Self::RingAtMost => {
                Works::of_traffic(&ring(levels, self.reshuffles(), block_bytes))
            }
            Self::Published => published(Self::tree(self, blocks)?, block_bytes),
            Self::Large | Self::Small => {
                shares(THREE, Self::tree(self, blocks)?, block_bytes.into())
            }
        })
    }

    /// The tree of an S³ORAM for `blocks` blocks.
    pub(super) fn tree(self, blocks: u64) -> Result<Tree, LabError> {
        let (blocks, preset) = match self {
            // S³ORAM, section 3.1: blocks use half of the tree's capacity.
            Self::Published => (2 * blocks, Preset::PAPER),
            Self::Small => (blocks, Preset::SMALL),
            _ => (blocks, Preset::LARGE),
        };
        Tree::for_blocks(blocks, preset).map_err(|error| LabError::Plan(error.to_string()))
    }

    /// The number of Ring ORAM's early reshuffles, per bucket that an eviction writes.
    pub(super) fn reshuffles(self) -> f64 {
        let [_, dummies, accesses] = RING;
        let at_most = |touches: f64| match Poisson::new(accesses) {
            Ok(touched) => touched.cdf(touches as u64),
            Err(_) => f64::NAN,
        };
        match self {
            Self::RingAtLeast => 1.0 - at_most(dummies - 1.0),
            _ => at_most(dummies),
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Path => "Path ORAM Z5",
            Self::RingAtLeast => "Ring ORAM, at least S",
            Self::RingAtMost => "Ring ORAM, at most S",
            Self::Published => "S³ORAM as published",
            Self::Large => "S³ORAM here, Z 333 A 176",
            Self::Small => "S³ORAM here, Z 74 A 16",
        })
    }
}

impl Work {
    /// Returns the sum of this work and `other` multiplied by `times`.
    pub fn plus(self, other: Self, times: f64) -> Self {
        Self {
            down_bytes: self.down_bytes + times * other.down_bytes,
            up_bytes: self.up_bytes + times * other.up_bytes,
            trips: self.trips + times * other.trips,
            between_bytes: self.between_bytes + times * other.between_bytes,
            hops: self.hops + times * other.hops,
            disk_read_bytes: self.disk_read_bytes + times * other.disk_read_bytes,
            disk_written_bytes: self.disk_written_bytes + times * other.disk_written_bytes,
            syncs: self.syncs + times * other.syncs,
            selected: self.selected + times * other.selected,
            multiplied: self.multiplied + times * other.multiplied,
            dealt: self.dealt + times * other.dealt,
            reduced: self.reduced + times * other.reduced,
            drawn: self.drawn + times * other.drawn,
            shared: self.shared + times * other.shared,
            recovered: self.recovered + times * other.recovered,
        }
    }
}

impl Work {
    /// Processor seconds of computing at these rates, first on the client and then on a server.
    pub fn computed(&self, rates: &Rates) -> [f64; 2] {
        [
            self.shared / rates.share + self.recovered / rates.recover,
            self.selected / rates.inner
                + self.multiplied / rates.matrix
                + self.dealt / rates.share
                + self.reduced / rates.recover
                + self.drawn / rates.draw,
        ]
    }
}

impl Works {
    /// The work of an access with its share of an eviction.
    pub fn mean(&self) -> Work {
        self.access.plus(self.eviction, 1.0 / self.accesses)
    }

    /// Converts traffic to work, for a scheme whose server only reads and writes.
    fn of_traffic(traffic: &Traffic) -> Self {
        let access = Work {
            down_bytes: traffic.down_bytes(),
            up_bytes: traffic.up_bytes(),
            trips: traffic.trips,
            disk_read_bytes: traffic.read_bytes,
            disk_written_bytes: traffic.written_bytes,
            ..Work::default()
        };
        Self { access, eviction: Work::default(), accesses: 1.0 }
    }
}

/// Ring ORAM's traffic. An access downloads one block, the sum of a block from each bucket. An
/// eviction reads *Z* blocks of each bucket of a path and writes *Z* + *S*; early reshuffles do the
/// same with a bucket. The model ignores that the server reads more than it sends.
pub(super) fn ring(levels: u32, reshuffles: f64, block_bytes: u32) -> Traffic {
    let [slots, dummies, accesses] = RING;
    let (pieces, block_bytes) = (f64::from(levels), f64::from(block_bytes));
    let buckets = pieces / accesses * (1.0 + reshuffles);
    let evicted_bytes = buckets * slots * block_bytes;
    Traffic {
        answer_bytes: block_bytes,
        answer_pieces: pieces,
        read_bytes: block_bytes + evicted_bytes,
        written_bytes: buckets * (slots + dummies) * block_bytes,
        pieces: pieces + 2.0 * buckets,
        trips: 1.0 + 2.0 / accesses,
        accesses: 1.0,
    }
}

/// The traffic of an S³ORAM client with `servers` servers, as in [`links`](crate::links).
fn sent(servers: f64, tree: Tree, slot_bytes: f64, form: ShareEncoding) -> Works {
    let access = Work {
        down_bytes: servers * slot_bytes + 2.0 * FRAME_BYTES,
        up_bytes: form.query_bytes(tree) + form.sent * slot_bytes + 2.0 * FRAME_BYTES,
        trips: 2.0,
        ..Work::default()
    };
    let eviction = Work {
        down_bytes: FRAME_BYTES,
        up_bytes: form.matrix_bytes(tree) + FRAME_BYTES,
        trips: 1.0,
        ..Work::default()
    };
    Works { access, eviction, accesses: tree.accesses() as f64 }
}

/// The work of the published form. An access reads all slots of a path. An eviction reads and
/// writes the buckets of each level in turn.
fn published(tree: Tree, block_bytes: u32) -> Works {
    let form = ShareEncoding::PAPER;
    let block_bytes = f64::from(block_bytes);
    let (height, slots) = (f64::from(tree.height()), tree.slots() as f64);
    let (path_slots, elements) = (tree.path_slots() as f64, block_bytes / form.element_bytes);
    let Works { access, eviction, accesses } = sent(SERVERS, tree, block_bytes, form);
    let made = height + 1.0;
    Works {
        access: Work {
            disk_read_bytes: path_slots * block_bytes,
            disk_written_bytes: block_bytes,
            selected: path_slots * elements,
            shared: path_slots + elements,
            recovered: elements,
            ..access
        },
        eviction: Work {
            between_bytes: (SERVERS - 1.0) * made * slots * block_bytes,
            hops: made,
            // Read the source and destination of each level, and the last sibling. Write
            // destinations and siblings.
            disk_read_bytes: (2.0 * height + 1.0) * slots * block_bytes,
            disk_written_bytes: 2.0 * height * slots * block_bytes,
            multiplied: made * 2.0 * slots * slots * elements,
            dealt: made * slots * elements,
            reduced: made * slots * elements,
            shared: matrix_elements(tree),
            ..eviction
        },
        accesses,
    }
}

/// The work of this project's form, for a tree that has been evicted often. For an access, servers
/// read only occupied slots: on average half of the root's blocks and every second bucket between
/// root and leaf, and the whole leaf. In an eviction, sources are not read again, and destinations
/// that are the next source are not written.
pub(super) fn shares((servers, colluding): Sizes, tree: Tree, block_bytes: f64) -> Works {
    let (servers, colluding) = (f64::from(servers), f64::from(colluding));
    // A share that is derived from a seed is not sent.
    let form = ShareEncoding { sent: servers - colluding, ..ShareEncoding::OURS };
    let slot_bytes = block_bytes + BLOCK_SEAL_BYTES as f64;
    let (height, slots) = (f64::from(tree.height()), tree.slots() as f64);
    let Works { access, eviction, accesses } = sent(servers, tree, slot_bytes, form);
    let read_slots = accesses / 2.0 + (height - 1.0) / 2.0 * slots + slots;
    let made = height + 1.0;
    let dealt = made * slots * slot_bytes;
    // On average over the servers, this fraction of shares is sent as seeds.
    let seeds = colluding / servers;
    // Servers that are not dealers read no children, and neither multiply nor share.
    let dealers = 2.0 * colluding + 1.0;
    let deals = dealers / servers;
    // Children of the root only get the existing blocks, fewer than the slots of the root.
    let of_root = if height > 1.0 { 1.0 } else { 2.0 };
    let products = made * 2.0 * slots * slots - of_root * (slots - accesses) * slots;
    Works {
        access: Work {
            disk_read_bytes: read_slots * slot_bytes,
            disk_written_bytes: slot_bytes,
            syncs: 1.0,
            selected: read_slots * slot_bytes,
            drawn: seeds * (tree.path_slots() as f64 + slot_bytes),
            shared: tree.path_slots() as f64 + slot_bytes,
            recovered: slot_bytes,
            ..access
        },
        eviction: Work {
            // Before an eviction, the client asks the servers for their progress.
            trips: 2.0,
            // Among the shares for the other servers, as many are seeds as may collude.
            between_bytes: deals * (servers - 1.0 - colluding) * made * slots * slot_bytes,
            hops: height,
            disk_read_bytes: (accesses + deals * (height + 1.0) * slots) * slot_bytes,
            disk_written_bytes: (height + 1.0) * slots * slot_bytes,
            syncs: 4.0,
            multiplied: deals * products * slot_bytes,
            dealt: deals * dealt,
            reduced: dealt,
            drawn: seeds * (dealers * dealt + matrix_elements(tree)),
            shared: matrix_elements(tree),
            ..eviction
        },
        accesses,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links;
    use oblivio_models::link::Link;

    const BLOCK: u32 = 128 << 10;
    const DATABASE: u64 = 40 << 30;

    fn near(ours: f64, theirs: f64, part: f64) {
        assert!((ours - theirs).abs() <= part * theirs, "{ours}, not {theirs}");
    }

    /// The client's traffic equals the model of `links`, apart from one more round trip before an
    /// eviction.
    #[test]
    fn the_clients_bytes_match_the_model_of_links() {
        let of = |scheme: Scheme| scheme.works(DATABASE, BLOCK).unwrap().mean();
        let published = of(Scheme::Published);
        let traffic = links::Form::SharesPaper.traffic(DATABASE, BLOCK).unwrap().unwrap();
        near(published.up_bytes, traffic.up_bytes(), 1e-9);
        near(published.down_bytes, traffic.down_bytes(), 1e-9);
        near(published.trips, traffic.trips, 1e-9);
        let traffic = links::Form::Shares.traffic(DATABASE, BLOCK).unwrap().unwrap();
        near(of(Scheme::Large).up_bytes, traffic.up_bytes(), 1e-3);
        near(of(Scheme::Large).down_bytes, traffic.down_bytes(), 1e-3);
    }

    /// The two readings of `PoissCDF` give probabilities of 0.157 and 0.888. The test checks the
    /// resulting seconds, for 19 levels on both links of the paper.
    #[test]
    fn ring_oram_takes_8_6_or_14_0_seconds_by_reading() {
        let seconds = |scheme: Scheme, link: Link| {
            let traffic = ring(19, scheme.reshuffles(), BLOCK);
            traffic.serial_seconds(link)
        };
        near(Scheme::RingAtLeast.reshuffles(), 0.157, 0.005);
        near(Scheme::RingAtMost.reshuffles(), 0.888, 0.005);
        near(seconds(Scheme::RingAtLeast, links::TABLE1_LINK), 8.6, 0.01);
        near(seconds(Scheme::RingAtMost, links::TABLE1_LINK), 14.0, 0.01);
        near(seconds(Scheme::RingAtLeast, Link::new(29.0, 5.0, 15.0)), 10.1, 0.01);
    }

    /// Compares the times with values computed by hand, for blocks of 128 KiB, H = 11 and 29/5
    /// Mbit/s: with elements of eight, four and one bytes, and of one byte with seeds.
    #[test]
    fn times_for_all_sizes_of_elements_match_a_computation_by_hand() {
        let tree = Tree::new(11, Preset::PAPER).unwrap();
        let link = Link::new(29.0, 5.0, 15.0);
        for (element_bytes, sent, seconds) in
            [(8.0, 3.0, 1.24), (4.0, 3.0, 1.01), (1.0, 3.0, 0.84), (1.0, 2.0, 0.61)]
        {
            let form = ShareEncoding { element_bytes, sent };
            near(links::shares(tree, BLOCK, form).serial_seconds(link), seconds, 0.025);
        }
    }

    /// Compares the work with counts made by hand, for a tree of two levels with Z = 3, A = 2, and
    /// blocks of four bytes plus their seal.
    #[test]
    fn a_small_tree_matches_a_count_by_hand() {
        let tree = Tree::new(2, Preset { slots: 3, accesses: 2 }).unwrap();
        let Works { access, eviction, accesses } = shares(THREE, tree, 4.0);
        let slot = 4.0 + BLOCK_SEAL_BYTES as f64;
        near(access.down_bytes, 3.0 * slot + 64.0, 1e-9);
        near(access.up_bytes, 2.0 * (9.0 + slot) + 64.0, 1e-9);
        // One block of the root, half of a bucket, a leaf.
        near(access.disk_read_bytes, (1.0 + 1.5 + 3.0) * slot, 1e-9);
        // Two rows of the root and three of its child; six and six for the leaves; three columns.
        near(eviction.multiplied, (5.0 + 6.0 + 6.0) * 3.0 * slot, 1e-9);
        near(eviction.disk_written_bytes, (3.0 + 6.0) * slot, 1e-9);
        // One of three shares is a seed: for nine slots from each of three dealers, and for three
        // matrices.
        near(eviction.drawn, (3.0 * 9.0 * slot + 54.0) / 3.0, 1e-9);
        near(access.drawn, (9.0 + slot) / 3.0, 1e-9);
        near(eviction.up_bytes, 2.0 * 3.0 * 18.0 + 32.0, 1e-9);
        near(accesses, 2.0, 1e-9);
        let mean = Works { access, eviction, accesses }.mean();
        near(mean.trips, 3.0, 1e-9);
    }
}
