//! A reader that fails halfway: a panic of it is an error of its file, and its source counts as failed.
//! [`Writer::end_early`](super::writer::Writer::end_early) keeps what it recorded before that.

use std::panic::{AssertUnwindSafe, catch_unwind};

use holdup_recording::{Coverage, CoverageState};

use crate::failure::Failure;
use crate::recorded::coverage;

/// How a message goes on if a part was recorded.
pub(super) const KEPT: &str = "; what was read before that is kept in ";

/// Why a file of this name was not read to its end.
const PANICKED: &str = "its reader panicked, see above; please report this with the file";

/// Reads `file`. A panic of its reader is an error of this file.
pub(super) fn reading<T>(file: &str, read: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    caught(file, read).unwrap_or_else(Err)
}

/// The same, with a panic apart from errors of the file, which it is safe to go on after.
pub(super) fn caught<T>(file: &str, read: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|_| Failure::Unusable(format!("{file}: {PANICKED}")))
}

/// The coverage of a source that failed because of `failure`.
pub(super) fn failed(source: &str, failure: &Failure, reads_total: u64) -> Coverage {
    Coverage { state: CoverageState::Failed, ..coverage(source, &[failure.to_string()], reads_total, 1) }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::path::Path;

    use holdup_recording::{Recording, RunState};

    use super::super::{InputFile, Report, packets, text, traces};
    use super::*;

    /// Bytes, and then a panic.
    struct Broken<'a>(&'a [u8]);

    impl Read for Broken<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            assert!(!self.0.is_empty(), "on purpose");
            self.0.read(buffer)
        }
    }

    fn file(name: &str, head: &[u8], rest: &'static [u8]) -> InputFile {
        InputFile {
            name: name.to_owned(),
            shown: name.to_owned(),
            head: head.to_vec(),
            rest: Box::new(Broken(rest)),
            is_listed: false,
            modified_at: Some(0),
            pasted_at: None,
        }
    }

    /// The recording is interrupted, its source failed, and the exit code is 2.
    fn is_said(dir: &Path, result: Result<Report, Failure>, rows: impl Fn(&Recording) -> usize) {
        let why = match result {
            Ok(report) => report.failed.expect("exit code 2"),
            Err(failure) => failure.to_string(),
        };
        assert!(why.contains("its reader panicked") && why.contains("kept in"), "{why}");
        let recording = Recording::open(dir).unwrap();
        assert_eq!(recording.manifest.state, RunState::Interrupted);
        assert!(recording.manifest.coverage.iter().any(|part| part.state == CoverageState::Failed));
        assert!(rows(&recording) > 0);
    }

    const SPAN: &str = r#"{"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"GET /","kind":2,"startTimeUnixNano":"1795687872000000000","endTimeUnixNano":"1795687872100000000"}]}]}]}
"#;

    #[test]
    fn a_reader_of_traces_that_panics_is_in_the_recording_and_in_the_exit_code() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("r");
        let files = vec![file("t.json", SPAN.as_bytes(), SPAN.as_bytes())];
        let result = traces::import(files, &place, None);
        is_said(&place, result, |recording| recording.tables.spans.rows.len());
    }

    #[test]
    fn a_reader_of_text_that_panics_leaves_the_other_files() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("r");
        let mut good = file("a.txt", b" 10:11:12 up 3 days,  2 users,  load average: 1.00, 2.00, 3.00\n", b"");
        good.rest = Box::new(std::io::empty());
        let files = vec![good, file("b.txt", b"x", b"y")];
        let result = text::import(files, Some(&place), None, None);
        is_said(&place, result, |recording| recording.tables.samples.rows.len());
    }

    #[test]
    fn a_reader_of_packets_that_panics_before_the_first_row_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("r");
        let head = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
        let file = file("db.pcap", &head, b"");
        let result = packets::import(file, &place, &[]);
        let Err(Failure::Unusable(why)) = result else { panic!("exit code 2") };
        assert!(why.contains("db.pcap: its reader panicked") && !why.contains("kept in"), "{why}");
        assert!(!place.exists());
    }
}
