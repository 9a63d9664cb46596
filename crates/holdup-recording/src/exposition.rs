//! Parses the text of a Prometheus endpoint: exposition format 0.0.4 and OpenMetrics 1.0, including
//! quoted UTF-8 names. It works line by line, so that a bad line costs only itself. Names and
//! values stay unchanged, and metric types are ignored.
//!
//! Timestamps and exemplars are checked and dropped: a row carries the time of holdup's read.

use crate::Labels;

/// Largest number of labels of one series; no real metric has more.
const LABELS_MAX: usize = 128;

/// Largest number of series read from one answer.
pub const SERIES_MAX: usize = 20_000;

/// Longest line accepted.
const LINE_BYTES_MAX: usize = 64 << 10;

/// One line's metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name, verbatim.
    pub name: String,
    /// Labels, verbatim.
    pub labels: Labels,
    /// Value; may be infinite or not a number.
    pub value: f64,
    /// The timestamp after it, if any, milliseconds since 1970.
    pub stamp_ms: Option<i64>,
}

/// The content of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scrape {
    /// Series of the valid lines, in order, at most [`SERIES_MAX`].
    pub series: Vec<Series>,
    /// Number of series beyond that.
    pub left_out: usize,
    /// Number (from 1) of the first bad line, and what is wrong with it.
    pub first_bad: Option<(usize, String)>,
    /// Number of bad lines.
    pub bad_lines: usize,
    /// Whether `# EOF` was there: without it OpenMetrics text was cut off.
    pub ended: bool,
}

/// Parses a whole answer. Never fails: errors are in the result.
#[must_use]
pub fn parse(body: &[u8]) -> Scrape {
    let mut scrape = Scrape::default();
    for (position, line) in body.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if scrape.ended {
            scrape.bad(position + 1, "text after `# EOF`".to_owned());
            break;
        }
        match read_line(line) {
            Ok(Line::Series(series)) if scrape.series.len() < SERIES_MAX => scrape.series.push(series),
            Ok(Line::Series(_)) => scrape.left_out += 1,
            Ok(Line::End) => scrape.ended = true,
            Ok(Line::Nothing) => {}
            Err(why) => scrape.bad(position + 1, why),
        }
    }
    scrape
}

impl Scrape {
    fn bad(&mut self, line: usize, why: String) {
        self.bad_lines += 1;
        self.first_bad.get_or_insert((line, why));
    }
}

enum Line {
    Series(Series),
    End,
    Nothing,
}

fn read_line(line: &[u8]) -> Result<Line, String> {
    if line.len() > LINE_BYTES_MAX {
        return Err(format!("longer than {LINE_BYTES_MAX} bytes"));
    }
    let text = std::str::from_utf8(line).map_err(|_| "not UTF-8".to_owned())?;
    let Some(text) = text.strip_suffix('\n') else {
        // OpenMetrics omits the last line feed; any other line without one may lack digits.
        return if text == "# EOF" { Ok(Line::End) } else { Err("cut off: no line feed at its end".to_owned()) };
    };
    let text = text.strip_suffix('\r').unwrap_or(text).trim_matches([' ', '\t']);
    if text == "# EOF" {
        return Ok(Line::End);
    }
    if text.is_empty() || text.starts_with('#') {
        return Ok(Line::Nothing);
    }
    read_series(text).map(Line::Series)
}

