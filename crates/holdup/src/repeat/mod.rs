//! The same load several times, in an order that is fair, between which something may be switched by a command: what
//! `holdup run --repeat`, `--interleave` and `holdup capacity` have in common. What is played and judged is theirs.

pub mod order;
pub mod quota;
pub mod switch;
