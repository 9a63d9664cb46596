//! Other tools' files -> holdup's own: scenarios from JMeter's plans, browsers' HAR files and OpenAPI descriptions, and
//! series from what Amazon's command line prints ([`aws`]). Pure: bytes in, the text of a scenario and a list of what it
//! does not say out; no file is opened, no name resolved. What could not be carried over is never silently dropped: it is a [`Note`].

#![forbid(unsafe_code)]

pub mod aws;
mod content;
mod detect;
mod document;
mod error;
mod har;
mod jmx;
mod json_path;
mod load;
mod moment;
mod note;
mod openapi;
mod pattern;
mod scenario;
mod secret;
mod target;
mod template;
mod write;
mod xml;
mod yaml;

pub use detect::Source;
pub use error::ImportError;
pub use note::{Kind, Note};

/// Largest file that is read, bytes.
pub const LARGEST_BYTES: usize = 100 << 20;

/// What the file does not say, or what is to be said instead.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where requests go, `http://host:port`, instead of where the file says.
    pub base_url: Option<String>,
    /// Of a HAR: the host whose requests are taken; without it the one with most requests.
    pub host: Option<String>,
    /// Of a HAR: take images, styles, scripts and fonts, too.
    pub static_files: bool,
    /// Of a JMeter plan: the only thread group to take.
    pub thread_group: Option<String>,
}

/// What came of a file.
#[derive(Clone, Debug)]
pub struct Imported {
    /// What the file was taken for.
    pub source: Source,
    /// The scenario, with the notes as comments at its top.
    pub yaml: String,
    /// What was not carried over, or differs, in the order of the file.
    pub notes: Vec<Note>,
    /// Requests in the scenario (places where one is sent, not how often).
    pub requests: usize,
    /// Elements of the file that were switched off there, and so were left out.
    pub disabled: usize,
}

/// Reads `bytes`, the contents of `file` (its name, for messages), as `source`, or as what it looks like.
///
/// # Errors
/// If the file is not what it is taken for, is too large or too deep, or says nothing that could be sent.
pub fn import(bytes: &[u8], file: &str, source: Option<Source>, options: &Options) -> Result<Imported, ImportError> {
    if bytes.len() > LARGEST_BYTES {
        let why = format!("{} bytes are too many: at most {LARGEST_BYTES}", bytes.len());
        return Err(ImportError::new(file, 0, why));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let line = 1 + bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count();
        ImportError::new(file, line, "this is not UTF-8; save the file in that encoding")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let source = match source {
        Some(source) => source,
        None => Source::of(text, file).ok_or_else(|| {
            let why =
                "neither a JMeter plan nor a HAR nor an OpenAPI description; say which with --from jmx|har|openapi";
            ImportError::new(file, 1, why)
        })?,
    };
    let made = match source {
        Source::Jmx => jmx::read(text, file, options)?,
        Source::Har => har::read(text, file, options)?,
        Source::OpenApi => openapi::read(text, file, options)?,
    };
    Ok(Imported {
        source,
        yaml: write::write(&made.scenario, &made.notes, file, source, made.disabled),
        requests: made.scenario.requests(),
        notes: made.notes,
        disabled: made.disabled,
    })
}

/// What an importer makes.
struct Made {
    scenario: scenario::Scenario,
    notes: Vec<Note>,
    disabled: usize,
}
