//! A session of an NBD client of the fuzzer's making, with a small disk.
//!
//! ```text
//! input = setup, what the client says
//! ```
//!
//! The session must end when the client has said everything, and nothing beyond the end of the disk
//! may be asked of it.
#![no_main]

use std::sync::{Arc, Mutex};

use libfuzzer_sys::fuzz_target;
use oblivio_serve::nbd::{NbdOptions, Service};
use oblivio_volume::device::{BlockDevice, DiskOp, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const DISK_BYTES: usize = 1 << 14;
const REQUEST_BYTES_MAX: u32 = 1 << 12;

/// Structured replies, and an export chosen: straight to the requests.
const READY: &[u8] =
    b"\0\0\0\x03IHAVEOPT\0\0\0\x08\0\0\0\0IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0";

fuzz_target!(|input: &[u8]| {
    let Some(([setup], said)) = input.split_first_chunk() else { return };
    let options = NbdOptions { read_only: setup & 2 != 0, ..NbdOptions::default() };
    let service = Service::new(Arc::new(Disk(Mutex::new(vec![0; DISK_BYTES]))), &options).unwrap();
    let said = [if setup & 1 == 0 { b"" } else { READY }, said].concat();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (near, far) = tokio::io::duplex(1 << 10);
        let (mut hear, mut say) = tokio::io::split(near);
        let talk = async move {
            // A server that has left hears nothing more.
            let _ = say.write_all(&said).await;
            let _ = say.shutdown().await;
        };
        let listen = async move { hear.read_to_end(&mut Vec::new()).await };
        let (_, (), heard) = tokio::join!(service.serve(far), talk, listen);
        heard.unwrap();
    });
});

/// Answers at once. Panics when asked for what it does not have.
struct Disk(Mutex<Vec<u8>>);

impl BlockDevice for Disk {
    fn bytes(&self) -> u64 {
        DISK_BYTES as u64
    }

    fn block_bytes(&self) -> u32 {
        512
    }

    fn request_bytes_max(&self) -> u32 {
        REQUEST_BYTES_MAX
    }

    fn submit(&self, Request { op, done }: Request) {
        let contents = &mut *self.0.lock().unwrap();
        let answer = match op {
            DiskOp::Read { offset, bytes } => {
                assert!(bytes <= REQUEST_BYTES_MAX);
                piece(contents, offset, bytes.into()).to_vec()
            }
            DiskOp::Write { offset, data, .. } => {
                assert!(data.len() <= REQUEST_BYTES_MAX as usize);
                piece(contents, offset, data.len() as u64).copy_from_slice(&data);
                Vec::new()
            }
            DiskOp::Zero { offset, bytes, .. } | DiskOp::Trim { offset, bytes, .. } => {
                piece(contents, offset, bytes).fill(0);
                Vec::new()
            }
            DiskOp::Flush => Vec::new(),
        };
        done(Ok(answer));
    }
}

fn piece(contents: &mut [u8], offset: u64, bytes: u64) -> &mut [u8] {
    &mut contents[offset as usize..][..bytes as usize]
}
