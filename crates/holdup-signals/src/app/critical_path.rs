//! The critical path of one request: which of its spans the response waited for, and what the
//! request would have taken if one of them had been shorter.
//!
//! - [`tree`]: the spans of a request as intervals within one another, on one clock.
//! - [`walk`]: from the end backwards, who owns each stretch of the request.
//! - [`replay`]: the same request again, with some of its time taken away.
//! - [`spans`]: the spans of a trace -> trees.
//!
//! A span began after the siblings that had ended by then, and its parent ended after all of its
//! children. That is all the order that spans show. So two calls at the same time are a wait for the
//! one that ended last, and the other is off the path.

pub mod replay;
pub mod spans;
pub mod tree;
pub mod walk;

pub use tree::{Piece, Tree};
pub use walk::Stretch;

#[cfg(test)]
mod tests;
