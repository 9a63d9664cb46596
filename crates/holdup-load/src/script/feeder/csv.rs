//! Comma-separated values (RFC 4180) with a header line. The reader is a little more lenient: it
//! accepts any end of line, blank lines, a byte order mark, and blanks around the columns' names.
//! Cells stay as they are.

use csv::{ReaderBuilder, StringRecord};

use super::{Fault, Feeder, FeederError, Table, check_columns};

impl Feeder {
    /// Rows of a CSV file, whose first line names the columns. Errors name `file`.
    ///
    /// # Errors
    ///
    /// What is wrong, and on which line: see [`Fault`].
    ///
    /// ```
    /// use holdup_load::script::Feeder;
    ///
    /// let users = Feeder::csv(b"email,note\na@x.org,\"says \"\"hi\"\", twice\"\n".to_vec(), "users.csv")?;
    /// assert_eq!(users.columns(), ["email", "note"]);
    /// assert_eq!(users.row(0).and_then(|row| row.get(1)), Some(r#"says "hi", twice"#));
    ///
    /// let error = Feeder::csv(b"email,note\na@x.org\n".to_vec(), "users.csv").err().map(|error| error.to_string());
    /// assert_eq!(error.as_deref(), Some("users.csv:2: the row has 1 cells, the header names 2 columns"));
    /// # Ok::<(), holdup_load::script::FeederError>(())
    /// ```
    pub fn csv(bytes: Vec<u8>, file: &str) -> Result<Self, FeederError> {
        let text = super::text(&bytes, file)?;
        read(text).map_err(|(byte, fault)| FeederError { file: file.to_owned(), line: line_at(text, byte), fault })
    }
}

/// Reads everything; an error says at which byte the faulty row begins, none if it is about the
/// whole file.
fn read(text: &str) -> Result<Feeder, (Option<usize>, Fault)> {
    let mut reader = Reader::new(text);
    if !reader.next()? {
        return Err((None, Fault::Empty));
    }
    let columns: Vec<String> = reader.record.iter().map(|name| name.trim().to_owned()).collect();
    let is_separator = |character: &char| matches!(character, ';' | '\t' | '|');
    if let [only] = &columns[..]
        && let Some(separator) = only.chars().find(is_separator)
    {
        return Err((Some(reader.begin), Fault::Separator(separator)));
    }
    check_columns(&columns).map_err(|fault| (Some(reader.begin), fault))?;
    let mut table = Table::with_capacity(text.len());
    while reader.next()? {
        let cells = reader.record.len();
        if cells != columns.len() {
            return Err((Some(reader.begin), Fault::Ragged { cells, columns: columns.len() }));
        }
        let mut pushed = reader.record.iter().map(|cell| table.push(cell));
        pushed.find(Result::is_err).unwrap_or(Ok(())).map_err(|fault| (Some(reader.begin), fault))?;
    }
    Feeder::new(columns, table).map_err(|fault| (None, fault))
}

/// Reads row by row, and keeps the place where each begins.
struct Reader<'t> {
    text: &'t str,
    reader: csv::Reader<&'t [u8]>,
    record: StringRecord,
    /// Where the record begins.
    begin: usize,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Self {
        let reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        Self { text, reader, record: StringRecord::new(), begin: 0 }
    }

    /// Reads the next record; false at the end.
    fn next(&mut self) -> Result<bool, (Option<usize>, Fault)> {
        let before = self.byte();
        // Blank lines between records count as part of the next one.
        let blank = self.text.as_bytes()[before..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        self.begin = before + blank.count();
        let is_there = self.reader.read_record(&mut self.record);
        let is_there = is_there.map_err(|error| (Some(self.begin), Fault::Unreadable(error.to_string())))?;
        if is_there && self.is_open() {
            return Err((Some(self.begin), Fault::OpenQuote));
        }
        Ok(is_there)
    }

    fn byte(&self) -> usize {
        (self.reader.position().byte() as usize).min(self.text.len())
    }

    /// Whether the record reaches to the end of the file because a quotation mark was not closed:
    /// within a cell that opens with one, they come in pairs.
    fn is_open(&self) -> bool {
        if self.byte() < self.text.len() {
            return false;
        }
        let record = &self.text[self.begin.min(self.text.len())..];
        (record.starts_with('"') || record.contains(",\"")) && record.matches('"').count() % 2 == 1
    }
}

