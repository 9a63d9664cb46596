//! Differences between recordings beyond chance: runs before and after a change, the same
//! statements on two servers, and searches at several values of one setting.

#![forbid(unsafe_code)]

pub mod capacity;
pub mod recordings;
pub mod statements;
