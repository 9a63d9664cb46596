//! How the rows of a feeder are stored: the text of all cells joined, and the end of each. A cell
//! costs its bytes plus 4; a boxed text for each would cost 16 and an allocation. For 3 million
//! small cells that makes 12 MB instead of some 130 MB.

use super::Fault;

/// Rows with the same number of cells.
#[derive(Clone)]
pub(super) struct Table {
    pub(super) text: String,
    /// Where each cell ends in `text`; it begins where the one before ends.
    pub(super) ends: Vec<u32>,
}

impl Table {
    /// An empty table that will take about so many bytes of text.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), ends: Vec::new() }
    }

    /// Adds a cell at the end.
    pub(super) fn push(&mut self, cell: &str) -> Result<(), Fault> {
        let end = u32::try_from(self.text.len() + cell.len()).map_err(|_| Fault::TooLarge)?;
        self.text.push_str(cell);
        self.ends.push(end);
        Ok(())
    }

    /// Frees unused capacity.
    pub(super) fn fit(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// Number of cells.
    pub(super) fn cells(&self) -> usize {
        self.ends.len()
    }

    /// Row of that index, of `columns` cells.
    pub(super) fn row(&self, index: usize, columns: usize) -> Option<Row<'_>> {
        let first = index.checked_mul(columns)?;
        let ends = self.ends.get(first..first.checked_add(columns)?)?;
        let start = if first == 0 { 0 } else { self.ends[first - 1] };
        Some(Row { text: &self.text, start, ends })
    }
}

/// A row of a [`Feeder`](super::Feeder): its cells by the index of their column.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    text: &'a str,
    start: u32,
    ends: &'a [u32],
}

impl<'a> Row<'a> {
    /// The cell of that column; none if the column does not exist.
    pub fn get(&self, column: usize) -> Option<&'a str> {
        let end = *self.ends.get(column)?;
        let start = if column == 0 { self.start } else { self.ends[column - 1] };
        self.text.get(start as usize..end as usize)
    }

    /// Its cells in the order of the columns.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let row = *self;
        (0..row.ends.len()).filter_map(move |column| row.get(column))
    }
}
