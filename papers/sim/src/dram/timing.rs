//! Groups of parameters of a DRAM. In files they have the names of the data sheets.

use serde::{Deserialize, Serialize};

/// Minimum clocks between commands, within a bank unless noted otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Clocks from a read to the first beat of its data.
    #[serde(rename = "tCAS")]
    pub cas: u32,
    /// Clocks from opening a row to a read or write.
    #[serde(rename = "tRCD")]
    pub rcd: u32,
    /// Clocks from closing a row to opening the next.
    #[serde(rename = "tRP")]
    pub rp: u32,
    /// Clocks from opening a row to closing it.
    #[serde(rename = "tRAS")]
    pub ras: u32,
    /// Clocks from opening a row to opening the next.
    #[serde(rename = "tRC")]
    pub rc: u32,
    /// Clocks from opening a row to opening one in another bank of the rank. With bank groups, this
    /// is a bank of another group.
    #[serde(rename = "tRRD")]
    pub rrd: u32,
    /// The length of a window in which a rank opens at most four rows.
    #[serde(rename = "tFAW")]
    pub faw: u32,
    /// Clocks from the last beat of a write to closing its row.
    #[serde(rename = "tWR")]
    pub wr: u32,
    /// Clocks from the last beat of a write to a read of the same rank. With bank groups, the read
    /// is in another group.
    #[serde(rename = "tWTR")]
    pub wtr: u32,
    /// Clocks from a read to closing its row.
    #[serde(rename = "tRTP")]
    pub rtp: u32,
    /// Clocks from a read to a read and from a write to a write of the same rank. With bank groups,
    /// the second access is in another group.
    #[serde(rename = "tCCD")]
    pub ccd: u32,
    /// Clocks from a write to the first beat of its data.
    #[serde(rename = "tCWD")]
    pub cwd: u32,
    /// Idle clocks of the data bus when the rank or the direction changes.
    #[serde(rename = "tRTRS")]
    pub rtrs: u32,
    /// Clocks between refreshes of a rank.
    #[serde(rename = "tREFI")]
    pub refi: u32,
    /// Clocks from a refresh of a rank to the next command to it.
    #[serde(rename = "tRFC")]
    pub rfc: u32,
}

/// Bank groups. Banks of one group share circuits, so commands to them must be further apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BankGroups {
    /// Groups per rank.
    pub groups: u32,
    /// The value of [`Timing::ccd`] within a group.
    #[serde(rename = "tCCD_L")]
    pub ccd: u32,
    /// The value of [`Timing::rrd`] within a group.
    #[serde(rename = "tRRD_L")]
    pub rrd: u32,
    /// The value of [`Timing::wtr`] within a group.
    #[serde(rename = "tWTR_L")]
    pub wtr: u32,
}

/// The windows from which a channel's scheduler chooses, and the marks at which it switches to
/// writes and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queues {
    /// Size of the window of reads.
    pub read: u32,
    /// Size of the window of writes.
    pub write: u32,
    /// The number of waiting writes at which writes start to go before reads. They do so until only
    /// [`Self::drain_low`] writes remain.
    pub drain_high: u32,
    /// The number of waiting writes at which reads go first again.
    pub drain_low: u32,
}
