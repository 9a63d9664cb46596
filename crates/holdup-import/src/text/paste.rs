//! The lines of a paste without colours, control characters and prompts. A prompt's command is
//! kept: it tells the interval and the units of the output below it.

use regex::Regex;
use std::borrow::Cow;
use std::sync::OnceLock;

use super::clock;

/// Bytes of a line that are read; the rest of a longer one is left out.
const LINE_BYTES: usize = 64 << 10;

/// The same, of a line that may be a whole JSON document.
const DOCUMENT_BYTES: usize = 32 << 20;

/// One line of a paste.
pub(super) struct Line {
    /// Its number in the file, from 1.
    pub(super) number: usize,
    /// Its text without colours, prompt and leading time stamp.
    pub(super) text: String,
    /// Whether the text is a command after a prompt.
    pub(super) is_command: bool,
    /// Whether the command goes on with that of the line above.
    pub(super) is_continued: bool,
    /// Its leading time stamp, nanoseconds.
    pub(super) stamp: Option<i64>,
}

impl AsRef<str> for Line {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl Line {
    /// Whether the line ends a table: it is empty.
    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

/// Cuts `bytes` into clean lines. A line that begins as a prompt does, but `is_heading`, is output.
pub(super) fn lines(bytes: &[u8], is_heading: fn(&str) -> bool) -> Vec<Line> {
    let mut all = Vec::new();
    let mut number = 1;
    let frame = Frame::find(bytes);
    let mut rest = bytes;
    let mut bare: Vec<(usize, String)> = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        let most = if line.starts_with(b"{") || line.starts_with(b"[") { DOCUMENT_BYTES } else { LINE_BYTES };
        for part in clean(line.get(..most).unwrap_or(line)).split('\n') {
            bare.push((number, frame.within(part).to_owned()));
        }
        number += 1;
        rest = after.strip_prefix(b"\r\n").or_else(|| after.get(1..)).unwrap_or_default();
    }
    for block in bare.chunk_by(|(_, line), (_, next)| line.trim().is_empty() == next.trim().is_empty()) {
        let indent = indentation(block);
        all.extend(
            block.iter().map(|(number, line)| understood(*number, line.get(indent..).unwrap_or_default(), is_heading)),
        );
    }
    all
}

/// Blanks before all lines of a block that was set off as code: those of a table's own first column stay.
fn indentation(block: &[(usize, String)]) -> usize {
    const LEAST: usize = 2;
    let blanks = |line: &String| line.len() - line.trim_start_matches(' ').len();
    block.iter().map(|(_, line)| blanks(line)).min().filter(|least| *least >= LEAST).unwrap_or(0)
}

/// What stands around every line, because the paste was quoted, or because several containers write to
/// one log.
enum Frame {
    None,
    /// `>` of a mail or a comment.
    Quoted,
    /// The container's name and a bar, as `docker compose logs` prints them.
    Container(String),
    /// Bars at both ends, as programs draw a window on a terminal.
    Boxed,
}

impl Frame {
    /// The frame of most of the first lines.
    fn find(bytes: &[u8]) -> Self {
        const LOOKED_AT: usize = 64 << 10;
        const LEAST: usize = 3;
        let text = String::from_utf8_lossy(bytes.get(..LOOKED_AT).unwrap_or(bytes));
        // A container's name is coloured on a terminal.
        let plain: Vec<String> = text.lines().map(|line| clean(line.as_bytes())).collect();
        let lines: Vec<&str> = plain.iter().map(String::as_str).filter(|line| !line.trim().is_empty()).collect();
        let is_most = |count: usize| count >= LEAST && 2 * count >= lines.len();
        if is_most(lines.iter().filter(|line| line.starts_with('>')).count()) {
            return Self::Quoted;
        }
        let drawn = text.lines().filter(|line| boxed(line, '\u{2502}').is_some()).count();
        if is_most(drawn) {
            return Self::Boxed;
        }
        let named = |line: &&str| container(line).map(|(name, _)| name.to_owned());
        match lines.iter().find_map(named) {
            Some(name) if is_most(lines.iter().filter(|line| named(line).as_ref() == Some(&name)).count()) => {
                Self::Container(name)
            }
            _ => Self::None,
        }
    }

