//! CPUs: how many a process can use, and when their use is the service's own.

/// Prefixes of the names of interpreters with a global lock (15 bytes at most): Ruby and Python,
/// and Node.js with its event loop.
const INTERPRETERS: &[&str] = &["ruby", "puma", "unicorn", "falcon", "python", "gunicorn", "uwsgi", "node"];

/// From this share (0-1) of the CPU time in use, it is mostly the service's own.
pub const OWN: f64 = 0.5;

/// Whether a process of this name runs one thread at a time.
pub fn is_interpreter(name: &str) -> bool {
    INTERPRETERS.iter().any(|interpreter| name.starts_with(interpreter))
}
