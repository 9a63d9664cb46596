//! Captures of bodies and headers, and feeders' files, of any bytes. The first line of the input is a capture (of what
//! a scenario says), the rest is in turn a body, a header with a cookie in each line, a CSV file and a file of JSON
//! lines. No whole JSON is called wrong, nothing that is cut off is made up, and what a feeder gives comes back the
//! same from a file that is made of it.
#![no_main]

use holdup_load::script::{Capture, Feeder, Pick, Random, Response, StepFailure, Value};
use libfuzzer_sys::fuzz_target;

const PICKS: [Pick; 5] = [Pick::First, Pick::Last, Pick::Random, Pick::All, Pick::Count];

/// Bytes of a body that patterns look at: a pattern may take time that grows with the square of it.
const REGEX_BODY_BYTES: usize = 256;

fn take(capture: &Capture, response: &Response<'_>) -> Result<Value, StepFailure> {
    capture.take(response, &mut Random::new(1))
}

fn captures(source: &str, rest: &[u8]) {
    if Capture::parse(source).is_err() {
        return;
    }
    let kind = source.split_whitespace().next();
    let body = if kind == Some("regex") { &rest[..rest.len().min(REGEX_BODY_BYTES)] } else { rest };
    let lines: Vec<(&[u8], &[u8])> = rest.split(|byte| *byte == b'\n').map(|line| (&b"Set-Cookie"[..], line)).collect();
    let response = Response { status: 200, fields: &lines, body, body_bytes: body.len() as u64, ..Response::default() };
    let cut = Response { body_is_cut: true, body: &body[..body.len() / 2], ..response };
    let is_json = serde_json::from_slice::<serde_json::Value>(body).is_ok();
    let [one, .., all, count] = PICKS.map(|pick| {
        let capture = Capture::new(source, pick, None).expect("it was read before");
        let whole = take(&capture, &response);
        assert_eq!(whole, take(&capture, &response));
        assert!(!is_json || whole != Err(StepFailure::BadJson), "{source}");
        let of_cut = take(&capture, &cut);
        if is_json && kind == Some("json") && pick != Pick::Random {
            assert!(of_cut == whole || of_cut == Err(StepFailure::CaptureMissed), "{source}");
        }
        whole
    });
    match (all, count) {
        (Ok(Value::List(all)), Ok(Value::Text(count))) => {
            assert_eq!(all.len().to_string(), *count);
            assert_eq!(one, Ok(Value::Text(all[0].clone())));
        }
        (Err(StepFailure::CaptureMissed), Ok(Value::Text(count))) => assert_eq!(*count, *"0"),
        (all, count) => assert!(all.is_err() && (count.is_err() || one.is_ok()), "{all:?}, {count:?}"),
    }
}

/// Columns and rows.
fn content(feeder: &Feeder) -> (Vec<String>, Vec<Vec<&str>>) {
    let rows = (0..feeder.len()).map(|index| {
        let row: Vec<&str> = feeder.row(index).expect("it is there").iter().collect();
        assert_eq!(row.len(), feeder.columns().len());
        row
    });
    (feeder.columns().to_vec(), rows.collect())
}

fn feeders(file: &[u8]) {
    if let Ok(feeder) = Feeder::csv(file.to_vec(), "x") {
        let (columns, rows) = content(&feeder);
        let cells = columns.len() * rows.len();
        assert!(feeder.memory_bytes() <= file.len() + 4 * cells);
        let quoted = |cell: &str| format!("\"{}\"", cell.replace('"', "\"\""));
        let mut again = columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(",");
        for row in &rows {
            again.push('\n');
            again.push_str(&row.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(","));
        }
        let again = Feeder::csv(again.into_bytes(), "x").expect("it is well-formed");
        assert_eq!(content(&again), (columns, rows));
    }
    if let Ok(feeder) = Feeder::jsonl(file.to_vec(), "x") {
        let (columns, rows) = content(&feeder);
        let object = |row: &Vec<&str>| {
            let members = columns.iter().zip(row).map(|(column, cell)| (column.clone(), (*cell).into()));
            serde_json::Value::Object(members.collect()).to_string()
        };
        // Its keys may come in another order.
        let again = rows.iter().map(object).collect::<Vec<_>>().join("\n");
        let again = Feeder::jsonl(again.into_bytes(), "x").expect("it is well-formed");
        let (new_columns, new_rows) = content(&again);
        for (row, new_row) in rows.iter().zip(&new_rows) {
            let cell = |column: &String| new_columns.iter().position(|new| new == column).map(|at| new_row[at]);
            assert!(columns.iter().zip(row).all(|(column, text)| cell(column) == Some(*text)));
        }
        assert_eq!((columns.len(), rows.len()), (new_columns.len(), new_rows.len()));
    }
}

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let rest = input.get(end + 1..).unwrap_or_default();
    if let Ok(source) = std::str::from_utf8(&input[..end]) {
        captures(source, rest);
    }
    feeders(rest);
});
