//! Removes heads from the calls of rotating RAW ORAM. A call names each bucket twice: its slots in
//! one tree of the store, and its head at the same place of the next tree.

use oblivio_core::store::{Piece, TreeId};

/// The pieces of a call, without its heads.
///
/// # Panics
/// If the heads of a call do not match its slots.
#[track_caller]
pub(crate) fn without_heads(slots: TreeId, pieces: Vec<Piece>) -> Vec<Piece> {
    let heads = TreeId(slots.0 + 1);
    let (mut of_slots, rest): (Vec<_>, Vec<_>) =
        pieces.into_iter().partition(|piece| piece.tree == slots);
    let (of_heads, others): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|piece| piece.tree == heads);
    let expected: Vec<_> = of_slots.iter().map(|piece| Piece { tree: heads, ..*piece }).collect();
    assert_eq!(of_heads, expected, "every bucket must have both slots and a head");
    of_slots.extend(others);
    of_slots
}
