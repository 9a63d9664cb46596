//! What a client's message asks for: `OP_MSG`, compressed messages by their name, and the messages of
//! old clients. It looks only at the bytes that were kept, and never decompresses.

use holdup_mongodb::{Document, OWN_NAME, Value, command_shape, comment_trace_id, namespace, shape};

use crate::packets::framing::{MONGODB_BYTES, Message};
use crate::packets::statement::{SentSql, Statements};
use crate::packets::turn::Kind;

/// Kinds of messages ("MongoDB Wire Protocol" in the manual).
pub(super) mod op {
    pub(in super::super) const REPLY: i32 = 1;
    pub(super) const UPDATE: i32 = 2001;
    pub(super) const INSERT: i32 = 2002;
    pub(super) const QUERY: i32 = 2004;
    pub(super) const GET_MORE: i32 = 2005;
    pub(super) const DELETE: i32 = 2006;
    pub(super) const KILL_CURSORS: i32 = 2007;
    pub(in super::super) const COMPRESSED: i32 = 2012;
    pub(in super::super) const MSG: i32 = 2013;
}

/// A flag of `OP_MSG`.
const MORE_TO_COME: u32 = 1 << 1;

/// What follows a message's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub number: i32,
    /// The number of the request that it answers; 0 in a request.
    pub answers: i32,
    pub kind: i32,
}

impl Head {
    pub(super) fn read(content: &[u8]) -> Option<(Self, &[u8])> {
        let (number, rest) = number(content)?;
        let (answers, rest) = self::number(rest)?;
        let (kind, rest) = self::number(rest)?;
        Some((Self { number, answers, kind }, rest))
    }
}

/// Whether a message of the client or the server may begin with these bytes.
pub(crate) fn begins_mongodb(bytes: &[u8], is_client: bool) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk() else { return false };
    let Some((head, _)) = Head::read(rest) else { return false };
    let is_known = match head.kind {
        op::MSG | op::COMPRESSED => true,
        op::REPLY => !is_client,
        kind => is_client && matches!(kind, op::QUERY | op::GET_MORE | op::INSERT | op::UPDATE | op::DELETE),
    };
    is_known && MONGODB_BYTES.contains(&u32::from_le_bytes(*length)) && (head.answers == 0) == is_client
}

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    pub number: i32,
    pub kind: Kind,
    /// The name of a command that is not a statement.
    pub command: &'static str,
    pub sent: SentSql,
    pub database: Vec<u8>,
    pub wants_answer: bool,
    /// It opens a connection, or watches the server's state.
    pub is_greeting: bool,
    pub is_compressed: bool,
    pub is_write: bool,
    /// The cursor that it reads on.
    pub cursor: Option<i64>,
    /// A source of holdup's introduces itself, or marks what it asks.
    pub is_own: bool,
}

/// Reads a client's message; none if it cannot be one.
pub(super) fn request(message: &Message<'_>, statements: &mut Statements) -> Option<Request> {
    let (head, rest) = Head::read(message.content)?;
    let mut request = Request {
        number: head.number,
        kind: Kind::Query,
        command: "",
        sent: SentSql::default(),
        database: Vec::new(),
        wants_answer: true,
        is_greeting: false,
        is_compressed: false,
        is_write: false,
        cursor: None,
        is_own: false,
    };
    match head.kind {
        op::MSG => {
            let sections = Sections::read(rest);
            request.wants_answer = !sections.goes_on;
            request.command(&sections.command, statements);
        }
        op::COMPRESSED => match compressed(rest)? {
            // Named so, and not compressed.
            (op::MSG, "noop", rest) => {
                let sections = Sections::read(rest);
                request.wants_answer = !sections.goes_on;
                request.command(&sections.command, statements);
            }
            (_, name, _) => (request.kind, request.command, request.is_compressed) = (Kind::Opaque, name, true),
        },
        op::QUERY => request.query(rest, statements)?,
        op::GET_MORE => {
            let (_, rest) = number(rest)?;
            let (name, rest) = until_zero(rest)?;
            request.cursor = number(rest).and_then(|(_count, rest)| long(rest));
            request.legacy("getmore", name, Value::Null, statements);
            request.reads_on(statements);
        }
        op::UPDATE | op::INSERT | op::DELETE | op::KILL_CURSORS => request.wants_answer = false,
        _ => return None,
    }
    Some(request)
}

