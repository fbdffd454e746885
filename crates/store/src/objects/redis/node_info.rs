//! The identity of a node's data, from `INFO`.

use super::failure::Failure;
use crate::objects::resp::Reply;

/// The maximum length in bytes of an identifier of a node. Redis has 40 hexadecimal digits.
const ID_BYTES_MAX: usize = 64;

/// The first version with `WAITAOF`.
const WAITAOF_SINCE: (u32, u32) = (7, 2);

/// A run of a process, and the history of its data. While both stay the same, a master has lost
/// nothing that it acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Incarnation {
    /// Random, new with each start of the process.
    pub(super) run: String,
    /// Random, new whenever a node becomes a master or takes over the data of another master.
    pub(super) replication: String,
}

/// What a node reports about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeInfo {
    pub(super) incarnation: Incarnation,
    pub(super) is_master: bool,
    /// The number of connected replicas.
    pub(super) replicas: usize,
    pub(super) has_waitaof: bool,
}

impl NodeInfo {
    /// The sections of `INFO` that [`read`](Self::read) needs. Redis before 7.0 takes one at a
    /// time.
    pub(super) const SECTIONS: [&[u8]; 2] = [b"server", b"replication"];

    /// Reads the replies to `INFO` of [`SECTIONS`](Self::SECTIONS).
    ///
    /// # Errors
    /// If the replies are errors or malformed.
    pub(super) fn read(replies: &[Reply]) -> Result<Self, Failure> {
        let [Reply::Bulk(server), Reply::Bulk(replication)] = replies else {
            return Err(Failure::of_replies(replies, "INFO"));
        };
        let id = |section, name| {
            let is_id = |id: &&str| {
                (1..=ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(|c| c.is_ascii_hexdigit())
            };
            let id = field(section, name).filter(is_id).map(str::to_owned);
            id.ok_or_else(|| Failure::violation(&format!("INFO has no {name}")))
        };
        let incarnation = Incarnation {
            run: id(server, "run_id")?,
            replication: id(replication, "master_replid")?,
        };
        let replicas = field(replication, "connected_slaves").and_then(|it| it.parse().ok());
        Ok(Self {
            incarnation,
            is_master: field(replication, "role") == Some("master"),
            replicas: replicas.unwrap_or(0),
            has_waitaof: field(server, "redis_version").and_then(version) >= Some(WAITAOF_SINCE),
        })
    }
}

/// The value of a field in a section of `INFO`.
fn field<'a>(section: &'a [u8], name: &str) -> Option<&'a str> {
    let lines = section.split(|byte| *byte == b'\n').filter_map(|line| str::from_utf8(line).ok());
    let mut fields = lines.filter_map(|line| line.trim_end().split_once(':'));
    fields.find_map(|(known, value)| (known == name).then_some(value))
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(server: &str, replication: &str) -> Result<NodeInfo, Failure> {
        let bulk = |text: &str| Reply::Bulk(text.to_owned().into());
        NodeInfo::read(&[bulk(server), bulk(replication)])
    }

    #[test]
    fn a_node_is_identified_by_its_run_and_its_history() {
        let server = "# Server\r\nredis_version:7.0.15\r\nrun_id:ab12\r\n";
        let replication = "role:master\r\nconnected_slaves:2\r\nmaster_replid:cd\r\n";
        let info = read(server, replication).unwrap();
        let incarnation = Incarnation { run: "ab12".into(), replication: "cd".into() };
        let expected = NodeInfo { incarnation, is_master: true, replicas: 2, has_waitaof: false };
        assert_eq!(info, expected);
        assert!(read(&server.replace("7.0.15", "7.2.4"), replication).unwrap().has_waitaof);
        assert!(!read(server, &replication.replace("master\r", "slave\r")).unwrap().is_master);
    }

    #[test]
    fn a_node_without_identity_is_refused() {
        let replication = "role:master\nmaster_replid:cd\n";
        for server in ["", "run_id:", "run_id:x", &format!("run_id:{}", "a".repeat(65))] {
            assert!(read(server, replication).is_err(), "{server}");
        }
        assert!(read("run_id:ab", "role:master").is_err());
        assert!(NodeInfo::read(&[Reply::Null]).is_err());
    }
}
