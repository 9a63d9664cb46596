//! The same load several times, in an order that is fair, between which something may be switched by a command: what
//! `holdup run --repeat`, `--interleave`, `holdup replay` to two servers and `holdup capacity` have in common. What is played and judged is theirs.

pub mod interleave;
pub mod order;
pub mod quota;
pub mod switch;
