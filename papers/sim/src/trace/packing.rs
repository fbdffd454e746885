//! Compressed files: reads gzip and zstd, and writes gzip.
//!
//! The zstd decoder is written in Rust, so no C compiler is needed. The same library's encoder is
//! not used, since it compresses less than the original zstd, and gzip suffices for our output.

use std::io::{self, BufRead, BufReader, Cursor, Read, Write};

use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The magic number of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The magic number of a zstd frame.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The compression of a written file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Uncompressed.
    #[default]
    None,
    /// gzip.
    Gzip,
}

/// Decompresses `file` if it starts with a known magic number. Decompression happens while reading,
/// so a small file that expands to many bytes takes little memory.
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

/// Reads the first `count` bytes of `file`, or the whole file if it is shorter. Also returns a
/// reader of the complete file.
pub(super) fn peek<R: Read>(mut file: R, count: usize) -> io::Result<(Vec<u8>, impl Read)> {
    let mut start = Vec::new();
    file.by_ref().take(count as u64).read_to_end(&mut start)?;
    Ok((start.clone(), Cursor::new(start).chain(file)))
}

/// Runs `write` on `out`, through a compressor unless `compression` is [`Compression::None`]. Then
/// flushes `out`.
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

/// Decodes the concatenated frames of a zstd file, and checks their checksums.
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
    /// Compares the frame's checksum, if it has one, since the decoder does not.
    fn check(&self) -> io::Result<()> {
        match self.decoder.get_checksum_from_data() {
            Some(sum) if Some(sum) != self.decoder.get_calculated_checksum() => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "wrong zstd checksum"))
            }
            _ => Ok(()),
        }
    }
}
