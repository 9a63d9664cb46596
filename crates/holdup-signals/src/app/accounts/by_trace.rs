//! Rows of a table by trace id: sorted once, so that the rows of one request are a slice.

/// A trace id: 32 hex digits as a number. None for anything else, and for the all-zero id, which is
/// invalid.
pub fn trace_number(text: &str) -> Option<u128> {
    // A sign would be taken for a digit.
    let is_hex = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten().filter(|id| *id != 0)
}

/// Rows with a trace id, by that id; those of one trace in order of `at`.
pub struct ByTrace<'a, T> {
    rows: Vec<(u128, i64, &'a T)>,
}

impl<'a, T> ByTrace<'a, T> {
    /// Sorts rows, each with its trace id and time.
    pub fn new(rows: impl Iterator<Item = (Option<u128>, i64, &'a T)>) -> Self {
        let mut rows: Vec<_> = rows.filter_map(|(trace, at, row)| Some((trace?, at, row))).collect();
        rows.sort_unstable_by_key(|(trace, at, _)| (*trace, *at));
        Self { rows }
    }

    /// The rows of `trace`, in order of time.
    pub fn get(&self, trace: u128) -> impl Iterator<Item = &'a T> + '_ {
        let from = self.rows.partition_point(|(t, ..)| *t < trace);
        self.rows[from..].iter().take_while(move |(t, ..)| *t == trace).map(|(_, _, row)| *row)
    }

    /// The rows of every trace, each in order of time.
    pub fn traces(&self) -> impl Iterator<Item = Vec<&'a T>> + '_ {
        self.rows.chunk_by(|a, b| a.0 == b.0).map(|rows| rows.iter().map(|(_, _, row)| *row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_trace_are_ordered_and_invalid_ids_are_left_out() {
        assert_eq!(trace_number("0000000000000000000000000000002a"), Some(42));
        for text in ["", "2a", "00000000000000000000000000000000", "+000000000000000000000000000002a"] {
            assert_eq!(trace_number(text), None, "{text}");
        }
        let rows = [(Some(2), 9), (Some(1), 5), (None, 1), (Some(2), 3)];
        let by_trace = ByTrace::new(rows.iter().map(|row| (row.0, row.1, row)));
        assert_eq!(by_trace.get(2).map(|r| r.1).collect::<Vec<_>>(), [3, 9]);
        assert_eq!(by_trace.get(3).count(), 0);
    }
}
