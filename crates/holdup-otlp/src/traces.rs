//! Parses bodies of `/v1/traces` span by span: `ExportTraceServiceRequest` of OTLP 1.x as protobuf
//! and as JSON (hex ids). Field numbers are those of `opentelemetry/proto/trace/v1/trace.proto`.
//! Links, span events and other fields are skipped.

use std::borrow::Cow;

use crate::attributes::{Attributes, Value};
use crate::json::Json;
use crate::protobuf::{Fields, Wire};
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

/// Receives each span, with the service's name.
pub type Listener<'l> = &'l mut dyn FnMut(&str, &ParsedSpan<'_>);

/// Calls `listener` for every span in `body`.
///
/// # Errors
/// If the body is malformed; the listener may have received part of it.
pub fn each_span(encoding: Encoding, body: &[u8], listener: Listener<'_>) -> Result<(), Malformed> {
    match encoding {
        Encoding::Protobuf => Fields(body).each(|number, value| match (number, value) {
            (1, Wire::Bytes(resource_spans)) => read_resource(resource_spans, listener),
            _ => Ok(()),
        }),
        Encoding::Json => {
            let text = std::str::from_utf8(body).map_err(|_| Malformed("the JSON is not UTF-8"))?;
            let mut json = Json::new(text);
            json.object(|json, key| match key {
                "resourceSpans" => json.array(|json| read_resource_json(json, listener)),
                _ => json.skip(),
            })?;
            json.end()
        }
    }
}

fn read_resource(bytes: &[u8], listener: Listener<'_>) -> Result<(), Malformed> {
    // Fields may come in any order, and every span needs its service: so read twice.
    let mut service = Cow::Borrowed("");
    Fields(bytes).each(|number, value| match (number, value) {
        (1, Wire::Bytes(resource)) => Fields(resource).each(|number, value| match (number, value) {
            (1, Wire::Bytes(attribute)) => {
                key_value(attribute, |key| key == "service.name", |_, value| service = into_text(value))
            }
            _ => Ok(()),
        }),
        _ => Ok(()),
    })?;
    Fields(bytes).each(|number, value| match (number, value) {
        (2, Wire::Bytes(scope_spans)) => Fields(scope_spans).each(|number, value| match (number, value) {
            (2, Wire::Bytes(bytes)) => {
                listener(&service, &span(bytes)?);
                Ok(())
            }
            _ => Ok(()),
        }),
        _ => Ok(()),
    })
}

fn span(bytes: &[u8]) -> Result<ParsedSpan<'_>, Malformed> {
    let mut span = ParsedSpan::default();
    Fields(bytes).each(|number, value| {
        match number {
            1 => span.trace_id = id(value),
            2 => span.span_id = id(value),
            3 => span.trace_state = value.text(),
            4 => span.parent_id = id(value),
            5 => span.name = value.text(),
            6 => span.kind = value.number(),
            7 => span.start_ns = value.number(),
            8 => span.end_ns = value.number(),
            9 => {
                let attributes = &mut span.attributes;
                key_value(value.bytes().unwrap_or_default(), Attributes::wants, |key, value| {
                    attributes.put(key, value)
                })?;
            }
            16 => span.flags = value.number(),
            15 => Fields(value.bytes().unwrap_or_default()).each(|number, value| {
                if number == 3 {
                    span.status = value.number();
                }
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(span)
}

/// An id of N bytes; none if it has another length, or is all zero, which means absent.
fn id<const N: usize>(value: Wire<'_>) -> Option<[u8; N]> {
    let id: [u8; N] = value.bytes()?.try_into().ok()?;
    (id != [0; N]).then_some(id)
}

/// Reads a `KeyValue` whose key is used and whose value is text, a number or a boolean.
///
/// # Errors
/// If it is malformed.
pub fn key_value<'a>(
    bytes: &'a [u8],
    wants: impl Fn(&str) -> bool,
    mut put: impl FnMut(&str, Value<'a>),
) -> Result<(), Malformed> {
    let (mut key, mut value) = (Cow::Borrowed(""), &[][..]);
    Fields(bytes).each(|number, field| {
        match number {
            1 => key = field.text(),
            2 => value = field.bytes().unwrap_or_default(),
            _ => {}
        }
        Ok(())
    })?;
    if !wants(&key) {
        return Ok(());
    }
    let mut found = None;
    Fields(value).each(|number, field| {
        match number {
            1 => found = Some(Value::Text(field.text())),
            2 => found = Some(Value::Flag(field.number() != 0)),
            3 => found = Some(Value::Whole(field.number() as i64)),
            4 => found = Some(Value::Double(field.double())),
            _ => {}
        }
        Ok(())
    })?;
    if let Some(found) = found {
        put(&key, found);
    }
    Ok(())
}

/// The text of a value, borrowed or converted.
pub fn into_text(value: Value<'_>) -> Cow<'_, str> {
    match value {
        Value::Text(text) => text,
        other => Cow::Owned(other.text().into_owned()),
    }
}

fn read_resource_json(json: &mut Json<'_>, listener: Listener<'_>) -> Result<(), Malformed> {
    let mut service = Cow::Borrowed("");
    let mut scopes = None;
    json.object(|json, key| match key {
        "resource" => json.object(|json, key| match key {
            "attributes" => json
                .array(|json| key_value_json(json, |key| key == "service.name", |_, value| service = into_text(value))),
            _ => json.skip(),
        }),
        "scopeSpans" => {
            scopes = Some(json.raw()?);
            Ok(())
        }
        _ => json.skip(),
    })?;
    let Some(mut scopes) = scopes else { return Ok(()) };
    scopes.array(|json| {
        json.object(|json, key| match key {
            "spans" => json.array(|json| {
                listener(&service, &span_json(json)?);
                Ok(())
            }),
            _ => json.skip(),
        })
    })
}

fn span_json<'a>(json: &mut Json<'a>) -> Result<ParsedSpan<'a>, Malformed> {
    let mut span = ParsedSpan::default();
    json.object(|json, key| {
        match key {
            "traceId" => span.trace_id = hex_id(&json.string()?),
            "spanId" => span.span_id = hex_id(&json.string()?),
            "parentSpanId" => span.parent_id = hex_id(&json.string()?),
            "traceState" => span.trace_state = json.string()?,
            "name" => span.name = json.string()?,
            "kind" => span.kind = json.constant(&KIND_NAMES)?,
            "startTimeUnixNano" => span.start_ns = json.whole()?,
            "endTimeUnixNano" => span.end_ns = json.whole()?,
            "flags" => span.flags = json.whole()?,
            "attributes" => {
                let attributes = &mut span.attributes;
                json.array(|json| key_value_json(json, Attributes::wants, |key, value| attributes.put(key, value)))?;
            }
            "status" => json.object(|json, key| match key {
                "code" => {
                    span.status = json.constant(&STATUS_NAMES)?;
                    Ok(())
                }
                _ => json.skip(),
            })?,
            _ => json.skip()?,
        }
        Ok(())
    })?;
    Ok(span)
}

/// The same as [`key_value`], for JSON.
///
/// # Errors
/// If it is malformed.
pub fn key_value_json<'a>(
    json: &mut Json<'a>,
    wants: impl Fn(&str) -> bool,
    mut put: impl FnMut(&str, Value<'a>),
) -> Result<(), Malformed> {
    let (mut name, mut found) = (Cow::Borrowed(""), None);
    json.object(|json, key| match key {
        "key" => {
            name = json.string()?;
            Ok(())
        }
        "value" => json.object(|json, key| {
            match key {
                "stringValue" => found = Some(Value::Text(json.string()?)),
                "boolValue" => found = Some(Value::Flag(json.boolean()?)),
                "intValue" => found = Some(Value::Whole(json.whole()?)),
                "doubleValue" => found = Some(Value::Double(json.double()?)),
                _ => json.skip()?,
            }
            Ok(())
        }),
        _ => json.skip(),
    })?;
    if let Some(found) = found.filter(|_| wants(&name)) {
        put(&name, found);
    }
    Ok(())
}

/// An id of N bytes in hex digits, of either case; OTLP's JSON uses hex where other protobuf JSON
/// uses base64.
fn hex_id<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut id = [0; N];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    (id != [0; N]).then_some(id)
}

#[cfg(test)]
#[path = "traces_tests.rs"]
mod tests;
