//! A share server with messages from a client and from another server.
//!
//! ```text
//! input = an odd byte to set the server up, or nothing; (sender, length, message)*
//! ```
//!
//! Each message of the client gets an answer. A refused message changes no state but the number of
//! the eviction attempt. After a restart, the server has the same state.
#![no_main]

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use libfuzzer_sys::fuzz_target;
use oblivio_shares::host::{Folder, Host, Peers, ShareFile};
use oblivio_shares::message::{Answer, Request, Setup};
use oblivio_shares::sharing::Parties;
use oblivio_shares::tree::{Preset, Tree};

/// Maximum size of a file. Larger files are refused.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The kind of a message for a tree of the position map. The number of the tree follows, and then a
/// message.
const IN_TREE: u8 = 12;

/// The kind of an eviction message. The numbers of the eviction and the attempt follow, and then
/// the mask of dealers.
const EVICT: u8 = 5;
const DEALERS_AT: usize = 17;

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

struct File(Memory, String);

impl Folder for Memory {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().get(name).cloned())
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().insert(name.into(), bytes.to_vec());
        Ok(())
    }

    fn open(&self, name: &str, bytes: u64, _: bool) -> io::Result<Box<dyn ShareFile>> {
        if bytes > FILE_BYTES_MAX {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut files = self.0.lock().unwrap();
        files.entry(name.into()).or_default().resize(bytes as usize, 0);
        Ok(Box::new(File(self.clone(), name.into())))
    }
}

impl ShareFile for File {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let files = self.0.0.lock().unwrap();
        let from = files[&self.1].get(offset as usize..).unwrap_or_default();
        let read = from.get(..out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(read);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut files = self.0.0.lock().unwrap();
        let file = files.get_mut(&self.1).unwrap();
        let to = file.get_mut(offset as usize..).unwrap_or_default();
        to.get_mut(..bytes.len()).ok_or(io::ErrorKind::WriteZero)?.copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// The links to the other servers, none of which can be reached.
struct NoPeers;

impl Peers for NoPeers {
    fn send(&self, _: u8, _: usize, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ConnectionRefused.into())
    }

    fn give_up(&self) {}
}

fn ask(host: &mut Host, message: &[u8]) -> Answer {
    let answer = host.answer(message, &NoPeers, &|_| Ok(()));
    Answer::decode(&answer).expect("the server answers")
}

fuzz_target!(|input: &[u8]| {
    let disk = Memory::default();
    let mut host = Host::open(Box::new(disk.clone()), || Ok([1; 32])).unwrap();
    let mut rest = input;
    if let Some((1, behind)) = rest.split_first().map(|(first, behind)| (first % 2, behind)) {
        // Set the server up, because random bytes rarely do.
        rest = behind;
        let parties = Parties::new(3, 1).unwrap();
        let tree = Tree::new(2, Preset { slots: 4, accesses: 2 }).unwrap();
        let keys = vec![[0; 32], [1; 32], [2; 32]];
        // Slots of the second tree have metadata.
        for (number, metadata_bytes) in [(0, 0), (1, 3)] {
            let keys = keys.clone();
            let setup = Setup { number: 1, parties, tree, block_bytes: 16, metadata_bytes, keys };
            let message = Request::Setup(setup).encode_in(number);
            assert_eq!(ask(&mut host, &message), Answer::Done);
        }
    }
    while let Some(([sender, bytes], behind)) = rest.split_first_chunk() {
        let (message, behind) = behind.split_at(behind.len().min((*bytes).into()));
        rest = behind;
        if sender % 4 == 0 {
            let _ = host.mailbox().take(sender >> 2, message);
            continue;
        }
        let request = match message {
            [IN_TREE, _, request @ ..] => request,
            request => request,
        };
        let does_not_deal = request.get(DEALERS_AT).is_some_and(|dealers| dealers & 2 == 0);
        if request.first() == Some(&EVICT) && does_not_deal {
            // The eviction would wait for other servers, which do not exist.
            continue;
        }
        let epochs = [0, 1].map(|tree| Request::Epoch.encode_in(tree));
        let before = epochs.clone().map(|epoch| ask(&mut host, &epoch));
        let answer = ask(&mut host, message);
        let after = epochs.clone().map(|epoch| ask(&mut host, &epoch));
        for (before, after) in before.into_iter().zip(&after) {
            if let (Answer::Refused(_), Answer::Epoch(before), Answer::Epoch(after)) =
                (&answer, before, after)
            {
                // The number of the attempt may change: it is stored before any dealing.
                assert_eq!((before.at, before.is_set_up), (after.at, after.is_set_up));
            }
        }
        host = Host::open(Box::new(disk.clone()), || Ok([1; 32])).unwrap();
        assert_eq!(epochs.map(|epoch| ask(&mut host, &epoch)), after);
    }
});
