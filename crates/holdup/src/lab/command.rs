//! The commands of a `lab.yaml`, and the sign that a program which one started is ready.

use std::time::Duration;

/// A command that ends by itself.
#[derive(Debug)]
pub(super) struct Step {
    pub launch: Launch,
    pub within: Duration,
}

/// The command that starts a program; its texts still hold placeholders.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub run: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Path of a file.
    pub stdin: Option<String>,
}

/// The sign that a process is ready; its texts still hold placeholders.
#[derive(Clone, Debug)]
pub(super) enum Ready {
    /// A connection to this port of 127.0.0.1 (or `HOST:PORT`) is accepted.
    Tcp(String),
    /// It has written this text.
    Stdout(String),
    /// This URL answers `GET` with 200.
    Http(String),
}
