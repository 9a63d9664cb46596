//! Tables whose header was cut away, by `grep` above all. The command above tells the columns; without
//! one, rows of `ps aux`, `ps -ef` and `top` are known by their shape. Their header is put in front of them.

use std::sync::OnceLock;

use regex::RegexSet;

use super::command;
use super::paste::Line;

/// The columns of the rows that each pattern of [`shapes`] knows.
const HEADERS: [&str; 5] = [
    "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND",
    "UID PID PPID LWP C NLWP STIME TTY TIME CMD",
    "UID PID PPID C STIME TTY TIME CMD",
    "PID USER PR NI VIRT RES SHR S %CPU %MEM TIME+ COMMAND",
    "COUNT SOCKETS",
];

fn shapes() -> Option<&'static RegexSet> {
    static SHAPES: OnceLock<Option<RegexSet>> = OnceLock::new();
    let make = || {
        let tty = r"(?:\?|pts/\d+|tty\w*|console|-)";
        let state = r"[RSDTtZIXW][<NLsl+]*";
        let number = r"\d+(?:[.,]\d+)?";
        RegexSet::new([
            format!(r"^\s*[\w.+-]+\s+\d+\s+{number}\s+{number}\s+\d+\s+\d+\s+{tty}\s+{state}\s+\S+\s+\d+:\d+(?::\d+)?\s+\S"),
            format!(r"^\s*[\w.+-]+\s+\d+\s+\d+\s+\d+\s+\d+\s+\d+\s+[\w:]+\s+{tty}\s+[\d-]*\d+:\d+:\d+\s+\S"),
            format!(r"^\s*[\w.+-]+\s+\d+\s+\d+\s+\d+\s+[\w:]+\s+{tty}\s+[\d-]*\d+:\d+:\d+\s+\S"),
            format!(
                r"^\s*\d+\s+[\w.+-]+\s+(?:rt|-?\d+)\s+-?\d+\s+{number}[kmgtKMGT]?\s+{number}[kmgtKMGT]?\s+{number}[kmgtKMGT]?\s+[RSDTtZI]\s+{number}\s+{number}\s+\d+:\d+(?:[.,]\d+)?\s+\S"
            ),
            r"^\s*\d+\s+(?:ESTABLISHED|LISTEN|TIME[_-]WAIT|CLOSE[_-]WAIT|SYN[_-](?:SENT|RECV)|FIN[_-]WAIT-?[12]|LAST[_-]ACK|CLOSING|ESTAB)$".to_owned(),
        ])
        .ok()
    };
    SHAPES.get_or_init(make).as_ref()
}

/// The header of a row by its shape.
fn shape(line: &str) -> Option<&'static str> {
    // Most lines have no number.
    if !line.bytes().any(|byte| byte.is_ascii_digit()) || line.len() > 4096 {
        return None;
    }
    HEADERS.get(shapes()?.matches(line).iter().next()?).copied()
}

/// Whether a line names columns of processes.
fn is_header(line: &str) -> bool {
    const NAMES: [&str; 9] = ["PID", "STAT", "WCHAN", "COMMAND", "CMD", "LWP", "SPID", "TID", "%CPU"];
    line.split_whitespace().any(|word| NAMES.contains(&word))
}

/// Puts headers before rows that have none.
pub(super) fn with_headers(lines: Vec<Line>) -> Vec<Line> {
    let mut all: Vec<Line> = Vec::with_capacity(lines.len() + 8);
    // The columns that the command above prints, for its first line; and whether a header was seen.
    let (mut expected, mut is_below) = (None, false);
    for line in lines {
        if line.is_command {
            expected = command::columns(&command::stages(&line.text));
            is_below = false;
        } else if line.is_blank() {
            is_below = false;
        } else if is_header(&line.text) {
            (is_below, expected) = (true, None);
        } else if !is_below {
            let header = match expected.take() {
                Some(columns) => fits(&columns, &line.text).then_some(columns),
                None => shape(&line.text).map(str::to_owned),
            };
            if let Some(text) = header {
                all.push(Line { number: line.number, text, is_command: false, is_continued: false, stamp: line.stamp });
                is_below = true;
            }
        }
        all.push(line);
    }
    all
}

/// Whether a line may be a row of these columns: numbers stand where they must.
fn fits(columns: &str, line: &str) -> bool {
    const NUMBERS: [&str; 8] = ["COUNT", "PID", "PPID", "LWP", "TID", "SPID", "%CPU", "RSS"];
    let values: Vec<&str> = line.split_whitespace().collect();
    let is_number = |value: &&str| value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','));
    let names = columns.split(' ');
    let most = names.clone().count();
    // Command lines hold blanks; everything else is one word.
    let is_wide = columns.contains("COMMAND") || columns.contains("CMD");
    let is_right = names.zip(&values).all(|(name, value)| !NUMBERS.contains(&name) || is_number(value));
    is_right && !values.is_empty() && (is_wide || values.len() <= most) && values.len() + 2 >= most.min(8)
}

#[cfg(test)]
mod tests {
    use super::super::kinds::is_heading;
    use super::super::paste;
    use super::*;

    fn headers(text: &str) -> Vec<String> {
        let plain = paste::lines(text.as_bytes(), is_heading);
        let before: Vec<String> = plain.iter().map(|line| line.text.clone()).collect();
        let all = with_headers(plain).into_iter().map(|line| line.text);
        all.filter(|line| !before.contains(line)).collect()
    }

    #[test]
    fn rows_of_ps_and_top_are_known_by_their_shape() {
        for (row, header) in [
            ("mysql 2204 101 45.2 28123456 12345678 ? Ssl Nov20 12345:67 /usr/sbin/mysqld --datadir=/x", 0),
            ("mysql     2204     1 85 Nov20 ?        12-03:04:05 /usr/sbin/mysqld", 2),
            ("mysql     2204     1  2310  5  40 10:11 ?        00:00:05 /usr/sbin/mysqld", 1),
            ("  4711 mysql     20   0   28.0g   1.9g  12345 S 120.1  49.9  12:34.56 mysqld", 3),
            ("  32109 TIME_WAIT", 4),
        ] {
            assert_eq!(headers(row), [HEADERS[header]], "{row}");
        }
        for row in ["root 1 2 3", "10:11:12 up 3 days", "  32109 entries", "tcp 0 0 10.0.0.1:80 10.0.0.2:1 TIME_WAIT"] {
            assert_eq!(headers(row), [""; 0], "{row}");
        }
    }

    #[test]
    fn the_prompt_names_the_columns_of_rows_without_a_header() {
        let rows = "$ ps -eo pid,stat,wchan:32,comm -T | grep mysqld\n 2204 Dl unlinkat mysqld\n 2204 Sl - mysqld\n";
        assert_eq!(headers(rows), ["PID STAT WCHAN COMMAND"]);
        let with_header = "$ ps -eo pid,stat | head\n  PID STAT\n 2204 Dl\n";
        assert_eq!(headers(with_header), [""; 0]);
        assert_eq!(headers("$ ps -eo pid,stat\nbash: ps: command not found\n"), [""; 0]);
    }
}
