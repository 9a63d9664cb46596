//! Tables and indexes as statements name them: what a server's catalogs say, for whoever reads those and for whoever advises on statements.

/// An index that a table has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Its columns in order; an expression is the empty name.
    pub columns: Vec<String>,
    /// Whether the values of all its columns together stand in one row only.
    pub is_unique: bool,
}

/// A table as its server has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// As statements name it: with its schema if they do.
    pub name: String,
    /// Its columns.
    pub columns: Vec<String>,
    /// Its indexes.
    pub indexes: Vec<Index>,
    /// Rows, as far as the server knows.
    pub rows: Option<f64>,
}

impl Index {
    /// The indexes of a table, from their columns in order: the index's name, whether it is unique, the column.
    pub fn gather(columns: impl IntoIterator<Item = (String, bool, String)>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (name, is_unique, column) in columns {
            match all.last_mut().filter(|last| last.name == name) {
                Some(last) => last.columns.push(column),
                None => all.push(Self { name, columns: vec![column], is_unique }),
            }
        }
        all
    }
}
