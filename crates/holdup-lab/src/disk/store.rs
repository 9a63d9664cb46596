//! Where the disk's bytes are: in memory, so that nothing but the bucket makes them slow. It answers no question of time.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd as _;
use std::os::unix::fs::FileExt as _;

/// An anonymous file in memory. Only written data takes memory.
#[derive(Debug)]
pub struct Store {
    file: File,
    /// Its size, bytes.
    pub bytes: u64,
}

impl Store {
    /// A store of `bytes` zeros.
    ///
    /// # Errors
    ///
    /// If the system refuses more memory or files.
    pub fn new(bytes: u64) -> io::Result<Self> {
        // SAFETY: the name is a string that ends in a zero and is only read.
        let fd = unsafe { libc::memfd_create(c"holdup-disk".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made, and only this value owns it.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(bytes)?;
        Ok(Self { file, bytes })
    }

    /// The `bytes` at `offset`; fewer at the end of the disk.
    ///
    /// # Errors
    ///
    /// Those of reading memory: none are known.
    pub fn read(&self, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut data = vec![0; bytes.min(left)];
        self.file.read_exact_at(&mut data, offset)?;
        Ok(data)
    }

    /// Writes `data` at `offset`.
    ///
    /// # Errors
    ///
    /// If it exceeds the end of the disk, or the memory is used up.
    pub fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let end = offset.saturating_add(data.len() as u64);
        if end > self.bytes {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        self.file.write_all_at(data, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_what_was_written_within_its_size() {
        let store = Store::new(8192).expect("memory");
        store.write(4094, b"abcd").expect("written");
        assert_eq!(store.read(4093, 6).expect("read"), b"\0abcd\0");
        assert_eq!(store.read(8190, 100).expect("read").len(), 2);
        assert_eq!(store.read(9000, 100).expect("read").len(), 0);
        assert!(store.write(8190, b"abcd").is_err());
    }
}
