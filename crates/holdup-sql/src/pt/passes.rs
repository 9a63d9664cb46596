//! The passes one by one. Each does to bytes what one substitution of the tool does, and its
//! comment has the gist of that. They are separate because their order is part of the result.

/// Whether a byte is part of a word.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn skip_blank(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.iter().position(|byte| !is_blank(*byte)).unwrap_or(rest.len())
}

fn begins(text: &[u8], at: usize, word: &[u8]) -> bool {
    text.get(at..at + word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word))
}

/// Whether a word begins or ends at `at`.
fn is_border(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| text.get(at)).is_some_and(|byte| is_word(*byte));
    before != text.get(at).is_some_and(|byte| is_word(*byte))
}

/// Place of `word` at or behind `from`, in any case.
fn find(text: &[u8], from: usize, word: &[u8]) -> Option<usize> {
    (from..text.len()).find(|at| begins(text, *at, word))
}

/// Statements with a fingerprint of their own: dumps, the toolkit's own statements, commands,
/// calls.
pub(super) fn special(sql: &[u8]) -> Option<String> {
    if sql.starts_with(b"SELECT /*!40001 SQL_NO_CACHE */ * FROM `") {
        return Some("mysqldump".to_owned());
    }
    if is_toolkit(sql) {
        return Some("percona-toolkit".to_owned());
    }
    let command = b"administrator command: ";
    if sql.starts_with(command) {
        return Some(String::from_utf8_lossy(sql).into_owned());
    }
    let at = skip_blank(sql, 0);
    let name = skip_blank(sql, at + 4);
    if begins(sql, at, b"call") && name > at + 4 {
        let rest = sql.get(name..)?;
        // Reads up to the first blank, then back to the last parenthesis.
        let solid = rest.iter().position(|byte| is_blank(*byte)).unwrap_or(rest.len());
        let length = rest.get(..solid)?.iter().rposition(|byte| *byte == b'(').filter(|length| *length > 0)?;
        let call = sql.get(at..name + first_parenthesis(rest, length))?;
        return Some(String::from_utf8_lossy(call).to_ascii_lowercase());
    }
    None
}

/// The tool keeps values without blanks in the name of a call (`call p(1)` is one, `call p((1`
/// would be `call p(`). Here the name ends at its first parenthesis.
fn first_parenthesis(rest: &[u8], last: usize) -> usize {
    rest.iter().take(last).position(|byte| *byte == b'(').unwrap_or(last)
}

/// `/*name.name:1/2*/`
fn is_toolkit(sql: &[u8]) -> bool {
    let words = |at: usize| sql.iter().skip(at).take_while(|byte| is_word(**byte)).count();
    memory(sql, b"/*").any(|at| {
        let first = words(at + 2);
        let dot = at + 2 + first;
        let second = if sql.get(dot) == Some(&b'.') { words(dot + 1) } else { 0 };
        let tail = sql.get(dot + 1 + second..dot + 7 + second).unwrap_or_default();
        first > 0 && second > 0 && matches!(tail, [b':', b'0'..=b'9', b'/', b'0'..=b'9', b'*', b'/'])
    })
}

fn memory<'a>(text: &'a [u8], mark: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    (0..text.len()).filter(move |at| text.get(*at..).is_some_and(|rest| rest.starts_with(mark)))
}

/// Keeps the first of the rows of an `INSERT`.
pub(super) fn keep_first_row(text: &mut Vec<u8>) {
    let verb = if begins(text, 0, b"insert") {
        6
    } else if begins(text, 0, b"replace") {
        7
    } else {
        return;
    };
    let ignore = if begins(text, verb, b" ignore") { verb + 7 } else { verb };
    let into = |from: usize| Some(skip_blank(text, from)).filter(|at| *at > from && begins(text, *at, b"into"));
    let Some(into) = into(ignore).or_else(|| into(verb)) else { return };
    let mut from = into + 5;
    while let Some(at) = find(text, from, b"values") {
        let open = skip_blank(text, at + 6);
        if text.get(open) == Some(&b'(') {
            let next = |close: &usize| {
                let comma = skip_blank(text, close + 1);
                text.get(comma) == Some(&b',') && text.get(skip_blank(text, comma + 1)) == Some(&b'(')
            };
            let close = (open + 1..text.len()).filter(|at| text.get(*at) == Some(&b')')).find(next);
            if let Some(close) = close {
                text.truncate(close + 1);
            }
            return;
        }
        from = at + 1;
    }
}

