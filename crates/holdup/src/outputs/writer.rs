//! Writes text to a file or to stdout from its own thread, so that a slow reader of a pipe delays
//! neither the load nor another output. It reports the first error and then writes nothing more.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use holdup_recording::priority::give_way;

use super::request::Destination;
use crate::ending;
use crate::terminal::visible::EscapingWriter;

/// A destination opened for writing; its contents are still untouched.
pub struct OpenDestination {
    place: Destination,
    file: Option<File>,
    /// The file is new, so it is removed if nothing is written.
    is_new: bool,
}

impl OpenDestination {
    /// Checks that `place` can be written.
    ///
    /// # Errors
    /// If it cannot; the message names it.
    pub fn open(place: &Destination) -> Result<Self, String> {
        let Destination::File(path) = place else {
            return Ok(Self { place: place.clone(), file: None, is_new: false });
        };
        let is_new = !path.exists();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        Ok(Self { place: place.clone(), file: Some(file), is_new })
    }

    /// Its name in messages.
    pub fn name(&self) -> String {
        match &self.place {
            Destination::Stdout => "stdout".to_owned(),
            Destination::File(path) => path.display().to_string(),
        }
    }

    /// Begins to write, which truncates the file.
    fn begin(mut self) -> Box<dyn Write + Send> {
        self.is_new = false;
        match self.file.take() {
            Some(file) => {
                // A pipe or a device has no length to set.
                let _ = file.set_len(0);
                Box::new(file)
            }
            None => Box::new(EscapingWriter::new(std::io::stdout())),
        }
    }

    /// Writes `bytes` as the whole content.
    ///
    /// # Errors
    /// If the destination fails, or is not read and the command should end; the message names it.
    pub fn write(self, bytes: Vec<u8>) -> Result<(), String> {
        let name = self.name();
        let failed = |why: &dyn std::fmt::Display| format!("failed to write {name}: {why}");
        let mut out = self.begin();
        let write = move || out.write_all(&bytes).and_then(|()| out.flush());
        let thread = std::thread::Builder::new().name("output".to_owned()).spawn(write).map_err(|e| failed(&e))?;
        ending::joined(thread).unwrap_or_else(|| Err(std::io::Error::other("it is not read"))).map_err(|e| failed(&e))
    }
}

impl Drop for OpenDestination {
    fn drop(&mut self) {
        if let (true, Destination::File(path)) = (self.is_new, &self.place) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Writes pieces of text as they come.
pub struct Writer {
    queue: Option<Sender<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Begins to write to `opened`. The first error goes to `notes`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn begin(opened: OpenDestination, notes: Sender<String>) -> std::io::Result<Self> {
        let (queue, pieces) = channel();
        let name = opened.name();
        let out = opened.begin();
        let thread = std::thread::Builder::new().name("output".to_owned());
        let thread = thread.spawn(move || write(out, &pieces, &name, &notes))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// The queue of pieces.
    pub fn queue(&self) -> Option<Sender<String>> {
        self.queue.clone()
    }

    /// Writes a last piece and waits until all is written.
    pub fn finish(mut self, last: Option<String>) {
        if let (Some(queue), Some(last)) = (&self.queue, last) {
            let _ = queue.send(last);
        }
        self.close();
    }

    fn close(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            ending::joined(thread);
        }
    }
}

/// If a run ends in an error, the queued pieces are still written.
impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

fn write(mut out: Box<dyn Write + Send>, pieces: &Receiver<String>, name: &str, notes: &Sender<String>) {
    give_way();
    for piece in pieces {
        if let Err(error) = out.write_all(piece.as_bytes()).and_then(|()| out.flush()) {
            let _ =
                notes.send(format!("failed to write {name}: {error}; nothing more is written there; the load goes on"));
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_file_stays_until_the_first_write() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        std::fs::write(&old, "a long text that was there").unwrap();
        for path in [&old, &new] {
            drop(OpenDestination::open(&Destination::File(path.clone())).unwrap());
        }
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "a long text that was there");
        assert!(!new.exists());
        for path in [&old, &new] {
            let (notes, said) = channel();
            let writer =
                Writer::begin(OpenDestination::open(&Destination::File(path.clone())).unwrap(), notes).unwrap();
            writer.queue().unwrap().send("one\n".to_owned()).unwrap();
            writer.finish(Some("two\n".to_owned()));
            assert_eq!(std::fs::read_to_string(path).unwrap(), "one\ntwo\n");
            assert_eq!(said.try_iter().count(), 0);
        }
        let why = OpenDestination::open(&Destination::File(dir.path().join("no/such"))).err().unwrap();
        assert!(why.contains("cannot write") && why.contains("no/such"), "{why}");
    }

    #[test]
    fn an_error_is_said_once() {
        let (notes, said) = channel();
        let writer =
            Writer::begin(OpenDestination::open(&Destination::File("/dev/full".into())).unwrap(), notes).unwrap();
        let queue = writer.queue().unwrap();
        for _ in 0..5 {
            let _ = queue.send("text\n".to_owned());
        }
        drop(queue);
        writer.finish(None);
        let said: Vec<String> = said.try_iter().collect();
        assert!(said.len() == 1 && said[0].contains("/dev/full") && said[0].contains("No space"), "{said:?}");
    }
}
