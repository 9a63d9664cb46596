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
    /// Of an unknown kind: read with the text of a folder, or refused by name.
    Unknown,
}

/// What the user said about the files.
#[derive(Clone, Copy)]
pub(super) struct Hints<'a> {
    pub columns: Option<&'a Columns>,
    pub log_format: Option<&'a str>,
}

impl FileKind {
    fn of(file: &mut InputFile, hints: Hints<'_>) -> Result<Self, Failure> {
        if is_capture(&file.head) {
            return Ok(Self::Capture);
        }
        if ftdc::is_one(&file.head) {
            return Ok(Self::Ftdc);
        }
        if hints.log_format.is_none() && statement_log::is_one(&file.head) {
            return Ok(Self::StatementLog);
        }
        // In a folder, a file may be anything; what standard tools print is the likeliest.
        if file.is_listed && text::is_one(file)? {
            return Ok(Self::Text);
        }
        let (columns, log_format) = match file.is_listed {
            true => (None, None),
            false => (hints.columns, hints.log_format),
        };
        Ok(match () {
            () if traces::kind(&file.head, columns).is_some() => Self::Traces,
            () if log_format.is_some() || access::is_one(&file.head) => Self::AccessLog,
            () if !file.is_listed && text::is_one(file)? => Self::Text,
            () if kubernetes::is_one(file.start()) && (!file.is_listed || kubernetes::has_rows(&file.head)) => {
                Self::Kubernetes
            }
            () if aws::is_json(&file.head) => Self::Cloud,
            () => Self::Unknown,
        })
    }
}

/// The files by kind. Unknown ones join the text if there is any, or if a folder holds them.
pub(super) fn by_kind(files: Vec<InputFile>, hints: Hints<'_>) -> Result<Vec<(FileKind, Vec<InputFile>)>, Failure> {
    let mut groups: Vec<(FileKind, Vec<InputFile>)> = Vec::new();
    let mut put = |kind: FileKind, file: InputFile| match groups.iter_mut().find(|(known, _)| *known == kind) {
        // Each capture is a recording of its own connections.
        Some((_, group)) if kind != FileKind::Capture => group.push(file),
        _ => groups.push((kind, vec![file])),
    };
    let mut unknown = Vec::new();
    let (mut has_text, mut has_ftdc) = (false, false);
    for mut file in files {
        let kind = FileKind::of(&mut file, hints)?;
        has_text |= kind == FileKind::Text;
        has_ftdc |= kind == FileKind::Ftdc;
        match kind {
            FileKind::Unknown => unknown.push(file),
            // JSON of anything else in a folder is left out by name.
            FileKind::Cloud if file.is_listed && !aws::is_known(&file.head) => unknown.push(file),
            kind => put(kind, file),
        }
    }
    for file in unknown {
        let kind = match file.is_listed {
            true if has_ftdc && ftdc::is_named(&file.name) => FileKind::Ftdc,
            true => FileKind::Text,
            false if has_text => FileKind::Text,
            false => FileKind::Unknown,
        };
        put(kind, file);
    }
    groups.sort_by_key(|(kind, _)| *kind);
    Ok(groups)
}

/// Whether the file at `path` is a folder that holds a recording.
pub(super) fn is_recording(path: &std::path::Path) -> bool {
    path.is_dir() && files::open(&path.join(holdup_recording::manifest::MANIFEST)).is_ok()
}
