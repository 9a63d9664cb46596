//! Converts other tools' files. JMeter's plans, browsers' HAR files and OpenAPI descriptions become
//! scenarios. The output of Amazon's command line becomes series ([`aws`]), and so do
//! traces in files ([`traces`]) and what a mongod keeps of itself ([`ftdc`]). Outputs of other tools, as people paste them,
//! become rows of a recording ([`text`]). Pure: it opens no file and resolves no name. Input are
//! bytes; output are the text of a scenario and a list of everything that it does not contain.
//! Nothing is dropped silently: each loss is a [`Note`].

#![forbid(unsafe_code)]

pub mod aws;
pub mod clocks;
pub mod cloud;
mod content;
mod detect;
mod document;
mod error;
pub mod ftdc;
mod har;
mod jmx;
mod json_path;
mod load;
mod moment;
mod nearest;
mod note;
mod openapi;
mod pattern;
mod scenario;
mod secret;
mod target;
mod template;
pub mod text;
pub mod traces;
mod used;
mod write;
mod xml;
mod yaml;

pub use detect::Source;
pub use error::ImportError;
pub use nearest::{Nearest, nearest};
pub use note::{Kind, Note};

/// Largest file that is read, bytes.
pub const LARGEST_BYTES: usize = 100 << 20;

/// Facts that the file lacks, or that replace those of the file.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Target of the requests, `http://host:port`, instead of the file's.
    pub base_url: Option<String>,
    /// For a HAR file: the host whose requests are taken; without it the one with the most
    /// requests.
    pub host: Option<String>,
    /// For a HAR file: also take images, styles, scripts and fonts.
    pub static_files: bool,
    /// For a JMeter plan: the only thread group to take.
    pub thread_group: Option<String>,
}

/// The result for one file.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The kind of file that it was taken for.
    pub source: Source,
    /// The scenario, with the notes as comments at its top.
    pub yaml: String,
    /// Differences and losses, in the order of the file.
    pub notes: Vec<Note>,
    /// Requests in the scenario (places that send one, not how often).
    pub requests: usize,
    /// Elements that are disabled in the file, and so were left out.
    pub disabled: usize,
}

/// Reads `bytes`, the contents of `file` (its name, for messages), as `source`, or as the kind that
/// it looks like.
///
/// # Errors
///
/// If the file has another format, is too large or too deep, or contains no request that can be
/// sent.
pub fn import(bytes: &[u8], file: &str, source: Option<Source>, options: &Options) -> Result<Imported, ImportError> {
    if bytes.len() > LARGEST_BYTES {
        let why = format!("it has {} bytes; at most {LARGEST_BYTES} are read", bytes.len());
        return Err(ImportError::new(file, 0, why));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let line = 1 + bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count();
        ImportError::new(file, line, "this is not UTF-8; save the file in that encoding")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let source = match source {
        Some(source) => source,
        None => Source::detect(text, file).ok_or_else(|| {
            let why =
                "neither a JMeter plan nor a HAR file nor an OpenAPI description; give its kind with --from jmx|har|openapi";
            ImportError::new(file, 1, why)
        })?,
    };
    let conversion = match source {
        Source::Jmx => jmx::read(text, file, options)?,
        Source::Har => har::read(text, file, options)?,
        Source::OpenApi => openapi::read(text, file, options)?,
    };
    Ok(Imported {
        source,
        yaml: write::write(&conversion.scenario, &conversion.notes, file, source, conversion.disabled),
        requests: conversion.scenario.requests(),
        notes: conversion.notes,
        disabled: conversion.disabled,
    })
}

/// The result of an importer.
struct Conversion {
    scenario: scenario::Scenario,
    notes: Vec<Note>,
    disabled: usize,
}
