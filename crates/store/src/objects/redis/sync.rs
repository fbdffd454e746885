//! Makes created objects durable, or finds that they may be lost. The parent module has the
//! argument.

use std::thread;
use std::time::Duration;

use oblivio_core::StoreError;

use super::cluster::{Cluster, SentBatch};
use super::failure::Failure;
use super::keys::Keys;
use super::node_info::{Incarnation, NodeInfo};
use super::topology::OwnView;
use super::unsynced::UnsyncedMaster;
use crate::objects::Synced;
use crate::objects::resp::{Command, Reply};
use crate::remote::backoff::Backoff;

/// How long a server waits for its replicas before it answers. Other requests on the link wait that
/// long, too.
const WAIT_MILLISECONDS: &str = "500";

/// The maximum length of a reply in bytes: `CLUSTER NODES` of a thousand nodes.
const REPLY_BYTES_MAX: usize = 1 << 20;

/// What a sync found out about one master.
enum Verdict {
    Durable,
    /// This incarnation is gone, or does not own all slots any more.
    MayHaveLost,
    /// Not durable yet. Another attempt may succeed.
    NotYet(Failure),
}

/// Makes all created objects durable. `weak_flush` allows a master without replicas.
pub(super) fn sync(
    cluster: &mut Cluster,
    keys: &Keys,
    retry_for: Duration,
    weak_flush: bool,
) -> Result<Synced, StoreError> {
    let mut backoff = Backoff::new(retry_for);
    loop {
        let Some(failure) = run_round(cluster, keys, weak_flush)? else { break };
        let Some(failure) = failure else { return Ok(Synced::MayHaveLost) };
        let Some(pause) = backoff.next_pause() else {
            return Err(failure.store_error("make created objects durable"));
        };
        thread::sleep(pause);
        // Without an answer the next round uses the known topology.
        let _ = cluster.refresh(None);
    }
    Ok(Synced::Durable)
}

/// Asks all masters that are not synced, at the same time. Returns `None` if all objects are
/// durable, `Some(None)` if some may be lost, and a failure if that is not known yet.
fn run_round(
    cluster: &mut Cluster,
    keys: &Keys,
    weak_flush: bool,
) -> Result<Option<Option<Failure>>, StoreError> {
    let masters = cluster.unsynced.masters();
    let mut sent = Vec::with_capacity(masters.len());
    for (incarnation, master) in masters {
        let asked = ask(cluster, keys, &master, weak_flush);
        sent.push((incarnation, master, asked));
    }
    // A loss is reported in any case, because it is forgotten here.
    let mut is_lost = false;
    let mut failures = Vec::new();
    for (incarnation, master, asked) in sent {
        let verdict = match asked {
            Ok(asked) => asked.verdict(cluster, &incarnation, &master, weak_flush),
            Err(verdict) => verdict,
        };
        match verdict {
            Verdict::Durable => cluster.unsynced.is_durable(&incarnation),
            Verdict::MayHaveLost => {
                is_lost = true;
                cluster.unsynced.is_lost(&incarnation);
                // Another link reads the new identity.
                cluster.disconnect(&master.address);
            }
            Verdict::NotYet(failure) => failures.push(failure),
        }
    }
    if is_lost {
        return Ok(Some(None));
    }
    // A failure that will not pass comes first.
    failures.sort_by_key(Failure::is_transient);
    match failures.into_iter().next() {
        Some(failure) if !failure.is_transient() => {
            Err(failure.store_error("make created objects durable"))
        }
        failure => Ok(failure.map(Some)),
    }
}

/// The commands that were sent to one master.
struct Asked {
    sent: SentBatch,
    /// Whether `WAITAOF` was sent, too. With `appendfsync always` a replica logs before it confirms
    /// a `WAIT`, unless it has just copied the data of its master and is still writing them.
    waits_for_logs: bool,
}

