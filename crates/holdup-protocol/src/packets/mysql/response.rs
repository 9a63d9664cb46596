//! The responses of a MySQL or MariaDB server: a state machine for each kind, which finds the end.

use std::sync::Arc;

use super::command::length_encoded;
use super::login::{u16_at, u32_at};
use crate::packets::framing::Message;
use crate::packets::statement::SentSql;
use crate::packets::turn::ResponseInfo;

const MORE_RESULTS: u16 = 0x0008;
const CURSOR_EXISTS: u16 = 0x0040;
/// MariaDB sends progress reports as errors of this number.
const PROGRESS: u16 = 0xffff;

/// What is expected for one request.
#[derive(Debug)]
pub(crate) enum Expected {
    /// The end of a login.
    Login,
    /// One message.
    Simple,
    /// Results of a query or an execution.
    Results(Place),
    /// Descriptions of columns, up to their end.
    Fields,
    /// Rows, up to their end.
    Rows,
    /// The number of a statement, descriptions of its parameters and columns.
    Prepared { sent: SentSql, place: PreparePlace },
    /// Unknown: it ends where the next request begins.
    Anything,
}

/// Place within a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Start,
    Columns(u64),
    ColumnsEnd,
    Rows,
    /// The client sends a file.
    Upload,
}

/// Place within the response to a preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PreparePlace {
    Start,
    Parameters(u16, u16),
    ParametersEnd(u16),
    Columns(u16),
    ColumnsEnd,
}

/// What a message means for its response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// More will follow.
    GoesOn,
    /// It ends successfully.
    Done,
    /// It ends with this error.
    Failed(Arc<str>),
    /// It cannot be part of such a response.
    Senseless,
}

/// What is known about the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResponseState {
    /// Whether the end of columns is unmarked; inferred if the login was not seen.
    pub deprecates_eof: Option<bool>,
    pub has_optional_metadata: bool,
    /// The content of the present response so far.
    pub info: ResponseInfo,
}

impl Expected {
    /// Takes the next message of the response. A prepared statement is passed to `prepared`.
    pub fn take(
        &mut self,
        message: &Message<'_>,
        response: &mut ResponseState,
        prepared: &mut dyn FnMut(u32, SentSql, u16),
    ) -> Meaning {
        let content = message.content;
        let first = content.first().copied();
        if let (Some(0xff), Some(code)) = (first, u16_at(content, 1)) {
            if code == PROGRESS {
                return Meaning::GoesOn;
            }
            return Meaning::Failed(code.to_string().into());
        }
        match self {
            Self::Login => match first {
                Some(0) => Meaning::Done,
                Some(1 | 0xfe) => Meaning::GoesOn,
                _ => Meaning::Senseless,
            },
            Self::Simple => {
                if first == Some(0) {
                    tell(&mut response.info, message);
                }
                Meaning::Done
            }
            Self::Fields | Self::Rows => {
                if is_end(message) {
                    Meaning::Done
                } else {
                    Meaning::GoesOn
                }
            }
            Self::Results(place) => result(place, message, response),
            Self::Prepared { sent, place } => preparation(sent, place, message, response, prepared),
            Self::Anything => Meaning::GoesOn,
        }
    }

    /// Whether it may already have ended, as far as is known.
    pub fn may_be_over(&self, response: &ResponseState) -> bool {
        matches!(self, Self::Prepared { place: PreparePlace::ColumnsEnd, .. }) && response.deprecates_eof.is_none()
    }
}

/// Whether `message` ends columns or rows. A row with this start has a value of 16 MB.
fn is_end(message: &Message<'_>) -> bool {
    message.content.first() == Some(&0xfe) && message.length < 0xff_ffff
}

/// Status flags of an ending message.
fn status(message: &Message<'_>) -> Option<u16> {
    let rest = message.content.get(1..)?;
    let is_eof = message.content.first() == Some(&0xfe) && message.length == 5;
    let at = if is_eof {
        rest.get(2..)?
    } else {
        let (_, rest) = length_encoded(rest)?;
        length_encoded(rest)?.1
    };
    u16_at(at, 0)
}

