//! A file to import: its name, and its first bytes, which show its kind.

use std::io::Read;

use super::super::slips;
use super::{LARGEST_BYTES, folder, is_stream, text};
use crate::failure::Failure;
use holdup_recording::files;

/// A file whose first bytes have been read, because they show its kind.
pub(super) struct InputFile {
    /// The name without its directory; in a folder, its place there.
    pub(super) name: String,
    /// The name for messages.
    pub(super) shown: String,
    pub(super) head: Vec<u8>,
    pub(super) rest: Box<dyn Read + Send>,
    /// Whether it was found in a folder.
    pub(super) is_listed: bool,
    /// When it was changed last, nanoseconds since the epoch.
    pub(super) modified_at: Option<i64>,
    /// When the paste was made that it was cut out of.
    pub(super) pasted_at: Option<i64>,
}

/// Bytes that show the kind of a file: some lines of a log.
const HEAD_BYTES: u64 = 32 << 10;
/// Bytes that show the kind of a JSON document, whose later keys may be any.
pub(super) const START_BYTES: usize = 64;

impl InputFile {
    pub(super) fn start(&self) -> &[u8] {
        &self.head[..self.head.len().min(START_BYTES)]
    }

    pub(super) fn new(found: folder::FoundFile) -> Result<Self, Failure> {
        let folder::FoundFile { path, name } = found;
        let (path, is_listed) = (path.as_path(), name.is_some());
        let is_stream = is_stream(path);
        let own = match path.file_name() {
            Some(name) if !is_stream => name.to_string_lossy().into_owned(),
            _ => "stdin".to_owned(),
        };
        let name = name.unwrap_or(own);
        let shown = if is_stream { "standard input".to_owned() } else { path.display().to_string() };
        let unreadable = |e: std::io::Error| slips::to_import(path, &e);
        let mut rest: Box<dyn Read + Send> =
            if is_stream { Box::new(std::io::stdin()) } else { Box::new(files::open(path).map_err(unreadable)?) };
        let mut head = Vec::new();
        rest.by_ref().take(HEAD_BYTES).read_to_end(&mut head).map_err(unreadable)?;
        let modified_at = if is_stream { None } else { text::modified_at(path) };
        Ok(Self { name, shown, head, rest, is_listed, modified_at, pasted_at: None })
    }

    /// Reads on until so many bytes have been read in all, or the file ends.
    pub(super) fn read_to(&mut self, length: usize) -> Result<(), Failure> {
        let more = length.saturating_sub(self.head.len()) as u64;
        let read = self.rest.by_ref().take(more).read_to_end(&mut self.head);
        read.map(drop).map_err(|e| Failure::Unusable(format!("{}: {e}", self.shown)))
    }

    /// The whole content. If it is too large, the error says which `way` there is.
    pub(super) fn whole(mut self, way: &str) -> Result<Vec<u8>, Failure> {
        self.read_to(LARGEST_BYTES + 1)?;
        if self.head.len() > LARGEST_BYTES {
            return Err(Failure::Unusable(format!("{}: more than {LARGEST_BYTES} bytes; {way}", self.shown)));
        }
        Ok(self.head)
    }
}
