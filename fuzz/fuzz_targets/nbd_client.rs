//! A session of an NBD client, controlled by the fuzzer, with a small disk.
//!
//! ```text
//! input = setup, bytes from the client
//! ```
//!
//! The session must end after the last byte from the client. The disk must get no request beyond
//! its end, and no read or write above its size limit.
#![no_main]

#[path = "support/small_disk.rs"]
mod small_disk;

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use oblivio_nbd::{NbdOptions, Service};
use small_disk::SmallDisk;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Bytes of a client that negotiate structured replies and choose the export, so that requests
/// follow.
const READY: &[u8] =
    b"\0\0\0\x03IHAVEOPT\0\0\0\x08\0\0\0\0IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0";

fuzz_target!(|input: &[u8]| {
    let Some(([setup], sent)) = input.split_first_chunk() else { return };
    let options = NbdOptions { read_only: setup & 2 != 0, ..NbdOptions::default() };
    let service = Service::new(Arc::new(SmallDisk::default()), &options).unwrap();
    let sent = [if setup & 1 == 0 { b"" } else { READY }, sent].concat();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (near, far) = tokio::io::duplex(1 << 10);
        let (mut hear, mut say) = tokio::io::split(near);
        let talk = async move {
            // Writing fails if the server has closed the connection.
            let _ = say.write_all(&sent).await;
            let _ = say.shutdown().await;
        };
        let listen = async move { hear.read_to_end(&mut Vec::new()).await };
        let (_, (), heard) = tokio::join!(service.serve(far), talk, listen);
        heard.unwrap();
    });
});