fn read_series(text: &str) -> Result<Series, String> {
    let mut cursor = Cursor { rest: text };
    let mut name = cursor.word(is_name_char).to_owned();
    let mut pairs = Vec::new();
    cursor.skip_blanks();
    if cursor.take('{') {
        loop {
            cursor.skip_blanks();
            if cursor.take('}') {
                break;
            }
            if pairs.len() == LABELS_MAX {
                return Err(format!("more than {LABELS_MAX} labels"));
            }
            let quoted = cursor.rest.starts_with('"');
            let key = if quoted { cursor.quoted()? } else { cursor.word(is_label_char).to_owned() };
            cursor.skip_blanks();
            if cursor.take('=') {
                if key.is_empty() || (!quoted && key.starts_with(|c: char| c.is_ascii_digit())) {
                    return Err("a label has no valid name".to_owned());
                }
                cursor.skip_blanks();
                pairs.push((key, cursor.quoted()?));
            } else if quoted && name.is_empty() && pairs.is_empty() {
                // `{"http.requests", …} 1`: the name is quoted among the labels.
                name = key;
            } else {
                return Err("a label has no `=`".to_owned());
            }
            cursor.skip_blanks();
            if !cursor.take(',') && !cursor.rest.starts_with('}') {
                return Err("expected `,` or `}` after a label".to_owned());
            }
        }
    }
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("no metric name".to_owned());
    }
    let (value, stamp_ms) = read_value(cursor.rest)?;
    let count = pairs.len();
    let labels = Labels::new(pairs);
    if labels.iter().count() != count {
        return Err("a label appears twice".to_owned());
    }
    Ok(Series { name, labels, value, stamp_ms })
}

/// Parses the value, and a timestamp and an exemplar if present.
fn read_value(rest: &str) -> Result<(f64, Option<i64>), String> {
    // Only the exemplar, which is dropped, may still contain quoted text.
    let (plain, _exemplar) = rest.split_once('#').unwrap_or((rest, ""));
    let mut fields = plain.split([' ', '\t']).filter(|field| !field.is_empty());
    let value = fields.next().ok_or("no value")?;
    let number = value.parse().map_err(|_| format!("`{}` is not a value", crate::words::clip(value)))?;
    let stamp = fields.next().map(|stamp| {
        let number = stamp.parse::<f64>().ok().filter(|stamp| stamp.is_finite());
        number.ok_or_else(|| format!("`{}` is not a timestamp", crate::words::clip(stamp)))
    });
    // OpenMetrics uses seconds, the plain format milliseconds: until the year 5138 seconds are
    // below 10¹¹, and milliseconds have been above since 1973.
    let to_ms = |stamp: f64| (if stamp.abs() < 1e11 { stamp * 1e3 } else { stamp }) as i64;
    let stamp_ms = stamp.transpose()?.map(to_ms);
    match fields.next() {
        None => Ok((number, stamp_ms)),
        Some(more) => Err(format!("`{}` after the timestamp", crate::words::clip(more))),
    }
}

fn is_name_char(c: char) -> bool {
    is_label_char(c) || c == ':'
}

