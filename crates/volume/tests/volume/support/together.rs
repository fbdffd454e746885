//! Requests that a disk finds waiting together.

use std::sync::mpsc::channel;

use oblivio_volume::device::{BlockDevice, DiskError, DiskOp, Request, WipedBytes};

/// Makes the disk find all requests waiting: an earlier request keeps it busy until all are queued.
/// Returns the answers in the order of the requests.
pub(crate) fn together(
    disk: &dyn BlockDevice,
    ops: Vec<DiskOp>,
) -> Vec<Result<WipedBytes, DiskError>> {
    let (is_busy, busy) = channel();
    let (all_are_there, go_on) = channel();
    let wait = Box::new(move |_| {
        is_busy.send(()).unwrap();
        go_on.recv().unwrap();
    });
    disk.submit(Request { op: DiskOp::Trim { offset: 0, bytes: 0, durable: false }, done: wait });
    busy.recv().unwrap();
    let answers = ops.into_iter().map(|op| {
        let (sender, answer) = channel();
        disk.submit(Request { op, done: Box::new(move |answer| sender.send(answer).unwrap()) });
        answer
    });
    let answers: Vec<_> = answers.collect();
    all_are_there.send(()).unwrap();
    answers.into_iter().map(|answer| answer.recv().unwrap()).collect()
}
