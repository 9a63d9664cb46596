//! Series as dashboards save them: CSV of CloudWatch's console and of Grafana's panels (a column a
//! series, or `Series;Time;Value`), and Grafana's data frames in JSON. Lines before the first time
//! are headers, whatever their number. A series of unknown name is kept, with a note.

use serde_json::{Map, Value};

use super::cell::{Cell, instant, unit_factor};
use super::name::snake;
use super::{Aws, Key, Kind};

/// Lines within which the first time must come.
const HEADER_LINES: usize = 30;
/// Most points of one file.
const MOST_POINTS: usize = 4_000_000;
/// Deepest nesting at which data frames are looked for.
const DEEPEST: usize = 8;
/// Letters of a label.
const LABEL_LETTERS: usize = 200;

/// First cells of the header lines that name a series, the best first; the others have the name in
/// the last header line.
const NAMES: [&str; 5] = ["metricname", "metric name", "label", "full label", "id"];

/// Labels that name the instance.
const INSTANCE: [&str; 4] =
    ["dbinstanceidentifier", "dbinstance_identifier", "dimension_dbinstanceidentifier", "db_instance"];

/// Whether a file that begins like this is one.
pub fn is_one(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let text = start(&text);
    if text.starts_with(['{', '[']) {
        let has = |key: &str| text.contains(key);
        return has("\"fields\"") && has("\"type\"") && (has("\"schema\"") || has("\"values\"") || has("\"frames\""));
    }
    // The last line may be cut off.
    let whole = text.rfind('\n').map_or(text, |end| text.get(..end).unwrap_or(text));
    let mut lines = rows(whole).take(HEADER_LINES).collect::<Vec<_>>();
    lines.retain(|line| line.iter().any(|cell| !cell.is_empty()));
    let Some(header) = lines.first() else { return false };
    if let Some([_, time, value]) = long(header) {
        return lines.get(1).is_some_and(|row| at(row, time).is_some() && Cell::read(cell(row, value)).is_some());
    }
    let Some(first) = lines.iter().position(|row| at(row, 0).is_some()).filter(|first| *first > 0) else {
        return false;
    };
    let row = &lines[first];
    let values = || row.iter().skip(1).filter(|cell| !cell.is_empty()).map(|cell| Cell::read(cell));
    let is_named = lines[..first].iter().all(|row| row.len() > 1) && at(header, 0).is_none();
    is_named && row.len() > 1 && values().count() > 0 && values().all(|value| value.is_some())
}

/// Reads a file.
pub(super) fn read(bytes: &[u8], aws: &mut Aws) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    let text = start(&text);
    let mut panel = Panel { aws, points: 0, series: 0, has_zone: true };
    if text.starts_with(['{', '[']) {
        let document: Value = serde_json::from_str(text).map_err(|e| format!("not the JSON of a panel: {e}"))?;
        panel.frames(&document, 0)?;
    } else {
        panel.table(text)?;
    }
    let Panel { series, has_zone, .. } = panel;
    if !has_zone {
        let file = aws.files.last().cloned().unwrap_or_default();
        aws.note(format!("{file}: its times have no time zone and count as UTC"));
    }
    if series == 0 {
        return Err("no series with times in it; save the panel's data again (Inspect > Data)".to_owned());
    }
    Ok(())
}

/// The text without its mark, and without Grafana's hint for spreadsheets.
fn start(text: &str) -> &str {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    match text.starts_with("sep=") {
        true => text.split_once('\n').map_or("", |(_, rest)| rest),
        false => text,
    }
}

/// The rows of a table, whose delimiter is the most frequent one of its first line.
fn rows(text: &str) -> impl Iterator<Item = Vec<String>> + '_ {
    let first = text.lines().next().unwrap_or_default();
    let count = |delimiter: &u8| first.bytes().filter(|byte| byte == delimiter).count();
    let delimiter = [b';', b'\t', b','].into_iter().max_by_key(count).unwrap_or(b',');
    let mut table = csv::ReaderBuilder::new();
    let table = table.delimiter(delimiter).flexible(true).has_headers(false).trim(csv::Trim::All);
    table
        .from_reader(text.as_bytes())
        .into_records()
        .map_while(Result::ok)
        .map(|row| row.iter().map(str::to_owned).collect())
}