fn is_label_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self, belongs: fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// Text in double quotes, with `\\`, `\"` and `
    /// `. As in Prometheus, an unknown escape stands for itself.
    fn quoted(&mut self) -> Result<String, String> {
        if !self.take('"') {
            return Err("a label's value is not in quotes".to_owned());
        }
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, c @ ('\\' | '"'))) => text.push(c),
                    Some((_, c)) => text.extend(['\\', c]),
                    None => break,
                },
                c => text.push(c),
            }
        }
        Err("a quoted text has no end".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Series {
        let scrape = parse(format!("{line}\n").as_bytes());
        assert_eq!(scrape.first_bad, None, "{line}");
        scrape.series.into_iter().next().unwrap()
    }

    fn why(line: &str) -> String {
        let scrape = parse(format!("{line}\n").as_bytes());
        assert!(scrape.series.is_empty(), "{line}: {:?}", scrape.series);
        scrape.first_bad.unwrap().1
    }

    #[test]
    fn plain_labelled_escaped_and_stamped() {
        assert_eq!(one("up 1"), Series { name: "up".into(), labels: Labels::none(), value: 1.0, stamp_ms: None });
        assert_eq!(
            (one("up 1 1795000000123").stamp_ms, one("up 1 1795000000.123").stamp_ms),
            (Some(1_795_000_000_123), Some(1_795_000_000_123))
        );
        let series = one(r#"a:b_total{ path = "C:\\x\"y\"\nz", le="+Inf", } 3.5e2 1395066363000"#);
        assert_eq!((series.name.as_str(), series.value), ("a:b_total", 350.0));
        assert_eq!(series.labels, Labels::new([("path", "C:\\x\"y\"\nz"), ("le", "+Inf")]));
        assert_eq!(one(r#"a{b="}#, 1"} -2"#).labels.get("b"), Some("}#, 1"));
        assert_eq!(one("a\t2").value, 2.0);
    }

    #[test]
    fn not_a_number_and_the_infinities() {
        assert!(one("a NaN").value.is_nan());
        assert_eq!(one("a +Inf").value, f64::INFINITY);
        assert_eq!(one("a -Inf").value, f64::NEG_INFINITY);
    }

    #[test]
    fn openmetrics_exemplars_and_end() {
        let text =
            b"# TYPE a histogram\na_bucket{le=\"1\"} 3 1.5 # {trace_id=\"x # y\"} 0.5 1.2\na_count 3 # {} 1\n# EOF\n";
        let scrape = parse(text);
        assert_eq!((scrape.series.len(), scrape.ended, scrape.bad_lines), (2, true, 0));
        assert_eq!(scrape.series[0].value, 3.0);
        assert!(parse(b"a 1\n# EOF").ended);
        assert_eq!(parse(b"# EOF\na 1\n").first_bad.unwrap().0, 2);
    }

    #[test]
    fn a_name_in_quotes() {
        let series = one(r#"{"http.requests", code="200"} 7"#);
        assert_eq!((series.name.as_str(), series.labels.get("code")), ("http.requests", Some("200")));
    }

    #[test]
    fn bad_lines_are_named_and_the_rest_is_kept() {
        let scrape = parse(b"# HELP a x\na 1\nb{x=1} 2\nc\nd 4\ne 5");
        let names: Vec<_> = scrape.series.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["a", "d"]);
        assert_eq!((scrape.bad_lines, scrape.first_bad.unwrap().0), (3, 3));
        for (line, said) in [
            ("a", "no value"),
            ("a x", "is not a value"),
            ("a 1 x", "timestamp"),
            ("a 1 2 3", "after the timestamp"),
            ("a{b=\"c} 1", "has no end"),
            ("a{b=\"c\" d=\"e\"} 1", "expected `,`"),
            ("a{b=\"1\",b=\"2\"} 1", "twice"),
            ("a{=\"1\"} 1", "valid name"),
            ("a{\"b\"} 1", "has no `=`"),
            ("{} 1", "no metric name"),
            ("1a 1", "no metric name"),
            ("<html>", "no metric name"),
            ("a{b=\"\\", "has no end"),
        ] {
            assert!(why(line).contains(said), "{line}: {}", why(line));
        }
        assert!(parse(b"a\xff 1\n").first_bad.unwrap().1.contains("UTF-8"));
    }

    #[test]
    fn any_cut_and_any_flipped_byte_is_survived() {
        let text = br#"# TYPE a counter
a_total{x="1\n",y="\"\\"} 1.5 123 # {t="1"} 2 3
{"b.c",d="e"} +Inf
# EOF
"#;
        for end in 0..text.len() {
            let cut = parse(&text[..end]);
            assert!(!cut.ended || end >= text.len() - 1, "{end}");
            for byte in [0, b'"', b'{', b'}', b'\\', b'\n', b'#', 0xff] {
                let mut changed = text.to_vec();
                changed[end] = byte;
                let _ = parse(&changed);
            }
        }
    }

    #[test]
    fn no_more_than_the_limit() {
        let scrape = parse("a 1\n".repeat(SERIES_MAX + 5).as_bytes());
        assert_eq!((scrape.series.len(), scrape.left_out), (SERIES_MAX, 5));
        assert!(why(&format!("a{{b=\"{}\"}} 1", "x".repeat(LINE_BYTES_MAX))).contains("longer"));
    }
}
