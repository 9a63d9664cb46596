//! The objects of the server: indexes, and tables with their columns. The server shows those of tables
//! on which the account has any right. One statement a kind, from `information_schema` alone.

use holdup_recording::Coverage;
use holdup_recording::catalog::{Form, Key, Kind};

use super::failure::Failure;
use super::server::{Row, Server};
use super::status;
use crate::catalogs::{self, MOST, Reading};
use crate::coverage::{Line as _, part};
use crate::pace::Turn;
use crate::reading::{Out, tell};

/// Counters of statements that change definitions.
const DEFINED: [&str; 10] = [
    "com_alter_table",
    "com_create_index",
    "com_drop_index",
    "com_create_table",
    "com_drop_table",
    "com_rename_table",
    "com_create_trigger",
    "com_drop_trigger",
    "com_create_view",
    "com_drop_view",
];

/// Tables of apps.
const OF_APPS: &str = "TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')";

/// Most columns of indexes, and of tables, that are read: one a row.
const ROWS: usize = 60_000;

/// State between readings.
#[derive(Default)]
pub(super) struct Catalogs {
    reading: Reading<f64>,
    /// By the counters of the last sample.
    mark: f64,
    /// Whether to read them at all.
    is_allowed: bool,
}

impl Catalogs {
    /// Takes over what a probe found.
    pub(super) fn allow(&mut self, is_allowed: bool) {
        self.is_allowed = is_allowed;
    }

    /// Reads settings and objects if the server's counters, which were just read, show that definitions
    /// changed.
    pub(super) fn sample(&mut self, server: &Server, counters: &Counters, out: &mut Out) -> Result<(), Failure> {
        self.mark = DEFINED.iter().filter_map(|name| counters.get(*name)).sum();
        let mut turn = Turn::default();
        let Some(begun) = self.reading.due_at(&self.mark, &turn) else { return Ok(()) };
        let result = settings(server, out).and_then(|()| self.read(server, out));
        self.reading.note(self.mark, &mut turn, begun, result)
    }

    /// Reads the objects along with the settings, unless they were read a moment ago.
    pub(super) fn with_settings(&mut self, server: &Server, out: &mut Out) -> Result<(), Failure> {
        let Some(begun) = self.reading.due_with_settings(&self.mark) else { return Ok(()) };
        let result = self.read(server, out);
        self.reading.note(self.mark, &mut Turn::default(), begun, result)
    }

    fn read(&mut self, server: &Server, out: &mut Out) -> Result<(), Failure> {
        if !self.is_allowed {
            return Ok(());
        }
        let (indexes, is_cut) = indexes(server)?;
        self.reading.put(Kind::Index, indexes, is_cut, out);
        let (tables, is_cut) = tables(server)?;
        self.reading.put(Kind::Table, tables, is_cut, out);
        Ok(())
    }
}

/// The server's counters by name, in small letters.
pub(super) type Counters = std::collections::HashMap<String, f64>;

fn settings(server: &Server, out: &mut Out) -> Result<(), Failure> {
    let found = status::settings(server)?;
    tell(out.batch, out.source(), found);
    Ok(())
}

/// Columns of `information_schema.STATISTICS` that not every server has.
struct Known {
    expression: bool,
    /// The column that says if an index is in use, its value if not, and the word for that.
    unused: Option<(&'static str, &'static str, &'static str)>,
}

fn known(server: &Server) -> Result<Known, Failure> {
    let none = server.table("SELECT * FROM information_schema.STATISTICS LIMIT 0")?;
    let has = |name: &str| none.columns.iter().any(|column| column.eq_ignore_ascii_case(name));
    let unused = [("IS_VISIBLE", "NO", "invisible"), ("IGNORED", "YES", "ignored")];
    Ok(Known { expression: has("EXPRESSION"), unused: unused.into_iter().find(|(column, ..)| has(column)) })
}

/// Indexes, each with the statement that makes it; whether the list is cut.
fn indexes(server: &Server) -> Result<(catalogs::Read, bool), Failure> {
    let Known { expression, unused } = known(server)?;
    let expression = if expression { "EXPRESSION" } else { "NULL" };
    let state = unused.map_or("NULL", |(column, ..)| column);
    let rows = server.rows(&format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, NON_UNIQUE, INDEX_TYPE, COLUMN_NAME, SUB_PART, COLLATION, {expression}, {state} \
         FROM information_schema.STATISTICS WHERE {OF_APPS} ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX LIMIT {ROWS}"
    ))?;
    let is_same = |a: &Row, b: &Row| (0..3).all(|at| a.text(at) == b.text(at));
    let of_index = |rows: &[Row]| {
        let first = rows.first()?;
        let text = |at| first.text(at).unwrap_or_default();
        let is_unused = unused.filter(|(_, value, _)| text(9).eq_ignore_ascii_case(value));
        let form = Form::new(is_unused.map_or("", |(.., word)| word), statement(rows));
        Some((Key::new(Kind::Index, format!("{}.{}", text(0), text(1)), text(2)), Some(form)))
    };
    Ok((rows.chunk_by(is_same).filter_map(of_index).collect(), rows.len() >= ROWS))
}

