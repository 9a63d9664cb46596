//! JSON lines: one object per line; blank lines are skipped. It is read twice, first for the names
//! of the columns, so that no row has to be kept in another form until all names are known.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::{Fault, Feeder, FeederError, MAX_COLUMNS, Table, check_columns};

impl Feeder {
    /// Rows of a file of JSON lines. The columns are the top-level names of all rows, in order of appearance; where a
    /// row lacks one, its cell is empty. A string's cell is its content, of anything else it is the JSON text as
    /// written (`1.10`, `null`, `[1, 2]`). Errors name `file`.
    ///
    /// # Errors
    ///
    /// What is wrong, and on which line: see [`Fault`].
    ///
    /// ```
    /// use holdup_load::script::Feeder;
    ///
    /// let orders = Feeder::jsonl(b"{\"id\": 1.10}\n{\"tags\": [\"a\"], \"id\": \"x\"}\n".to_vec(), "orders.jsonl")?;
    /// assert_eq!(orders.columns(), ["id", "tags"]);
    /// let row = |index| orders.row(index).map(|row| row.iter().collect::<Vec<_>>());
    /// assert_eq!(row(0), Some(vec!["1.10", ""]));
    /// assert_eq!(row(1), Some(vec!["x", r#"["a"]"#]));
    /// # Ok::<(), holdup_load::script::FeederError>(())
    /// ```
    pub fn jsonl(bytes: Vec<u8>, file: &str) -> Result<Self, FeederError> {
        let error = |line, fault| FeederError { file: file.to_owned(), line, fault };
        let text = super::text(&bytes, file)?;
        let mut columns = Columns::default();
        for (number, line) in lines(text) {
            read(line, &mut |name, _| columns.see(name, number)).map_err(|fault| error(number, fault))?;
        }
        check_columns(&columns.names).map_err(|fault| error(columns.line_of(&fault), fault))?;
        let mut table = Table::with_capacity(text.len());
        let mut row = PartialRow::new(columns.names.len());
        for (number, line) in lines(text) {
            row.clear();
            let mut fill = |name: &str, raw: &str| row.put(&columns, name, raw);
            read(line, &mut fill).and_then(|()| row.push_to(&mut table)).map_err(|fault| error(number, fault))?;
        }
        Self::new(columns.names, table).map_err(|fault| error(0, fault))
    }
}

/// Non-empty lines, and their numbers from 1.
fn lines(text: &str) -> impl Iterator<Item = (u64, &str)> {
    let numbered = (1..).zip(text.lines());
    numbered.filter(|(_, line)| !line.trim_ascii().is_empty())
}

/// The columns so far.
#[derive(Default)]
struct Columns {
    names: Vec<String>,
    /// Lines in which they appeared first.
    lines: Vec<u64>,
    by_name: HashMap<String, usize>,
}

impl Columns {
    fn see(&mut self, name: &str, line: u64) -> Result<(), Fault> {
        if self.by_name.contains_key(name) {
            return Ok(());
        }
        if self.names.len() == MAX_COLUMNS {
            return Err(Fault::TooManyColumns);
        }
        self.by_name.insert(name.to_owned(), self.names.len());
        self.names.push(name.to_owned());
        self.lines.push(line);
        Ok(())
    }

    /// The line in which a faulty name appeared first.
    fn line_of(&self, fault: &Fault) -> u64 {
        let index = match fault {
            Fault::NoName(column) => column.checked_sub(1),
            Fault::OddName(name) => self.by_name.get(name).copied(),
            _ => None,
        };
        index.and_then(|index| self.lines.get(index)).copied().unwrap_or(0)
    }
}

/// One row's cells before they are in the order of the columns.
struct PartialRow {
    text: String,
    cells: Vec<Option<Range<usize>>>,
}

impl PartialRow {
    fn new(columns: usize) -> Self {
        Self { text: String::new(), cells: vec![None; columns] }
    }

    fn clear(&mut self) {
        self.text.clear();
        self.cells.fill(None);
    }

    fn put(&mut self, columns: &Columns, name: &str, raw: &str) -> Result<(), Fault> {
        let cell = columns.by_name.get(name).and_then(|index| self.cells.get_mut(*index));
        let Some(cell @ None) = cell else { return Err(Fault::Twice(name.to_owned())) };
        let start = self.text.len();
        match crate::script::capture::json_text(raw) {
            Ok(text) => self.text.push_str(&text),
            Err(_) => return Err(Fault::NotJson(format!("half of a surrogate pair in {raw}"))),
        }
        *cell = Some(start..self.text.len());
        Ok(())
    }

    fn push_to(&self, table: &mut Table) -> Result<(), Fault> {
        let mut texts = self.cells.iter().map(|cell| cell.clone().map_or("", |range| &self.text[range]));
        texts.try_for_each(|text| table.push(text))
    }
}

