//! A table as database clients print it: with tabs (`mysql -B`), as CSV, as psql does with or
//! without lines, as JSON. Columns are identified by name, in any order.

use std::collections::BTreeMap;

/// A row: values by the names of their columns, in small letters. NULLs are absent.
#[derive(Debug, Default)]
pub struct Row {
    values: BTreeMap<String, String>,
}

impl Row {
    /// A value; none if it is NULL, or the column does not exist.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    fn set(&mut self, name: &str, value: &str) {
        if value != "NULL" {
            self.values.insert(name.trim().to_ascii_lowercase(), value.to_owned());
        }
    }

    fn from_fields(names: &[String], values: &[String]) -> Option<Self> {
        let mut row = Self::default();
        if names.len() != values.len() {
            return None;
        }
        names.iter().zip(values).for_each(|(name, value)| row.set(name, value));
        Some(row)
    }
}

/// The form of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Tabs,
    Csv(u8),
    Aligned,
    Json,
}

fn first_line(head: &[u8]) -> &[u8] {
    head.split(|byte| *byte == b'\n').next().unwrap_or_default()
}

fn form(head: &[u8]) -> Option<Form> {
    let begin = head.trim_ascii_start();
    if matches!(begin.first(), Some(b'[' | b'{')) {
        return Some(Form::Json);
    }
    let line = first_line(head);
    let count = |byte: u8| line.iter().filter(|other| **other == byte).count();
    let is_ruled = || {
        head.split(|byte| *byte == b'\n').nth(1).is_some_and(|line| line.starts_with(b"---") && line.contains(&b'+'))
    };
    if count(b'\t') > 1 {
        Some(Form::Tabs)
    } else if is_ruled() {
        Some(Form::Aligned)
    } else if count(b'|') > 1 {
        Some(Form::Csv(b'|'))
    } else if count(b',') > 1 {
        Some(Form::Csv(b','))
    } else {
        None
    }
}

/// The column names of a table that begins with these bytes.
pub fn columns(head: &[u8]) -> Option<Vec<String>> {
    let form = form(head)?;
    if form == Form::Json {
        let at = memchr::memchr(b'{', head.get(..head.len().min(64))?)?;
        let mut names = Vec::new();
        // A name stands before a colon, at any place. Finding the wanted ones is enough.
        for part in head.get(at..)?.split(|byte| *byte == b'"').skip(1).step_by(2).take(400) {
            names.push(String::from_utf8_lossy(part).into_owned());
        }
        return Some(names);
    }
    split(form, first_line(head))
}

/// The fields of a line without line breaks in fields.
fn split(form: Form, line: &[u8]) -> Option<Vec<String>> {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end_matches('\r');
    Some(match form {
        Form::Tabs => line.split('\t').map(str::to_owned).collect(),
        Form::Csv(separator) => csv_record(line.as_bytes(), &mut 0, separator)?,
        Form::Aligned => line.split('|').map(|cell| cell.trim().to_owned()).collect(),
        Form::Json => return None,
    })
}

/// Passes on each row; `None` for an invalid one.
pub fn rows(data: &[u8], take: &mut dyn FnMut(Option<Row>)) {
    match form(data) {
        Some(Form::Tabs) => tabs(data, take),
        Some(Form::Csv(separator)) => csv(data, separator, take),
        Some(Form::Aligned) => aligned(data, take),
        Some(Form::Json) => json(data, take),
        None => {}
    }
}

/// How `mysql -B` writes bytes that would end a field or a line.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('0') => out.push('\0'),
                Some(other) => out.push(other),
                None => {}
            },
            _ => out.push(letter),
        }
    }
    out
}

fn tabs(data: &[u8], take: &mut dyn FnMut(Option<Row>)) {
    let mut names = Vec::new();
    for line in data.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        let Some(fields) = split(Form::Tabs, line) else { continue };
        if names.is_empty() {
            names = fields;
            continue;
        }
        let fields: Vec<String> = fields.iter().map(|field| unescaped(field)).collect();
        take(Row::from_fields(&names, &fields));
    }
}

/// The fields of the record at `at`, and its end.
fn csv_record(data: &[u8], at: &mut usize, separator: u8) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    loop {
        let mut field = Vec::new();
        if data.get(*at) == Some(&b'"') {
            *at += 1;
            loop {
                let found = *at + memchr::memchr(b'"', data.get(*at..)?)?;
                field.extend_from_slice(data.get(*at..found)?);
                *at = found + 1;
                if data.get(*at) != Some(&b'"') {
                    break;
                }
                field.push(b'"');
                *at += 1;
            }
        } else {
            let rest = data.get(*at..)?;
            let length = rest.iter().position(|byte| *byte == separator || *byte == b'\n').unwrap_or(rest.len());
            field.extend_from_slice(rest.get(..length)?.strip_suffix(b"\r").unwrap_or(rest.get(..length)?));
            *at += length;
        }
        fields.push(String::from_utf8_lossy(&field).into_owned());
        match data.get(*at) {
            Some(byte) if *byte == separator => *at += 1,
            Some(b'\r') => *at += 1,
            Some(b'\n') => {
                *at += 1;
                return Some(fields);
            }
            None => return Some(fields),
            Some(_) => return None,
        }
        if data.get(at.wrapping_sub(1)) == Some(&b'\r') && data.get(*at) == Some(&b'\n') {
            *at += 1;
            return Some(fields);
        }
    }
}

