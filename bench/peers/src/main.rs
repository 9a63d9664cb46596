//! holdup beside its peers. This file is the table of contents.

fn main() {}
