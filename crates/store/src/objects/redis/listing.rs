//! Lists objects: the heads from their hash, all others by scanning every master.
//!
//! A scan shows every key that is there from its beginning to its end, if the key stays on its
//! master. So a listing starts again if a master changes or slots move.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use oblivio_core::StoreError;

use super::cluster::{Cluster, SentBatch};
use super::failure::{Failure, FailureKind};
use super::keys::{Keys, SHORT_BYTES_MAX};
use super::node_info::NodeInfo;
use super::slots::slot_of;
use super::topology::{Address, OwnView, Topology};
use crate::objects::resp::{Command, Reply};
use crate::objects::{Listed, ObjectName, Prefix};
use crate::remote::backoff::Backoff;

/// How many keys a server looks at for one reply.
const SCAN_COUNT: &[u8] = b"1000";

/// The maximum length of a reply with names, in bytes.
const NAMES_BYTES_MAX: usize = 4 << 20;

/// The maximum number of objects in a listing, for the memory of the client. At 256 KiB each they
/// have a tebibyte.
const OBJECTS_MAX: usize = 4 << 20;

/// The maximum number of replies of a scan of one master.
const SCANS_MAX: usize = 1 << 20;

/// Lists all objects that start with `prefix` and come after `after`, in order.
pub(super) fn list(
    cluster: &mut Cluster,
    keys: &Keys,
    prefix: Prefix,
    after: Option<ObjectName>,
    retry_for: Duration,
) -> Result<Vec<Listed>, StoreError> {
    let mut backoff = Backoff::new(retry_for);
    loop {
        let failure = match try_list(cluster, keys, prefix, after) {
            Ok(listed) => return Ok(listed),
            Err(failure) => failure,
        };
        let pause = backoff.next_pause().filter(|_| failure.is_transient());
        let Some(pause) = pause else { return Err(failure.store_error("list objects")) };
        thread::sleep(pause);
        // Without an answer the next attempt uses the known topology.
        let _ = cluster.refresh(None);
    }
}

fn try_list(
    cluster: &mut Cluster,
    keys: &Keys,
    prefix: Prefix,
    after: Option<ObjectName>,
) -> Result<Vec<Listed>, Failure> {
    let is_wanted = |name: ObjectName| prefix.contains(name) && after < Some(name);
    let mut listed = Vec::new();
    if matches!(prefix, Prefix::All | Prefix::Heads) {
        listed.extend(heads(cluster, keys, is_wanted)?);
    }
    if prefix != Prefix::Heads {
        listed.extend(strings(cluster, keys, prefix, is_wanted)?);
    }
    listed.sort_unstable_by_key(|it| it.name);
    listed.dedup_by_key(|it| it.name);
    Ok(listed)
}

fn heads(
    cluster: &mut Cluster,
    keys: &Keys,
    is_wanted: impl Fn(ObjectName) -> bool,
) -> Result<Vec<Listed>, Failure> {
    let slot = slot_of(keys.heads());
    let owner = cluster.topology().owner(slot).cloned();
    let owner = owner.ok_or_else(|| Failure::transient(format!("slot {slot} has no master")))?;
    let at_owner = |failure: Failure| failure.at(&owner);
    let command = Command::new(&[b"HKEYS", keys.heads()]);
    let replies = cluster.call(&owner, &[command], NAMES_BYTES_MAX).map_err(at_owner)?;
    let [Reply::Array(fields)] = &replies[..] else {
        return Err(Failure::of_replies(&replies, "HKEYS").at(&owner));
    };
    let names = fields.iter().filter_map(|field| match field {
        Reply::Bulk(field) => ObjectName::parse(str::from_utf8(field).ok()?),
        _ => None,
    });
    let is_head = |name: &ObjectName| matches!(name, ObjectName::Head(_)) && is_wanted(*name);
    let names: Vec<_> = names.filter(is_head).collect();
    let length =
        |name: &ObjectName| Command::new(&[b"HSTRLEN", keys.heads(), name.to_string().as_bytes()]);
    let commands: Vec<_> = names.iter().map(length).collect();
    let replies = cluster.call(&owner, &commands, SHORT_BYTES_MAX).map_err(at_owner)?;
    lengths(&names, &replies).map_err(at_owner)
}

/// A scan of one master.
struct Scan {
    master: Address,
    /// What the master reported when its link was opened. The cursor means nothing on another link.
    info: Option<Arc<NodeInfo>>,
    /// The place where the scan continues, as the master wrote it; `None` at the end.
    cursor: Option<Vec<u8>>,
    /// Keys whose lengths are asked for together with the next part.
    names: Vec<ObjectName>,
}

