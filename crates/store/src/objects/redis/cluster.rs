//! The nodes of a cluster and the links to its masters.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use oblivio_wire::link::MonotonicTime;

use super::connection::Connection;
use super::connector::{NodeConnector, SETUP_BYTES_MAX, SetupLink};
use super::failure::Failure;
use super::node_info::NodeInfo;
use super::reply_table::{BatchId, Finished, LinkId, ReplyTable};
use super::topology::{Address, NODES_MAX, Topology};
use super::unsynced::Unsynced;
use crate::objects::resp::{Command, Reply};

/// The error of a server that is not in cluster mode. It has no code of its own.
const NO_CLUSTER: &str = "cluster support disabled";

pub(super) struct Cluster {
    connector: NodeConnector,
    /// The nodes that the location names.
    seeds: Vec<Address>,
    /// Whether the seed is a single server without cluster mode.
    is_single: bool,
    topology: Topology,
    connections: HashMap<Address, Connection>,
    table: Arc<ReplyTable>,
    /// Batches that failed and were not taken by the caller.
    failed: Vec<BatchId>,
    last_number: u64,
    answer_within: Duration,
    connect_within: Duration,
    /// The number of replicas of each master, as the master counted them in the last sync.
    replicas: HashMap<Address, usize>,
    pub(super) unsynced: Unsynced,
}

/// A batch in flight, and where it was sent.
#[derive(Clone, Debug)]
pub(super) struct SentBatch {
    pub(super) batch: BatchId,
    pub(super) node: Address,
    pub(super) info: Arc<NodeInfo>,
}

impl Cluster {
    /// Asks the seeds for the topology, once each.
    ///
    /// # Errors
    /// The failure of the last seed, or of the first that will not pass.
    pub(super) fn find(
        connector: NodeConnector,
        seeds: Vec<Address>,
        connect_within: Duration,
        answer_within: Duration,
    ) -> Result<Self, Failure> {
        let mut failure = Failure::transient("the location names no node");
        for seed in &seeds {
            let asked = connector.connect(seed).and_then(|mut link| ask_topology(&mut link, seed));
            match asked {
                Ok(found) => {
                    let is_single = found.is_none();
                    return Ok(Self {
                        topology: found.unwrap_or_else(|| Topology::single(seed.clone())),
                        connector,
                        seeds,
                        is_single,
                        connections: HashMap::new(),
                        table: Arc::default(),
                        failed: Vec::new(),
                        last_number: 0,
                        answer_within,
                        connect_within,
                        replicas: HashMap::new(),
                        unsynced: Unsynced::default(),
                    });
                }
                Err(error) if error.is_transient() => failure = error.at(seed),
                Err(error) => return Err(error.at(seed)),
            }
        }
        Err(failure)
    }

    pub(super) fn topology(&self) -> &Topology {
        &self.topology
    }

    pub(super) fn is_single(&self) -> bool {
        self.is_single
    }

    pub(super) fn connector(&self) -> &NodeConnector {
        &self.connector
    }

    /// The number of replicas of a master, as far as it is known.
    pub(super) fn replicas_of(&self, master: &Address) -> usize {
        self.replicas.get(master).copied().unwrap_or(0)
    }

