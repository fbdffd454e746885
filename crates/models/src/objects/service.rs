//! Kinds of services that store objects.

/// A kind of service that stores objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    /// An object store in a cloud, such as S3. It bills requests, and each takes tens of
    /// milliseconds.
    Cloud,
    /// A Redis cluster.
    Redis,
    /// A directory with one file per object.
    Folder,
}

/// Above this size of a disk in bytes, blocks of 4 KiB are never the default.
const SMALL_BLOCKS_DISK_BYTES_MAX: u64 = 16 << 30;

impl ServiceKind {
    /// Maximum bytes of the entries of a chunk.
    pub const fn chunk_bytes(self) -> u64 {
        match self {
            Self::Cloud | Self::Folder => 1 << 20,
            Self::Redis => 256 << 10,
        }
    }

    /// Seconds until a request is answered, for services where these are similar everywhere.
    pub const fn latency_seconds(self) -> Option<f64> {
        match self {
            Self::Cloud => Some(0.030),
            Self::Redis | Self::Folder => None,
        }
    }

    /// Bytes of a block that suit a disk of `disk_bytes` bytes.
    ///
    /// In a cloud, a long GET costs as much as a short one and takes hardly longer, so blocks are
    /// large. Behind a link, bytes count as well.
    pub const fn block_bytes(self, disk_bytes: u64, is_behind_link: bool) -> u32 {
        match self {
            Self::Cloud if is_behind_link => 16 << 10,
            Self::Cloud => 64 << 10,
            Self::Redis | Self::Folder if disk_bytes <= SMALL_BLOCKS_DISK_BYTES_MAX => 4 << 10,
            Self::Redis | Self::Folder => 16 << 10,
        }
    }
}
