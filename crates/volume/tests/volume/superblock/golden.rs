//! Golden vectors: a superblock to the byte, and variants that are named after their defect.
//!
//! They serve implementers of the format in other languages, and detect accidental changes of the
//! format. After a deliberate change, write them again and review the difference:
//!
//! ```text
//! OBLIVIO_WRITE_GOLDEN=1 cargo test -p oblivio-volume --test volume superblock::golden
//! ```

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use oblivio_volume::keys::VolumeKey;
use oblivio_volume::superblock::{
    LockedSuperblock, SUPERBLOCK_BYTES, Superblock, SuperblockErrorKind as Kind,
};
use rand_core::{TryCryptoRng, TryRng};

use super::{Bytes, example_params, key_file, kind, passphrase, slot, with_checksum};

#[test]
fn the_format_is_as_it_was() {
    let file = path("superblock");
    let bytes = vector();
    if writing() {
        std::fs::write(&file, dump(&bytes)).unwrap();
    }
    let golden = std::fs::read_to_string(&file).unwrap();
    assert!(
        golden == dump(&bytes),
        "the format has changed. If that was intended, update docs/format.md and its version, and \
         then the vectors with OBLIVIO_WRITE_GOLDEN=1"
    );
    let locked = LockedSuperblock::decode(&undump(&golden)[..]).unwrap();
    for (secret, number) in [(passphrase("correct horse"), 0), (key_file(1), 1)] {
        let unlocked = locked.unlock(&secret).unwrap();
        assert_eq!(unlocked.slot, number);
        assert_eq!(unlocked.superblock.params(), &example_params());
        assert_eq!(unlocked.volume_key.derive("test"), volume_key().derive("test"));
    }
}

/// Superblocks in the formats from before the first release are refused, and the error names their
/// version.
#[test]
fn superblocks_of_old_versions_are_refused_by_their_version() {
    for version in [1, 2] {
        let golden = std::fs::read_to_string(path(&format!("superblock_v{version}"))).unwrap();
        let error = LockedSuperblock::decode(&undump(&golden)[..]).unwrap_err();
        assert_eq!(error.kind(), Kind::UnknownVersion);
        assert!(error.to_string().contains(&format!("version {version}")), "{error}");
        assert!(error.to_string().contains("make a new volume"), "{error}");
    }
}

