//! The shape of a statement without its values: a single-pass lexer over bytes, the digest text and
//! digest that group executions of one statement, and the trace id that an application left in a
//! comment.
//!
//! No I/O and no parser, and regular expressions only where another tool's are followed ([`pt_fingerprint`]): nothing here can
//! fail, whatever the bytes. No byte of
//! a literal or of a comment ever comes out again, not even of one that is cut off. It does not
//! judge whether a statement is valid.

#![forbid(unsafe_code)]

pub mod calls;
pub mod catalog;
mod dialect;
mod digest;
mod lexer;
mod parsed;
mod pt;
mod redact;
pub mod rewrite;
mod trace;
mod words;

pub use dialect::Dialect;
pub use digest::{digest, digest_of_text, digest_text};
pub use lexer::{Key, Lexer, Token, TokenKind, key};
pub use parsed::parsed_text;
pub use pt::pt_fingerprint;
pub use redact::redact;
pub use trace::trace_id;
