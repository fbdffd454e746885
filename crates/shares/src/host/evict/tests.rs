//! How blocks are divided into parts, and what an eviction tells others.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::super::{Folder, Host, ShareFile};
use super::*;
use crate::message::{Answer, Evict, Request, Setup};
use crate::sharing::Parties;
use crate::tree::{Preset, Tree};

/// Files in memory.
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

/// Who is sent what.
#[derive(Default)]
struct Sent(Mutex<Vec<(u8, Dealt<u8>)>>);

impl Peers for Sent {
    fn send(&self, to: u8, _lane: usize, dealt: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().push((to, Dealt::decode(dealt).unwrap()));
        Ok(())
    }
    fn give_up(&self) {}
}

/// Of parts that are so far apart from each other, another server may lack the last: it has to hear of each that nothing comes before the end. What was dealt is not kept when it is over.
#[test]
fn each_server_is_told_the_end_of_all_parts_and_nothing_is_kept() {
    const PARTS: u32 = 6;
    let tree = Tree::new(1, Preset { slots: 128, accesses: 4 }).unwrap();
    let parties = Parties::new(3, 1).unwrap();
    let keys = parties.numbers().map(|number| [number; 32]).collect();
    let block_bytes = 5 * 4096 + 1;
    let setup = Setup { number: 1, parties, tree, block_bytes, metadata_bytes: 0, keys };
    let mut host = Host::open(Box::new(Memory::default()), [1; 32]).unwrap();
    let (sent, mailbox) = (Sent::default(), host.mailbox());
    let mut ask = |request: Request| {
        let answer = host.answer(&request.encode(), &sent, &|_| Ok(()));
        assert_eq!(Answer::decode(&answer).unwrap(), Answer::Done);
    };
    ask(Request::Setup(setup));
    let drawn = |count| vec![Share::Drawn([3; 32]); count];
    for other in [2, 3] {
        let parts = (0..PARTS).map(|tile| (tile, 1, drawn(2)));
        let ends = (PARTS..PARTS + 4).map(|tile| (tile, 0, Vec::new()));
        for (tile, level, shares) in parts.chain(ends) {
            let dealt = Dealt { number: 0, attempt: 1, tile, level, shares };
            mailbox.take(other, &dealt.encode()).unwrap();
        }
    }
    let evict = Evict { number: 0, attempt: 1, matrices: drawn(2) };
    ask(Request::Evict { evict, dealers: vec![1, 2, 3] });
    assert!(mailbox.is_empty());
    let sent = sent.0.into_inner().unwrap();
    for other in [2, 3] {
        let sent = || sent.iter().filter(|(to, _)| *to == other).map(|(_, dealt)| dealt);
        let is_end = |dealt: &&Dealt<u8>| dealt.level == 0 && dealt.shares.is_empty();
        let mut ends: Vec<_> = sent().filter(is_end).map(|dealt| dealt.tile).collect();
        ends.sort_unstable();
        assert_eq!(ends, (PARTS..PARTS + 4).collect::<Vec<_>>(), "server {other}");
        assert_eq!(sent().count(), PARTS as usize + ends.len());
    }
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