type Defect = (&'static str, Kind, fn(&mut Bytes));

/// Each defect: its name, the expected kind of error, and the change. All except the first leave a
/// valid checksum. The test never uses a wrong key.
const DEFECTS: [Defect; 28] = [
    ("checksum_wrong", Kind::Damaged, |bytes| bytes[SUPERBLOCK_BYTES - 1] ^= 1),
    ("magic_wrong", Kind::NotAVolume, |bytes| bytes[0] = b'O'),
    ("version_0", Kind::UnknownVersion, |bytes| bytes[8] = 0),
    ("version_4", Kind::UnknownVersion, |bytes| bytes[8] = 4),
    ("reserved_after_version", Kind::Tampered, |bytes| bytes[12] = 1),
    ("sequence_0", Kind::Tampered, |bytes| bytes[16] = 0),
    ("sequence_too_high", Kind::Tampered, |bytes| bytes[16..24].fill(0xFF)),
    ("blocks_0", Kind::Tampered, |bytes| bytes[40..48].fill(0)),
    ("blocks_more_than_fit", Kind::Tampered, |bytes| bytes[44] = 1),
    ("block_bytes_15", Kind::Tampered, |bytes| bytes[48..52].copy_from_slice(&[15, 0, 0, 0])),
    ("scheme_unknown", Kind::UnknownVersion, |bytes| bytes[56] = b'x'),
    ("scheme_without_a_name", Kind::Tampered, |bytes| bytes[56..72].fill(0)),
    ("scheme_whose_name_can_be_none", Kind::Tampered, |bytes| bytes[57] = b'A'),
    ("scheme_of_other_params", Kind::Tampered, |bytes| bytes[56..60].copy_from_slice(b"scan")),
    ("scheme_params_past_their_end", Kind::Tampered, |bytes| bytes[52] = 185),
    ("scheme_params_too_long", Kind::Tampered, |bytes| bytes[52] += 1),
    ("reserved_before_scheme", Kind::Tampered, |bytes| bytes[54] = 1),
    ("reserved_after_scheme_params", Kind::Tampered, |bytes| bytes[255] = 1),
    ("leaf_level_41", Kind::Tampered, |bytes| bytes[72] = 41),
    ("tree_top_past_the_leaves", Kind::Tampered, |bytes| bytes[73] = 10),
    ("slots_0", Kind::Tampered, |bytes| bytes[74] = 0),
    ("evict_period_0", Kind::Tampered, |bytes| bytes[78] = 0),
    ("stash_bound_0", Kind::Tampered, |bytes| bytes[82] = 0),
    ("params_possible_but_not_authentic", Kind::Tampered, |bytes| bytes[40] ^= 1),
    ("key_slot_of_unknown_kind", Kind::Tampered, |bytes| bytes[256] = 3),
    ("key_slot_empty_with_leftovers", Kind::Tampered, |bytes| bytes[256] = 0),
    ("key_slot_label_of_33_bytes", Kind::Tampered, |bytes| bytes[257] = 33),
    ("key_slot_removed_by_storage", Kind::Tampered, |bytes| bytes[256..512].fill(0)),
];

#[test]
fn defects_are_noticed() {
    for (name, expected, spoil) in DEFECTS {
        let file = path(&format!("corrupt/superblock_{name}"));
        let mut bytes = vector();
        spoil(&mut bytes);
        if expected != Kind::Damaged {
            bytes = with_checksum(bytes);
        }
        if writing() {
            std::fs::write(&file, dump(&bytes)).unwrap();
        }
        let golden = std::fs::read_to_string(&file).unwrap();
        assert!(golden == dump(&bytes), "{name} has changed");
        let bytes = undump(&golden);
        let outcome = LockedSuperblock::decode(&bytes[..]).and_then(|it| it.unlock(&key_file(1)));
        assert_eq!(kind(outcome), expected, "{name}");
    }
}

fn volume_key() -> VolumeKey {
    VolumeKey::from_bytes(&std::array::from_fn(|i| i as u8))
}

fn vector() -> Box<Bytes> {
    let (mut coins, key) = (Counting(0), volume_key());
    let secret = passphrase("correct horse");
    let first = slot("owner", &secret);
    let mut superblock = Superblock::create(example_params(), &key, &first, &mut coins).unwrap();
    superblock.add_slot(&key, &slot("backup", &key_file(1)), &mut coins).unwrap();
    superblock.encode()
}

/// Predictable coins: 0, 1, 2, …
struct Counting(u8);

impl TryRng for Counting {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for byte in bytes {
            *byte = self.0;
            self.0 = self.0.wrapping_add(1);
        }
        Ok(())
    }
}

impl TryCryptoRng for Counting {}

// ───────────────────────────── the files ─────────────────────────────

const LINE_BYTES: usize = 32;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.txt"))
}

fn writing() -> bool {
    std::env::var_os("OBLIVIO_WRITE_GOLDEN").is_some()
}

/// The offset and the bytes of each line that is not all zeros.
fn dump(bytes: &Bytes) -> String {
    let lines = bytes.chunks(LINE_BYTES).enumerate();
    let filled = lines.filter(|(_, line)| line.iter().any(|byte| *byte != 0));
    filled
        .map(|(i, line)| {
            let hex: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{:5} {hex}\n", i * LINE_BYTES)
        })
        .collect()
}

fn undump(text: &str) -> Box<Bytes> {
    let mut bytes = Box::new([0; SUPERBLOCK_BYTES]);
    for line in text.lines() {
        let (offset, hex) = line.trim().split_once(' ').unwrap();
        let offset: usize = offset.parse().unwrap();
        for (i, byte) in bytes[offset..][..LINE_BYTES].iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * i..][..2], 16).unwrap();
        }
    }
    bytes
}