fn cell(row: &[String], column: usize) -> &str {
    row.get(column).map_or("", String::as_str)
}

fn at(row: &[String], column: usize) -> Option<(i64, bool)> {
    instant(cell(row, column))
}

/// The columns of a table with a row for each point: series, time and value.
fn long(header: &[String]) -> Option<[usize; 3]> {
    let of = |name: &str| header.iter().position(|cell| cell.eq_ignore_ascii_case(name));
    Some([of("series")?, of("time")?, of("value")?])
}

struct Panel<'a> {
    aws: &'a mut Aws,
    points: usize,
    series: usize,
    has_zone: bool,
}

impl Panel<'_> {
    fn put(&mut self, key: Key, points: Vec<(i64, f64)>) -> Result<(), String> {
        self.points += points.len();
        if self.points > MOST_POINTS {
            return Err(format!("it has more than {MOST_POINTS} points; save a shorter period"));
        }
        self.series += usize::from(points.iter().any(|(_, value)| value.is_finite()));
        let file = self.aws.file();
        self.aws.push(Key { file, ..key }, points)
    }

    fn table(&mut self, text: &str) -> Result<(), String> {
        let mut headers: Vec<Vec<String>> = Vec::new();
        let mut columns: Vec<(Key, Vec<(i64, f64)>)> = Vec::new();
        let mut layout = None;
        for row in rows(text) {
            if headers.is_empty() {
                layout = long(&row);
            }
            let [name, time, value] = layout.unwrap_or([0, 0, 1]);
            let Some((at, has_zone)) = at(&row, time) else {
                if columns.is_empty() && headers.len() < HEADER_LINES {
                    headers.push(row);
                }
                continue;
            };
            self.has_zone &= has_zone;
            if layout.is_some() {
                let read = Cell::read(cell(&row, value)).unwrap_or(Cell::GAP);
                let key = Key { unit: read.unit.to_owned(), ..named(cell(&row, name)) };
                self.put(key, vec![(at, read.value)])?;
                continue;
            }
            if columns.is_empty() {
                let width = headers.iter().map(Vec::len).max().unwrap_or(0).max(row.len());
                columns = (1..width).map(|column| (of_column(&headers, column), Vec::new())).collect();
            }
            for (column, (key, points)) in (1..).zip(&mut columns) {
                let read = Cell::read(cell(&row, column)).unwrap_or(Cell::GAP);
                if !read.unit.is_empty() {
                    read.unit.clone_into(&mut key.unit);
                }
                points.push((at, read.value));
            }
        }
        columns.into_iter().try_for_each(|(key, points)| self.put(key, points))
    }

    /// Looks for data frames in `document`.
    fn frames(&mut self, document: &Value, depth: usize) -> Result<(), String> {
        if depth > DEEPEST {
            return Ok(());
        }
        match document {
            Value::Array(all) => all.iter().try_for_each(|one| self.frames(one, depth + 1)),
            Value::Object(object) => match fields(object) {
                Some((name, fields)) => self.frame(name, &fields),
                None => object.values().try_for_each(|one| self.frames(one, depth + 1)),
            },
            _ => Ok(()),
        }
    }

    fn frame(&mut self, frame: &str, fields: &[(&Value, &Vec<Value>)]) -> Result<(), String> {
        let is = |field: &Value, kind: &str| field.get("type").and_then(Value::as_str) == Some(kind);
        let Some((_, times)) = fields.iter().find(|(field, _)| is(field, "time")) else { return Ok(()) };
        let times: Vec<Option<i64>> = times.iter().map(|time| super::element::moment(time).ok()).collect();
        for (field, values) in fields.iter().filter(|(field, _)| is(field, "number")) {
            let text = |path: &str| field.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
            let own = text("/name").filter(|name| !name.eq_ignore_ascii_case("value"));
            let shown = text("/config/displayName").or_else(|| text("/config/displayNameFromDS"));
            let mut key = named(shown.or(own).unwrap_or(frame));
            let labels = field.get("labels").and_then(Value::as_object);
            for (name, value) in labels.into_iter().flatten() {
                key.labels.extend(value.as_str().map(|value| label(name, value)));
            }
            let (unit, factor) = unit_factor(text("/config/unit").unwrap_or_default());
            unit.clone_into(&mut key.unit);
            let value = |value: &Value| super::element::figure(value).map_or(f64::NAN, |value| value * factor);
            let points = times.iter().zip(values.iter()).filter_map(|(at, of)| Some(((*at)?, value(of))));
            self.put(key, points.collect())?;
        }
        Ok(())
    }
}

