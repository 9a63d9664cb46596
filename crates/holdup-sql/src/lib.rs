//! holdup-sql
