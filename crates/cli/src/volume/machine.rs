//! Features of a machine that make volumes fast.

use std::num::NonZeroUsize;
use std::thread;

use serde_json::{Value, json};

/// The features of this machine.
pub(super) struct Machine {
    /// Whether the processor has AES instructions, which seal and verify buckets. Always false if
    /// it is neither x86-64 nor ARM64.
    has_aes: bool,
    /// On x86-64, whether the processor has AVX2. Always true elsewhere: every ARM64 processor
    /// has the vectors that are used, and other processors are not checked.
    has_vectors: bool,
    processors: usize,
    page_bytes: usize,
}

impl Machine {
    pub(super) fn here() -> Self {
        #[cfg(target_arch = "x86_64")]
        let (has_aes, has_vectors) = (
            std::arch::is_x86_feature_detected!("aes"),
            std::arch::is_x86_feature_detected!("avx2"),
        );
        #[cfg(target_arch = "aarch64")]
        let (has_aes, has_vectors) = (std::arch::is_aarch64_feature_detected!("aes"), true);
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let (has_aes, has_vectors) = (false, true);
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self { has_aes, has_vectors, processors, page_bytes: rustix::param::page_size() }
    }

    /// Missing features, one per line. Volumes work without them.
    pub(super) fn remarks(&self) -> Vec<String> {
        let Self { has_aes, has_vectors, processors, page_bytes } = *self;
        let lacks = [
            (!has_aes).then(|| {
                "this processor has no AES instructions: sealing and verifying take many times as \
                 long"
                    .to_owned()
            }),
            (!has_vectors).then(|| {
                "this processor has no AVX2: sealing and verifying take longer".to_owned()
            }),
            (processors == 1).then(|| {
                "there is one processor: nothing is read ahead while the client computes".to_owned()
            }),
            (page_bytes > 4096).then(|| {
                let kib = page_bytes >> 10;
                format!(
                    "pages have {kib} KiB: writing a part of a page may have to read the rest of it"
                )
            }),
        ];
        lacks.into_iter().flatten().map(|lack| format!("machine           {lack}")).collect()
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "aes": self.has_aes,
            "vectors": self.has_vectors,
            "processors": self.processors,
            "page_bytes": self.page_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_says_what_it_lacks() {
        let good = || Machine { has_aes: true, has_vectors: true, processors: 2, page_bytes: 4096 };
        assert!(good().remarks().is_empty());
        for (machine, word) in [
            (Machine { has_aes: false, ..good() }, "AES"),
            (Machine { has_vectors: false, ..good() }, "AVX2"),
            (Machine { processors: 1, ..good() }, "one processor"),
            (Machine { page_bytes: 1 << 16, ..good() }, "64 KiB"),
        ] {
            let remarks = machine.remarks();
            assert!(remarks.len() == 1 && remarks[0].contains(word), "{remarks:?}");
        }
    }
}