/// The statement that makes the index with these columns.
fn statement(rows: &[Row]) -> String {
    let text = |row: &Row, at| row.text(at).unwrap_or_default().to_owned();
    let Some(first) = rows.first() else { return String::new() };
    let (name, kind) = (text(first, 2), text(first, 4));
    let column = |row: &Row| match (row.text(5), row.text(8)) {
        (Some(column), _) => {
            let part = row.int(6).map_or_else(String::new, |length| format!("({length})"));
            let order = if row.text(7) == Some("D") { " DESC" } else { "" };
            format!("{}{part}{order}", quoted(column))
        }
        (None, Some(expression)) => format!("({expression})"),
        (None, None) => "?".to_owned(),
    };
    let columns = rows.iter().map(column).collect::<Vec<_>>().join(", ");
    let what = match (name.as_str(), first.int(3), kind.as_str()) {
        ("PRIMARY", ..) => "PRIMARY KEY".to_owned(),
        (_, _, special @ ("FULLTEXT" | "SPATIAL")) => format!("{special} INDEX {}", quoted(&name)),
        (_, Some(0), _) => format!("UNIQUE INDEX {}", quoted(&name)),
        _ => format!("INDEX {}", quoted(&name)),
    };
    format!("ALTER TABLE {}.{} ADD {what} ({columns})", quoted(&text(first, 0)), quoted(&text(first, 1)))
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Tables, each with a column a line; whether the list is cut.
fn tables(server: &Server) -> Result<(catalogs::Read, bool), Failure> {
    let rows = server.rows(&format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE FROM information_schema.COLUMNS \
         WHERE {OF_APPS} ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION LIMIT {ROWS}"
    ))?;
    let is_same = |a: &Row, b: &Row| (0..2).all(|at| a.text(at) == b.text(at));
    let of_table = |rows: &[Row]| {
        let first = rows.first()?;
        let text = |row: &Row, at| row.text(at).unwrap_or_default().to_owned();
        let line = |row: &Row| {
            let null = if row.text(4) == Some("NO") { " NOT NULL" } else { "" };
            format!("{} {}{null}", text(row, 2), text(row, 3))
        };
        let lines = rows.iter().map(line).collect::<Vec<_>>().join("\n");
        let name = format!("{}.{}", text(first, 0), text(first, 1));
        Some((Key::new(Kind::Table, "", name), Some(Form::new("", lines))))
    };
    Ok((rows.chunk_by(is_same).filter_map(of_table).collect(), rows.len() >= ROWS))
}

/// The line of the coverage, and whether to read. Without any right on tables the server shows none.
pub(super) fn find(server: &Server, source: &str, account: &str) -> Result<(Coverage, bool), Failure> {
    let entry = part(source, catalogs::PART);
    let count = format!(
        "SELECT COUNT(*), @@global.table_definition_cache FROM \
         (SELECT 1 FROM information_schema.TABLES WHERE {OF_APPS} LIMIT {MOST}) AS holdup_all"
    );
    let rows = server.rows(&count)?;
    let number = |at| rows.first().and_then(|row| row.int(at)).unwrap_or(0);
    let (tables, kept) = (number(0), number(1));
    if tables == 0 {
        let why = "the account has no right on any table, so the server does not show it tables and indexes: \
             an index that goes has no name";
        return Ok((entry.absent(why).enable(format!("GRANT REFERENCES ON *.* TO {account};")), false));
    }
    // These read each table's definition through the cache, and would push out what statements need there.
    let reads_through_cache = server.release.is_mariadb() || server.release.version.0 < 8;
    if reads_through_cache && tables > kept {
        let why = format!(
            "{tables} tables, and room for {kept} definitions in the server's cache: reading all would push out those in use"
        );
        let enable = format!("SET GLOBAL table_definition_cache = {};", tables + tables / 10);
        return Ok((entry.absent(why).enable(enable), false));
    }
    let is_cut = usize::try_from(tables).is_ok_and(|tables| tables >= MOST);
    Ok((if is_cut { entry.partial(catalogs::cut(Kind::Table)) } else { entry }, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_made_again_with_its_parts() {
        let row = |name: &str,
                   unique: &str,
                   kind: &str,
                   column: Option<&str>,
                   length: Option<&str>,
                   order: &str,
                   of: Option<&str>| {
            let own = |text: &str| Some(text.to_owned());
            let mut all = vec![own("shop"), own("orders"), own(name), own(unique), own(kind)];
            all.extend([column.map(str::to_owned), length.map(str::to_owned), own(order), of.map(str::to_owned), None]);
            Row(all)
        };
        let two = [
            row("by_note", "1", "BTREE", Some("note"), Some("10"), "A", None),
            row("by_note", "1", "BTREE", Some("at`x"), None, "D", None),
        ];
        assert_eq!(statement(&two), "ALTER TABLE `shop`.`orders` ADD INDEX `by_note` (`note`(10), `at``x` DESC)");
        let primary = [row("PRIMARY", "0", "BTREE", Some("id"), None, "A", None)];
        assert_eq!(statement(&primary), "ALTER TABLE `shop`.`orders` ADD PRIMARY KEY (`id`)");
        let unique = [row("u", "0", "BTREE", None, None, "A", Some("lower(`note`)"))];
        assert_eq!(statement(&unique), "ALTER TABLE `shop`.`orders` ADD UNIQUE INDEX `u` ((lower(`note`)))");
        let words = [row("w", "1", "FULLTEXT", Some("note"), None, "A", None)];
        assert_eq!(statement(&words), "ALTER TABLE `shop`.`orders` ADD FULLTEXT INDEX `w` (`note`)");
    }
}
