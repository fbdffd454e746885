//! Files besides the three standard streams that were open when this program was started.
//!
//! The parent may have left a file open by mistake, such as a lock of a script, or a pipe whose
//! reader waits for its end. A process in the background closes these files only once the volume is
//! open, because one of them may supply the key (`--key-file /dev/fd/5`).

use std::fs;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

static INHERITED: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

/// Records the inherited files. Call this before the process opens any file.
pub(super) fn record() {
    const STREAMS: RawFd = 3;
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<RawFd> =
        open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let others = numbers.into_iter().filter(|number| *number >= STREAMS);
    // The descriptor of the listing itself is closed by now.
    let inherited =
        others.filter(|number| fs::read_link(format!("/proc/self/fd/{number}")).is_ok());
    #[expect(unsafe_code, reason = "takes ownership of a descriptor, to close it")]
    // SAFETY: the descriptor is open, and this process, still single-threaded, has opened nothing
    // that owns it.
    let inherited = inherited.map(|number| unsafe { OwnedFd::from_raw_fd(number) });
    held().extend(inherited);
}

/// Closes the inherited files.
pub(super) fn close() {
    held().clear();
}

fn held() -> std::sync::MutexGuard<'static, Vec<OwnedFd>> {
    INHERITED.lock().unwrap_or_else(PoisonError::into_inner)
}
