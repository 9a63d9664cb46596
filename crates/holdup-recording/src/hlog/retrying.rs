//! Writes to a file that may refuse for a while: rejected bytes are kept in order and written with
//! the next ones.

use std::io::{Error, ErrorKind, Result, Write};

/// Most bytes that are kept: days of histograms.
const KEPT_MAX: usize = 16 << 20;

/// A file whose refusals are not errors until [`Write::flush`] asks whether all is written.
pub(super) struct RetryingWriter<W> {
    file: W,
    kept: Vec<u8>,
}

impl<W: Write> RetryingWriter<W> {
    pub(super) fn new(file: W) -> Self {
        Self { file, kept: Vec::new() }
    }

    fn write_kept(&mut self) -> Result<()> {
        while !self.kept.is_empty() {
            match self.file.write(&self.kept) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => drop(self.kept.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl<W: Write> Write for RetryingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        if self.kept.len() + bytes.len() > KEPT_MAX {
            self.write_kept()?;
        }
        if self.kept.len() + bytes.len() > KEPT_MAX {
            return Err(Error::from(ErrorKind::StorageFull));
        }
        self.kept.extend_from_slice(bytes);
        let _ = self.write_kept();
        Ok(bytes.len())
    }

    /// # Errors
    /// If some bytes are still kept.
    fn flush(&mut self) -> Result<()> {
        self.write_kept()?;
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts a number of bytes, then refuses until it has more room.
    struct Disk {
        room: usize,
        holds: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            let count = bytes.len().min(self.room);
            if count == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.room -= count;
            self.holds.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_disk_that_is_full_for_a_while_loses_nothing() {
        let mut file = RetryingWriter::new(Disk { room: 10, holds: Vec::new() });
        for line in ["first 1\n", "second 2\n", "third 3\n"] {
            file.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(file.flush().unwrap_err().kind(), ErrorKind::StorageFull);
        file.file.room = 1_000;
        file.write_all(b"fourth 4\n").unwrap();
        file.flush().unwrap();
        assert_eq!(String::from_utf8(file.file.holds).unwrap(), "first 1\nsecond 2\nthird 3\nfourth 4\n");
    }
}