/// The line, from 1, that contains the byte. A line ends with CR LF, LF or CR. Lines are counted
/// only when this is called.
fn line_at(text: &str, byte: Option<usize>) -> u64 {
    let Some(byte) = byte else { return 0 };
    let before = &text.as_bytes()[..byte];
    let ends = before.iter().filter(|byte| **byte == b'\n').count();
    let lone = before.iter().zip(before.iter().skip(1).chain([&0])).filter(|pair| *pair.0 == b'\r' && *pair.1 != b'\n');
    1 + (ends + lone.count()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &[u8]) -> Vec<Vec<String>> {
        let feeder = Feeder::csv(text.to_vec(), "x.csv").expect("a feeder");
        (0..feeder.len()).map(|index| feeder.row(index).expect("a row").iter().map(str::to_owned).collect()).collect()
    }

    fn error(text: &[u8]) -> String {
        Feeder::csv(text.to_vec(), "x.csv").err().expect("an error").to_string()
    }

    #[test]
    fn cells_are_what_rfc_4180_says_they_are() {
        assert_eq!(rows(b"a,b\n1,2\n"), [["1", "2"]]);
        assert_eq!(rows(b"a,b\r\n1,\"x,\"\"y\"\"\r\nz\"\r\n,\r\n"), [["1", "x,\"y\"\r\nz"], ["", ""]]);
        assert_eq!(rows(b"a\n1\n\n\n2"), [["1"], ["2"]]);
        assert_eq!(rows(b"a\r1\r2\r"), [["1"], ["2"]]);
        assert_eq!(rows(b"a,b\n 1 ,\0\n"), [[" 1 ", "\0"]]);
        assert_eq!(rows("a\né5\"x\n".as_bytes()), [["é5\"x"]]);
    }

    #[test]
    fn names_of_columns_are_freed_of_blanks_and_marks() {
        let feeder = Feeder::csv(b"\xEF\xBB\xBFid , e-mail\n1,2".to_vec(), "x.csv").expect("a feeder");
        assert_eq!(feeder.columns(), ["id", "e-mail"]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        assert!(error(b"").starts_with("x.csv: is empty"));
        assert!(error(b"\n\r\n").starts_with("x.csv: is empty"));
        assert_eq!(error(b"a,b\n"), "x.csv: has no rows");
        assert_eq!(error(b"a,b\n1,2\n\n3\n"), "x.csv:4: the row has 1 cells, the header names 2 columns");
        assert_eq!(
            error(b"a,b\r\n\"1\r\n\",2\r\n1,2,3\r\n4,5"),
            "x.csv:4: the row has 3 cells, the header names 2 columns"
        );
        assert_eq!(error(b"a,b\r1,2\r3\r"), "x.csv:3: the row has 1 cells, the header names 2 columns");
        assert_eq!(error(b"a,,c\n1,2,3"), "x.csv:1: column 2 has no name");
        assert_eq!(error(b"\n\na,b, a\n1,2,3"), "x.csv:3: 'a' is there twice");
        assert_eq!(error(b"a;b\n1;2"), "x.csv:1: the cells seem to be separated by ';'; use commas");
        assert_eq!(
            error(b"a,b\n1,2\n3,\"4\n5,6\n7,8"),
            "x.csv:3: a cell of this row opens with a quotation mark and none closes it"
        );
        assert_eq!(
            error(b"a\n1\n\"2\n3"),
            "x.csv:3: a cell of this row opens with a quotation mark and none closes it"
        );
        assert_eq!(error(b"a\n1\n2\xff\n"), "x.csv:3: is not UTF-8 from byte 5 of the file on");
        assert!(error(b"a\0\n1").contains("control characters"));
        assert!(error(b"\xff\xfea\0").contains("not UTF-8"));
        assert!(error("a,".repeat(2_000).as_bytes()).contains("more than 1024 columns"));
    }

    #[test]
    fn many_rows_take_their_bytes_and_four_for_each_cell() {
        let mut text = b"id,name\n".to_vec();
        (0..50_000).for_each(|row| text.extend_from_slice(format!("{row},name-{row}\n").as_bytes()));
        let bytes = text.len();
        let feeder = Feeder::csv(text, "x.csv").expect("a feeder");
        let last = feeder.row(49_999).and_then(|row| row.get(1));
        assert_eq!((feeder.len(), last, feeder.row(50_000).is_none()), (50_000, Some("name-49999"), true));
        assert!(feeder.memory_bytes() <= bytes + 4 * 100_000, "{}", feeder.memory_bytes());
    }
}
