//! Planned accesses.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use zeroize::{Zeroize, Zeroizing};

use crate::error::{Error, ErrorKind};
use crate::wiped::WipedBytes;

/// The block, range or position that an access is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// An access to a block.
    Block(u64),
    /// An access to an aligned range of `2^class` blocks, of one of the array's
    /// [classes](super::ArrayFacts::range_classes). It counts as `2^class` accesses, each with an
    /// operation of its own.
    Range {
        /// The first block of the range.
        first: u64,
        /// The class of the range. Public.
        class: u8,
    },
    /// An access to a block of positions, which moves to the client.
    Position(u64),
    /// A dummy access, which storage cannot distinguish from other accesses.
    Dummy,
    /// A dummy access to a range of `2^class` blocks. It counts as `2^class` accesses.
    DummyRange {
        /// The class of the range. Public.
        class: u8,
    },
}

/// A plan as stored in the log: a section that only the scheme reads. Secret; wiped when dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedPlan {
    accesses: usize,
    section: WipedBytes,
}

impl EncodedPlan {
    /// A plan of `accesses` accesses, which the scheme has encoded as `section`. An access to a
    /// range counts as one access per block.
    pub fn new(accesses: usize, section: WipedBytes) -> Self {
        Self { accesses, section }
    }

    /// The number of accesses. An access to a range counts as one per block.
    pub fn accesses(&self) -> usize {
        self.accesses
    }

    /// The steps of the accesses, as the scheme encodes them.
    pub fn section(&self) -> &[u8] {
        &self.section
    }
}

/// Planned accesses: everything that they will show to storage, drawn by a scheme. Secret; wiped
/// when dropped.
///
/// The scheme encodes its steps once, when it draws them, and the log copies the bytes. Only
/// recovery [decodes](super::DurableOram::decode_plan) them.
pub struct AccessPlan {
    encoded: EncodedPlan,
    /// A `Zeroizing<Vec<T>>` with the scheme's type of steps.
    steps: Box<dyn Any + Send>,
    starts_at: Option<u64>,
}

impl AccessPlan {
    /// A plan of `steps`, which the scheme has encoded as `encoded`.
    pub fn new<T: Zeroize + Send + 'static>(encoded: EncodedPlan, steps: Vec<T>) -> Self {
        Self { encoded, steps: Box::new(Zeroizing::new(steps)), starts_at: None }
    }

    /// Marks the plan as checked, for an array that has made `accesses` accesses. The plan must be
    /// carried out only by the array that drew it: another array would trust the plan's leaves and
    /// addresses unchecked.
    #[must_use]
    pub fn starting_at(self, accesses: u64) -> Self {
        Self { starts_at: Some(accesses), ..self }
    }

    /// Whether the array that drew the plan has checked it. If so, the caller need not check its
    /// steps again. `accesses` is the current number of accesses of the array. A decoded plan is
    /// not checked.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) if the plan does not start from this state.
    pub fn is_checked(&self, accesses: u64) -> Result<bool, Error> {
        match self.starts_at {
            Some(start) if start != accesses => Err(Error::new(
                ErrorKind::InvalidRequest,
                "the plan does not start from this state: carry plans out in order, each once",
            )),
            start => Ok(start.is_some()),
        }
    }

    /// The total number of accesses of several plans.
    pub(crate) fn accesses_of(plans: &[&Self]) -> u64 {
        plans.iter().map(|plan| plan.accesses() as u64).sum()
    }

    /// The number of accesses. An access to a range counts as one per block.
    pub fn accesses(&self) -> usize {
        self.encoded.accesses()
    }

    /// The plan as stored in the log.
    pub fn encoded(&self) -> &EncodedPlan {
        &self.encoded
    }

    /// The steps of the scheme that drew the plan.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) if another scheme drew it.
    pub fn steps<T: Zeroize + Send + 'static>(&self) -> Result<&[T], Error> {
        match self.steps.downcast_ref::<Zeroizing<Vec<T>>>() {
            Some(steps) => Ok(steps),
            None => Err(Error::new(ErrorKind::InvalidRequest, "another scheme drew this plan")),
        }
    }
}

/// Shows the plan without its steps, which are secret.
impl fmt::Debug for AccessPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessPlan").field("accesses", &self.accesses()).finish_non_exhaustive()
    }
}
