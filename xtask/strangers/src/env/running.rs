//! What a fault has set up, and how each piece is taken back: in reverse order, also if a draw fails half way.

use anyhow::Result;

type Undo = Box<dyn FnOnce() -> Result<()> + Send>;

/// A fault at work.
#[derive(Default)]
pub struct Running {
    undo: Vec<Undo>,
}

impl Running {
    /// One that leaves nothing behind.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// One that is taken back by `undo`.
    pub fn until(undo: impl FnOnce() -> Result<()> + Send + 'static) -> Self {
        Self { undo: vec![Box::new(undo)] }
    }

    /// This and another: the other is taken back first.
    pub fn and(mut self, mut other: Self) -> Self {
        self.undo.append(&mut other.undo);
        self
    }

    /// Takes everything back; the first error, after all was tried.
    pub fn stop(mut self) -> Result<()> {
        self.take_back()
    }

    fn take_back(&mut self) -> Result<()> {
        let mut result = Ok(());
        while let Some(undo) = self.undo.pop() {
            result = result.and(undo());
        }
        result
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.take_back() {
            eprintln!("a fault was not taken back: {error:#}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn all_is_taken_back_in_reverse_even_after_an_error() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let piece = |number: u32| {
            let order = Arc::clone(&order);
            Running::until(move || {
                order.lock().unwrap().push(number);
                anyhow::ensure!(number != 2, "two fails");
                Ok(())
            })
        };
        let error = piece(1).and(piece(2)).and(piece(3)).stop().unwrap_err();
        assert_eq!(error.to_string(), "two fails");
        assert_eq!(*order.lock().unwrap(), [3, 2, 1]);
        drop(piece(4));
        assert_eq!(order.lock().unwrap().last(), Some(&4));
    }
}