/// `/* … */`, but not `/*! … */`.
pub(super) fn strip_comments(text: &mut Vec<u8>) {
    rewrite(text, |text, at| {
        if text.get(at..at + 2) != Some(b"/*") || matches!(text.get(at + 2), None | Some(b'!')) {
            return None;
        }
        let end = (at + 3..text.len()).find(|end| text.get(*end..*end + 2) == Some(b"*/"))?;
        Some((end + 2, Vec::new()))
    });
}

/// Removes `-- …` and `# …` up to the end of the line, if no quote is in it.
pub(super) fn strip_line_comments(text: &mut Vec<u8>) {
    rewrite(text, |text, at| {
        if text.get(at) != Some(&b'#') && text.get(at..at + 2) != Some(b"--") {
            return None;
        }
        let begin = if text.get(at) == Some(&b'#') { at + 1 } else { at + 2 };
        let end = (begin..text.len())
            .find(|end| matches!(text.get(*end), Some(b'\'' | b'"' | b'\r' | b'\n')))
            .unwrap_or(text.len());
        (!matches!(text.get(end), Some(b'\'' | b'"'))).then(|| (end, Vec::new()))
    });
}

/// Matches `use a` and nothing else.
pub(super) fn is_use(text: &[u8]) -> bool {
    let rest = text.strip_suffix(b"\n").unwrap_or(text);
    begins(rest, 0, b"use ") && rest.len() > 4 && !rest.iter().skip(4).any(|byte| is_blank(*byte))
}

/// Drops quotes and backslashes behind backslashes. Then replaces text between double quotes, and
/// then between single quotes, by `?`.
pub(super) fn strings(text: &mut Vec<u8>) {
    rewrite(text, |text, at| {
        let is_escaped = text.get(at) == Some(&b'\\') && matches!(text.get(at + 1), Some(b'"' | b'\'' | b'\\'));
        is_escaped.then(|| (at + 2, Vec::new()))
    });
    for quote in [b'"', b'\''] {
        rewrite(text, |text, at| {
            if text.get(at) != Some(&quote) {
                return None;
            }
            let length = text.get(at + 1..)?.iter().position(|byte| *byte == quote)?;
            Some((at + length + 2, b"?".to_vec()))
        });
    }
}

/// Replaces each of some words by `?` if it stands by itself.
pub(super) fn word(text: &mut Vec<u8>, words: &[&[u8]]) {
    rewrite(text, |text, at| {
        let found = words.iter().find(|word| begins(text, at, word))?;
        let end = at + found.len();
        (is_border(text, at) && is_border(text, end)).then(|| (end, b"?".to_vec()))
    });
}

/// Replaces 32 hex digits behind a dot, a dash or an underscore.
pub(super) fn checksums(text: &mut Vec<u8>) {
    rewrite(text, |text, at| {
        let mark = *text.get(at).filter(|byte| matches!(byte, b'.' | b'_' | b'-'))?;
        let digits = text.get(at + 1..at + 33)?;
        digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).then(|| (at + 33, vec![mark, b'?']))
    });
}

/// Replaces text that begins with a digit or a sign and continues like a number.
pub(super) fn numbers(text: &mut Vec<u8>, embedded_stay: bool) {
    rewrite(text, |text, at| {
        let begins = matches!(text.get(at), Some(b'0'..=b'9' | b'+' | b'-')) && (!embedded_stay || is_border(text, at));
        let goes_on = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'.' | b'x' | b'+' | b'-');
        begins.then(|| (at + 1 + text.iter().skip(at + 1).take_while(|byte| goes_on(byte)).count(), b"?".to_vec()))
    });
}

/// Drops parts of a number before a `?`: `x`, `b`, signs, and a dot.
pub(super) fn signs(text: &mut Vec<u8>, with_dot: bool) {
    rewrite(text, |text, at| {
        let is_sign =
            matches!(text.get(at), Some(b'x' | b'b' | b'+' | b'-')) || with_dot && text.get(at) == Some(&b'.');
        (is_sign && text.get(at + 1) == Some(&b'?')).then(|| (at + 2, b"?".to_vec()))
    });
}

/// Leaves one blank for several, none at the beginning, and no line break at the end.
pub(super) fn collapse_blanks(text: &mut Vec<u8>) {
    let begin = skip_blank(text, 0);
    text.drain(..begin);
    if text.ends_with(b"\n") {
        text.pop();
    }
    let is_space = |byte: u8| matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | 0x0c);
    let mut before = false;
    text.retain_mut(|byte| {
        let space = is_space(*byte);
        if space {
            *byte = b' ';
        }
        let keep = !(space && before);
        before = space;
        keep
    });
}

