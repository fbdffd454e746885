//! Requests of programs to a disk, generated from a seed.

use oblivio_volume::device::DiskOp;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Maximum bytes of a write or read of a workload.
pub const REQUEST_BYTES_MAX: u32 = 64 << 10;

/// One step of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are those in `DiskOp`")]
pub enum WorkloadStep {
    Read {
        offset: u64,
        bytes: u32,
    },
    Write {
        offset: u64,
        data: Vec<u8>,
        durable: bool,
    },
    Zero {
        offset: u64,
        bytes: u64,
        durable: bool,
    },
    Trim {
        offset: u64,
        bytes: u64,
        durable: bool,
    },
    Flush,
    /// Flush and close the disk, and open it again.
    Reopen,
}

impl WorkloadStep {
    /// The request of the step. `None` for `Reopen`.
    pub fn op(&self) -> Option<DiskOp> {
        Some(match self.clone() {
            Self::Read { offset, bytes } => DiskOp::Read { offset, bytes },
            Self::Write { offset, data, durable } => {
                DiskOp::Write { offset, data: data.into(), durable }
            }
            Self::Zero { offset, bytes, durable } => DiskOp::Zero { offset, bytes, durable },
            Self::Trim { offset, bytes, durable } => DiskOp::Trim { offset, bytes, durable },
            Self::Flush => DiskOp::Flush,
            Self::Reopen => return None,
        })
    }
}

/// Generates `steps` steps on a disk of `bytes` bytes, half of them writes. Half of the reads,
/// writes, zeros and trims are at a few hot spots, and half are aligned to 512 bytes. Lengths are
/// about log-uniform, from one byte to [`REQUEST_BYTES_MAX`], or to the disk's size for zeros and
/// trims. All data is random, so that any two versions differ.
///
/// # Panics
/// If the disk is smaller than a sector.
pub fn ops(seed: u64, bytes: u64, steps: usize) -> impl Iterator<Item = WorkloadStep> {
    assert!(bytes >= SECTOR_BYTES, "a disk has at least {SECTOR_BYTES} bytes");
    let mut coins = StdRng::seed_from_u64(seed);
    let hot: [u64; 4] = std::array::from_fn(|_| coins.random_range(0..bytes));
    (0..steps).map(move |_| step(&mut coins, bytes, &hot))
}

const SECTOR_BYTES: u64 = 512;

fn step(coins: &mut StdRng, disk_bytes: u64, hot: &[u64]) -> WorkloadStep {
    let (offset, bytes) = extent(coins, disk_bytes, hot, u64::from(REQUEST_BYTES_MAX));
    let durable = coins.random_range(0..8) == 0;
    match coins.random_range(0..100) {
        0..50 => {
            let data = (0..bytes).map(|_| coins.random()).collect();
            WorkloadStep::Write { offset, data, durable }
        }
        50..75 => WorkloadStep::Read { offset, bytes: bytes as u32 },
        75..80 => {
            let (offset, bytes) = extent(coins, disk_bytes, hot, disk_bytes);
            WorkloadStep::Zero { offset, bytes, durable }
        }
        80..85 => {
            let (offset, bytes) = extent(coins, disk_bytes, hot, disk_bytes);
            WorkloadStep::Trim { offset, bytes, durable }
        }
        85..98 => WorkloadStep::Flush,
        _ => WorkloadStep::Reopen,
    }
}

/// Draws the offset and length of a request.
fn extent(coins: &mut StdRng, disk_bytes: u64, hot: &[u64], bytes_max: u64) -> (u64, u64) {
    let magnitude = coins.random_range(0..=bytes_max.ilog2());
    let mut bytes = coins.random_range(1..=1u64 << magnitude).min(disk_bytes);
    let mut offset = match coins.random() {
        true => hot[coins.random_range(0..hot.len())],
        false => coins.random_range(0..disk_bytes),
    };
    if coins.random() {
        offset -= offset % SECTOR_BYTES;
        bytes = bytes.next_multiple_of(SECTOR_BYTES);
    }
    (offset, bytes.min(bytes_max).min(disk_bytes - offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_repeat_with_the_seed_and_stay_on_the_disk() {
        for disk_bytes in [512, 5000, 1 << 20] {
            let steps: Vec<_> = ops(3, disk_bytes, 2000).collect();
            assert_eq!(steps, ops(3, disk_bytes, 2000).collect::<Vec<_>>());
            for step in &steps {
                let (offset, bytes) = match step {
                    WorkloadStep::Read { offset, bytes } => (*offset, u64::from(*bytes)),
                    WorkloadStep::Write { offset, data, .. } => (*offset, data.len() as u64),
                    WorkloadStep::Zero { offset, bytes, .. }
                    | WorkloadStep::Trim { offset, bytes, .. } => (*offset, *bytes),
                    WorkloadStep::Flush | WorkloadStep::Reopen => continue,
                };
                assert!(bytes > 0 && offset + bytes <= disk_bytes, "{offset} + {bytes}");
            }
        }
    }

    #[test]
    fn steps_of_every_kind_and_size_occur() {
        let steps: Vec<_> = ops(1, 1 << 20, 4000).collect();
        let some = |is: &dyn Fn(&WorkloadStep) -> bool| assert!(steps.iter().any(is));
        some(&|step| matches!(step, WorkloadStep::Write { data, .. } if data.len() == 1));
        some(&|step| matches!(step, WorkloadStep::Write { data, .. } if data.len() > 60_000));
        some(&|step| matches!(step, WorkloadStep::Write { offset, .. } if offset % 4096 == 0));
        some(&|step| matches!(step, WorkloadStep::Write { offset, .. } if offset % 512 != 0));
        some(&|step| matches!(step, WorkloadStep::Write { durable: true, .. }));
        some(&|step| matches!(step, WorkloadStep::Zero { bytes, .. } if *bytes > 100_000));
        some(&|step| matches!(step, WorkloadStep::Trim { bytes, .. } if *bytes > 100_000));
        some(&|step| matches!(step, WorkloadStep::Read { .. }));
        some(&|step| matches!(step, WorkloadStep::Flush));
        some(&|step| matches!(step, WorkloadStep::Reopen));
    }
}
