//! A store that fails when a test says so.

use std::cell::Cell;
use std::rc::Rc;

use oblivio_core::view::Operation;
use oblivio_core::{BucketStore, MemoryStore, StoreError, StoreErrorKind};
use oblivio_testkit::{Call, Faulty};

/// Memory whose reads and writes fail once: after `calls_left` of them.
pub(crate) fn failing(memory: MemoryStore, calls_left: &Rc<Cell<u64>>) -> impl BucketStore + use<> {
    let calls_left = Rc::clone(calls_left);
    let fail = move |memory: &mut MemoryStore, call: &mut Call<'_>| {
        if matches!(call.operation, Operation::Read | Operation::Write)
            && calls_left.replace(calls_left.get().wrapping_sub(1)) == 0
        {
            return Err(StoreError::new(StoreErrorKind::Failed, "a failure for a test"));
        }
        call.forward(memory)
    };
    Faulty::new(memory, fail)
}
