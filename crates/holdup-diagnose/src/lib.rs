//! holdup-diagnose