    /// The line without it, and without the signs that mark code in a sentence.
    fn within<'t>(&self, line: &'t str) -> &'t str {
        let line = match self {
            Self::None => line,
            Self::Quoted => line.strip_prefix('>').map_or(line, |rest| rest.strip_prefix(' ').unwrap_or(rest)),
            Self::Container(name) => container(line).filter(|(of, _)| of == name).map_or(line, |(_, rest)| rest),
            Self::Boxed => boxed(line, '|').unwrap_or(line),
        };
        let line = unfenced(line);
        let code = line.trim().strip_prefix('`').and_then(|line| line.strip_suffix('`'));
        code.filter(|code| !code.contains('`')).unwrap_or(line)
    }
}

/// The line between two bars, if it holds no other: rows of a table have more.
fn boxed(line: &str, bar: char) -> Option<&str> {
    let inner = line.trim().strip_prefix(bar)?.strip_suffix(bar)?;
    (!inner.contains(bar)).then(|| inner.strip_prefix(' ').unwrap_or(inner).trim_end())
}

/// The line without a fence of code at its beginning or its end; a fence alone, or with the name of a
/// language, stays.
fn unfenced(line: &str) -> &str {
    const FENCE: &str = "```";
    let inner = line.strip_prefix(FENCE).filter(|rest| rest.trim().contains(char::is_whitespace)).unwrap_or(line);
    inner.strip_suffix(FENCE).filter(|rest| !rest.trim().is_empty()).unwrap_or(inner)
}

/// The name of a container, which ends in a number, and the line behind its bar.
fn container(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(" |")?;
    let name = name.trim_end();
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    let is_name =
        !name.contains(char::is_whitespace) && name.rsplit_once(['_', '-']).is_some_and(|(_, of)| is_number(of));
    is_name.then(|| (name, rest.strip_prefix(' ').unwrap_or(rest)))
}

/// The line without escape sequences; where one moves the cursor, a new line begins.
fn clean(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                Some('[') => {
                    let end = chars.find(|c| ('\u{40}'..='\u{7e}').contains(c));
                    if matches!(end, Some('H' | 'f')) && !out.is_empty() {
                        out.push('\n');
                    }
                }
                // A title, up to its end.
                Some(']') => {
                    let _ = chars.find(|c| matches!(c, '\u{7}' | '\\'));
                }
                Some('(' | ')') => {
                    chars.next();
                }
                _ => {}
            },
            '\u{a0}' | '\u{202f}' => out.push(' '),
            '\t' => out.push('\t'),
            '\u{feff}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    plain_lines(out)
}

/// The line with signs for what psql and others draw: bars, dashes, and where they meet. Where a line
/// does not end in one, they are branches of a tree, which other tools draw with the same signs.
fn plain_lines(line: String) -> String {
    let is_drawn = |c: char| ('\u{2500}'..='\u{257f}').contains(&c);
    if !line.contains(is_drawn) {
        return line;
    }
    let meets = line.trim_end().ends_with(is_drawn);
    let plain = |c: char| match c {
        '\u{2502}' | '\u{2503}' | '\u{2551}' => '|',
        '\u{2500}' | '\u{2501}' | '\u{2550}' => '-',
        '\u{253c}' => '+',
        c if meets && is_drawn(c) => '+',
        c => c,
    };
    line.chars().map(plain).collect()
}

fn understood(number: usize, text: &str, is_heading: fn(&str) -> bool) -> Line {
    let text = unescaped(text.trim_end_matches(' '));
    if let Some((prompt, command)) = command(&text, is_heading) {
        let is_continued = is_continuation(prompt);
        return Line { number, text: command.to_owned(), is_command: true, is_continued, stamp: None };
    }
    let (stamp, text) = clock::leading(&text);
    Line { number, text: text.to_owned(), is_command: false, is_continued: false, stamp }
}

