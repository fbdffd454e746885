//! Tests how blocks are divided into parts, and which messages an eviction sends.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::super::{Folder, Host, ShareFile};
use super::*;
use crate::message::{Answer, Evict, Request, Setup};
use crate::sharing::Parties;
use crate::tree::{Preset, Tree};

/// A folder of files in memory.
#[derive(Default)]
struct Memory(Mutex<BTreeMap<String, Arc<Mutex<Vec<u8>>>>>);

struct MemoryFile(Arc<Mutex<Vec<u8>>>);

impl Folder for Memory {
    fn read(&self, _: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }
    fn keep(&self, _: &str, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
    fn open(&self, name: &str, bytes: u64, _: bool) -> io::Result<Box<dyn ShareFile>> {
        let mut files = self.0.lock().unwrap();
        let file = files.entry(name.into()).or_default().clone();
        file.lock().unwrap().resize(bytes as usize, 0);
        Ok(Box::new(MemoryFile(file)))
    }
}

impl ShareFile for MemoryFile {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        out.copy_from_slice(&self.0.lock().unwrap()[offset as usize..][..out.len()]);
        Ok(())
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap()[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// The two other servers. When one of the two receives a message from server 1, it replies at once
/// with its own portion.
struct Others {
    mailbox: Arc<Mailbox>,
    /// The seed of the shares that these servers deal.
    fill: u8,
    sent: Mutex<Vec<(u8, DealtShares<u8>)>>,
}

impl Peers for Others {
    fn send(&self, to: u8, _lane: usize, dealt: &[u8]) -> io::Result<()> {
        let dealt = DealtShares::decode(dealt).unwrap();
        // Equal shares would cancel out.
        let shares = vec![Share::Drawn([self.fill ^ to << 4; 32]); dealt.shares.len()];
        self.mailbox.take(to, &DealtShares { shares, ..dealt.clone() }.encode()).unwrap();
        self.sent.lock().unwrap().push((to, dealt));
        Ok(())
    }
    fn give_up(&self) {}
}

/// The settings of a test in which the server under test is server 1 of three.
#[derive(Clone, Copy)]
struct World {
    height: u8,
    slots: u16,
    block_bytes: usize,
    attempt: u64,
    /// Whether the server's shares of the blocks are zeros.
    is_zeros: bool,
    /// The seed of the server's shares of the matrices.
    matrices: u8,
    /// The seed of the shares that other servers deal to the server.
    dealt: u8,
}

const SMALL: World = World {
    height: 2,
    slots: 32,
    block_bytes: 64,
    attempt: 1,
    is_zeros: false,
    matrices: 3,
    dealt: 4,
};

/// The write requests that fill the root after `evictions` evictions.
fn full_root(evictions: u64, block: &Share<u8>) -> impl Iterator<Item = Request> {
    (0..4).map(move |written| {
        let at = TreePoint { evictions, written };
        Request::Write { at, block: block.clone() }
    })
}

/// Runs one eviction on server 1, in a tree whose root is full. Returns the server's messages, each
/// with its receiver. The server draws the same seed from the system in every world.
fn dealt_in(world: World) -> Vec<(u8, DealtShares<u8>)> {
    let World { height, slots, block_bytes, attempt, is_zeros, matrices, dealt } = world;
    let tree = Tree::new(height, Preset { slots, accesses: 4 }).unwrap();
    let parties = Parties::new(3, 1).unwrap();
    let keys = parties.numbers().map(|number| [number; 32]).collect();
    let setup = Setup { number: 1, parties, tree, block_bytes, metadata_bytes: 0, keys };
    let mut host = Host::open(Box::new(Memory::default()), || Ok([1; 32])).unwrap();
    let mailbox = host.mailbox();
    let others = Others { mailbox: mailbox.clone(), fill: dealt, sent: Mutex::default() };
    let mut ask = |request: Request| {
        let answer = host.answer(&request.encode(), &others, &|_| Ok(()));
        assert_eq!(Answer::decode(&answer).unwrap(), Answer::Done);
    };
    ask(Request::Setup(setup));
    let block =
        if is_zeros { Share::Computed(vec![0; block_bytes]) } else { Share::Drawn([2; 32]) };
    full_root(0, &block).for_each(&mut ask);
    let matrices = vec![Share::Drawn([matrices; 32]); usize::from(height) + 1];
    let evict = Evict { number: 0, attempt, matrices };
    ask(Request::Evict { evict, dealers: vec![1, 2, 3] });
    assert!(mailbox.is_empty());
    others.sent.into_inner().unwrap()
}

/// Each server receives the end of each lane, so that it does not wait for the lane's last part if
/// there are more parts than lanes. After the eviction, the mailbox stores no message.
#[test]
fn each_server_receives_the_end_of_all_lanes_and_no_message_is_kept() {
    const PARTS: u32 = 6;
    let sent = dealt_in(World { height: 1, slots: 128, block_bytes: 5 * 4096 + 1, ..SMALL });
    for other in [2, 3] {
        let sent = || sent.iter().filter(|(to, _)| *to == other).map(|(_, dealt)| dealt);
        let is_end = |dealt: &&DealtShares<u8>| dealt.level == 0 && dealt.shares.is_empty();
        let mut ends: Vec<_> = sent().filter(is_end).map(|dealt| dealt.tile).collect();
        ends.sort_unstable();
        assert_eq!(ends, (PARTS..PARTS + 4).collect::<Vec<_>>(), "server {other}");
        assert_eq!(sent().count(), PARTS as usize + ends.len());
    }
}

/// The seeds that server 2 receives. With each seed, the share of the same product that server 3
/// receives.
fn seeds(sent: &[(u8, DealtShares<u8>)]) -> Vec<(Seed, Share<u8>)> {
    let of_third = |dealt: &DealtShares<u8>, child: usize| {
        let same = |(to, it): &&(u8, DealtShares<u8>)| {
            *to == 3 && (it.tile, it.level) == (dealt.tile, dealt.level)
        };
        sent.iter().find(same).unwrap().1.shares[child].clone()
    };
    let to_second = sent.iter().filter(|(to, _)| *to == 2).map(|(_, dealt)| dealt);
    let seeds = to_second.flat_map(|dealt| {
        dealt.shares.iter().enumerate().map(move |(child, share)| match share {
            Share::Drawn(seed) => (*seed, of_third(dealt, child)),
            Share::Computed(_) => panic!("server 2 gets the seeds of dealer 1"),
        })
    });
    seeds.collect()
}

/// Each part is dealt from its own seed, even if the products of all parts are equal, because the
/// server's shares of the blocks are zeros.
#[test]
fn no_two_parts_are_dealt_from_one_seed() {
    let world = World { slots: 128, block_bytes: 3 * 4096, is_zeros: true, ..SMALL };
    // A round makes two leaves, or one bucket above them.
    let mut all = seeds(&dealt_in(world));
    assert_eq!(all.len(), 3 * 3);
    all.sort_by_key(|(seed, _)| *seed);
    all.dedup_by_key(|(seed, _)| *seed);
    assert_eq!(all.len(), 3 * 3);
}

/// A server that is rolled back to before the attempt, and draws the same seed from the system,
/// deals only equal products from equal seeds.
#[test]
fn a_server_that_is_rolled_back_deals_nothing_else_from_the_same_seeds() {
    let before = seeds(&dealt_in(SMALL));
    assert!(before == seeds(&dealt_in(SMALL)));
    for (world, same) in [
        (World { attempt: 2, ..SMALL }, 0),
        (World { matrices: 5, ..SMALL }, 0),
        // The first round is the same, and its result is not.
        (World { dealt: 5, ..SMALL }, 1),
    ] {
        let again = seeds(&dealt_in(world));
        assert_eq!(again.len(), before.len());
        let seen = again.iter().filter_map(|(seed, third)| {
            before.iter().find(|(other, _)| other == seed).map(|(_, other)| other == third)
        });
        assert_eq!(seen.collect::<Vec<_>>(), vec![true; same]);
    }
}

/// Each attempt draws a new seed, so that secrets read from a server's memory reveal nothing about
/// later attempts. An attempt for which no seed can be drawn is refused.
#[test]
fn each_attempt_draws_a_seed_from_the_system() {
    let mut drawn = 0;
    let draw_seed = move || {
        drawn += 1;
        if drawn == 2 { Err(io::Error::other("no entropy")) } else { Ok([drawn; 32]) }
    };
    let mut host = Host::open(Box::new(Memory::default()), draw_seed).unwrap();
    let parties = Parties::new(3, 1).unwrap();
    let (tree, keys) = (
        Tree::new(1, Preset { slots: 32, accesses: 4 }).unwrap(),
        parties.numbers().map(|number| [number; 32]).collect(),
    );
    let others = Others { mailbox: host.mailbox(), fill: 4, sent: Mutex::default() };
    let mut ask = |request: Request| {
        Answer::decode(&host.answer(&request.encode(), &others, &|_| Ok(()))).unwrap()
    };
    let setup = Setup { number: 1, parties, tree, block_bytes: 64, metadata_bytes: 0, keys };
    assert_eq!(ask(Request::Setup(setup)), Answer::Done);
    for (number, attempt, is_done) in [(0, 1, true), (1, 2, false), (1, 3, true)] {
        if attempt < 3 {
            let block = Share::Drawn([2; 32]);
            full_root(number, &block).for_each(|write| assert_eq!(ask(write), Answer::Done));
        }
        let evict = Evict { number, attempt, matrices: vec![Share::Drawn([3; 32]); 2] };
        let answer = ask(Request::Evict { evict, dealers: vec![1, 2, 3] });
        assert_eq!(answer == Answer::Done, is_done);
        if let Answer::Refused(refusal) = answer {
            assert!(
                refusal.why.contains("cannot get randomness from its system: no entropy"),
                "{}",
                refusal.why
            );
        }
    }
    // The seeds of two attempts are all different.
    let mut all = seeds(&others.sent.into_inner().unwrap());
    all.sort_by_key(|(seed, _)| *seed);
    all.dedup_by_key(|(seed, _)| *seed);
    assert_eq!(all.len(), 2 * 2);
}

#[test]
fn parts_cover_a_block_once() {
    for (block_bytes, slots, count) in
        [(4096, 333, 3), (131_072, 333, 74), (131_072, 74, 19), (1, 1, 1), (100, 4096, 1)]
    {
        let parts = parts(block_bytes, slots);
        let mut end = 0;
        for part in &parts {
            assert_eq!(part.first, end);
            end += part.bytes;
        }
        assert_eq!((end, parts.len()), (block_bytes, count), "{block_bytes} {slots}");
    }
}