/// Adds an ending message's other content.
fn tell(info: &mut ResponseInfo, message: &Message<'_>) {
    let Some((first, rest)) = message.content.split_first() else { return };
    if *first == 0xfe && message.length == 5 {
        (info.warnings, info.status) = (u16_at(rest, 0).unwrap_or(0), u16_at(rest, 2).unwrap_or(0));
        return;
    }
    let Some((affected, behind)) = length_encoded(rest) else { return };
    let Some((_, behind)) = length_encoded(behind) else { return };
    info.affected += affected;
    (info.status, info.warnings) = (u16_at(behind, 0).unwrap_or(0), u16_at(behind, 2).unwrap_or(0));
}

fn result(place: &mut Place, message: &Message<'_>, response: &mut ResponseState) -> Meaning {
    let first = message.content.first().copied();
    match (*place, first) {
        (Place::Start | Place::Upload, Some(0)) => tell(&mut response.info, message),
        (Place::ColumnsEnd | Place::Rows, Some(0xfe)) if is_end(message) => tell(&mut response.info, message),
        (Place::Rows, _) => response.info.rows += 1,
        (Place::ColumnsEnd, _) if response.deprecates_eof != Some(false) => response.info.rows += 1,
        _ => {}
    }
    let has = |flag: u16| status(message).is_some_and(|status| status & flag != 0);
    *place = match (*place, message.content.first().copied()) {
        (Place::Start, Some(0)) if has(MORE_RESULTS) => Place::Start,
        (Place::Start, Some(0)) => return Meaning::Done,
        (Place::Start, Some(0xfe)) if message.length < 9 => return Meaning::Done,
        (Place::Start, Some(0xfb)) => Place::Upload,
        (Place::Start, _) => match length_encoded(message.content) {
            Some((count @ 1..=0xffff, rest)) => {
                let is_described = !response.has_optional_metadata || rest.first() != Some(&0);
                if is_described { Place::Columns(count) } else { after_columns(response) }
            }
            _ => return Meaning::Senseless,
        },
        (Place::Upload, Some(0)) if has(MORE_RESULTS) => Place::Start,
        (Place::Upload, _) => return Meaning::Done,
        (Place::Columns(1), _) => after_columns(response),
        (Place::Columns(left), _) => Place::Columns(left - 1),
        (Place::ColumnsEnd, Some(0xfe)) if message.length == 5 => {
            response.deprecates_eof = Some(false);
            if has(CURSOR_EXISTS) {
                return Meaning::Done;
            }
            Place::Rows
        }
        (Place::ColumnsEnd, _) if response.deprecates_eof == Some(false) => return Meaning::Senseless,
        (Place::ColumnsEnd | Place::Rows, _) => {
            response.deprecates_eof.get_or_insert(true);
            if !is_end(message) {
                Place::Rows
            } else if has(MORE_RESULTS) {
                Place::Start
            } else {
                return Meaning::Done;
            }
        }
    };
    Meaning::GoesOn
}

fn after_columns(response: &ResponseState) -> Place {
    if response.deprecates_eof == Some(true) { Place::Rows } else { Place::ColumnsEnd }
}

