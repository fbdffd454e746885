//! What is asked of all servers at once, and what they answer.

use oblivio_core::Leaf;

use crate::message::{Evict, RootWrite, Select};

/// Something that is asked of one tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked<E> {
    /// Which of them: 0 is that of the data. Public.
    pub tree: usize,
    /// What.
    pub ask: Ask<E>,
}

/// What is asked of a tree. Of what goes to each server there is one for each, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask<E> {
    /// What the slots of the path to this leaf say. It is public once it is asked for.
    Metadata(Leaf),
    /// The share of a slot, to each server.
    Select(Vec<Select<E>>),
    /// A block for the root, to each server. The slot that was selected is taken.
    Write(Vec<RootWrite<E>>),
    /// The matrices of an eviction, to each server.
    Evict(Vec<Evict<E>>),
}

/// What some servers have answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers<E> {
    /// Who they are.
    pub numbers: Vec<u8>,
    /// The share of each.
    pub shares: Vec<Vec<E>>,
}

impl<E> Default for Answers<E> {
    fn default() -> Self {
        Self { numbers: Vec::new(), shares: Vec::new() }
    }
}

/// All servers of all trees.
///
/// What they hold is secret as long as no more than *t* of them put together what they have; what is asked may be seen by any of them.
pub trait Servers<E> {
    /// Why they have not done it.
    type Error;

    /// One trip: all servers do all of it, in this order. Answers one for each that was asked, with nothing in it for [`Ask::Write`] and [`Ask::Evict`].
    ///
    /// Of metadata, *t* + 1 shares are enough, and of a slot 2*t* + 1. With more, wrong ones are noticed. An eviction is over on all servers, and agreed, when this comes back.
    ///
    /// # Errors
    /// When it was not done. Some of it may have been.
    fn trip(&mut self, asked: Vec<Asked<E>>) -> Result<Vec<Answers<E>>, Self::Error>;
}
