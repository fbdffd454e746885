//! Connects to all masters, and checks all nodes.

use super::cluster::Cluster;
use super::connector::SETUP_BYTES_MAX;
use super::failure::{Failure, FailureKind};
use super::keys::Keys;
use super::topology::{Address, OwnView};
use crate::objects::resp::{Command, Reply};

/// Connects to all masters of a cluster. Checks that its nodes keep the writes that they
/// acknowledge, unless `weak_flush`.
///
/// # Errors
/// If a master cannot be reached, or a node may lose writes.
pub(super) fn check(cluster: &mut Cluster, keys: &Keys, weak_flush: bool) -> Result<(), Failure> {
    let topology = cluster.topology().clone();
    if let Some(slot) = topology.uncovered() {
        return Err(Failure::transient(format!(
            "slot {slot} of the Redis cluster has no master; start the missing nodes"
        )));
    }
    if cluster.is_single() && !weak_flush {
        let message = "Redis cluster mode is off, so no replica takes over if the server fails; \
                       use a cluster, or add &weak-flush to the URL if you accept that loss";
        return Err(Failure::new(FailureKind::NotDurable, message));
    }
    let mut unlisted = None;
    for master in topology.masters() {
        cluster.connect(master).map_err(|failure| failure.at(master))?;
        let checked = match weak_flush {
            true => Ok(()),
            false => check_replicas(cluster, keys, master).map_err(|failure| failure.at(master)),
        };
        match checked {
            // The next attempt finds the replicas of all masters that this one has written to.
            Err(failure) if failure.is_transient() => unlisted = Some(failure),
            checked => checked?,
        }
    }
    if let Some(failure) = unlisted {
        return Err(failure);
    }
    if !weak_flush {
        // A replica may become a master.
        let replicas = topology.masters().iter().flat_map(|it| topology.replicas_of(it));
        for replica in replicas {
            let connector = cluster.connector();
            let checked = connector.connect(replica);
            let checked = checked.and_then(|mut link| connector.check_durability(&mut link));
            checked.map_err(|failure| failure.at(replica))?;
        }
    }
    Ok(())
}

/// Checks that a master has a replica, and that clients are told the addresses of all of them.
fn check_replicas(cluster: &mut Cluster, keys: &Keys, master: &Address) -> Result<(), Failure> {
    let connected = cluster.connect(master)?.info.replicas;
    let replies =
        cluster.call(master, &[Command::new(&[b"CLUSTER", b"NODES"])], SETUP_BYTES_MAX)?;
    let view = match &replies[..] {
        [Reply::Bulk(text)] => OwnView::read(text),
        _ => return Err(Failure::of_replies(&replies, "CLUSTER NODES")),
    };
    let view = view.ok_or_else(|| Failure::violation("CLUSTER NODES is malformed"))?;
    if view.replicas == 0 || connected == 0 {
        let message = "it has no connected replica, so its failure loses writes that it \
                       acknowledged; start its replica or add one (CLUSTER REPLICATE), or add \
                       &weak-flush to the URL if you accept that loss";
        return Err(Failure::new(FailureKind::NoReplica, message));
    }
    cluster.set_replicas(master, view.replicas);
    let listed = cluster.topology().replicas_of(master).count();
    if listed >= view.replicas {
        return Ok(());
    }
    // `CLUSTER SLOTS` omits a replica that has failed, and one that no write has reached.
    let mark = keys.mark(|slot| cluster.topology().owner(slot) == Some(master));
    if let Some(mark) = mark {
        cluster.call(master, &[mark], SETUP_BYTES_MAX)?;
    }
    Err(Failure::transient(format!(
        "{listed} of its {} replicas are up; start the others, or remove them with CLUSTER FORGET",
        view.replicas
    )))
}
