//! The running statements, copied from the caller's into one reused buffer.

use crate::database::event::ExecuteError;
use crate::database::statement::{MAX_STATEMENT_BYTES, Statement};

/// Most parameters; both protocols count them in 16 bits.
const MAX_PARAMETERS: usize = u16::MAX as usize;

/// Most bytes that framing and counts add to a parameter.
const OVERHEAD_BYTES: usize = 12;

/// Capacity that is kept for the next statements.
const SPARE_BYTES: usize = 64 << 10;

/// Statements, and which of them is running.
#[derive(Default)]
pub(crate) struct Job {
    bytes: Vec<u8>,
    /// End of each parameter in `bytes`, `None` for NULL; of all statements, one after the other.
    parameters: Vec<Option<usize>>,
    items: Vec<Item>,
    /// Index of the running statement.
    pub(crate) at: usize,
}

struct Item {
    start: usize,
    text_end: usize,
    first_parameter: usize,
    end_parameter: usize,
    is_prepared: bool,
}

/// The running statement.
pub(crate) struct Current<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) is_prepared: bool,
    bytes: &'a [u8],
    text_end: usize,
    parameters: &'a [Option<usize>],
}

impl<'a> Current<'a> {
    /// Number of its parameters.
    pub(crate) fn count(&self) -> usize {
        self.parameters.len()
    }

    /// Its parameters.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = Option<&'a [u8]>> {
        let (bytes, mut start) = (self.bytes, self.text_end);
        self.parameters.iter().map(move |end| {
            let value = &bytes[start..(*end)?];
            start += value.len();
            Some(value)
        })
    }
}

impl Job {
    /// Replaces the statements; `comment` goes before the text of those that the server does not
    /// keep prepared.
    pub(crate) fn fill(&mut self, statements: &[Statement], comment: &[u8]) -> Result<(), ExecuteError> {
        if statements.is_empty() {
            return Err(ExecuteError::Empty);
        }
        for statement in statements {
            if statement.parameters.len() > MAX_PARAMETERS {
                return Err(ExecuteError::TooManyParameters);
            }
            let values = statement.parameters.iter().map(|value| value.as_ref().map_or(0, Vec::len) + OVERHEAD_BYTES);
            if values.sum::<usize>() + statement.text.len() + comment.len() > MAX_STATEMENT_BYTES {
                return Err(ExecuteError::TooLarge);
            }
        }
        self.clear();
        for statement in statements {
            let (start, first_parameter) = (self.bytes.len(), self.parameters.len());
            if !statement.is_prepared {
                self.bytes.extend_from_slice(comment);
            }
            self.bytes.extend_from_slice(statement.text.as_bytes());
            let text_end = self.bytes.len();
            for value in &statement.parameters {
                let end = value.as_ref().map(|value| {
                    self.bytes.extend_from_slice(value);
                    self.bytes.len()
                });
                self.parameters.push(end);
            }
            let end_parameter = self.parameters.len();
            let is_prepared = statement.is_prepared;
            self.items.push(Item { start, text_end, first_parameter, end_parameter, is_prepared });
        }
        Ok(())
    }

    /// The running statement; `None` if all have run.
    pub(crate) fn current(&self) -> Option<Current<'_>> {
        let item = self.items.get(self.at)?;
        Some(Current {
            text: &self.bytes[item.start..item.text_end],
            is_prepared: item.is_prepared,
            bytes: &self.bytes,
            text_end: item.text_end,
            parameters: &self.parameters[item.first_parameter..item.end_parameter],
        })
    }

    /// Removes all.
    pub(crate) fn clear(&mut self) {
        self.at = 0;
        self.items.clear();
        self.parameters.clear();
        self.bytes.clear();
        self.bytes.shrink_to(SPARE_BYTES);
    }
}
