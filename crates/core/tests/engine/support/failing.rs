//! A store that fails a call chosen by the test.

use std::cell::Cell;
use std::rc::Rc;

use oblivio_core::view::Operation;
use oblivio_core::{BucketStore, MemoryStore, StoreError, StoreErrorKind};
use oblivio_testkit::{Call, Faulty};

/// A store in memory that fails one read or write, after `calls_left` successful ones.
pub(crate) fn failing(memory: MemoryStore, calls_left: &Rc<Cell<u64>>) -> impl BucketStore + use<> {
    let calls_left = Rc::clone(calls_left);
    let fail = move |memory: &mut MemoryStore, call: &mut Call<'_>| {
        if matches!(call.operation, Operation::Read | Operation::Write)
            && calls_left.replace(calls_left.get().wrapping_sub(1)) == 0
        {
            return Err(StoreError::new(StoreErrorKind::Failed, "an injected failure"));
        }
        call.forward(memory)
    };
    Faulty::new(memory, fail)
}
