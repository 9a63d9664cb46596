//! The table that `show stat` prints: comma-separated values, with a `# ` before the head. A field
//! with a comma, a quote or a line break is in double quotes, which it doubles.

use std::borrow::Cow;

/// Rows whose columns are found by name.
pub(super) struct Table<'a> {
    head: Vec<Cow<'a, str>>,
    rows: Vec<Vec<Cow<'a, str>>>,
}

impl<'a> Table<'a> {
    /// None unless it is a table of proxies and servers.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut lines = Lines(text.strip_prefix("# ")?);
        let head = lines.next()?;
        let has = |name: &str| head.iter().any(|column| column == name);
        (has("pxname") && has("svname")).then(|| Self { rows: lines.filter(|row| row.len() > 1).collect(), head })
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The value of `column`; none if it is missing or empty.
    pub(super) fn text(&self, row: usize, column: &str) -> Option<&str> {
        let index = self.head.iter().position(|name| name == column)?;
        self.rows.get(row)?.get(index).map(AsRef::as_ref).filter(|text| !text.is_empty())
    }

    /// The same as a number.
    pub(super) fn number(&self, row: usize, column: &str) -> Option<f64> {
        self.text(row, column)?.parse().ok().filter(|value: &f64| value.is_finite())
    }
}

/// The remaining text, taken line by line.
struct Lines<'a>(&'a str);

impl<'a> Iterator for Lines<'a> {
    type Item = Vec<Cow<'a, str>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let mut fields = Vec::new();
        loop {
            let (field, rest) = field(self.0);
            fields.push(field);
            self.0 = rest.get(1..).unwrap_or_default();
            if !rest.starts_with(',') {
                return Some(fields);
            }
        }
    }
}

/// The first field, and the text from its comma or line break on.
fn field(text: &str) -> (Cow<'_, str>, &str) {
    let Some(mut rest) = text.strip_prefix('"') else {
        let (field, rest) = text.split_at(text.find([',', '\n']).unwrap_or(text.len()));
        return (Cow::Borrowed(field), rest);
    };
    let mut field = String::new();
    while let Some(quote) = rest.find('"') {
        field += &rest[..quote];
        rest = &rest[quote + 1..];
        let Some(more) = rest.strip_prefix('"') else { break };
        field.push('"');
        rest = more;
    }
    let end = rest.find([',', '\n']).unwrap_or(rest.len());
    (Cow::Owned(field), &rest[end..])
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn fields_plain_and_in_quotes() {
        let lines: Vec<_> = Lines("a,,\"b, \"\"c\"\"\nd\",\ne\n").collect();
        assert_eq!(lines, [vec!["a", "", "b, \"c\"\nd", ""], vec!["e"]]);
        // Whatever was cut off ends there.
        for cut in ["\"", "\"a", "\"a\"\"", "a,\"", ","] {
            assert_eq!(Lines(cut).count(), 1, "{cut}");
        }
    }
}
