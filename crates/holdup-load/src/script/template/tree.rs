//! A parsed template as data: its nodes, the functions among them, and what these take. What they
//! write is said in `node`, `call` and `sign`.

use std::sync::Arc;

use ring::hmac;

use super::TemplateError;
use super::encode::Encoding;
use super::moment::Moment;
use crate::script::Names;

/// One node of a template.
#[derive(Clone)]
pub(crate) enum Node {
    Literal(Box<str>),
    /// A session's variable, and its fallback while it has no value.
    Variable {
        slot: u32,
        first: Option<Box<Node>>,
    },
    Cell {
        feeder: u32,
        column: u32,
    },
    /// An integer from `low` to `low + span`.
    Random {
        low: i64,
        span: u64,
    },
    Uuid,
    Number,
    Session,
    Now(Moment),
    /// One after the other.
    Joined(Box<[Node]>),
    Call(Box<Call>),
}

impl Node {
    /// Joins several nodes into one.
    pub(crate) fn joined(mut nodes: Vec<Self>) -> Self {
        match nodes.len() {
            0 => Self::Literal(Box::default()),
            1 => nodes.remove(0),
            _ => Self::Joined(nodes.into()),
        }
    }

    /// Its text, if that is always the same.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            _ => None,
        }
    }
}

/// A function with its arguments. The names are those of the language.
#[derive(Clone)]
pub(crate) enum Call {
    Random(IntegerArgument, IntegerArgument),
    RandomText(IntegerArgument),
    RandomHex(IntegerArgument),
    Pick(Box<[Node]>),
    Encode(Encoding, Node),
    Sha256(Node),
    Hmac { key: Key, text: Node, encoding: Encoding },
    Jwt(Token),
    Length(Node),
    Item(Node, IntegerArgument),
    Add(Node, Node),
    Pad(Node, u8),
    Default(Node, Node),
    Template { text: Node, late: LateParser },
}

/// An integer, parsed early if it is known.
#[derive(Clone)]
pub(crate) enum IntegerArgument {
    Known(i64),
    Text(Node),
}

/// A key that is prepared, or becomes known only when the template is rendered.
#[derive(Clone)]
pub(crate) enum Key {
    Known(hmac::Key),
    Text(hmac::Algorithm, Node),
}

/// A token: header, claims and signature.
#[derive(Clone)]
pub(crate) struct Token {
    /// The encoded header with the dot behind it.
    pub(super) header: &'static str,
    pub(super) key: Key,
    pub(super) claims: Node,
}

/// Reads a text that is known only when the template is rendered, with the names that it may use.
/// It may inline so many bytes; returns how many are left, too.
pub(super) type ParseLate = fn(&Arc<Names>, &str, usize) -> (Result<Vec<Node>, TemplateError>, usize);

/// How such a text is read.
#[derive(Clone)]
pub(crate) struct LateParser {
    pub(super) names: Arc<Names>,
    pub(super) parse: ParseLate,
}
