//! Files that were open when this program was started, besides its three streams.
//!
//! Who starts it may have left them open without meaning to: a lock that a script holds, a pipe whose end somebody waits for. A process that goes on in
//! the background lets go of them. It does so when the volume is open, because one of them may be how it is told the key (`--key-file /dev/fd/5`).

use std::fs;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

static INHERITED: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

/// To be called before this process opens anything.
pub(super) fn take() {
    const STREAMS: RawFd = 3;
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<RawFd> =
        open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let others = numbers.into_iter().filter(|number| *number >= STREAMS);
    // That of the listing itself is closed by now.
    let inherited =
        others.filter(|number| fs::read_link(format!("/proc/self/fd/{number}")).is_ok());
    #[expect(unsafe_code, reason = "a number becomes a file that is closed")]
    // SAFETY: it is open, and this process, which is single-threaded yet, has opened nothing that has it.
    let inherited = inherited.map(|number| unsafe { OwnedFd::from_raw_fd(number) });
    held().extend(inherited);
}

/// Closes them.
pub(super) fn close() {
    held().clear();
}

fn held() -> std::sync::MutexGuard<'static, Vec<OwnedFd>> {
    INHERITED.lock().unwrap_or_else(PoisonError::into_inner)
}
