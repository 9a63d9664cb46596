//! Traces in files -> bodies of OpenTelemetry's protocol in JSON, which the receiver's own reader
//! turns into rows: OTLP JSON as collectors write it, Jaeger's and Zipkin's JSON, and CSV with a map
//! of its columns. One document is in memory at a time.

mod csv_spans;
mod jaeger;
pub mod series;
mod span;
mod zipkin;

use std::io::Read;

use serde_json::Value;

use crate::error::ImportError;

pub use csv_spans::Columns;
use span::Body;

/// Largest document in bytes; a file of many lines may be of any size.
const DOCUMENT_BYTES_MAX: u64 = 256 << 20;

/// What the file was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// `ExportTraceServiceRequest` in JSON.
    Otlp,
    /// Jaeger's API and its UI.
    Jaeger,
    /// Zipkin's API, version 2.
    Zipkin,
    /// Rows with a header.
    Csv,
    /// Series beside the traces, as rows with a header: see [`series`].
    Series,
}

impl TraceKind {
    /// The kind in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Otlp => "OTLP JSON",
            Self::Jaeger => "Jaeger JSON",
            Self::Zipkin => "Zipkin JSON",
            Self::Csv => "CSV of spans",
            Self::Series => "CSV of series",
        }
    }

    /// The kind of a file that begins with `head`; none if it has no traces.
    pub fn detect(head: &str) -> Option<Self> {
        let head = head.trim_start_matches('\u{feff}').trim_start();
        if !head.starts_with(['{', '[']) {
            let names: Vec<&str> = head.lines().next()?.split(',').map(|name| name.trim().trim_matches('"')).collect();
            let is_series = || series::detect(&names).map(|_| Self::Series);
            return Columns::detect(&names).is_ok().then_some(Self::Csv).or_else(is_series);
        }
        let has = |key: &str| head.contains(&format!("\"{key}\""));
        match () {
            () if has("resourceSpans") || has("batches") && has("scopeSpans") => Some(Self::Otlp),
            () if has("traceID") && (has("spans") || has("spanID")) => Some(Self::Jaeger),
            () if has("traceId") && (has("id") || has("localEndpoint")) && !has("resource") => Some(Self::Zipkin),
            () => None,
        }
    }
}

/// Reads a file, and calls `put` with bodies of spans. Returns the facts that it lacks, in words.
///
/// # Errors
/// If it is another kind of file, is cut off, or its first document is not understood.
pub fn read(
    kind: TraceKind,
    input: impl Read,
    file: &str,
    columns: Option<&Columns>,
    put: &mut dyn FnMut(&[u8]),
) -> Result<Vec<String>, ImportError> {
    let mut body = Body::new(put);
    if kind == TraceKind::Csv {
        let lacking = csv_spans::read(input, file, columns, &mut body)?;
        body.finish();
        return Ok(lacking);
    }
    let bounded = Bounded { input, left: DOCUMENT_BYTES_MAX };
    let mut reader = std::io::BufReader::with_capacity(1 << 16, bounded);
    let mut number = 0;
    loop {
        number += 1;
        let mut documents = serde_json::Deserializer::from_reader(&mut reader).into_iter::<Value>();
        let document = match documents.next() {
            None => break,
            Some(Ok(document)) => document,
            Some(Err(e)) => {
                let why = if e.is_eof() { "it ends inside".to_owned() } else { e.to_string() };
                let why = format!("document {number} is not JSON that can be read: {why}");
                return Err(ImportError::new(file, e.line(), why));
            }
        };
        drop(documents);
        reader.get_mut().left = DOCUMENT_BYTES_MAX;
        take(kind, document, &mut body)
            .map_err(|why| ImportError::new(file, 0, format!("document {number}: {why}")))?;
    }
    body.finish();
    Ok(Vec::new())
}

/// Reads one document, or each element of an array.
fn take(kind: TraceKind, document: Value, body: &mut Body<'_>) -> Result<(), String> {
    if let Value::Array(all) = document {
        for one in all {
            take(kind, one, body)?;
        }
        return Ok(());
    }
    match kind {
        TraceKind::Otlp => otlp(document, body),
        TraceKind::Jaeger => jaeger::read(&document, body),
        TraceKind::Zipkin => {
            body.add(zipkin::span(&document)?);
            Ok(())
        }
        TraceKind::Csv | TraceKind::Series => Ok(()),
    }
}

/// A body as it is; Tempo's answers call its spans `batches`.
fn otlp(mut document: Value, body: &mut Body<'_>) -> Result<(), String> {
    if let Some(trace) = document.get_mut("trace") {
        document = trace.take();
    }
    let Some(fields) = document.as_object_mut() else { return Err("it is not an object".to_owned()) };
    if let Some(batches) = fields.remove("batches") {
        fields.insert("resourceSpans".to_owned(), batches);
    }
    // Collectors write metrics and logs to the same file, too.
    if fields.contains_key("resourceSpans") {
        body.whole(&document);
    } else if !fields.contains_key("resourceMetrics") && !fields.contains_key("resourceLogs") {
        return Err("it has no resourceSpans".to_owned());
    }
    Ok(())
}

/// Ends a document that is too large.
struct Bounded<R> {
    input: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            std::io::Error::other(format!(
                "it is larger than {} MiB; export it in parts, or one document a line",
                DOCUMENT_BYTES_MAX >> 20
            ))
        })?;
        Ok(count)
    }
}

#[cfg(test)]
#[path = "traces/tests.rs"]
mod tests;
