//! What the tests of both protocols share.

pub(crate) mod conversation;
