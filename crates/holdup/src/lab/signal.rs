//! The signals that a `lab.yaml` may name.

use holdup_load::yaml::{Node, YamlError};

/// Signals a process may be stopped with.
pub(super) const SIGNALS: [(&str, i32); 7] = [
    ("TERM", libc::SIGTERM),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("HUP", libc::SIGHUP),
    ("KILL", libc::SIGKILL),
    ("USR1", libc::SIGUSR1),
    ("USR2", libc::SIGUSR2),
];

/// A signal by its name, with or without `SIG`.
pub(super) fn signal(node: &Node) -> Result<i32, YamlError> {
    let text = node.text()?;
    let name = text.strip_prefix("SIG").unwrap_or(text);
    SIGNALS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number).ok_or_else(|| {
        let known: Vec<&str> = SIGNALS.iter().map(|(name, _)| *name).collect();
        node.error(format!("unknown signal \"{text}\"; known: {}", known.join(", ")))
    })
}
