//! Determines which pieces a server accesses for a message of its client, as a view records them.

use oblivio_core::store::{Part, Piece, TreeId};
use oblivio_core::view::view_tree;
use oblivio_core::{BucketId, Leaf};

use crate::message::{Request, Slots};

/// Pieces, each with the bytes that a message transferred for it.
pub(super) type PieceContents<'m> = Vec<(Piece, &'m [u8])>;

/// The pieces that a server reads and writes for one message.
#[derive(Default)]
pub(super) struct Touched<'m> {
    pub(super) read: PieceContents<'m>,
    pub(super) written: PieceContents<'m>,
}

impl<'m> Touched<'m> {
    fn reads(read: PieceContents<'m>) -> Self {
        Self { read, written: Vec::new() }
    }

    fn writes(written: PieceContents<'m>) -> Self {
        Self { read: Vec::new(), written }
    }
}

/// Returns a read of the root's header. It stands for a message that transfers no data of a tree.
pub(super) fn header_of_root(party: u8, tree: u8, message: &[u8]) -> Touched<'_> {
    let tree = view_tree(party, tree);
    Touched::reads(vec![(Piece { tree, bucket: BucketId::ROOT, part: Part::Header }, message)])
}

/// Returns the accesses of a server for a request to one of its trees, which has `height` levels
/// below the root. `message` and `answer` are the encoded messages, and are recorded as contents.
/// `answer` is empty if there is no answer.
pub(super) fn touched<'m>(
    party: u8,
    (tree, height): (u8, u8),
    request: &Request,
    message: &'m [u8],
    answer: &'m [u8],
) -> Touched<'m> {
    let id: TreeId = view_tree(party, tree);
    let piece = |bucket, part| Piece { tree: id, bucket, part };
    let path = |leaf: Leaf, part| {
        let path = (0..=height).map(move |level| BucketId::on_path(leaf, level));
        path.map(|bucket| (piece(bucket, part), &[][..])).collect::<PieceContents<'_>>()
    };
    let whole_path = |leaf| path(leaf, Part::Whole);
    let slot = |bucket, slot| piece(bucket, Part::Slot(slot as u16));
    // The message or answer for several slots is recorded with the first.
    let several = |Slots { bucket, first, count }: &Slots, contents| {
        let mut slots: PieceContents<'_> =
            (*first..first + count).map(|at| (slot(*bucket, at), &[][..])).collect();
        slots.first_mut().into_iter().for_each(|first| first.1 = contents);
        slots
    };
    match request {
        Request::Metadata { leaf, .. } => {
            let mut headers = path(*leaf, Part::Header);
            headers.truncate(usize::from(height).max(1));
            headers[0].1 = message;
            if let Some(last) = headers.last_mut() {
                last.1 = answer;
            }
            Touched::reads(headers)
        }
        Request::Select { select, .. } => {
            let mut path = whole_path(select.leaf);
            path[0].1 = message;
            if let Some(leaf) = path.last_mut() {
                leaf.1 = answer;
            }
            Touched::reads(path)
        }
        Request::Write { at, .. } => {
            Touched::writes(vec![(slot(BucketId::ROOT, at.written), message)])
        }
        Request::Evict { evict, .. } => {
            let leaves = 1 << height;
            let mut read = whole_path(Leaf(evict.number % leaves));
            let written = read.clone();
            read[0].1 = message;
            Touched { read, written }
        }
        Request::Fetch { slots, .. } => Touched::reads(several(slots, answer)),
        Request::Put { slots, .. } => Touched::writes(several(slots, message)),
        _ => header_of_root(party, tree, message),
    }
}
