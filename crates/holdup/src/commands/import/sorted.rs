//! The kind of each file, by its first bytes. Files of one kind are read together.

use holdup_recording::files;

use super::{InputFile, access, aws, ftdc, is_capture, kubernetes, statement_log, text, traces};
use crate::failure::Failure;
use holdup_import::traces::Columns;

/// A kind of file, in the order in which they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FileKind {
    Capture,
    Ftdc,
    Traces,
    AccessLog,
    StatementLog,
    Kubernetes,
    Cloud,
    Text,
}

/// Bytes in which a JSON document names what it is: descriptions of instances are long.
const JSON_BYTES: usize = 1 << 20;

/// What the user said about the files.
#[derive(Clone, Copy)]
pub(super) struct Hints<'a> {
    pub columns: Option<&'a Columns>,
    pub log_format: Option<&'a str>,
}

impl FileKind {
    /// Whether such files time requests, so that no user's word is needed.
    pub(super) fn times_requests(self) -> bool {
        matches!(self, Self::Capture | Self::Traces | Self::AccessLog)
    }

    /// The kind of a file; none if no reader knows it.
    fn of(file: &mut InputFile, hints: Hints<'_>) -> Result<Option<Self>, Failure> {
        if is_capture(&file.head) {
            return Ok(Some(Self::Capture));
        }
        if ftdc::is_one(&file.head) {
            return Ok(Some(Self::Ftdc));
        }
        if hints.log_format.is_none() && statement_log::is_one(&file.head) {
            return Ok(Some(Self::StatementLog));
        }
        // In a folder, a file may be anything; what standard tools print is the likeliest.
        if file.is_listed && text::is_one(file)? {
            return Ok(Some(Self::Text));
        }
        let (columns, log_format) = match file.is_listed {
            true => (None, None),
            false => (hints.columns, hints.log_format),
        };
        Ok(match () {
            () if traces::kind(&file.head, columns).is_some() => Some(Self::Traces),
            () if log_format.is_some() || access::is_one(&file.head) => Some(Self::AccessLog),
            // A document of a cluster has sentences in it that a program prints, too.
            () if !file.is_listed && kubernetes::is_one(file.start()) && kubernetes::has_rows(&file.head) => {
                Some(Self::Kubernetes)
            }
            () if !file.is_listed && text::is_one(file)? => Some(Self::Text),
            () if kubernetes::is_one(file.start()) && (!file.is_listed || kubernetes::has_rows(&file.head)) => {
                Some(Self::Kubernetes)
            }
            () if aws::is_json(&file.head) => {
                file.read_to(JSON_BYTES)?;
                aws::is_known(&file.head).then_some(Self::Cloud)
            }
            () => None,
        })
    }
}

/// The files by kind. Those of no known kind join the text, whose reader says what they look like.
pub(super) fn by_kind(files: Vec<InputFile>, hints: Hints<'_>) -> Result<Vec<(FileKind, Vec<InputFile>)>, Failure> {
    let mut groups: Vec<(FileKind, Vec<InputFile>)> = Vec::new();
    let mut put = |kind: FileKind, file: InputFile| match groups.iter_mut().find(|(known, _)| *known == kind) {
        // Each capture is a recording of its own connections.
        Some((_, group)) if kind != FileKind::Capture => group.push(file),
        _ => groups.push((kind, vec![file])),
    };
    let (mut unknown, mut has_ftdc) = (Vec::new(), false);
    for mut file in files {
        match FileKind::of(&mut file, hints)? {
            Some(kind) => {
                has_ftdc |= kind == FileKind::Ftdc;
                put(kind, file);
            }
            None => unknown.push(file),
        }
    }
    for file in unknown {
        // `metrics.interim` is empty at times, and the beginning of a file may be damaged.
        let kind = if has_ftdc && ftdc::is_named(&file.name) { FileKind::Ftdc } else { FileKind::Text };
        put(kind, file);
    }
    groups.sort_by_key(|(kind, _)| *kind);
    Ok(groups)
}

/// Whether the file at `path` is a folder that holds a recording.
pub(super) fn is_recording(path: &std::path::Path) -> bool {
    path.is_dir() && files::open(&path.join(holdup_recording::manifest::MANIFEST)).is_ok()
}
