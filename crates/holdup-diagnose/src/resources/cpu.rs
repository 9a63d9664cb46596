//! CPUs: who can use how many, and from when on they are the service's own.

/// Beginnings of the names of such processes (15 bytes at most): Ruby's and Python's locks, Node.js's event loop.
const INTERPRETERS: &[&str] = &["ruby", "puma", "unicorn", "falcon", "python", "gunicorn", "uwsgi", "node"];

/// Most of the CPU time in use is the service's own from this share (0-1) on.
pub const OWN: f64 = 0.5;

/// Whether a process of this name runs one thread at a time.
pub fn is_interpreter(name: &str) -> bool {
    INTERPRETERS.iter().any(|interpreter| name.starts_with(interpreter))
}
