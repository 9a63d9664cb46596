//! Reads the path argument of a system call from another process' memory, on a separate thread. The
//! kernel makes the reader wait while another thread changes that process' address space, and that
//! may be the very thing that hangs. The caller waits only briefly. It reads nothing but paths;
//! `calls` knows which address holds one.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::Duration;

/// Longest path read, bytes.
pub(crate) const PATH_BYTES_MAX: usize = 256;

/// Time limit for an answer, which usually takes some 50 µs.
const PATIENCE: Duration = Duration::from_millis(20);

/// A process' memory file, and an address in it.
type PathRequest = (PathBuf, u64);

/// Channels for requests and answers.
type Channels = (Sender<PathRequest>, Receiver<Option<Vec<u8>>>);

/// The reader's thread, started when needed. Dropping this ends it.
#[derive(Default)]
pub(crate) struct Memory {
    reader: Option<Channels>,
    /// Whether an answer is still to come for which the caller no longer waits.
    late: bool,
    /// Whether a path did not come in time since [`Self::take_missed`].
    missed: bool,
}

impl Memory {
    /// The bytes before the first NUL at `address`, or all bytes read if it has none; none if they
    /// cannot be read in time.
    pub(crate) fn path_at(&mut self, file: PathBuf, address: u64) -> Option<Vec<u8>> {
        if self.reader.is_none() {
            self.reader = start();
        }
        let (ask, answers) = self.reader.as_ref()?;
        if self.late {
            match answers.try_recv() {
                Ok(_) => self.late = false,
                Err(TryRecvError::Empty) => {
                    self.missed = true;
                    return None;
                }
                Err(TryRecvError::Disconnected) => {}
            }
        }
        let answer = match ask.send((file, address)) {
            Ok(()) => answers.recv_timeout(PATIENCE),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        match answer {
            Ok(bytes) => bytes,
            Err(RecvTimeoutError::Timeout) => {
                (self.late, self.missed) = (true, true);
                None
            }
            Err(RecvTimeoutError::Disconnected) => {
                *self = Self::default();
                None
            }
        }
    }

    /// Whether a path did not come in time since the last call of this.
    pub(crate) fn take_missed(&mut self) -> bool {
        std::mem::take(&mut self.missed)
    }
}

fn start() -> Option<Channels> {
    let (ask, asked) = mpsc::channel::<PathRequest>();
    let (answer, answers) = mpsc::channel();
    let work = move || {
        while let Ok((file, address)) = asked.recv() {
            if answer.send(read(&file, address)).is_err() {
                break;
            }
        }
    };
    std::thread::Builder::new().name("collect paths".to_owned()).spawn(work).ok()?;
    Some((ask, answers))
}

fn read(file: &PathBuf, address: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; PATH_BYTES_MAX];
    let length = File::open(file).and_then(|file| file.read_at(&mut bytes, address)).ok()?;
    // Bytes after the NUL are not part of the path and are dropped.
    let end = bytes[..length].iter().position(|byte| *byte == 0).unwrap_or(length);
    bytes.truncate(end);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_the_nul_and_no_further() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mem");
        std::fs::write(&path, b"....one\0two").unwrap();
        // A machine that stalls takes longer than the caller waits.
        let mut memory = Memory::default();
        let mut path_at = |file: &PathBuf, address| loop {
            let path = memory.path_at(file.clone(), address);
            if !memory.take_missed() {
                return path;
            }
        };
        assert_eq!(path_at(&path, 4), Some(b"one".to_vec()));
        assert_eq!(path_at(&path, 8), Some(b"two".to_vec()));
        assert_eq!(path_at(&path, 99), Some(Vec::new()));
        assert_eq!(path_at(&dir.path().join("none"), 0), None);
        std::fs::write(&path, vec![b'a'; 1_000]).unwrap();
        assert_eq!(path_at(&path, 0).map(|bytes| bytes.len()), Some(PATH_BYTES_MAX));
    }

    /// A FIFO without a writer is memory that does not answer.
    #[test]
    fn a_path_argument_that_hangs_does_not_delay_the_sample() {
        let dir = tempfile::tempdir().unwrap();
        let (fifo, file) = (dir.path().join("fifo"), dir.path().join("mem"));
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        std::fs::write(&file, b"one\0").unwrap();
        let mut memory = Memory::default();
        assert_eq!(memory.path_at(fifo.clone(), 0), None);
        assert_eq!(memory.path_at(file.clone(), 0), None);
        drop(std::fs::OpenOptions::new().write(true).open(&fifo).unwrap());
        let mut answer = None;
        for _ in 0..6_000 {
            answer = memory.path_at(file.clone(), 0);
            if answer.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(answer, Some(b"one".to_vec()));
    }
}
