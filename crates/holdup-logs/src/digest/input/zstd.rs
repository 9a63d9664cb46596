//! Zstandard files: a sequence of frames, some of them without data. The decoder handles one frame
//! at a time.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Largest window that is accepted: that of `zstd --ultra --long`.
const MOST_WINDOW: u64 = 128 << 20;

/// Reads all frames of a stream.
pub struct Frames<R: BufRead> {
    source: R,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

fn broken(error: &FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

impl<R: BufRead> Frames<R> {
    /// Frames of `source`.
    pub fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MOST_WINDOW);
        Self { source, decoder, is_in_frame: false }
    }

    /// Begins the next frame; false if there is none.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut self.source.by_ref().take(length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(broken(&error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_in_frame && !self.begin()? {
                return Ok(0);
            }
            self.is_in_frame = true;
            // Stops at the first data, because the bytes behind it may be broken.
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let strategy = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.source, strategy).map_err(|error| broken(&error))?;
            }
            let read = self.decoder.read(room)?;
            if read > 0 || room.is_empty() {
                return Ok(read);
            }
            self.is_in_frame = false;
        }
    }
}
