//! Warns the owner if a server turns clients away.

use oblivio_nbd::{Limits, RefusedCounts, ServerHandle};

use crate::output;

/// Watches an NBD server for refused clients. Reports the first refusal of each kind, and the final
/// counts.
#[derive(Default)]
pub(super) struct ClientWatch {
    reported: RefusedCounts,
}

impl ClientWatch {
    pub(super) fn poll(&mut self, server: &ServerHandle) {
        let RefusedCounts { turned_away, displaced } = server.refused_counts();
        let Limits { connections_max, handshakes_max, .. } = Limits::DEFAULT;
        if turned_away > 0 && self.reported.turned_away == 0 {
            output::print_remark(&format!(
                "a client was turned away: {connections_max} clients already use the disk. \
                 Disconnect some of them"
            ));
            self.reported.turned_away = turned_away;
        }
        if displaced > 0 && self.reported.displaced == 0 {
            output::print_remark(&format!(
                "a client was disconnected before it had chosen an export, because \
                 {handshakes_max} more clients connected after it: some client connects and then \
                 sends nothing"
            ));
            self.reported.displaced = displaced;
        }
    }

    /// Reports the final counts, if they are higher than reported before.
    pub(super) fn end(&mut self, server: &ServerHandle) {
        self.poll(server);
        let now = server.refused_counts();
        if now != self.reported {
            output::print_remark(&format!(
                "{} clients were turned away, and {} were disconnected before they had chosen an \
                 export",
                now.turned_away, now.displaced
            ));
        }
    }
}
