//! The commands of a MySQL or MariaDB client: the first byte of a message in the command phase, and
//! the text after it.

use crate::database::cursor::Cursor;
use crate::packets::turn::Kind;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// The end; no response.
    Quit,
    Query,
    Prepare,
    Execute,
    Fetch,
    FieldList,
    /// Another login on the same connection.
    ChangeUser,
    /// Answered by a single message.
    Simple,
    /// A result like a query's.
    Processes,
    /// The session is reset.
    Reset,
    /// A statement is closed; no response.
    Close,
    /// A parameter's value; no response.
    LongData,
    /// The server sends without end.
    Stream,
}

/// The commands by their numbers, with the server's names of those that are not statements.
const COMMANDS: [(u8, Command, &str); 27] = [
    (0x01, Command::Quit, "Quit"),
    (0x02, Command::Simple, "Init DB"),
    (0x03, Command::Query, ""),
    (0x04, Command::FieldList, "Field List"),
    (0x05, Command::Simple, "Create DB"),
    (0x06, Command::Simple, "Drop DB"),
    (0x07, Command::Simple, "Refresh"),
    (0x08, Command::Simple, "Shutdown"),
    (0x09, Command::Simple, "Statistics"),
    (0x0a, Command::Processes, "Processlist"),
    (0x0c, Command::Simple, "Kill"),
    (0x0d, Command::Simple, "Debug"),
    (0x0e, Command::Simple, "Ping"),
    (0x11, Command::ChangeUser, "Change user"),
    (0x12, Command::Stream, "Binlog Dump"),
    (0x15, Command::Simple, "Register Slave"),
    (0x16, Command::Prepare, ""),
    (0x17, Command::Execute, ""),
    (0x18, Command::LongData, "Long Data"),
    (0x19, Command::Close, "Close stmt"),
    (0x1a, Command::Simple, "Reset stmt"),
    (0x1b, Command::Simple, "Set option"),
    (0x1c, Command::Fetch, "Fetch"),
    (0x1d, Command::Simple, "Daemon"),
    (0x1e, Command::Stream, "Binlog Dump"),
    (0x1f, Command::Reset, "Reset Connection"),
    // MariaDB's execution of many rows at once.
    (0xfa, Command::Execute, ""),
];

impl Command {
    /// The command of this number; none if it is unknown.
    pub fn from_number(number: u8) -> Option<Self> {
        COMMANDS.iter().find(|(known, ..)| *known == number).map(|(_, command, _)| *command)
    }

    /// The server's name of a command that is not a statement.
    pub fn name(number: u8) -> &'static str {
        COMMANDS.iter().find(|(known, ..)| *known == number).map_or("", |(_, _, name)| name)
    }

    pub fn kind(self) -> Kind {
        match self {
            Self::Query => Kind::Query,
            Self::Prepare => Kind::Prepare,
            Self::Execute => Kind::Execute,
            Self::ChangeUser => Kind::Login,
            _ => Kind::Other,
        }
    }
}

/// A length-encoded integer of the protocol, and the bytes after it.
pub(crate) fn length_encoded(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut cursor = Cursor(bytes);
    Some((cursor.packed().ok()?, cursor.0))
}

/// The SQL of a query, after its attributes if it has any. If the login was seen, `has_attributes`
/// says whether it may have any; otherwise the bytes show it, because no SQL begins like
/// attributes.
pub(crate) fn sql(content: &[u8], has_attributes: Option<bool>) -> Option<&[u8]> {
    let may = || matches!(content, [count, 1, ..] if *count < 9);
    if has_attributes.unwrap_or_else(may) { behind_attributes(content) } else { Some(content) }
}

/// MySQL: "COM_QUERY" in its protocol reference: number of parameters and of their sets, which of them are null, their types
/// and names, their values.
fn behind_attributes(content: &[u8]) -> Option<&[u8]> {
    let (count, rest) = length_encoded(content)?;
    let (_, rest) = length_encoded(rest)?;
    if count == 0 {
        return Some(rest);
    }
    let count = usize::try_from(count).ok().filter(|count| *count < 1000)?;
    let (nulls, rest) = rest.split_at_checked(count.div_ceil(8))?;
    let (_, mut rest) = rest.split_first()?;
    let mut kinds = Vec::with_capacity(count);
    for _ in 0..count {
        let ([kind, _], behind) = rest.split_first_chunk()?;
        kinds.push(*kind);
        rest = skip_text(behind)?;
    }
    for (n, kind) in kinds.into_iter().enumerate() {
        if nulls.get(n / 8)? >> (n % 8) & 1 == 0 {
            rest = match kind {
                1 => rest.get(1..)?,
                2 | 13 => rest.get(2..)?,
                3 | 4 | 9 => rest.get(4..)?,
                5 | 8 => rest.get(8..)?,
                6 => rest,
                // The length of times has one byte, like that of a short text.
                _ => skip_text(rest)?,
            };
        }
    }
    Some(rest)
}

fn skip_text(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = length_encoded(bytes)?;
    rest.get(usize::try_from(length).ok()?..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_come_first() {
        assert_eq!(sql(b"SELECT 1", None), Some(&b"SELECT 1"[..]));
        assert_eq!(sql(b"\0\x01SELECT 1", None), Some(&b"SELECT 1"[..]));
        let mut bytes = b"\x02\x01\0\x01\xfd\0\x05color\x08\0\x01n\x03red12345678".to_vec();
        bytes.extend(b"SELECT 2");
        assert_eq!(sql(&bytes, Some(true)), Some(&b"SELECT 2"[..]));
        for end in 0..bytes.len() {
            let _ = sql(&bytes[..end], Some(true));
        }
    }

    #[test]
    fn numbers_of_variable_length() {
        assert_eq!(length_encoded(b"\xfbx"), None);
        assert_eq!(length_encoded(b"\xfc\x01\x02x"), Some((0x201, &b"x"[..])));
        assert_eq!(length_encoded(b"\xfe\x01"), None);
    }
}