/// Sends the commands of a sync to one master. The error is the verdict, if it is known already.
fn ask(
    cluster: &mut Cluster,
    keys: &Keys,
    master: &UnsyncedMaster,
    weak_flush: bool,
) -> Result<Asked, Verdict> {
    if master.slots.is_empty() {
        return Err(Verdict::Durable);
    }
    let address = &master.address;
    let has_moved = |cluster: &Cluster| {
        master
            .slots
            .iter()
            .any(|slot| cluster.topology().owner(slot).is_some_and(|owner| owner != address))
    };
    if has_moved(cluster) {
        return Err(Verdict::MayHaveLost);
    }
    let info = match cluster.connect(address) {
        Ok(connection) => connection.info.clone(),
        Err(failure) => return Err(Verdict::NotYet(failure.at(address))),
    };
    let waits_for_logs = info.has_waitaof && !weak_flush;
    let needed = cluster.replicas_of(address).max(info.replicas).max(usize::from(!weak_flush));
    let mark = keys.mark(|slot| cluster.topology().owner(slot) == Some(address));
    let Some(mark) = mark else { return Err(Verdict::MayHaveLost) };
    let (needed, within) = (needed.to_string(), WAIT_MILLISECONDS.as_bytes());
    let mut wait = vec![Command::new(&[b"WAIT", needed.as_bytes(), within])];
    if waits_for_logs {
        // A replica that is asked for the end of its log answers before it logs what it has just
        // received, and again after a second. After `WAIT` it has logged that.
        wait.push(Command::new(&[b"WAITAOF", b"1", needed.as_bytes(), within]));
    }
    let info = NodeInfo::SECTIONS.map(|section| Command::new(&[b"INFO", section]));
    let nodes = Command::new(&[b"CLUSTER", b"NODES"]);
    let commands = [&info[..], &[mark], &wait, &info, &[nodes]].concat();
    match cluster.send(address, &commands, REPLY_BYTES_MAX) {
        Ok(sent) => Ok(Asked { sent, waits_for_logs }),
        Err(failure) => Err(Verdict::NotYet(failure.at(address))),
    }
}

impl Asked {
    fn verdict(
        &self,
        cluster: &mut Cluster,
        incarnation: &Incarnation,
        master: &UnsyncedMaster,
        weak_flush: bool,
    ) -> Verdict {
        let address = &master.address;
        let replies = match cluster.wait_until(&self.sent, None) {
            Ok(replies) => replies,
            Err(cause) => return Verdict::NotYet(Failure::transient(cause).at(address)),
        };
        self.read(&replies, cluster, incarnation, master, weak_flush)
            .unwrap_or_else(|failure| Verdict::NotYet(failure.at(address)))
    }

    fn read(
        &self,
        replies: &[Reply],
        cluster: &mut Cluster,
        incarnation: &Incarnation,
        master: &UnsyncedMaster,
        weak_flush: bool,
    ) -> Result<Verdict, Failure> {
        let [server, replication, mark, wait, logs @ .., server_after, replication_after, nodes] =
            replies
        else {
            return Err(Failure::violation("it sent another number of replies"));
        };
        let before = NodeInfo::read(&[server.clone(), replication.clone()])?;
        let after = NodeInfo::read(&[server_after.clone(), replication_after.clone()])?;
        let is_same = |info: &NodeInfo| info.incarnation == *incarnation && info.is_master;
        if !is_same(&before) || !is_same(&after) {
            return Ok(Verdict::MayHaveLost);
        }
        let known = match nodes {
            Reply::Bulk(text) => {
                let malformed = || Failure::violation("CLUSTER NODES is malformed");
                let view = OwnView::read(text).ok_or_else(malformed)?;
                let is_moving = |slot| view.moving.contains(slot);
                if master.slots.iter().any(is_moving) {
                    let why = "it is moving slots to another master; wait for the end of that";
                    return Err(Failure::transient(why));
                }
                let owns = |slot| view.slots.contains(slot);
                if !view.is_master || !master.slots.iter().all(owns) {
                    return Ok(Verdict::MayHaveLost);
                }
                view.replicas
            }
            _ if cluster.is_single() => 0,
            other => return Err(Failure::of_replies(std::slice::from_ref(other), "CLUSTER NODES")),
        };
        cluster.set_replicas(&master.address, known);
        if !matches!(mark, Reply::Status(_)) {
            return Err(Failure::of_replies(std::slice::from_ref(mark), "SET"));
        }
        let (is_logged, confirmed) = self.confirmed(logs.first().unwrap_or(wait))?;
        if !is_logged {
            return Err(Failure::transient("it has not written its log in time; check its disk"));
        }
        // A replica that does not confirm could become the master.
        let needed = known.max(after.replicas).max(usize::from(!weak_flush));
        if confirmed < needed {
            return Err(Failure::transient(format!(
                "{confirmed} of {needed} replicas confirmed; start the missing replicas, or remove \
                 them with CLUSTER FORGET"
            )));
        }
        Ok(Verdict::Durable)
    }

    /// Whether the master has written its log, and the number of replicas that confirmed.
    fn confirmed(&self, reply: &Reply) -> Result<(bool, usize), Failure> {
        let (logged, replicas) = match reply {
            Reply::Integer(replicas) if !self.waits_for_logs => (1, *replicas),
            Reply::Array(counts) if self.waits_for_logs => match counts[..] {
                [Reply::Integer(logged), Reply::Integer(replicas)] => (logged, replicas),
                _ => return Err(Failure::violation("its reply to WAITAOF is malformed")),
            },
            _ => return Err(Failure::of_replies(std::slice::from_ref(reply), "WAIT")),
        };
        Ok((logged > 0, usize::try_from(replicas).unwrap_or(0)))
    }
}
