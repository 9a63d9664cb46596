//! holdup-load
