//! Plays the same load several times in a fair order, with a command between runs that may switch
//! versions: the common part of `holdup run --repeat`, `--interleave`, `holdup replay` to two
//! servers and `holdup capacity`. The commands decide what is played and judged.

pub mod interleave;
pub mod order;
pub mod quota;
pub mod switch;
