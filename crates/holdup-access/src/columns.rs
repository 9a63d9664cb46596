//! W3C's extended log format: a line `#Fields:` names the columns of the lines after it. IIS and
//! CloudFront write it; CloudFront's `time-taken` is in seconds, that of IIS in milliseconds.

use std::borrow::Cow;

use super::entry::{Edge, Entry, Field, Part, Scale};

/// The columns, by the last `#Fields:` line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    fields: Vec<Column>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Column {
    Date,
    Time,
    Field(Field),
}

impl Columns {
    /// Reads a line that begins with `#`; whether it names columns.
    pub fn directive(&mut self, line: &str) -> bool {
        let Some(names) = line.strip_prefix("#Fields:") else { return false };
        self.fields = names.split_ascii_whitespace().map(column).collect();
        true
    }

    /// # Errors
    /// What is missing.
    pub fn read<'a>(&self, line: &'a str) -> Result<Entry<'a>, &'static str> {
        if self.fields.is_empty() {
            return Err("no line #Fields: before it names its columns");
        }
        let mut entry = Entry::default();
        let (mut date, mut time) = (None, None);
        let separator = if line.contains('\t') { '\t' } else { ' ' };
        let mut texts = line.split(separator);
        for column in &self.fields {
            let text = texts.next().ok_or("it has fewer columns than #Fields: names")?;
            match column {
                Column::Date => date = Some(text),
                Column::Time => time = Some(text),
                Column::Field(field) => entry.put(*field, text)?,
            }
        }
        let (date, time) = date.zip(time).ok_or("its columns have no date and time")?;
        entry.moment(&format!("{date}T{time}Z"), Edge::End)?;
        if entry.method == "-" {
            entry.method = Cow::Borrowed("");
        }
        Ok(entry)
    }
}

fn column(name: &str) -> Column {
    Column::Field(match name {
        "date" => return Column::Date,
        "time" => return Column::Time,
        "cs-method" => Field::Method,
        "cs-uri-stem" | "cs-uri" => Field::Target,
        "sc-status" => Field::Status,
        "time-taken" => Field::Spent(Part::Whole, Scale::SecondsOrMilliseconds),
        _ => Field::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_iis_and_of_cloudfront() {
        let mut columns = Columns::default();
        assert!(!columns.directive("#Version: 1.0") && columns.read("x").is_err());
        assert!(columns.directive("#Fields: date time s-ip cs-method cs-uri-stem sc-status time-taken"));
        let line = "2026-11-03 08:09:10 192.0.2.1 GET /cart/17 200 84";
        let entry = columns.read(line).unwrap();
        assert_eq!((&*entry.method, &*entry.target, entry.status), ("GET", "/cart/17", 200));
        assert_eq!((entry.whole_ns, entry.started_at()), (Some(84_000_000), Some(1_793_693_350_416_000_000)));
        assert!(columns.directive("#Fields: date time x-edge-location cs-method cs-uri-stem sc-status time-taken"));
        let entry = columns.read("2026-11-03\t08:09:10\tFRA2\tPOST\t/pay\t502\t0.084").unwrap();
        assert_eq!((entry.whole_ns, entry.status), (Some(84_000_000), 502));
        for end in 0..line.len() {
            let _ = columns.read(&line[..end]);
        }
        assert!(columns.read("2026-11-03 08:09:10 192.0.2.1 GET /cart/17 200").is_err());
    }
}
