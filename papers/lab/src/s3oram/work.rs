//! The schemes that are compared, and what an access to each takes of everybody, counted.

use std::fmt;

use oblivio_core::seal::BLOCK_SEAL_BYTES;
use oblivio_shares::tree::{Preset, Tree};
use serde::{Deserialize, Serialize};
use statrs::distribution::{DiscreteCDF, Poisson};

use super::rates::Rates;
use crate::LabError;
use crate::links::{SERVERS, Shares, matrix_elements, path};
use oblivio_models::link::{FRAME_BYTES, Traffic};

/// A scheme with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Path ORAM, five blocks a bucket, nothing at the client.
    Path,
    /// Ring ORAM Z16 S25 A20, where `PoissCDF(S, A)` is the chance of *S* touches at least.
    RingAtLeast,
    /// The same, where it is the chance of *S* touches at most: what the word says.
    RingAtMost,
    /// S³ORAM as published: Z = A = 333, elements of eight bytes, all shares sent.
    Published,
    /// S³ORAM as this project has it: Z 333, A 176, bytes, one of three shares drawn from a seed.
    Large,
    /// The same with short buckets: Z 74, A 16.
    Small,
}

/// What is done for an access, or for an eviction. Of three servers it is one that is counted where it says *a server*; they work at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Bytes from all servers to the client.
    pub down_bytes: f64,
    /// Bytes from the client to all servers.
    pub up_bytes: f64,
    /// Round trips of the client.
    pub trips: f64,
    /// Bytes that a server sends to the others.
    pub between_bytes: f64,
    /// Messages between servers that wait for each other.
    pub hops: f64,
    /// Bytes that a server reads from its disk.
    pub disk_read_bytes: f64,
    /// Bytes that it writes there.
    pub disk_written_bytes: f64,
    /// How often it waits until something is durable.
    pub syncs: f64,
    /// Multiplications of a server in inner products, in elements.
    pub selected: f64,
    /// The same, in products with matrices.
    pub multiplied: f64,
    /// Elements that a server shares.
    pub dealt: f64,
    /// Elements that it puts together.
    pub reduced: f64,
    /// Elements that a server draws from seeds which it got in the place of shares.
    pub drawn: f64,
    /// Elements that the client shares.
    pub shared: f64,
    /// Elements that the client puts together.
    pub recovered: f64,
}

/// An access without an eviction, and an eviction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Works {
    /// Selecting a block and writing it to the root; or all of it, where evictions are counted with accesses.
    pub access: Work,
    /// Evicting a path.
    pub eviction: Work,
    /// Accesses for an eviction.
    pub accesses: f64,
}

/// How many servers there are, and how many may collude.
pub(super) type Sizes = (u8, u8);

/// Those of the paper's evaluation.
pub(super) const THREE: Sizes = (3, 1);

/// Of Ring ORAM: blocks of a bucket, dummies of one, accesses for an eviction.
const RING: [f64; 3] = [16.0, 25.0, 20.0];

