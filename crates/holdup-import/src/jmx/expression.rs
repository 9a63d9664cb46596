//! Translates JMeter's references, `${name}` and `${__function(a,b)}`, into holdup's templates.

mod function;

use super::names::{Counterpart, Names};
use super::piece::{Piece, pieces};
use crate::note::{Kind, Notes};
use crate::template::{literal, quoted};

/// A translated text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Translated {
    /// A template of holdup.
    pub text: String,
    /// Variables that its functions set as a side effect, with their templates: to be set before.
    pub sets: Vec<(String, String)>,
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
        self.notes.changed(format!("function {function}"), self.place.1, why);
    }
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
    fn odd_texts_do_no_harm() {
        for text in
            ["${", "${}", "${__", "${__x(", "${__x(${__x(", "${a${b}}", "\\", "${__P(", "}", "${__x(,,,)}", "${__x()"]
        {
            translated(text);
        }
        translated(&"${__x(".repeat(5_000));
    }
}
