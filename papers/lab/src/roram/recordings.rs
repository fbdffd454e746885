//! Recorded requests of ext4 to a disk while programs used files.
//!
//! `make fs-requests` records them. The kernel merged requests, and prefetched at most the length
//! of a program's read.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A mix of programs, as defined by profiles of `FileBench`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// One program reads a file of 1 GiB sequentially, 1 MiB at a time.
    SeqRead,
    /// 50 programs create, append to, read and delete files of 128 KiB.
    FileServer,
    /// 48 programs read videos, 256 KiB at a time, while one rewrites a video, 1 MiB at a time.
    VideoServer,
}

/// A request of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsRequest {
    /// The number of the first block. Blocks have 4 KiB.
    pub first: u64,
    /// The number of blocks.
    pub blocks: u64,
    /// Whether the request is a write. An ORAM treats reads and writes alike.
    pub is_write: bool,
}

impl Mix {
    /// All mixes.
    pub const ALL: [Self; 3] = [Self::SeqRead, Self::FileServer, Self::VideoServer];

    fn recording(self) -> &'static str {
        match self {
            Self::SeqRead => include_str!("recorded/seq-read.csv"),
            Self::FileServer => include_str!("recorded/file-server.csv"),
            Self::VideoServer => include_str!("recorded/video-server.csv"),
        }
    }

    /// The requests to a disk of 16 GiB, in order.
    ///
    /// # Panics
    /// Panics if a recording of this crate is damaged.
    pub fn requests(self) -> impl Iterator<Item = FsRequest> {
        self.recording()
            .lines()
            .map(|line| request(line).expect("recordings of this crate are valid"))
    }
}

fn request(line: &str) -> Option<FsRequest> {
    let mut fields = line.split(',');
    let (what, first, blocks) = (fields.next()?, fields.next()?, fields.next()?);
    let (first, blocks) = (first.parse().ok()?, blocks.parse().ok()?);
    Some(FsRequest { first, blocks, is_write: what == "w" })
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SeqRead => "SeqRead",
            Self::FileServer => "FileServer",
            Self::VideoServer => "VideoServer",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_of_a_disk_of_16_gib() {
        for mix in Mix::ALL {
            let all: Vec<_> = mix.requests().collect();
            assert!(all.len() > 1000, "{mix}: {}", all.len());
            assert!(all.iter().all(|it| it.blocks > 0 && it.first + it.blocks <= 1 << 22), "{mix}");
        }
        let longest = Mix::SeqRead.requests().map(|it| it.blocks).max();
        assert_eq!(longest, Some(256), "1 MiB at a time");
        let written = |mix: Mix| mix.requests().filter(|it| it.is_write).count();
        assert!(written(Mix::SeqRead) < 10 && written(Mix::FileServer) > 500);
        let reads = |mix: Mix| mix.requests().filter(|it| !it.is_write && it.blocks == 64).count();
        assert!(reads(Mix::VideoServer) > 1500, "256 KiB at a time");
    }
}
