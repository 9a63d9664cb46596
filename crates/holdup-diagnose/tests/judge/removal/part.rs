//! What a recording can be without: one source of it, or one table.

use std::collections::BTreeSet;

use holdup_recording::Recording;
use holdup_recording::tables::Tables;

/// What is taken away.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// All that one source said, in whatever table.
    Source(String),
    /// A table, whoever wrote it.
    Table(&'static str),
}

/// Does `$what` with each table of `$tables` as `$table`.
macro_rules! each_table {
    ($tables:expr, [$($name:ident)*], |$table:ident, $of:ident| $what:expr) => {
        {
            $({
                let ($table, $of) = (&mut $tables.$name, stringify!($name));
                $what;
            })*
        }
    };
}

macro_rules! each_table_with_a_source {
    ($tables:expr, |$table:ident, $of:ident| $what:expr) => {
        each_table!($tables, [samples threads sessions statements stages spans exchanges plans settings events], |$table, $of| $what)
    };
}

impl Part {
    /// Everything that a recording can be without. That samples are a table says little: they are what sources are for.
    pub fn of(recording: &Recording) -> Vec<Self> {
        let mut tables = recording.tables.clone();
        let mut sources = BTreeSet::new();
        each_table_with_a_source!(tables, |table, _of| sources
            .extend(table.rows.iter().map(|row| row.source.to_string())));
        let mut parts: Vec<Self> = sources.into_iter().map(Self::Source).collect();
        each_table!(
            tables,
            [requests threads sessions statements stages spans exchanges plans executions settings events],
            |table, of| if !table.rows.is_empty() {
                parts.push(Self::Table(of));
            }
        );
        parts
    }

    /// Takes it out of `recording`.
    pub fn take_from(&self, recording: &mut Recording) {
        let tables: &mut Tables = &mut recording.tables;
        match self {
            Self::Source(source) => {
                each_table_with_a_source!(tables, |table, _of| table.rows.retain(|row| row.source != *source));
            }
            Self::Table(name) => each_table!(
                tables,
                [requests threads sessions statements stages spans exchanges plans executions settings events],
                |table, of| if of == *name {
                    table.rows.clear();
                    table.present = false;
                }
            ),
        }
        if self.is_client() {
            recording.latencies.clear();
        }
    }

    fn is_client(&self) -> bool {
        *self == Self::Table("requests")
    }
}