/// Collapses lists of `?` behind `in` and `values`.
pub(super) fn collapse_lists(text: &mut Vec<u8>) {
    rewrite(text, |text, at| {
        if !is_border(text, at) {
            return None;
        }
        // The longer word comes first. The tool does not check that the word ends there.
        [&b"in"[..], b"values", b"value"].iter().find_map(|word| {
            text.get(at..)?.strip_prefix(*word)?;
            let mut end = at + word.len();
            while let Some(next) = list(text, end) {
                end = next;
            }
            (end > at + word.len()).then(|| (end, [word, &b"(?+)"[..]].concat()))
        })
    });
}

/// End of the list of `?` that begins at `from`, including blanks and commas before it.
fn list(text: &[u8], from: usize) -> Option<usize> {
    let count = |from: usize, taken: &dyn Fn(u8) -> bool| {
        from + text.iter().skip(from).take_while(|byte| taken(**byte)).count()
    };
    let open = count(from, &|byte| is_blank(byte) || byte == b',');
    if text.get(open) != Some(&b'(') {
        return None;
    }
    let close = count(open + 1, &|byte| is_blank(byte) || matches!(byte, b',' | b'?'));
    (text.get(close) == Some(&b')')).then_some(close + 1)
}

/// Collapses repetitions of a `select` behind `union`.
pub(super) fn collapse_unions(text: &mut Vec<u8>) {
    if find(text, 0, b" union ").is_none() {
        return;
    }
    rewrite(text, |text, at| {
        if !is_border(text, at) || !text.get(at..)?.starts_with(b"select ") {
            return None;
        }
        let mut from = at + 7;
        while let Some(union) = find(text, from, b" union") {
            let select = text.get(at..union)?;
            let mut found = None;
            let mut end = union;
            while let Some((next, words)) = again(text, end, select) {
                (end, found) = (next, Some(words));
            }
            if let Some(words) = found {
                return Some((end, [select, b" /*repeat", words, b"*/"].concat()));
            }
            from = union + 1;
        }
        None
    });
}

/// End of the repetition of `select` behind a `union` at `at`, and the words between them.
fn again<'a>(text: &'a [u8], at: usize, select: &[u8]) -> Option<(usize, &'a [u8])> {
    [&b" union all"[..], b" union"].iter().find_map(|words| {
        let rest = text.get(at..)?.strip_prefix(*words)?.strip_prefix(b" ")?;
        rest.starts_with(select)
            .then(|| (at + words.len() + 1 + select.len(), text.get(at..at + words.len()).unwrap_or_default()))
    })
}

/// Shortens the first `limit ?, ?` or `limit ? offset ?`.
pub(super) fn shorten_limit(text: &mut Vec<u8>) {
    let Some(at) = (0..text.len()).find(|at| begins(text, *at, b"limit ?") && is_border(text, *at)) else { return };
    let end = at + 7;
    for more in [&b", ?"[..], b",?", b" offset ?"] {
        if begins(text, end, more) {
            text.drain(end..end + more.len());
            return;
        }
    }
}

/// Drops `asc` behind `order by`, because it is the default.
pub(super) fn drop_asc(text: &mut Vec<u8>) {
    let Some(order) = (0..text.len()).find(|at| begins(text, *at, b"order by ") && is_border(text, *at)) else {
        return;
    };
    // At least one character must stand between.
    let mut from = order + 10;
    while let Some(asc) = find(text, from, b"asc") {
        let begin =
            text.get(..asc).unwrap_or_default().iter().rposition(|byte| !is_blank(*byte)).map_or(0, |at| at + 1);
        if begin < asc && begin >= from {
            text.drain(begin..asc + 3);
            from = begin + 1;
        } else {
            from = asc + 1;
        }
    }
}

/// Goes over the text once. Where `change` returns an end and a text, that text replaces everything
/// up to the end.
fn rewrite(text: &mut Vec<u8>, change: impl Fn(&[u8], usize) -> Option<(usize, Vec<u8>)>) {
    let mut out: Option<Vec<u8>> = None;
    let (mut at, mut kept) = (0, 0);
    while at < text.len() {
        if let Some((end, with)) = change(text, at) {
            let out = out.get_or_insert_with(|| Vec::with_capacity(text.len()));
            out.extend_from_slice(text.get(kept..at).unwrap_or_default());
            out.extend_from_slice(&with);
            (at, kept) = (end.max(at + 1), end.max(at + 1));
        } else {
            at += 1;
        }
    }
    if let Some(mut out) = out {
        out.extend_from_slice(text.get(kept..).unwrap_or_default());
        *text = out;
    }
}
