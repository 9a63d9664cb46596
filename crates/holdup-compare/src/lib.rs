//! What differs between recordings and is no accident: runs before and after a change, the same statements on two servers, and
//! searches at several sizes of one thing.

#![forbid(unsafe_code)]

pub mod capacity;
pub mod recordings;
pub mod statements;
