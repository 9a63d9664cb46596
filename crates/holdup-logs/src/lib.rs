//! What logs of statements are good for: a ranked report of them (`digest`), the same statements with their timing against a
//! server (`replay`), and the index that the heaviest of them lack (`advice`).

#![forbid(unsafe_code)]

pub mod advice;
pub mod digest;
pub mod replay;
