//! What a bucket server must answer to one client that asks one thing after the other, on whatever connections.

use std::collections::BTreeMap;

use oblivio_core::store::Piece;
use oblivio_wire::{Answer, FailureKind, Invalid, OpenMode, Opened, Request};

use crate::buckets::Buckets;

/// The volumes that there are, and what the latest connections are to them.
#[derive(Default)]
pub(crate) struct ClientVolumesModel {
    volumes: BTreeMap<String, VolumeModel>,
    /// Of each connection, while it has one open.
    open: BTreeMap<usize, Open>,
}

/// A volume that a connection has open.
struct Open {
    name: String,
    role: Role,
    /// Somebody has opened it to write since.
    is_fenced: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Writer,
    Reader,
    /// Keeps nobody out, and is kept out by nobody.
    Looker,
}

struct VolumeModel {
    buckets: Buckets,
    /// The number of the latest session.
    session: u64,
}

impl ClientVolumesModel {
    /// The number of the latest session of a volume.
    pub(crate) fn session(&self, name: &str) -> Option<u64> {
        self.volumes.get(name).map(|volume| volume.session)
    }

    /// The bytes that such pieces have, of the volume that `connection` has open.
    pub(crate) fn bytes(&self, connection: usize, pieces: &[Piece]) -> usize {
        let Some(open) = self.open.get(&connection) else { return 0 };
        let Some(volume) = self.volumes.get(&open.name) else { return 0 };
        volume.buckets.bytes(pieces)
    }

    /// A connection has ended, or is given up.
    pub(crate) fn leave(&mut self, connection: usize) {
        self.open.remove(&connection);
    }

    /// Fails if a message of `connection` cannot be answered like this. Whether the connection goes on.
    pub(crate) fn check(
        &mut self,
        connection: usize,
        asked: Result<Request, Invalid>,
        answer: Answer,
    ) -> bool {
        let number = asked.as_ref().map_or(0, Request::number);
        if let Answer::Failed(failure) = &answer {
            assert_eq!(failure.number, number, "{asked:?}");
            // Nothing of the server's breaks.
            let breaks = [FailureKind::Damaged, FailureKind::Failed];
            assert!(!breaks.contains(&failure.kind), "{asked:?}: {failure:?}");
            return failure.kind == FailureKind::Absent;
        }
        match (asked.expect("what is understood is a request"), answer) {
            (Request::Hello { .. }, Answer::Welcome { .. }) => (),
            (Request::Open { name, mode }, Answer::Opened(opened)) => {
                self.opened(connection, name, &mode, opened);
            }
            (Request::Resume { name, session }, Answer::Opened(opened)) => {
                let volume = &self.volumes[&name];
                assert_eq!((opened.session, volume.session), (session, session));
                assert_eq!(opened.shapes, volume.buckets.shapes);
                self.has_open(connection, name, Role::Writer);
            }
            (Request::Look { name }, Answer::Looked { is_there }) => {
                assert_eq!(is_there, self.volumes.contains_key(&name));
            }
            (Request::Remove { name }, Answer::Done { number: 0 }) => {
                let is_idle = self.open.values().all(|open| open.name != name || open.is_fenced);
                assert!(self.volumes.remove(&name).is_some() && is_idle, "{name} is removed");
            }
            (Request::Read { pieces, .. }, Answer::Data { number: said, bytes }) => {
                let open = self.open_by(connection);
                let volume = &self.volumes[&open.name];
                let expected = volume.buckets.read(&pieces);
                assert!(said == number && bytes == expected, "a read of {pieces:?}");
            }
            (Request::Write { pieces, bytes, .. }, Answer::Done { number: said }) => {
                assert_eq!(said, number);
                let open = self.open_by(connection);
                assert!(open.role == Role::Writer, "a reader writes");
                let name = open.name.clone();
                let volume = self.volumes.get_mut(&name).expect("it is there");
                volume.buckets.write(&pieces, &bytes);
            }
            (Request::Flush { .. }, Answer::Done { number: said }) => {
                assert_eq!(said, number);
                self.open_by(connection);
            }
            (asked, answer) => panic!("{answer:?} is no answer to {asked:?}"),
        }
        true
    }

    fn opened(&mut self, connection: usize, name: String, mode: &OpenMode, opened: Opened) {
        if let OpenMode::Create(shapes) = mode {
            let volume = VolumeModel { buckets: Buckets::new(shapes.clone()), session: 0 };
            assert!(self.volumes.insert(name.clone(), volume).is_none(), "{name} was there");
        }
        let volume = self.volumes.get_mut(&name).expect("it is there");
        assert_eq!(opened.shapes, volume.buckets.shapes);
        let role = match mode {
            OpenMode::Create(_) | OpenMode::Write => Role::Writer,
            OpenMode::Read { .. } => Role::Reader,
            OpenMode::Look => Role::Looker,
        };
        if role == Role::Writer {
            assert!(opened.session > volume.session, "an older session");
            volume.session = opened.session;
        } else {
            assert_eq!(opened.session, 0);
        }
        self.has_open(connection, name, role);
    }

    fn has_open(&mut self, connection: usize, name: String, role: Role) {
        let others = self.open.values_mut().filter(|open| open.name == name);
        for open in others.filter(|open| open.role != Role::Looker) {
            open.is_fenced |= role == Role::Writer;
            assert!(open.is_fenced || open.role == role || role == Role::Looker);
        }
        self.open.insert(connection, Open { name, role, is_fenced: false });
    }

    /// What a connection has open that is answered.
    fn open_by(&self, connection: usize) -> &Open {
        let open = self.open.get(&connection).expect("it is open");
        assert!(!open.is_fenced, "whoever was fenced off is answered");
        open
    }
}
