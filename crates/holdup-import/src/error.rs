//! Why a file cannot be imported at all.

/// `plan.jmx:12: a DOCTYPE is not read; remove it`
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {message}", self.place())]
pub struct ImportError {
    /// The file as it was named.
    pub file: String,
    /// Line, from 1; 0 for the whole file.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl ImportError {
    pub(crate) fn new(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, message: message.into() }
    }

    fn place(&self) -> String {
        if self.line == 0 { String::new() } else { format!(":{}", self.line) }
    }
}
