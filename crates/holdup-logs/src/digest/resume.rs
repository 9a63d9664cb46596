//! Positions at which runs stopped, so that the next run continues there. For each log: how far it
//! was read, and checksums of its beginning and of its last bytes, which identify it under another
//! name and when packed. No text of the logs is kept.

use std::io;
use std::path::{Path, PathBuf};

use holdup_recording::files;
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};

use crate::digest::block::Context;
use crate::digest::input::Input;

/// Bytes of a log's beginning that identify it.
const HEAD: usize = 4_096;
/// Most logs in a state.
const MOST: usize = 1_000;
/// Version of the state's form.
const FORMAT: u32 = 1;

/// How far one log was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Its name at that time.
    pub path: PathBuf,
    /// Bytes that were read, unpacked.
    pub offset: u64,
    /// Lines in them.
    pub lines: u64,
    /// Number of bytes that `head` covers.
    pub head_bytes: usize,
    /// Checksum of its first bytes.
    pub head: String,
    /// Time of the last record, microseconds.
    pub at_us: Option<i64>,
    /// Database that was last used.
    pub database: String,
}

fn checksum(bytes: &[u8]) -> String {
    Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Mark {
    /// The mark of a log that begins with `head` and was read so far; `None` if nothing was read.
    pub fn new(path: &Path, head: &[u8], offset: u64, lines: u64, context: &Context) -> Option<Self> {
        let read = usize::try_from(offset).unwrap_or(usize::MAX);
        let head = head.get(..HEAD.min(read).min(head.len())).filter(|head| !head.is_empty())?;
        Some(Self {
            path: path.to_owned(),
            offset,
            lines,
            head_bytes: head.len(),
            head: checksum(head),
            at_us: context.at_us,
            database: String::from_utf8_lossy(&context.database).into_owned(),
        })
    }

    /// Whether it is the log that begins with these bytes.
    pub fn matches(&self, head: &[u8]) -> bool {
        head.get(..self.head_bytes).is_some_and(|head| checksum(head) == self.head)
    }

    /// The context that later records need not repeat.
    pub fn context(&self) -> Context {
        Context { at_us: self.at_us, database: self.database.clone().into_bytes() }
    }
}

/// The positions of all logs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    format: u32,
    marks: Vec<Mark>,
}

impl Default for State {
    fn default() -> Self {
        Self { format: FORMAT, marks: Vec::new() }
    }
}

/// Why a state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be read or written.
    #[error("the state {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The file is not a state.
    #[error("{} is not a state of holdup digest: {why}; name another file, or remove it to read all from the beginning", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl State {
    /// Reads a state; an empty one if the file does not exist.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is not a state.
    pub fn load(path: &Path) -> Result<Self, StateError> {
        let text = match files::read(path, u64::MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(StateError::Io { path: path.to_owned(), error }),
        };
        let foreign = |why: String| StateError::Foreign { path: path.to_owned(), why };
        let state: Self = serde_json::from_slice(&text).map_err(|error| foreign(error.to_string()))?;
        if state.format != FORMAT {
            return Err(foreign(format!("format {}", state.format)));
        }
        Ok(state)
    }

    /// Writes the state: to a new file first, so that a complete one always exists.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), StateError> {
        let failed = |error| StateError::Io { path: path.to_owned(), error };
        let text = serde_json::to_vec_pretty(self).map_err(|error| failed(error.into()))?;
        files::replace(path, &text).map_err(failed)
    }

    /// The mark of a log that begins with these bytes; of several, the one that was read farthest.
    pub fn find_mark(&self, head: &[u8]) -> Option<&Mark> {
        self.marks.iter().filter(|mark| mark.matches(head)).max_by_key(|mark| mark.offset)
    }

    /// Marks whose log begins with none of `heads`.
    pub fn missing<'a>(&'a self, heads: &'a [Vec<u8>]) -> impl Iterator<Item = &'a Mark> {
        self.marks.iter().filter(|mark| !heads.iter().any(|head| mark.matches(head)))
    }

    /// Replaces the mark of the same log.
    pub fn put(&mut self, mark: Mark, head: &[u8]) {
        self.marks.retain(|known| !known.matches(head));
        self.marks.push(mark);
        let above = self.marks.len().saturating_sub(MOST);
        self.marks.drain(..above);
    }
}

/// Skips bytes that were read before. `None` if they are gone, so that the log must be read from
/// its beginning.
///
/// # Errors
///
/// If it cannot be read.
pub fn pass_over(input: &mut Input, state: &State) -> io::Result<Option<Mark>> {
    let Some(mark) = state.find_mark(&input.head).cloned() else { return Ok(None) };
    Ok(input.skip(mark.offset)?.then_some(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_known_by_what_it_begins_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut state = State::load(&path).unwrap();
        assert_eq!(Mark::new(Path::new("a"), b"abc", 0, 0, &Context::default()), None);
        let mark = Mark::new(Path::new("a"), b"abcdef", 4, 1, &Context::default()).unwrap();
        state.put(mark.clone(), b"abcdef");
        state.save(&path).unwrap();
        let again = State::load(&path).unwrap();
        assert_eq!(again.find_mark(b"abcdxyz"), Some(&mark));
        assert_eq!((again.find_mark(b"abc"), again.find_mark(b"xbcdef")), (None, None));
        assert!(!std::fs::read_to_string(&path).unwrap().contains("abcd"));
        std::fs::write(&path, "{}").unwrap();
        assert!(State::load(&path).unwrap_err().to_string().contains("not a state"));
    }
}
