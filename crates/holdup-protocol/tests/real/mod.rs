//! Real servers and a client for the tests of this crate and of `holdup-load`, which takes this folder in by its path:
//! private folders, private ports, on loopback, gone with the tests. Where a server is not installed its tests say so
//! and pass, unless `CI` is set.

#![allow(dead_code, reason = "each of the binaries that have it uses a part")]

pub mod client;
pub mod mariadb;
pub mod postgres;
pub mod process;
pub mod template;

/// The password of all accounts; nothing that is told may hold it.
pub const PASSWORD: &str = "s3cr3t-canary";