impl Request {
    /// A command that was sent as a document.
    fn command(&mut self, command: &Value, statements: &mut Statements) {
        let Some((name, _)) = command.entries().first() else { return };
        self.database = command.get("$db").and_then(Value::text).unwrap_or_default().as_bytes().to_vec();
        // A read that waits for news, as secondaries and change streams do, has a limit.
        let is_waiting = name == "getMore" && command.get("maxTimeMS").is_some();
        match plain(name) {
            Some((kind, name)) => (self.kind, self.command) = (kind, name),
            None if is_waiting => (self.kind, self.command) = (Kind::Other, "getMore"),
            None => {
                let text = command_shape(command, &namespace(command)).unwrap_or_default();
                let trace_id = command.get("comment").and_then(comment_trace_id);
                self.sent = statements.shaped(text, trace_id);
                // Numbers of cursors are random in 63 bits: as good as one in the 53 that are exact here.
                let cursor = command.get("getMore").and_then(Value::number).filter(|_| name == "getMore");
                self.cursor = cursor.map(|cursor| rounded(cursor as i64));
                self.reads_on(statements);
            }
        }
        self.is_greeting = matches!(self.command, "hello" | "isMaster");
        self.is_write = matches!(name.as_str(), "insert" | "update" | "delete" | "findAndModify" | "findandmodify");
        let application = command.at(&["client", "application", "name"]).and_then(Value::text);
        let comment = command.get("comment").and_then(Value::text);
        self.is_own = self.is_greeting && application == Some(OWN_NAME) || comment == Some(OWN_NAME);
    }

    /// A request that reads on belongs to the query behind its cursor, if that was seen.
    fn reads_on(&mut self, statements: &Statements) {
        if let Some(query) = self.cursor.and_then(|cursor| statements.behind(cursor)) {
            self.sent = SentSql { trace_id: self.sent.trace_id.take(), ..query };
        }
    }

    /// `OP_QUERY`: how drivers greet a server that they do not know, and how old ones asked for all.
    fn query(&mut self, rest: &[u8], statements: &mut Statements) -> Option<()> {
        let (_flags, rest) = number(rest)?;
        let (name, rest) = until_zero(rest)?;
        let (_skip, rest) = number(rest)?;
        let (_limit, rest) = number(rest)?;
        let asked = Document::beginning(rest).ok()?.readable(&[]);
        match name.strip_suffix(b".$cmd") {
            None => self.legacy("query", name, asked, statements),
            Some(database) => {
                let mut entries = match asked.get("$query").or_else(|| asked.get("query")) {
                    Some(wrapped) => wrapped.entries().to_vec(),
                    None => asked.entries().to_vec(),
                };
                entries.push(("$db".to_owned(), Value::Text(String::from_utf8_lossy(database).into_owned())));
                self.command(&Value::Map(entries), statements);
            }
        }
        Some(())
    }

    fn legacy(&mut self, operation: &str, name: &[u8], asked: Value, statements: &mut Statements) {
        let name = String::from_utf8_lossy(name);
        self.database = name.split('.').next().unwrap_or_default().as_bytes().to_vec();
        let query = asked.get("$query").cloned().unwrap_or(asked);
        let query = Value::Map(vec![("query".to_owned(), query)]);
        let whole = [("op", Value::Text(operation.to_owned())), ("command", query)];
        let whole = Value::Map(whole.map(|(name, value)| (name.to_owned(), value)).to_vec());
        self.sent = statements.shaped(shape(&whole, &name).unwrap_or_default(), None);
    }
}