    pub(super) fn set_replicas(&mut self, master: &Address, replicas: usize) {
        self.replicas.insert(master.clone(), replicas);
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Asks nodes for the topology until one answers: first `first`, then the others.
    ///
    /// # Errors
    /// If no node answers.
    pub(super) fn refresh(&mut self, first: Option<&Address>) -> Result<(), Failure> {
        if self.is_single {
            return Ok(());
        }
        let is_up = |it: &&Address| self.connections.get(it).is_some_and(Connection::is_up);
        let known: Vec<_> = self.topology.nodes().chain(&self.seeds).cloned().collect();
        let (up, down): (Vec<_>, Vec<_>) = known.iter().partition(is_up);
        let mut asked = BTreeSet::new();
        let mut failure = Failure::transient("no node is known");
        for node in first.into_iter().chain(up).chain(down) {
            if !asked.insert(node.clone()) {
                continue;
            }
            match self.ask(node) {
                Ok(topology) => {
                    self.topology = topology;
                    let topology = &self.topology;
                    self.connections.retain(|node, connection| {
                        connection.is_up() && topology.masters().contains(node)
                    });
                    return Ok(());
                }
                Err(error) => failure = error.at(node),
            }
        }
        Err(failure)
    }

    fn ask(&mut self, node: &Address) -> Result<Topology, Failure> {
        if !self.connections.get(node).is_some_and(Connection::is_up) {
            let found = ask_topology(&mut self.connector.connect(node)?, node)?;
            return found.ok_or_else(|| Failure::transient("it is no longer in cluster mode"));
        }
        let command = Command::new(&[b"CLUSTER", b"SLOTS"]);
        let sent = self.send(node, &[command], SETUP_BYTES_MAX)?;
        let until = MonotonicTime::now().after(self.connect_within);
        let replies = self.wait_until(&sent, Some(until)).map_err(Failure::transient)?;
        read_topology(&replies, node)
            .and_then(|found| found.ok_or_else(|| Failure::transient("it left the cluster")))
    }

    /// Connects to a master, if there is no link to it.
    ///
    /// # Errors
    /// If it cannot be reached, refuses, or is not a master.
    pub(super) fn connect(&mut self, node: &Address) -> Result<&mut Connection, Failure> {
        // The borrow checker does not accept one look-up here.
        if !self.connections.get(node).is_some_and(Connection::is_up) {
            self.connections.remove(node);
            let connection = self.open_link(node)?;
            self.connections.insert(node.clone(), connection);
        }
        self.connections.get_mut(node).ok_or_else(|| Failure::transient("the link was lost"))
    }

    fn open_link(&mut self, node: &Address) -> Result<Connection, Failure> {
        if self.connections.len() >= NODES_MAX {
            return Err(Failure::transient("the cluster names too many masters"));
        }
        let mut link = self.connector.connect(node)?;
        let info = link.info()?;
        if !info.is_master {
            return Err(Failure::transient("it is a replica; check the state of the cluster"));
        }
        self.connector.check_durability(&mut link)?;
        let slots = self.topology.slots_of(node);
        self.unsynced.connected(&info.incarnation, node, slots);
        let (link, id) = (link.into_link()?, LinkId(self.next_number()));
        Connection::start(link, id, self.table.clone(), Arc::new(info))
            .map_err(|error| Failure::transient(format!("no thread can be started: {error}")))
    }

    /// Drops the link to a node. The next link reads again what the node reports about itself.
    pub(super) fn disconnect(&mut self, node: &Address) {
        self.connections.remove(node);
    }

    /// Sends commands to a master. Connects first if there is no link.
    ///
    /// # Errors
    /// If it cannot be reached, refuses, or is not a master. Nothing was sent.
    pub(super) fn send(
        &mut self,
        node: &Address,
        commands: &[Command],
        reply_bytes_max: usize,
    ) -> Result<SentBatch, Failure> {
        let batch = BatchId(self.next_number());
        let connection = self.connect(node)?;
        connection.send(batch, commands, reply_bytes_max);
        Ok(SentBatch { batch, node: node.clone(), info: connection.info.clone() })
    }

    /// Sends commands to a master, if there is a link to it.
    pub(super) fn send_if_connected(
        &mut self,
        node: &Address,
        commands: &[Command],
        reply_bytes_max: usize,
    ) -> Option<SentBatch> {
        let is_up = self.connections.get(node).is_some_and(Connection::is_up);
        is_up.then(|| self.send(node, commands, reply_bytes_max).ok()).flatten()
    }

    /// Takes the outcome of a batch, if it has finished.
    pub(super) fn take(&mut self, batch: BatchId) -> Option<Finished> {
        self.table.take(batch)
    }

    pub(super) fn forget(&mut self, batch: BatchId) {
        self.table.forget(batch);
    }

    /// Takes the numbers of the batches that failed since the last call. Their outcomes stay.
    pub(super) fn take_failed(&mut self) -> Vec<BatchId> {
        let mut failed = std::mem::take(&mut self.failed);
        failed.extend(self.table.take_failed());
        failed
    }

    /// Waits until `batch` finishes, any batch fails, or the time is `until`.
    pub(super) fn wait_for_any(&mut self, batch: Option<BatchId>, until: Option<MonotonicTime>) {
        if self.failed.is_empty() {
            self.table.wait(batch, self.answer_within, until);
        }
    }

    /// Waits for the replies to a batch.
    ///
    /// # Errors
    /// If the link is lost, or the time is `until`.
    pub(super) fn wait_until(
        &mut self,
        sent: &SentBatch,
        until: Option<MonotonicTime>,
    ) -> Result<Vec<Reply>, String> {
        loop {
            match self.table.take(sent.batch) {
                Some(Finished::Replies(replies)) => return Ok(replies),
                Some(Finished::Lost(cause)) => return Err(cause),
                None if until.is_some_and(|until| until.left().is_none()) => {
                    self.table.forget(sent.batch);
                    return Err("no answer came in time".into());
                }
                None => self.table.wait(Some(sent.batch), self.answer_within, until),
            }
            self.failed.extend(self.table.take_failed());
        }
    }

    /// Sends commands to a master, and waits for the replies.
    ///
    /// # Errors
    /// If it cannot be reached, refuses, is not a master, or the link is lost.
    pub(super) fn call(
        &mut self,
        node: &Address,
        commands: &[Command],
        reply_bytes_max: usize,
    ) -> Result<Vec<Reply>, Failure> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let sent = self.send(node, commands, reply_bytes_max)?;
        self.wait_until(&sent, None).map_err(Failure::transient)
    }
}

/// Asks a node for the topology: `None` if it is not in cluster mode.
fn ask_topology(link: &mut SetupLink, node: &Address) -> Result<Option<Topology>, Failure> {
    read_topology(&link.call(&[Command::new(&[b"CLUSTER", b"SLOTS"])])?, node)
}

fn read_topology(replies: &[Reply], node: &Address) -> Result<Option<Topology>, Failure> {
    match replies {
        [Reply::Error(text)] if String::from_utf8_lossy(text).contains(NO_CLUSTER) => Ok(None),
        [slots @ Reply::Array(_)] => {
            Topology::read(slots, node).map(Some).map_err(Failure::violation)
        }
        _ => Err(Failure::of_replies(replies, "CLUSTER SLOTS")),
    }
}