fn preparation(
    sent: &SentSql,
    place: &mut PreparePlace,
    message: &Message<'_>,
    response: &mut ResponseState,
    prepared: &mut dyn FnMut(u32, SentSql, u16),
) -> Meaning {
    let is_marked = response.deprecates_eof != Some(true);
    let columns_or_end = |columns: u16| if columns > 0 { Some(PreparePlace::Columns(columns)) } else { None };
    let next = match *place {
        PreparePlace::Start => {
            let content = message.content;
            let (Some(0), Some(id), Some(columns), Some(parameters)) =
                (content.first(), u32_at(content, 1), u16_at(content, 5), u16_at(content, 7))
            else {
                return Meaning::Senseless;
            };
            prepared(id, sent.clone(), parameters);
            // The last byte says whether descriptions follow.
            let is_described = !response.has_optional_metadata || message.content.get(12) != Some(&0);
            match (parameters, columns) {
                _ if !is_described => None,
                (0, columns) => columns_or_end(columns),
                (parameters, columns) => Some(PreparePlace::Parameters(parameters, columns)),
            }
        }
        PreparePlace::Parameters(1, columns) if is_marked => Some(PreparePlace::ParametersEnd(columns)),
        PreparePlace::Parameters(1, columns) => columns_or_end(columns),
        PreparePlace::Parameters(left, columns) => Some(PreparePlace::Parameters(left - 1, columns)),
        PreparePlace::ParametersEnd(columns) => {
            if is_end(message) {
                response.deprecates_eof = Some(false);
                columns_or_end(columns)
            } else {
                // The end was unmarked: this is the first column.
                response.deprecates_eof = Some(true);
                columns_or_end(columns.saturating_sub(1))
            }
        }
        PreparePlace::Columns(1) if is_marked => Some(PreparePlace::ColumnsEnd),
        PreparePlace::Columns(1) => None,
        PreparePlace::Columns(left) => Some(PreparePlace::Columns(left - 1)),
        PreparePlace::ColumnsEnd => None,
    };
    match next {
        Some(next) => {
            *place = next;
            Meaning::GoesOn
        }
        None => Meaning::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(mut expected: Expected, deprecates_eof: Option<bool>, messages: &[&[u8]]) -> (usize, Meaning) {
        let mut response = ResponseState { deprecates_eof, ..ResponseState::default() };
        for (n, content) in messages.iter().enumerate() {
            let length = content.len() as u64;
            let message = Message { kind: 1, content, tail: &[], length, size: length + 4, begun_at: 0 };
            match expected.take(&message, &mut response, &mut |_, _, _| ()) {
                Meaning::GoesOn => {}
                meaning => return (n + 1, meaning),
            }
        }
        (messages.len(), Meaning::GoesOn)
    }

    const OK: &[u8] = b"\0\x01\0\x02\0\0\0";
    const OK_MORE: &[u8] = b"\0\x01\0\x08\0\0\0";
    const EOF: &[u8] = b"\xfe\0\0\x02\0";
    const EOF_MORE: &[u8] = b"\xfe\0\0\x0a\0";
    const END: &[u8] = b"\xfe\0\0\x02\0\0\0";
    const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\0";
    const ROW: &[u8] = b"\x011";
    const FAILED: &[u8] = b"\xff\x28\x04#42000what";

    #[test]
    fn results() {
        let query = || Expected::Results(Place::Start);
        for (deprecates, messages) in [
            (None, &[OK][..]),
            (None, &[b"\x01", COLUMN, EOF, ROW, ROW, EOF]),
            (Some(false), &[b"\x02", COLUMN, COLUMN, EOF, EOF]),
            (None, &[b"\x01", COLUMN, ROW, END]),
            (Some(true), &[b"\x01", COLUMN, END]),
            (Some(false), &[b"\x01", COLUMN, EOF, ROW, EOF_MORE, OK_MORE, b"\x01", COLUMN, EOF, EOF]),
            (None, &[b"\xfbfile", OK]),
        ] {
            assert_eq!(run(query(), deprecates, messages), (messages.len(), Meaning::Done), "{messages:?}");
        }
        let failed = Meaning::Failed("1064".into());
        assert_eq!(run(query(), None, &[b"\x01", COLUMN, EOF, ROW, b"\xff\xff\xff\x01", FAILED]), (6, failed));
        assert_eq!(run(query(), None, &[b"\xfd\xff\xff\xff"]).1, Meaning::Senseless);
    }

    #[test]
    fn preparations() {
        let prepare = || Expected::Prepared { sent: SentSql::default(), place: PreparePlace::Start };
        let ok = |columns: u8, parameters: u8| vec![0, 7, 0, 0, 0, columns, 0, parameters, 0, 0, 0, 0];
        for (deprecates, columns, parameters, rest) in [
            (Some(false), 0, 0, &[][..]),
            (Some(false), 1, 2, &[COLUMN, COLUMN, EOF, COLUMN, EOF]),
            (Some(true), 1, 2, &[COLUMN, COLUMN, COLUMN]),
            (Some(true), 0, 1, &[COLUMN]),
            (None, 1, 1, &[COLUMN, EOF, COLUMN, EOF]),
            (None, 2, 1, &[COLUMN, COLUMN, COLUMN]),
        ] {
            let first = ok(columns, parameters);
            let messages: Vec<&[u8]> = std::iter::once(first.as_slice()).chain(rest.iter().copied()).collect();
            assert_eq!(
                run(prepare(), deprecates, &messages),
                (messages.len(), Meaning::Done),
                "{columns} {parameters}"
            );
        }
    }
}