impl Scheme {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Path,
        Self::RingAtLeast,
        Self::RingAtMost,
        Self::Published,
        Self::Large,
        Self::Small,
    ];

    /// What an access takes, to a database of so many bytes in blocks of so many.
    ///
    /// # Errors
    /// [`LabError::Plan`] when there is no such tree.
    pub fn works(self, database_bytes: u64, block_bytes: u32) -> Result<Works, LabError> {
        let blocks = (database_bytes / u64::from(block_bytes)).max(1);
        // A leaf for a block, or for up to two.
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

    /// The tree of an S³ORAM for so many blocks.
    pub(super) fn tree(self, blocks: u64) -> Result<Tree, LabError> {
        let (blocks, preset) = match self {
            // Half as many blocks as there is room for: section 3.1.
            Self::Published => (2 * blocks, Preset::PAPER),
            Self::Small => (blocks, Preset::SMALL),
            _ => (blocks, Preset::LARGE),
        };
        Tree::for_blocks(blocks, preset).map_err(|error| LabError::Plan(error.to_string()))
    }

    /// Early reshuffles of Ring ORAM, for each bucket that an eviction writes.
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
    /// This, and the other so many times.
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
    /// Seconds of a processor that computing takes at these rates: of the client, and of a server.
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
    /// An access with its share of an eviction.
    pub fn mean(&self) -> Work {
        self.access.plus(self.eviction, 1.0 / self.accesses)
    }

    /// Of a scheme whose server does nothing but to read and to write.
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

/// A block of a path comes down, as the sum of one of each bucket. An eviction reads *Z* blocks of each bucket of a path and writes *Z* + *S*, and so do early reshuffles. That the
/// server reads more than it sends is not counted.
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

/// What the client of an S³ORAM on so many servers sends and gets: as in [`links`](crate::links).
fn sent(servers: f64, tree: Tree, slot_bytes: f64, form: Shares) -> Works {
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

/// All slots of a path are read, and an eviction reads and writes the buckets of each level in turn.
fn published(tree: Tree, block_bytes: u32) -> Works {
    let form = Shares::PAPER;
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
            // Source and destination of each level, and the last sibling; destinations and siblings.
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

/// A tree that has been evicted often. Its servers read what holds something: of the buckets between root and leaves every second one, and of the root half of its blocks on
/// average. Sources are not read again, and destinations that go on are not written.
pub(super) fn shares((servers, colluding): Sizes, tree: Tree, block_bytes: f64) -> Works {
    let (servers, colluding) = (f64::from(servers), f64::from(colluding));
    // What is drawn from a seed need not be sent.
    let form = Shares { sent: servers - colluding, ..Shares::OURS };
    let slot_bytes = block_bytes + BLOCK_SEAL_BYTES as f64;
    let (height, slots) = (f64::from(tree.height()), tree.slots() as f64);
    let Works { access, eviction, accesses } = sent(servers, tree, slot_bytes, form);
    let read_slots = accesses / 2.0 + (height - 1.0) / 2.0 * slots + slots;
    let made = height + 1.0;
    let dealt = made * slots * slot_bytes;
    // Of all servers, as many as may collude get a seed of whatever is shared.
    let seeds = colluding / servers;
    // The others read no children, and multiply and deal nothing.
    let dealers = 2.0 * colluding + 1.0;
    let deals = dealers / servers;
    // Children of the root get the blocks that are there, and not as many as it has room for.
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
            // Before it, how far servers are is asked.
            trips: 2.0,
            // Of the shares for the others, as many are seeds as may collude.
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

    /// What is sent is the model of `links`, with another trip before an eviction here.
    #[test]
    fn the_clients_bytes_are_those_of_the_model_of_links() {
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

    /// 0.157 and 0.888, and what 19 levels take with them on both links of the paper.
    #[test]
    fn ring_oram_takes_8_6_or_14_0_seconds_as_its_formula_is_read() {
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

    /// By hand, of 128 KiB with H = 11 on 29/5: elements of eight and four bytes and of one, and of one with seeds.
    #[test]
    fn elements_of_every_size_take_what_was_computed_by_hand() {
        let tree = Tree::new(11, Preset::PAPER).unwrap();
        let link = Link::new(29.0, 5.0, 15.0);
        for (element_bytes, sent, seconds) in
            [(8.0, 3.0, 1.24), (4.0, 3.0, 1.01), (1.0, 3.0, 0.84), (1.0, 2.0, 0.61)]
        {
            let form = Shares { element_bytes, sent };
            near(links::shares(tree, BLOCK, form).serial_seconds(link), seconds, 0.025);
        }
    }

    /// A tree of two levels by hand: Z 3, A 2, four bytes and what seals them.
    #[test]
    fn a_small_tree_does_what_can_be_counted_by_hand() {
        let tree = Tree::new(2, Preset { slots: 3, accesses: 2 }).unwrap();
        let Works { access, eviction, accesses } = shares(THREE, tree, 4.0);
        let slot = 4.0 + BLOCK_SEAL_BYTES as f64;
        near(access.down_bytes, 3.0 * slot + 64.0, 1e-9);
        near(access.up_bytes, 2.0 * (9.0 + slot) + 64.0, 1e-9);
        // A root of one block, half of a bucket, a leaf.
        near(access.disk_read_bytes, (1.0 + 1.5 + 3.0) * slot, 1e-9);
        // Two rows of the root and three of its child; six and six for the leaves; three columns.
        near(eviction.multiplied, (5.0 + 6.0 + 6.0) * 3.0 * slot, 1e-9);
        near(eviction.disk_written_bytes, (3.0 + 6.0) * slot, 1e-9);
        // Of three shares, one is a seed: of nine slots from each of three dealers, and of three matrices.
        near(eviction.drawn, (3.0 * 9.0 * slot + 54.0) / 3.0, 1e-9);
        near(access.drawn, (9.0 + slot) / 3.0, 1e-9);
        near(eviction.up_bytes, 2.0 * 3.0 * 18.0 + 32.0, 1e-9);
        near(accesses, 2.0, 1e-9);
        let mean = Works { access, eviction, accesses }.mean();
        near(mean.trips, 3.0, 1e-9);
    }
}
