//! Compressed files: gzip and zstd are read, gzip is written.
//!
//! Zstd is read by a decoder in Rust, so that nothing here needs a C compiler. Its encoder is not used:
//! it does not compress as the original does, and gzip suffices for what is written here.

use std::io::{self, BufRead, BufReader, Cursor, Read, Write};

use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// How gzip begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// How a frame of zstd begins.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How a file is compressed that is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// With gzip.
    Gzip,
}

/// What `file` holds, unpacked if it begins as something packed does. It is unpacked as it is read: a
/// small file of many bytes costs no memory.
pub(super) fn unpack<'a>(file: impl Read + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let (start, file) = peek(file, ZSTD.len())?;
    let file = BufReader::new(file);
    Ok(if start.starts_with(&GZIP) {
        Box::new(BufReader::new(MultiGzDecoder::new(file)))
    } else if start == ZSTD {
        Box::new(BufReader::new(Frames { decoder: FrameDecoder::new(), packed: file }))
    } else {
        Box::new(file)
    })
}

/// The first `count` bytes of `file`, or all if it has fewer, and `file` as it was.
pub(super) fn peek<R: Read>(mut file: R, count: usize) -> io::Result<(Vec<u8>, impl Read)> {
    let mut start = Vec::new();
    file.by_ref().take(count as u64).read_to_end(&mut start)?;
    Ok((start.clone(), Cursor::new(start).chain(file)))
}

/// Lets `write` write to `out`, compressed.
pub(super) fn pack<W: Write>(
    compression: Compression,
    mut out: W,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    match compression {
        Compression::None => write(&mut out)?,
        Compression::Gzip => {
            let mut packer = GzEncoder::new(&mut out, flate2::Compression::default());
            write(&mut packer)?;
            packer.finish()?;
        }
    }
    out.flush()
}

/// The frames of a zstd file, one after the other, each with its checksum if it has one.
struct Frames<R> {
    decoder: FrameDecoder,
    packed: R,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 {
            if !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.packed, one).map_err(io::Error::other)?;
                continue;
            }
            self.check()?;
            if self.packed.fill_buf()?.is_empty() {
                return Ok(0);
            }
            self.decoder.init(&mut self.packed).map_err(io::Error::other)?;
        }
        self.decoder.read(buffer)
    }
}

impl<R> Frames<R> {
    /// What the decoder leaves to its caller.
    fn check(&self) -> io::Result<()> {
        match self.decoder.get_checksum_from_data() {
            Some(sum) if Some(sum) != self.decoder.get_calculated_checksum() => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "the checksum of zstd does not fit"))
            }
            _ => Ok(()),
        }
    }
}