/// The text without the references by which HTML writes the signs that it needs itself.
fn unescaped(text: &str) -> Cow<'_, str> {
    const SIGNS: [(&str, &str); 6] =
        [("&gt;", ">"), ("&lt;", "<"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&")];
    match SIGNS.iter().any(|(reference, _)| text.contains(reference)) {
        true => Cow::Owned(SIGNS.iter().fold(text.to_owned(), |text, (of, sign)| text.replace(of, sign))),
        false => Cow::Borrowed(text),
    }
}

/// Whether a prompt asks for more of the statement above: `->` of mysql, `shop-#` and `shop(#` of psql.
fn is_continuation(prompt: &str) -> bool {
    let prompt = prompt.trim();
    let of_psql = || prompt.ends_with(['#', '>']) && prompt[..prompt.len() - 1].ends_with(['-', '(', '\'', '"']);
    matches!(prompt, "->" | "'>" | "\">" | "`>" | "/*>") || of_psql()
}

/// The prompt of a shell, `mysql` or `psql`, and the command after it.
fn command(text: &str, is_heading: fn(&str) -> bool) -> Option<(&str, &str)> {
    if !text.contains(['$', '#', '%', '>', '*']) {
        return None;
    }
    static PROMPT: OnceLock<Option<Regex>> = OnceLock::new();
    // Without bounds on repeats, which would make the pattern large.
    let prompt = PROMPT.get_or_init(|| {
        let place = r"\[[^\]|]+\]|\([\w.-]+\) ?|[\w.-]+@[\w.-]+(?:[: ][^\s|]*)?";
        let client = r"(?:mysql|MariaDB \[[^\]]*\])> |[\w-]+[=(-][#>*] ?|redis [\w.:-]+> |[\w.-]+:\d+(?:\[\d+\])?> ";
        let client = format!(r"{client}|(?:[\w:.-]+ )?(?:\[[^\]]*\] )?[\w.:-]+> (?:db|rs|sh|use|show)\b");
        Regex::new(&format!(r"^ ?(?:(?:{place})?\s?[$#%](?:\s+|$)|{client}|\s*-> | {{3,}}['\x22`]> )")).ok()
    });
    let found = prompt.as_ref()?.find(text).filter(|_| !is_heading(text))?;
    // A lone sign may be a comment, but a command has a word.
    let (prompt, command) = text.split_at_checked(found.end())?;
    Some((prompt, command.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::kinds::is_heading;

    fn texts(bytes: &[u8]) -> Vec<String> {
        lines(bytes, is_heading).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn colours_line_ends_and_screens() {
        let text = b"\x1b[H\x1b[2Jtop\x1b(B\x1b[m - 1\x1b[K\r\nb\x1b[7ma\x00r\x1b[0m\rc\n\nd\x1b[1;1Hnext";
        assert_eq!(texts(text), ["top - 1", "bar", "c", "", "d", "next"]);
        assert_eq!(lines(b"a\r\nb\rc", is_heading)[2].number, 3);
    }

    #[test]
    fn prompts_are_told_from_data() {
        for (text, expected) in [
            ("[root@db1 ~]# iostat -x 5", Some("iostat -x 5")),
            ("ann@db1:~/x$ vmstat 1", Some("vmstat 1")),
            ("$ uptime", Some("uptime")),
            ("mysql> SHOW PROCESSLIST;", Some("SHOW PROCESSLIST;")),
            ("MariaDB [(none)]> show status;", Some("show status;")),
            ("shop=# SELECT 1;", Some("SELECT 1;")),
            ("%Cpu(s):  1.0 us", None),
            ("| 7 | root | $ x |", None),
            ("  4711 mysql     20   0", None),
            ("sda   1,0", None),
        ] {
            assert_eq!(command(text, is_heading).map(|(_, command)| command), expected, "{text}");
        }
    }

    #[test]
    fn the_frame_of_every_line_is_left_out() {
        assert_eq!(
            texts(b"> Tcp:\n>     7 segments sent out\n>\n> Udp:\n"),
            ["Tcp:", "    7 segments sent out", "", "Udp:"]
        );
        let logs = b"db_1    | ready\ndb_1    |\napp_1 | up\ndb_1    | stopped\n";
        assert_eq!(texts(logs), ["ready", "", "app_1 | up", "stopped"]);
        let drawn =
            "\u{2502} 10:01 LOG: one  \u{2502}\n\u{2502} 10:02 LOG: two  \u{2502}\n\u{2502} 10:03 LOG: six  \u{2502}\n";
        assert_eq!(texts(drawn.as_bytes()), ["10:01 LOG: one", "10:02 LOG: two", "10:03 LOG: six"]);
        let table = " state_1 | count\n active | 3\n idle | 4\n";
        assert_eq!(texts(table.as_bytes()), table.lines().collect::<Vec<_>>());
        assert_eq!(texts(b"so `uptime` says\n`load average: 3`"), ["so `uptime` says", "load average: 3"]);
    }

    #[test]
    fn a_block_of_code_loses_its_indentation_and_a_table_keeps_its_own() {
        assert_eq!(
            texts(b"so::\n\n    +---+\n    | a |\n      b\n\nthen"),
            ["so::", "", "+---+", "| a |", "  b", "", "then"]
        );
        assert_eq!(texts(b" r  b\n 1  0\n"), [" r  b", " 1  0"]);
    }

    #[test]
    fn a_long_line_is_cut() {
        let all = lines(&vec![b'x'; 1 << 20], is_heading);
        assert_eq!((all.len(), all[0].text.len()), (1, LINE_BYTES));
    }
}