/// Commands that are not statements: what they do, and their name.
fn plain(name: &str) -> Option<(Kind, &'static str)> {
    Some(match name {
        "hello" => (Kind::Other, "hello"),
        "isMaster" | "ismaster" => (Kind::Other, "isMaster"),
        "ping" => (Kind::Other, "ping"),
        "buildInfo" | "buildinfo" => (Kind::Other, "buildInfo"),
        "endSessions" => (Kind::Other, "endSessions"),
        "replSetHeartbeat" => (Kind::Other, "replSetHeartbeat"),
        "replSetUpdatePosition" => (Kind::Other, "replSetUpdatePosition"),
        "saslStart" => (Kind::Login, "saslStart"),
        "saslContinue" => (Kind::Login, "saslContinue"),
        "authenticate" => (Kind::Login, "authenticate"),
        _ => return None,
    })
}

/// The sections of an `OP_MSG`.
#[derive(Debug)]
pub(super) struct Sections<'a> {
    /// Another message follows without a request, or no answer is wanted.
    pub goes_on: bool,
    /// The document of the command or the answer.
    pub body: Option<Document<'a>>,
    /// The same as a value, with the lists that hold more of a command; none of the documents that
    /// an insert brings.
    pub command: Value,
}

impl<'a> Sections<'a> {
    /// The sections that `bytes` begin with. A checksum behind them is too short for one.
    pub(super) fn read(bytes: &'a [u8]) -> Self {
        let mut sections = Self { goes_on: false, body: None, command: Value::Map(Vec::new()) };
        let Some((flags, mut rest)) = bytes.split_first_chunk() else { return sections };
        let flags = u32::from_le_bytes(*flags);
        sections.goes_on = flags & MORE_TO_COME != 0;
        let mut lists = Vec::new();
        while let Some((kind, after)) = rest.split_first() {
            rest = match kind {
                0 if sections.body.is_none() => {
                    sections.body = Document::beginning(after).ok();
                    Document::split(after).map_or(&[], |(_, rest)| rest)
                }
                1 => {
                    let length = after.first_chunk().map_or(usize::MAX, |length| u32::from_le_bytes(*length) as usize);
                    let (list, after) = after.split_at_checked(length.max(4)).unwrap_or((after, &[]));
                    lists.extend(list.get(4..).and_then(sequence));
                    after
                }
                _ => &[],
            };
        }
        if let Some(body) = sections.body {
            // An insert brings documents, and each command brings its session: nothing of a shape.
            let mut entries = body.readable(&["documents", "lsid", "$clusterTime"]).entries().to_vec();
            entries.extend(lists);
            sections.command = Value::Map(entries);
        }
        sections
    }
}

/// A list of documents under its name; none of those that are not part of a shape.
fn sequence(bytes: &[u8]) -> Option<(String, Value)> {
    let (name, mut rest) = until_zero(bytes)?;
    let name = std::str::from_utf8(name).ok().filter(|name| matches!(*name, "updates" | "deletes" | "nsInfo"))?;
    let mut items = Vec::new();
    while let Ok(document) = Document::beginning(rest) {
        items.push(document.readable(&[]));
        rest = Document::split(rest).map_or(&[], |(_, rest)| rest);
    }
    Some((name.to_owned(), Value::List(items)))
}

/// The kind of a compressed message, the name of its compression, and its bytes.
pub(super) fn compressed(rest: &[u8]) -> Option<(i32, &'static str, &[u8])> {
    let (kind, rest) = number(rest)?;
    let (_length, rest) = number(rest)?;
    let (compression, rest) = rest.split_first()?;
    let name = match compression {
        0 => "noop",
        1 => "snappy",
        2 => "zlib",
        3 => "zstd",
        _ => "compressed",
    };
    Some((kind, name, rest))
}

pub(super) fn number(bytes: &[u8]) -> Option<(i32, &[u8])> {
    bytes.split_first_chunk().map(|(four, rest)| (i32::from_le_bytes(*four), rest))
}

/// A cursor's number.
pub(super) fn long(bytes: &[u8]) -> Option<i64> {
    bytes.first_chunk().map(|eight| rounded(i64::from_le_bytes(*eight)))
}

/// A number as the reader of documents has it.
pub(super) fn rounded(number: i64) -> i64 {
    number as f64 as i64
}

fn until_zero(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}
