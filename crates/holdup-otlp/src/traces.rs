//! Parses bodies of `/v1/traces` span by span: `ExportTraceServiceRequest` of OTLP 1.x. Field numbers are
//! those of `opentelemetry/proto/trace/v1/trace.proto`. Of span events only an
//! exception counts; links and other fields are skipped.

use std::borrow::Cow;

use crate::message::{Field, Node, into_text, read};
use crate::spans::ParsedSpan;
use crate::{Encoding, Malformed};

const KIND_NAMES: [&str; 6] = [
    "SPAN_KIND_UNSPECIFIED",
    "SPAN_KIND_INTERNAL",
    "SPAN_KIND_SERVER",
    "SPAN_KIND_CLIENT",
    "SPAN_KIND_PRODUCER",
    "SPAN_KIND_CONSUMER",
];
const STATUS_NAMES: [&str; 3] = ["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"];

const SPAN: [Field; 12] = [
    (1, "traceId"),
    (2, "spanId"),
    (3, "traceState"),
    (4, "parentSpanId"),
    (5, "name"),
    (6, "kind"),
    (7, "startTimeUnixNano"),
    (8, "endTimeUnixNano"),
    (9, "attributes"),
    (11, "events"),
    (15, "status"),
    (16, "flags"),
];

/// Receives each span, with the service's name.
pub type Listener<'l> = &'l mut dyn FnMut(&str, &ParsedSpan<'_>);

/// Calls `listener` for every span in `body`.
///
/// # Errors
/// If the body is malformed; the listener may have received part of it.
pub fn each_span(encoding: Encoding, body: &[u8], listener: Listener<'_>) -> Result<(), Malformed> {
    read(encoding, body, |node| {
        node.each_at(&[(1, "resourceSpans")], &mut |mut node| {
            let mut service = Cow::Borrowed("");
            node.ahead(|node| {
                node.resource(|key, value| {
                    if key == "service.name" {
                        service = into_text(value);
                    }
                })
            })?;
            node.each_at(&[(2, "scopeSpans"), (2, "spans")], &mut |node| {
                listener(&service, &span(node)?);
                Ok(())
            })
        })
    })
}

fn span<'a>(node: Node<'_, 'a>) -> Result<ParsedSpan<'a>, Malformed> {
    let mut span = ParsedSpan::default();
    node.message(&SPAN, |name, node| {
        match name {
            "traceId" => span.trace_id = node.id()?,
            "spanId" => span.span_id = node.id()?,
            "parentSpanId" => span.parent_id = node.id()?,
            "traceState" => span.trace_state = node.text()?,
            "name" => span.name = node.text()?,
            "kind" => span.kind = node.constant(&KIND_NAMES)?,
            "startTimeUnixNano" => span.start_ns = node.number()?,
            "endTimeUnixNano" => span.end_ns = node.number()?,
            "flags" => span.flags = node.number()?,
            // OpenTelemetry's conventions, "Exceptions".
            "events" => node.items(|node| {
                node.message(&[(2, "name")], |_, name| {
                    span.has_exception |= name.text()? == "exception";
                    Ok(())
                })
            })?,
            "attributes" => {
                let attributes = &mut span.attributes;
                node.items(|node| node.key_value(|key, value| attributes.put(key, value)))?;
            }
            _ => node.message(&[(3, "code")], |_, node| node.constant(&STATUS_NAMES).map(|code| span.status = code))?,
        }
        Ok(())
    })?;
    Ok(span)
}

#[cfg(test)]
#[path = "traces_tests.rs"]
mod tests;
