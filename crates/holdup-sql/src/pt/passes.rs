//! The passes, as the tool has them: substitutions by regular expressions, whose order is part of the result. What it
//! does with back references and loops is written out.

use std::sync::LazyLock;

use regex::bytes::{NoExpand, Regex};

/// A substitution of the tool, in place of what it finds.
struct Pass {
    found: LazyLock<Regex>,
    with: &'static [u8],
}

impl Pass {
    fn run(&self, text: &mut Vec<u8>) {
        if let std::borrow::Cow::Owned(changed) = self.found.replace_all(text, self.with) {
            *text = changed;
        }
    }
}

/// A pattern of bytes; those of this file are valid.
macro_rules! pattern {
    ($pattern:literal) => {
        LazyLock::new(|| Regex::new(concat!("(?s-u)", $pattern)).unwrap_or_else(|_| unreachable!("a valid pattern")))
    };
}

macro_rules! passes {
    ($($pattern:literal => $with:literal),* $(,)?) => {
        [$(Pass { found: pattern!($pattern), with: $with }),*]
    };
}

/// Before it is known whether the statement is a `USE`.
static COMMENTS: [Pass; 2] = passes![
    // `/* … */`, but not `/*! … */`.
    r"/\*[^!].*?\*/" => b"",
    // `-- …` and `# …` up to the end of the line, if no quote is in it.
    r#"(?:--|#)[^'"\r\n]*([\r\n]|\z)"# => b"$1",
];

/// Values, then blanks.
static VALUES: [Pass; 9] = passes![
    // Quotes and backslashes behind backslashes.
    r#"\\["'\\]"# => b"",
    r#"".*?""# => b"?",
    r"'.*?'" => b"?",
    r"(?i)\b(?:false|true)\b" => b"?",
    // What begins with a digit or a sign and continues like a number; then parts of a number before its `?`.
    r"[0-9+-][0-9a-f.x+-]*" => b"?",
    r"[xb.+-]\?" => b"?",
    r"\A\s+" => b"",
    r"\n\z" => b"",
    r"[ \n\t\r\f]+" => b" ",
];

/// Of the text in lower case.
static LISTS: [Pass; 2] = passes![
    r"\bnull\b" => b"?",
    r"\b(in|values?)(?:[\s,]*\([\s?,]*\))+" => b"${1}(?+)",
];

static DUMP: &[u8] = b"SELECT /*!40001 SQL_NO_CACHE */ * FROM `";
static TOOLKIT: LazyLock<Regex> = pattern!(r"/\*\w+\.\w+:[0-9]/[0-9]\*/");
static CALL: LazyLock<Regex> = pattern!(r"(?i)\A\s*(call\s+(?:[^\s(]+\(|\(\S*\())");
static FIRST_ROW: LazyLock<Regex> =
    pattern!(r"(?i)\A(?:insert|replace)(?: ignore)?\s+into.+?values\s*\(.*?\)(\s*,\s*\()");
static USE: LazyLock<Regex> = pattern!(r"(?i)\Ause \S+\n?\z");
static SELECT: LazyLock<Regex> = pattern!(r"\bselect ");
static LIMIT: LazyLock<Regex> = pattern!(r"\blimit \?(?:, ?\?| offset \?)?");
static ORDER: LazyLock<Regex> = pattern!(r"\border by ");
static ASC: LazyLock<Regex> = pattern!(r"(.+?)\s+asc");

/// Statements with a fingerprint of their own: dumps, the toolkit's own statements, commands,
/// calls.
pub(super) fn special(sql: &[u8]) -> Option<String> {
    if sql.starts_with(DUMP) {
        return Some("mysqldump".to_owned());
    }
    if TOOLKIT.is_match(sql) {
        return Some("percona-toolkit".to_owned());
    }
    if sql.starts_with(b"administrator command: ") {
        return Some(String::from_utf8_lossy(sql).into_owned());
    }
    // The tool keeps values without blanks in the name of a call (`call p(1)` is one, `call p((1`
    // would be `call p(`). Here the name ends at its first parenthesis.
    let call = CALL.captures(sql)?.get(1)?.as_bytes();
    let name = call.split(|byte| *byte == b'(').next().unwrap_or_default();
    Some(String::from_utf8_lossy(name).to_ascii_lowercase())
}

/// The passes, in the order that matters.
pub(super) fn run(mut text: Vec<u8>) -> Vec<u8> {
    // Of the rows of an `INSERT` the first is kept.
    if let Some(rows) = FIRST_ROW.captures(&text).and_then(|found| found.get(1)).map(|rows| rows.start()) {
        text.truncate(rows);
    }
    COMMENTS.iter().for_each(|pass| pass.run(&mut text));
    if USE.is_match(&text) {
        return b"use ?".to_vec();
    }
    VALUES.iter().for_each(|pass| pass.run(&mut text));
    text.make_ascii_lowercase();
    LISTS.iter().for_each(|pass| pass.run(&mut text));
    let text = unions(&text);
    let mut text = LIMIT.replace(&text, NoExpand(b"limit ?")).into_owned();
    // `asc` is the default.
    if let Some(order) = ORDER.find(&text).map(|found| found.end()) {
        let behind = ASC.replace_all(text.get(order..).unwrap_or_default(), &b"$1"[..]).into_owned();
        text.truncate(order);
        text.extend(behind);
    }
    text
}

/// Repetitions of a `select` behind `union` collapse.
fn unions(text: &[u8]) -> Vec<u8> {
    let (mut out, mut kept, mut from) = (Vec::new(), 0, 0);
    while let Some(at) = SELECT.find_at(text, from).map(|found| found.start()) {
        from = at + 1;
        if let Some((end, select, words)) = repeated(text, at) {
            out.extend([text.get(kept..at).unwrap_or_default(), select, b" /*repeat", words, b"*/"].concat());
            (kept, from) = (end, end);
        }
    }
    out.extend_from_slice(text.get(kept..).unwrap_or_default());
    out
}

/// End of the repetitions of the `select` at `at`, its text, and the words between them.
fn repeated(text: &[u8], at: usize) -> Option<(usize, &[u8], &[u8])> {
    const UNION: &[u8] = b" union";
    let mut from = at + 7;
    loop {
        let union = from + text.get(from..)?.windows(UNION.len()).position(|found| found == UNION)?;
        let select = text.get(at..union)?;
        let (mut end, mut between) = (union, None);
        while let Some((next, words)) = again(text, end, select) {
            (end, between) = (next, Some(words));
        }
        if let Some(words) = between {
            return Some((end, select, words));
        }
        from = union + 1;
    }
}

/// End of the repetition of `select` behind a `union` at `at`, and the words between them.
fn again<'a>(text: &'a [u8], at: usize, select: &[u8]) -> Option<(usize, &'a [u8])> {
    [&b" union all"[..], b" union"].iter().find_map(|words| {
        let rest = text.get(at..)?.strip_prefix(*words)?.strip_prefix(b" ")?;
        let end = at + words.len();
        rest.starts_with(select).then(|| (end + 1 + select.len(), text.get(at..end).unwrap_or_default()))
    })
}
