//! Uses of statement logs: a ranked report (`digest`), a replay of the same statements with their
//! timing (`replay`), and the index that the heaviest statements lack (`advice`).

#![forbid(unsafe_code)]

pub mod advice;
pub mod digest;
pub mod replay;