fn csv(data: &[u8], separator: u8, take: &mut dyn FnMut(Option<Row>)) {
    let mut at = 0;
    let Some(names) = csv_record(data, &mut at, separator) else { return };
    let mut last: Option<Vec<String>> = None;
    while at < data.len() {
        let begun = at;
        let Some(fields) = csv_record(data, &mut at, separator) else {
            take(None);
            at = begun + memchr::memchr(b'\n', data.get(begun..).unwrap_or_default()).map_or(data.len(), |end| end + 1);
            continue;
        };
        // psql's own last line, and the end of a file.
        if matches!(fields.as_slice(), [one] if one.is_empty() || one.starts_with('(') && one.contains(" row")) {
            continue;
        }
        // Without alignment psql writes line breaks in a value unchanged.
        if separator == b'|' && fields.len() < names.len() || last.is_some() {
            let mut whole = last.take().unwrap_or_default();
            let mut more = fields.into_iter();
            match (whole.last_mut(), more.next()) {
                (Some(text), Some(first)) => {
                    text.push('\n');
                    text.push_str(&first);
                }
                (None, Some(first)) => whole.push(first),
                _ => {}
            }
            whole.extend(more);
            if whole.len() < names.len() && whole.iter().map(String::len).sum::<usize>() < 1 << 20 {
                last = Some(whole);
                continue;
            }
            take(Row::from_fields(&names, &whole));
            continue;
        }
        take(Row::from_fields(&names, &fields));
    }
    if last.is_some() {
        take(None);
    }
}

/// psql's aligned form: a `+` at the end of a cell means that it continues in the next line.
fn aligned(data: &[u8], take: &mut dyn FnMut(Option<Row>)) {
    let mut lines = data.split(|byte| *byte == b'\n').map(|line| String::from_utf8_lossy(line).into_owned());
    let names: Vec<String> = lines.next().unwrap_or_default().split('|').map(|name| name.trim().to_owned()).collect();
    // The crosses of the rule show where columns end; cells may contain bars.
    let rule = lines.next().unwrap_or_default();
    let crosses: Vec<usize> = rule.char_indices().filter(|(_, letter)| *letter == '+').map(|(at, _)| at).collect();
    let mut whole: Vec<String> = Vec::new();
    for line in lines {
        let trimmed = line.trim_end();
        if trimmed.is_empty() || trimmed.starts_with('(') && trimmed.contains(" row") {
            continue;
        }
        let letters: Vec<char> = line.chars().collect();
        let mut goes_on = false;
        for column in 0..=crosses.len() {
            let from = if column == 0 { 0 } else { crosses.get(column - 1).map_or(0, |at| at + 1) };
            let to = crosses.get(column).copied().unwrap_or(letters.len()).min(letters.len());
            let cell: String = letters.get(from.min(to)..to).unwrap_or_default().iter().collect();
            let cell = cell.trim_end();
            let (cell, more) = cell.strip_suffix('+').map_or((cell, false), |cell| (cell, true));
            goes_on |= more;
            match whole.get_mut(column) {
                None => whole.push(cell.trim().to_owned()),
                Some(text) if !cell.trim().is_empty() || more => {
                    text.push('\n');
                    text.push_str(cell.trim_end());
                }
                Some(_) => {}
            }
        }
        if !goes_on {
            take(Row::from_fields(&names, &std::mem::take(&mut whole)));
        }
    }
}

/// An array of objects, or one object per line.
fn json(data: &[u8], take: &mut dyn FnMut(Option<Row>)) {
    let row = |value: &serde_json::Value| {
        let mut row = Row::default();
        for (name, value) in value.as_object()? {
            match value {
                serde_json::Value::Null => {}
                serde_json::Value::String(text) => row.set(name, text),
                other => row.set(name, &other.to_string()),
            }
        }
        Some(row)
    };
    for value in serde_json::Deserializer::from_slice(data).into_iter::<serde_json::Value>() {
        match value {
            Ok(serde_json::Value::Array(all)) => all.iter().for_each(|one| take(row(one))),
            Ok(one) => take(row(&one)),
            Err(_) => return take(None),
        }
    }
}
