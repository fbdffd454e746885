//! Tells the owner when a server does not let clients in.

use oblivio_nbd::{Limits, NotLetIn, ServerHandle};

use crate::output;

/// Looks at a server from time to time. Each kind of trouble is told once, and counted at the end.
#[derive(Default)]
pub(super) struct ClientWatch {
    told: NotLetIn,
}

impl ClientWatch {
    pub(super) fn look(&mut self, server: &ServerHandle) {
        let NotLetIn { turned_away, displaced } = server.not_let_in();
        let Limits { connections_max, handshakes_max, .. } = Limits::DEFAULT;
        if turned_away > 0 && self.told.turned_away == 0 {
            output::remark(&format!(
                "a client was turned away: {connections_max} use the disk already. Let some of them leave"
            ));
            self.told.turned_away = turned_away;
        }
        if displaced > 0 && self.told.displaced == 0 {
            output::remark(&format!(
                "a client was left before it had chosen an export, because {handshakes_max} more came \
                 after it: somebody connects and says nothing"
            ));
            self.told.displaced = displaced;
        }
    }

    /// Says how many there were, where that is more than was told.
    pub(super) fn end(&mut self, server: &ServerHandle) {
        self.look(server);
        let now = server.not_let_in();
        if now != self.told {
            output::remark(&format!(
                "of the clients, {} were turned away, and {} left before they had chosen an export",
                now.turned_away, now.displaced
            ));
        }
    }
}