fn strings(
    cluster: &mut Cluster,
    keys: &Keys,
    prefix: Prefix,
    is_wanted: impl Fn(ObjectName) -> bool,
) -> Result<Vec<Listed>, Failure> {
    // A slot that moves between masters that were scanned at different times could be missed.
    let before = settled_topology(cluster)?;
    let pattern = keys.pattern(prefix);
    let new_scan = |master: &Address| Scan {
        master: master.clone(),
        info: None,
        cursor: Some(b"0".to_vec()),
        names: Vec::new(),
    };
    let mut scans: Vec<_> = before.masters().iter().map(new_scan).collect();
    let mut listed = Vec::new();
    for _ in 0..SCANS_MAX {
        let mut sent = Vec::new();
        for scan in &scans {
            let commands = scan.commands(keys, &pattern);
            if !commands.is_empty() {
                let batch = cluster.send(&scan.master, &commands, NAMES_BYTES_MAX);
                sent.push(batch.map_err(|failure| failure.at(&scan.master))?);
            }
        }
        if sent.is_empty() {
            let after = settled_topology(cluster)?;
            return if after == before {
                Ok(listed)
            } else {
                Err(Failure::transient("slots moved to another master during a listing"))
            };
        }
        let unfinished = scans.iter_mut().filter(|scan| !scan.is_finished());
        for (scan, sent) in unfinished.zip(sent) {
            if !Arc::ptr_eq(scan.info.get_or_insert_with(|| sent.info.clone()), &sent.info) {
                let why = "its link was lost during a listing";
                return Err(Failure::transient(why).at(&scan.master));
            }
            let replies = wait(cluster, &sent)?;
            let found = scan.take_in(keys, &replies, &is_wanted);
            listed.extend(found.map_err(|failure| failure.at(&scan.master))?);
        }
        if listed.len() > OBJECTS_MAX {
            let message = format!("it has more than {OBJECTS_MAX} objects of this volume");
            return Err(Failure::new(FailureKind::Failed, message));
        }
    }
    Err(Failure::new(FailureKind::Failed, "a scan does not end; check the servers"))
}

impl Scan {
    fn is_finished(&self) -> bool {
        self.cursor.is_none() && self.names.is_empty()
    }

    fn commands(&self, keys: &Keys, pattern: &[u8]) -> Vec<Command> {
        let lengths = self.names.iter().map(|name| keys.length(*name));
        let scan = self.cursor.as_ref().map(|cursor| {
            Command::new(&[b"SCAN", cursor, b"MATCH", pattern, b"COUNT", SCAN_COUNT])
        });
        lengths.chain(scan).collect()
    }

    /// Reads the replies to [`commands`](Self::commands). Returns the objects with known lengths.
    fn take_in(
        &mut self,
        keys: &Keys,
        replies: &[Reply],
        is_wanted: impl Fn(ObjectName) -> bool,
    ) -> Result<Vec<Listed>, Failure> {
        let malformed = || Failure::of_replies(replies, "SCAN");
        let split = replies.split_at_checked(self.names.len());
        let (found, scanned) = split.ok_or_else(malformed)?;
        let listed = lengths(&self.names, found)?;
        self.names.clear();
        if self.cursor.is_none() {
            return Ok(listed);
        }
        let [Reply::Array(parts)] = scanned else { return Err(malformed()) };
        let [Reply::Bulk(cursor), Reply::Array(found)] = &parts[..] else {
            return Err(malformed());
        };
        // A cursor is a number of 64 bits.
        if cursor.len() > 20 || !cursor.iter().all(u8::is_ascii_digit) {
            return Err(malformed());
        }
        self.cursor = (**cursor != *b"0").then(|| cursor.to_vec());
        let found = found.iter().filter_map(|key| match key {
            Reply::Bulk(key) => keys.object(key).filter(|name| is_wanted(*name)),
            _ => None,
        });
        self.names.extend(found);
        Ok(listed)
    }
}

fn lengths(names: &[ObjectName], replies: &[Reply]) -> Result<Vec<Listed>, Failure> {
    let listed = names.iter().zip(replies).map(|(name, reply)| match reply {
        Reply::Integer(bytes) => {
            let negative = |_| Failure::violation("a length is negative");
            let bytes = u64::try_from(*bytes).map_err(negative)?;
            Ok(Listed { name: *name, bytes })
        }
        other => Err(Failure::of_replies(std::slice::from_ref(other), "STRLEN")),
    });
    listed.collect()
}

/// The topology, if no master is moving slots.
fn settled_topology(cluster: &mut Cluster) -> Result<Topology, Failure> {
    cluster.refresh(None)?;
    let topology = cluster.topology().clone();
    if let Some(slot) = topology.uncovered() {
        return Err(Failure::transient(format!("slot {slot} has no master")));
    }
    if cluster.is_single() {
        return Ok(topology);
    }
    for master in topology.masters() {
        let command = Command::new(&[b"CLUSTER", b"NODES"]);
        let replies = cluster.call(master, &[command], NAMES_BYTES_MAX);
        let replies = replies.map_err(|failure| failure.at(master))?;
        let view = match &replies[..] {
            [Reply::Bulk(text)] => OwnView::read(text),
            _ => return Err(Failure::of_replies(&replies, "CLUSTER NODES").at(master)),
        };
        let view = view.ok_or_else(|| Failure::violation("CLUSTER NODES is malformed"));
        let view = view.map_err(|failure| failure.at(master))?;
        let knows = view.is_master && view.slots == topology.slots_of(master);
        if !knows || !view.moving.is_empty() {
            let why = "its slots are changing; wait for the end of that";
            return Err(Failure::transient(why).at(master));
        }
    }
    Ok(topology)
}

fn wait(cluster: &mut Cluster, sent: &SentBatch) -> Result<Vec<Reply>, Failure> {
    let replies = cluster.wait_until(sent, None);
    replies.map_err(|cause| Failure::transient(cause).at(&sent.node))
}
