//! Tables and indexes as a server's catalogs list them, under the names that statements use. Shared
//! by the code that reads catalogs and the code that advises on statements.

/// An index that a table has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Its columns in order; an expression is the empty name.
    pub columns: Vec<String>,
    /// Whether no two rows share the values of all its columns.
    pub is_unique: bool,
}

/// A table as its server has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name as statements write it: with the schema if they do.
    pub name: String,
    /// Its columns.
    pub columns: Vec<String>,
    /// Its indexes.
    pub indexes: Vec<Index>,
    /// Number of rows, as far as the server knows.
    pub rows: Option<f64>,
}

/// The planner's cost of a statement without an index and with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Without the index, in the planner's unit.
    pub cost_before: f64,
    /// With the index.
    pub cost_after: f64,
    /// Whether the planner would use the index.
    pub is_used: bool,
}

impl Index {
    /// Builds a table's indexes from its indexed columns in order: the index's name, whether it is
    /// unique, the column.
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
