//! The parts of a text of JMeter's, and the value of texts that stay constant while a plan runs.

/// Deepest nesting of functions within functions.
const DEEPEST: usize = 16;

/// Longest text that results from filling in constant values, bytes: values that contain each other
/// twice would explode.
const LONGEST_FIXED_BYTES: usize = 64 << 10;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// `${name}`.
    Name(String),
    /// `${__name(...)}`, with its original text.
    Call {
        name: String,
        arguments: Vec<Vec<Piece>>,
        written: String,
    },
}

/// Splits a text into pieces. If it contains no reference, JMeter leaves backslashes alone.
pub fn pieces(text: &str) -> Vec<Piece> {
    let mut rest = text;
    // As in JMeter, one unreadable reference makes the whole a plain text.
    if let Some(all) = read(&mut rest, false, 0)
        && all.iter().any(|piece| !matches!(piece, Piece::Text(_)))
    {
        return all;
    }
    if text.is_empty() { Vec::new() } else { vec![Piece::Text(text.to_owned())] }
}

/// Reads pieces up to the end, or up to the comma or parenthesis that ends an argument; none if a
/// function is not closed.
fn read(rest: &mut &str, is_argument: bool, depth: usize) -> Option<Vec<Piece>> {
    let mut all = Vec::new();
    let mut text = String::new();
    let mut parentheses = 0;
    while let Some(c) = rest.chars().next() {
        if c == '\\' {
            let mut chars = rest[1..].chars();
            match chars.next() {
                Some(next) if "$,\\".contains(next) => {
                    text.push(next);
                    *rest = chars.as_str();
                }
                _ => {
                    text.push('\\');
                    *rest = &rest[1..];
                }
            }
            continue;
        }
        if is_argument && parentheses == 0 && (c == ',' || c == ')') {
            break;
        }
        if rest.starts_with("${__") && depth >= DEEPEST {
            return None;
        }
        if rest.starts_with("${")
            && let Some((piece, after)) = reference(rest, depth)?
        {
            if !text.is_empty() {
                all.push(Piece::Text(std::mem::take(&mut text)));
            }
            all.push(piece);
            *rest = after;
            continue;
        }
        match c {
            '(' => parentheses += 1,
            ')' => parentheses -= 1,
            _ => {}
        }
        text.push(c);
        *rest = &rest[c.len_utf8()..];
    }
    if !text.is_empty() {
        all.push(Piece::Text(text));
    }
    Some(all)
}

/// A reference and the text behind it.
type Reference<'a> = (Piece, &'a str);

/// Reads the reference at the start of `text`, if there is one; returns none at all if it is a
/// function that is not closed.
fn reference(text: &str, depth: usize) -> Option<Option<Reference<'_>>> {
    let inner = &text[2..];
    if !inner.trim_start().starts_with("__") {
        let Some(end) = inner.find(['}', '{', '$', '\n']) else { return Some(None) };
        let Some(rest) = inner[end..].strip_prefix('}') else { return Some(None) };
        return Some((end > 0).then(|| (Piece::Name(inner[..end].to_owned()), rest)));
    }
    let stop = inner.find(['}', '(', '{', '$', '\n'])?;
    let (name, mut rest) = inner.split_at(stop);
    let name = name.trim();
    let mut arguments = Vec::new();
    if let Some(after) = rest.strip_prefix('(') {
        rest = after;
        loop {
            arguments.push(read(&mut rest, true, depth + 1)?);
            match rest.strip_prefix(',') {
                Some(after) => rest = after,
                None => break,
            }
        }
        rest = rest.strip_prefix(')')?.trim_start();
    }
    let after = rest.strip_prefix('}')?;
    let written = text[..text.len() - after.len()].to_owned();
    Some(Some((Piece::Call { name: name.to_owned(), arguments, written }, after)))
}

/// The value of a text that stays constant while the plan runs; else none. `defined` returns the
/// plan's variables.
pub fn fixed(text: &str, defined: &dyn Fn(&str) -> Option<String>, depth: usize) -> Option<String> {
    fixed_pieces(&pieces(text), defined, depth)
}

fn fixed_pieces(all: &[Piece], defined: &dyn Fn(&str) -> Option<String>, depth: usize) -> Option<String> {
    if depth > DEEPEST {
        return None;
    }
    let mut out = String::new();
    for piece in all {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Name(name) => out.push_str(&fixed(&defined(name)?, defined, depth + 1)?),
            Piece::Call { name, arguments, .. } => {
                let default = match name.as_str() {
                    "__P" => arguments.get(1)?,
                    "__property" => arguments.get(2)?,
                    _ => return None,
                };
                out.push_str(&fixed_pieces(default, defined, depth + 1)?);
            }
        }
        if out.len() > LONGEST_FIXED_BYTES {
            return None;
        }
    }
    Some(out)
}

/// If the text is a single property: its name and its default, as written.
pub fn property_of(text: &str) -> Option<(String, String)> {
    let [Piece::Call { name, arguments, .. }] = &pieces(text.trim())[..] else { return None };
    let default = match name.as_str() {
        "__P" => arguments.get(1),
        "__property" => arguments.get(2),
        _ => return None,
    };
    let plain = |pieces: &[Piece]| match pieces {
        [] => Some(String::new()),
        [Piece::Text(text)] => Some(text.clone()),
        [Piece::Name(name)] => Some(format!("${{{name}}}")),
        _ => None,
    };
    let name = plain(arguments.first()?)?;
    Some((name, default.map_or(Some(if arguments.len() < 2 { "1".to_owned() } else { String::new() }), |d| plain(d))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_do_not_change() {
        let defined = |name: &str| match name {
            "a" => Some("${b}x".to_owned()),
            "b" => Some("${__P(b,5)}".to_owned()),
            "circle" => Some("${circle}${circle}".to_owned()),
            _ => None,
        };
        assert_eq!(fixed("${a}y", &defined, 0).as_deref(), Some("5xy"));
        assert_eq!(fixed("${__UUID}", &defined, 0), None);
        assert_eq!(fixed("${circle}", &defined, 0), None);
        assert_eq!(property_of("${__P(users,10)}"), Some(("users".to_owned(), "10".to_owned())));
    }
}
