//! Translates JMeter's references, `${name}` and `${__function(a,b)}`, into holdup's templates.
//! [`super::function`] translates the functions.

use super::function;
use super::names::{Counterpart, Names};
use crate::note::{Kind, Notes};
use crate::template::{literal, quoted};

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

/// A translated text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Translated {
    /// A template of holdup.
    pub text: String,
    /// Variables that its functions set as a side effect, with their templates: to be set before.
    pub sets: Vec<(String, String)>,
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

/// Translates a text of the plan into a template; notes name the place as `place`.
pub fn translate(text: &str, names: &mut Names, notes: &mut Notes, place: (&str, usize)) -> Translated {
    let mut translator = Translator { names, notes, place, sets: Vec::new() };
    let text = translator.template(&pieces(text));
    Translated { text, sets: translator.sets }
}

/// The same as an expression (the part between `${` and `}`). Unless the text is a single
/// reference, a variable holds it.
pub fn expression(text: &str, names: &mut Names, notes: &mut Notes, place: (&str, usize)) -> String {
    Translator { names, notes, place, sets: Vec::new() }.expression(&pieces(text))
}

/// A translation in progress.
pub struct Translator<'a> {
    pub names: &'a mut Names,
    pub notes: &'a mut Notes,
    place: (&'a str, usize),
    pub sets: Vec<(String, String)>,
}

impl Translator<'_> {
    fn template(&mut self, pieces: &[Piece]) -> String {
        let mut out = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => out.push_str(&literal(text)),
                other => {
                    let expression = self.one(other);
                    out.push_str(&format!("${{{expression}}}"));
                }
            }
        }
        out
    }

    /// Pieces as one expression.
    pub fn expression(&mut self, pieces: &[Piece]) -> String {
        match pieces {
            [] => "''".to_owned(),
            [one @ (Piece::Name(_) | Piece::Call { .. })] => self.one(one),
            _ => {
                if let [Piece::Text(text)] = pieces {
                    let trimmed = text.trim();
                    if trimmed.parse::<i64>().is_ok() {
                        return trimmed.to_owned();
                    }
                    return quoted(text);
                }
                let text = self.template(pieces);
                self.names.text("text", text, "")
            }
        }
    }

    fn one(&mut self, piece: &Piece) -> String {
        match piece {
            Piece::Text(text) => quoted(text),
            Piece::Name(name) => self.named(name),
            Piece::Call { name, arguments, written } => match function::call(self, name, arguments) {
                Some(expression) => expression,
                None => {
                    let why = format!("{} calls {name}, which holdup does not have", self.place.0);
                    let own = self.names.text(
                        name.trim_start_matches('_'),
                        literal(written),
                        "a function of JMeter that was not carried over",
                    );
                    let advice = format!("give vars.{own} a value, or a template");
                    self.notes.add(Kind::LeftOut, format!("function {name}"), self.place.1, why, advice);
                    own
                }
            },
        }
    }

    /// A variable; an extractor makes `x_matchNr`, `x_3` and `x_g1` beside `x`.
    fn named(&mut self, name: &str) -> String {
        let name = name.trim();
        if let Some(meaning) = self.names.meaning(name) {
            return meaning.expression();
        }
        if let Some((stem, part)) = name.rsplit_once('_')
            && let Some(Counterpart::List(list)) = self.names.meaning(stem)
        {
            if part == "matchNr" {
                return format!("length({list})");
            }
            if let Some(index) = part.parse::<u32>().ok().and_then(|n| n.checked_sub(1)) {
                return format!("item({list}, {index})");
            }
        }
        if let Some(at) = name.strip_prefix("COOKIE_") {
            let why = format!("{} uses the cookie {at} as a variable", self.place.0);
            self.notes.add(Kind::LeftOut, format!("variable \"{name}\""), self.place.1, why, "capture it: cookie NAME");
        } else {
            let why = format!("{} uses it, but nothing in the scenario sets it", self.place.0);
            self.notes.add(
                Kind::LeftOut,
                format!("variable \"{name}\""),
                self.place.1,
                why,
                "give it a value in vars or with --var",
            );
        }
        self.names.unknown(name)
    }

    /// Notes that a function behaves differently here.
    pub fn differs(&mut self, function: &str, why: &str) {
        self.notes.add(Kind::Changed, format!("function {function}"), self.place.1, why, "");
    }
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

    fn translated(text: &str) -> (String, usize) {
        let (mut names, mut notes) = (Names::default(), Notes::default());
        names.variable("user");
        let text = translate(text, &mut names, &mut notes, ("a test", 1)).text;
        (text, notes.finish().len())
    }

    #[test]
    fn references_become_templates() {
        let cases = [
            ("/a/${user}?x=${__UUID()}", "/a/${user}?x=${uuid()}"),
            ("${__Random(1,100)}", "${random(1, 100)}"),
            ("${__Random(1,${user},)}", "${random(1, user)}"),
            ("${__time()} ${__time(/1000,)}", "${now('ms')} ${now('s')}"),
            ("${__RandomString(8,abc\\,)}", "${random_text(8)}"),
            ("no ${ reference $ { \\$", "no $${ reference $ { \\$"),
            ("${__P(host,h)}", "${host}"),
            ("${__urlencode(a ${user})}", "${url(text)}"),
            ("${__base64Encode(${__UUID})}", "${base64(uuid())}"),
            ("\\${user} ${user}", "$${user} ${user}"),
            ("{\"a\": ${user}}", "{\"a\": ${user}}"),
        ];
        for (from, to) in cases {
            assert_eq!(translated(from).0, to, "{from}");
        }
    }

    #[test]
    fn what_is_not_known_is_noted_and_sent_as_jmeter_would() {
        assert_eq!(translated("${nobody}"), ("${nobody}".to_owned(), 1));
        assert_eq!(translated("${__groovy(vars.get(\"x\"))}"), ("${groovy}".to_owned(), 1));
    }

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

    #[test]
    fn odd_texts_do_no_harm() {
        for text in
            ["${", "${}", "${__", "${__x(", "${__x(${__x(", "${a${b}}", "\\", "${__P(", "}", "${__x(,,,)}", "${__x()"]
        {
            translated(text);
        }
        translated(&"${__x(".repeat(5_000));
    }
}
