//! Protocols as bytes in and events out: the client side of HTTP/1 and HTTP/2, MySQL, PostgreSQL and
//! MongoDB, and the conversations in captured packets. Nothing here opens a socket, reads a
//! clock or starts a thread: the load engine and the collectors do that. Whatever the other side
//! sends, memory is bounded.

#![forbid(unsafe_code)]

pub mod database;
pub mod http;
pub mod packets;