/// Calls `member` with each name and the JSON text of its value.
fn read(line: &str, member: Member<'_>) -> Result<(), Fault> {
    let mut fault = None;
    let mut reader = serde_json::Deserializer::from_str(line);
    let result = reader.deserialize_map(Members { member, fault: &mut fault }).and_then(|()| reader.end());
    match (fault, result) {
        (Some(fault), _) => Err(fault),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) if error.classify() == Category::Data => Err(Fault::NotObject),
        // The parser sees a single line, so its line number is meaningless.
        (None, Err(error)) => Err(Fault::NotJson(error.to_string().replace(" at line 1 column ", " at column "))),
    }
}

type Member<'m> = &'m mut dyn FnMut(&str, &str) -> Result<(), Fault>;

struct Members<'m> {
    member: Member<'m>,
    fault: &'m mut Option<Fault>,
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((Name(name), raw)) = map.next_entry::<Name<'_>, &RawValue>()? {
            if let Err(fault) = (self.member)(&name, raw.get()) {
                *self.fault = Some(fault);
                return Err(A::Error::custom("the row cannot be used"));
            }
        }
        Ok(())
    }
}

/// A member's name; borrowed from the text unless it has escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn feeder(text: &[u8]) -> Feeder {
        Feeder::jsonl(text.to_vec(), "x.jsonl").expect("a feeder")
    }

    fn error(text: &[u8]) -> String {
        Feeder::jsonl(text.to_vec(), "x.jsonl").err().expect("an error").to_string()
    }

    #[test]
    fn columns_are_those_of_all_rows_and_cells_stand_in_their_order() {
        let feeder = feeder(
            "\u{FEFF}{\"b\": \"x\\n\\u00e9\", \"a\": 12345678901234567890123}\r\n\n \t\n{}\n{\"c\": {\"d\": [1.50]}, \"\\u0061\": null, \"b\": true}"
                .as_bytes(),
        );
        assert_eq!(feeder.columns(), ["b", "a", "c"]);
        let rows: Vec<Vec<&str>> =
            (0..feeder.len()).map(|index| feeder.row(index).expect("a row").iter().collect()).collect();
        assert_eq!(
            rows,
            [["x\n\u{e9}", "12345678901234567890123", ""], ["", "", ""], ["true", "null", "{\"d\": [1.50]}"]]
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        assert_eq!(error(b""), "x.jsonl: has no rows");
        assert_eq!(error(b"\n \n"), "x.jsonl: has no rows");
        assert_eq!(error(b"{}\n{}"), "x.jsonl: has no rows");
        assert!(error(b"{\"a\": 1}\n\n[1]").starts_with("x.jsonl:3: is not an object"));
        assert!(error(b"{\"a\": 1}\n7").starts_with("x.jsonl:2: is not an object"));
        assert_eq!(error(b"{\"a\": 1}\n{\"a\": }"), "x.jsonl:2: is not JSON: expected value at column 7");
        assert!(error(b"{\"a\": 1} {\"a\": 2}").starts_with("x.jsonl:1: is not JSON: trailing characters"));
        assert!(error(b"{\"a\": 1\n}").starts_with("x.jsonl:1: is not JSON: EOF"));
        assert_eq!(error(b"{\"a\": 1}\n{\"b\": 1, \"b\": 2}"), "x.jsonl:2: 'b' is there twice");
        assert_eq!(error(b"{\"a\": 1}\n{\"b\": 1, \"\": 2}"), "x.jsonl:2: column 3 has no name");
        assert!(error(b"{\"a\": 1}\n{\"a\\n\": 1}").starts_with("x.jsonl:2: the column's name \"a\\n\" has control"));
        assert!(error(b"{\"a\": \"\\ud800\"}").starts_with("x.jsonl:1: is not JSON: half of a surrogate pair"));
        assert_eq!(error(b"{\"a\": 1}\n{\"a\": \"\xff\"}"), "x.jsonl:2: is not UTF-8 from byte 16 of the file on");
        let names: Vec<String> = (0..2_000).map(|name| format!("\"{name}\": 1")).collect();
        assert!(error(format!("{{{}}}", names.join(",")).as_bytes()).contains("more than 1024 columns"));
    }

    #[test]
    fn nesting_does_not_end_the_stack() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let feeder = feeder(format!("{{\"a\": {deep}}}").as_bytes());
        assert_eq!(feeder.row(0).and_then(|row| row.get(0)), Some(deep.as_str()));
        assert!(error("{\"a\":".repeat(100_000).as_bytes()).starts_with("x.jsonl:1: is not JSON: EOF"));
    }
}
