//! A model of a bucket server's answers to one client, which sends requests one by one on several
//! connections.

use std::collections::BTreeMap;

use oblivio_core::store::Piece;
use oblivio_wire::{Answer, FailureKind, Invalid, OpenMode, Opened, Request};

use crate::buckets::Buckets;

/// The volumes, and the volume that each connection has open.
#[derive(Default)]
pub(crate) struct ClientVolumesModel {
    volumes: BTreeMap<String, VolumeModel>,
    /// The open volume of each connection, if it has one.
    open: BTreeMap<usize, Open>,
}

/// A volume that a connection has open.
struct Open {
    name: String,
    role: Role,
    /// Whether another connection has opened the volume for writing since this one opened it.
    is_fenced: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Writer,
    Reader,
    /// A reader for observation only. It does not fence other connections, and they do not fence
    /// it.
    Viewer,
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

    /// Total bytes of `pieces` in the volume that `connection` has open.
    pub(crate) fn bytes(&self, connection: usize, pieces: &[Piece]) -> usize {
        let Some(open) = self.open.get(&connection) else { return 0 };
        let Some(volume) = self.volumes.get(&open.name) else { return 0 };
        volume.buckets.bytes(pieces)
    }

    /// Records the end of a connection.
    pub(crate) fn leave(&mut self, connection: usize) {
        self.open.remove(&connection);
    }

    /// Checks `answer` to this message of `connection`, and panics if it is wrong. Returns whether
    /// the connection continues.
    pub(crate) fn check(
        &mut self,
        connection: usize,
        request: Result<Request, Invalid>,
        answer: Answer,
    ) -> bool {
        let number = request.as_ref().map_or(0, Request::number);
        if let Answer::Failed(failure) = &answer {
            assert_eq!(failure.number, number, "{request:?}");
            // The server itself must not fail.
            let breaks = [FailureKind::Damaged, FailureKind::Failed];
            assert!(!breaks.contains(&failure.kind), "{request:?}: {failure:?}");
            return failure.kind == FailureKind::Absent;
        }
        match (request.expect("only valid requests get this answer"), answer) {
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
            (Request::Read { pieces, .. }, Answer::Data { number: echoed, bytes }) => {
                let open = self.open_by(connection);
                let volume = &self.volumes[&open.name];
                let expected = volume.buckets.read(&pieces);
                assert!(echoed == number && bytes == expected, "a read of {pieces:?}");
            }
            (Request::Write { pieces, bytes, .. }, Answer::Done { number: echoed }) => {
                assert_eq!(echoed, number);
                let open = self.open_by(connection);
                assert!(open.role == Role::Writer, "a reader writes");
                let name = open.name.clone();
                let volume = self.volumes.get_mut(&name).expect("the volume exists");
                volume.buckets.write(&pieces, &bytes);
            }
            (Request::Flush { .. }, Answer::Done { number: echoed }) => {
                assert_eq!(echoed, number);
                self.open_by(connection);
            }
            (request, answer) => panic!("wrong answer {answer:?} to {request:?}"),
        }
        true
    }

    fn opened(&mut self, connection: usize, name: String, mode: &OpenMode, opened: Opened) {
        if let OpenMode::Create(shapes) = mode {
            let volume = VolumeModel { buckets: Buckets::new(shapes.clone()), session: 0 };
            assert!(self.volumes.insert(name.clone(), volume).is_none(), "{name} was there");
        }
        let volume = self.volumes.get_mut(&name).expect("the volume exists");
        assert_eq!(opened.shapes, volume.buckets.shapes);
        let role = match mode {
            OpenMode::Create(_) | OpenMode::Write => Role::Writer,
            OpenMode::Read { .. } => Role::Reader,
            OpenMode::Look => Role::Viewer,
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
        for open in others.filter(|open| open.role != Role::Viewer) {
            open.is_fenced |= role == Role::Writer;
            assert!(open.is_fenced || open.role == role || role == Role::Viewer);
        }
        self.open.insert(connection, Open { name, role, is_fenced: false });
    }

    /// Returns the open volume of a connection that got an answer. Panics if the connection is
    /// fenced.
    fn open_by(&self, connection: usize) -> &Open {
        let open = self.open.get(&connection).expect("the connection has a volume");
        assert!(!open.is_fenced, "a fenced connection got an answer");
        open
    }
}