/// The name of a data frame, and its fields with their values.
/// A field's description and its values.
type Field<'v> = (&'v Value, &'v Vec<Value>);

fn fields(object: &Map<String, Value>) -> Option<(&str, Vec<Field<'_>>)> {
    let schema = object.get("schema").and_then(Value::as_object);
    let all = schema.unwrap_or(object).get("fields")?.as_array()?;
    let name = schema.unwrap_or(object).get("name").and_then(Value::as_str).unwrap_or_default();
    let columns = object.get("data").and_then(|data| data.get("values")).and_then(Value::as_array);
    let values = |number: usize, field: &'_ Value| match columns {
        Some(columns) => columns.get(number).and_then(Value::as_array).is_some(),
        None => field.get("values").is_some_and(Value::is_array),
    };
    let with = (0..).zip(all).filter(|(number, field)| values(*number, field)).filter_map(|(number, field)| {
        let values = columns.map_or_else(|| field.get("values"), |columns| columns.get(number))?.as_array()?;
        Some((field, values))
    });
    Some((name, with.collect()))
}

/// The key of a column, by what the header lines have in it.
fn of_column(headers: &[Vec<String>], column: usize) -> Key {
    let of = |name: &str| {
        let line = headers.iter().find(|line| cell(line, 0).trim_end_matches(':').eq_ignore_ascii_case(name))?;
        Some(cell(line, column)).filter(|text| !text.is_empty())
    };
    let last = headers.iter().rev().map(|line| cell(line, column)).find(|text| !text.is_empty());
    let name = NAMES.iter().find_map(|name| of(name)).or(last).unwrap_or_default();
    let mut key = named(name);
    if let Some(stat) = of("statistic").or_else(|| of("stat")) {
        stat.clone_into(&mut key.stat);
    }
    if let Some(unit) = of("unit") {
        unit.clone_into(&mut key.unit);
    }
    let seconds = of("period").and_then(|period| period.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok());
    key.period_ns = seconds.filter(|s: &i64| (1..=86_400).contains(s)).map_or(0, |s| s * 1_000_000_000);
    key
}

/// A series by the name that a legend gives it: `NAME`, or `NAME{label="value", ...}`.
fn named(text: &str) -> Key {
    let (name, rest) = text.split_once('{').unwrap_or((text, ""));
    let mut key = Key::new(Kind::Panel, name.trim().to_owned());
    for pair in rest.trim_end_matches('}').split("\",").filter(|pair| !pair.trim().is_empty()) {
        let Some((name, value)) = pair.split_once('=') else { continue };
        let (name, value) = (name.trim().trim_matches(','), value.trim().trim_matches('"'));
        match name {
            "__name__" => value.clone_into(&mut key.name),
            _ => key.labels.push(label(name, value)),
        }
    }
    key
}

fn label(name: &str, value: &str) -> (String, String) {
    let is_instance = INSTANCE.iter().any(|known| name.eq_ignore_ascii_case(known));
    let name = if is_instance { "db_instance".to_owned() } else { snake(name) };
    (name, value.chars().take(LABEL_LETTERS).collect())
}
