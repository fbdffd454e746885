//! What ext4 asked of a disk while programs used files on it, as it was recorded.
//!
//! `make fs-requests` records them again. The kernel has merged requests, and has read ahead as far as programs read at a time.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A mix of programs, as the profiles of `FileBench` have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// One reads a file of 1 GiB from its beginning on, 1 MiB at a time.
    SeqRead,
    /// 50 create, append to, read and delete files of 128 KiB.
    FileServer,
    /// 48 read videos, 256 KiB at a time, while one writes a video anew, 1 MiB at a time.
    VideoServer,
}

/// What a file system asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The first block, of 4 KiB.
    pub first: u64,
    /// How many.
    pub blocks: u64,
    /// Whether it writes. ORAMs do not care.
    pub is_write: bool,
}

impl Mix {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::SeqRead, Self::FileServer, Self::VideoServer];

    fn recording(self) -> &'static str {
        match self {
            Self::SeqRead => include_str!("recorded/seq-read.csv"),
            Self::FileServer => include_str!("recorded/file-server.csv"),
            Self::VideoServer => include_str!("recorded/video-server.csv"),
        }
    }

    /// What was asked of a disk of 16 GiB, in order.
    ///
    /// # Panics
    /// When a recording of this crate is damaged.
    pub fn asked(self) -> impl Iterator<Item = Asked> {
        self.recording().lines().map(|line| asked(line).expect("a recording as it was made"))
    }
}

fn asked(line: &str) -> Option<Asked> {
    let mut fields = line.split(',');
    let (what, first, blocks) = (fields.next()?, fields.next()?, fields.next()?);
    let (first, blocks) = (first.parse().ok()?, blocks.parse().ok()?);
    Some(Asked { first, blocks, is_write: what == "w" })
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
            let all: Vec<_> = mix.asked().collect();
            assert!(all.len() > 1000, "{mix}: {}", all.len());
            assert!(all.iter().all(|it| it.blocks > 0 && it.first + it.blocks <= 1 << 22), "{mix}");
        }
        let longest = Mix::SeqRead.asked().map(|it| it.blocks).max();
        assert_eq!(longest, Some(256), "1 MiB at a time");
        let written = |mix: Mix| mix.asked().filter(|it| it.is_write).count();
        assert!(written(Mix::SeqRead) < 10 && written(Mix::FileServer) > 500);
        let reads = |mix: Mix| mix.asked().filter(|it| !it.is_write && it.blocks == 64).count();
        assert!(reads(Mix::VideoServer) > 1500, "256 KiB at a time");
    }
}
