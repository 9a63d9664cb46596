//! Protocols as bytes in and events out: HTTP/1 and HTTP/2, MySQL and PostgreSQL as a client speaks them, and the conversations
//! that captured packets hold. Nothing here opens a socket, reads a clock or starts a thread:
//! the load engine and the collectors do that. Whatever the other side sends, memory is bounded.

#![forbid(unsafe_code)]

pub mod database;
pub mod http;
pub mod packets;
