//! JMeter's functions as expressions of holdup's templates.

use super::expression::{Piece, Translator};
use super::names::Counterpart;

/// Formats of `__time` that give a moment as in RFC 3339, except for the time zone.
const RFC3339_LIKE: [&str; 4] =
    ["yyyy-MM-dd'T'HH:mm:ss.SSS", "yyyy-MM-dd'T'HH:mm:ss", "YYYY-MM-dd'T'HH:mm:ss", "yyyy-MM-ddTHH:mm:ss"];

/// Translates a call; none if holdup has no such function.
pub fn call(to: &mut Translator<'_>, name: &str, arguments: &[Vec<Piece>]) -> Option<String> {
    let plain = |index: usize| match arguments.get(index).map(Vec::as_slice) {
        Some([Piece::Text(text)]) => text.trim(),
        _ => "",
    };
    // The last argument of many functions is a variable that gets the value as well.
    let mut also = plain(usize::MAX).to_owned();
    let expression = match name {
        "__UUID" => "uuid()".to_owned(),
        "__Random" => {
            plain(2).clone_into(&mut also);
            let ends = (arguments.first()?, arguments.get(1)?);
            if fixed(to, ends.0).zip(fixed(to, ends.1)).is_some_and(|(low, high)| low > high) {
                return None;
            }
            format!("random({}, {})", whole(to, ends.0)?, whole(to, ends.1)?)
        }
        "__RandomString" => {
            plain(2).clone_into(&mut also);
            let from = plain(1);
            if !from.is_empty() && (from.len() < 20 || !from.bytes().all(|b| b.is_ascii_alphanumeric())) {
                to.differs(name, "the scenario uses letters and digits");
            }
            let length = whole(to, arguments.first()?)?;
            if fixed(to, arguments.first()?).is_some_and(|n| !(0..=100_000).contains(&n)) {
                return None;
            }
            format!("random_text({length})")
        }
        "__time" => {
            plain(1).clone_into(&mut also);
            match plain(0) {
                "" => "now('ms')".to_owned(),
                "/1000" => "now('s')".to_owned(),
                format if RFC3339_LIKE.iter().any(|known| format.starts_with(known)) => {
                    to.differs(name, "the scenario writes it as 2026-01-31T08:49:37.250Z, in UTC");
                    "now('rfc3339')".to_owned()
                }
                _ => return None,
            }
        }
        "__P" => property(to, arguments.first()?, arguments.get(1))?,
        "__property" => {
            plain(1).clone_into(&mut also);
            property(to, arguments.first()?, arguments.get(2))?
        }
        "__threadNum" => {
            to.differs(name, "the scenario uses the session's number, which does not repeat");
            "session()".to_owned()
        }
        "__counter" => {
            plain(1).clone_into(&mut also);
            to.differs(name, "numbers are unique in the whole run, but may have gaps");
            "number()".to_owned()
        }
        "__intSum" | "__longSum" => {
            let is_name = |pieces: &[Piece]| matches!(pieces, [Piece::Text(t)] if t.trim().parse::<i64>().is_err());
            let count = arguments.len() - usize::from(arguments.last().is_some_and(|last| is_name(last)));
            if count < arguments.len() {
                plain(count).clone_into(&mut also);
            }
            let mut sum = whole(to, arguments.first()?)?;
            for argument in arguments.get(1..count)? {
                sum = format!("add({sum}, {})", whole(to, argument)?);
            }
            sum
        }
        "__urlencode" => format!("url({})", to.expression(arguments.first()?)),
        "__base64Encode" => {
            plain(1).clone_into(&mut also);
            format!("base64({})", to.expression(arguments.first()?))
        }
        "__toLowerCase" | "__lowercase" => format!("lower({})", to.expression(arguments.first()?)),
        "__toUpperCase" | "__uppercase" => format!("upper({})", to.expression(arguments.first()?)),
        "__changeCase" => {
            let change = match plain(1) {
                "LOWER" => "lower",
                "UPPER" | "" => "upper",
                _ => return None,
            };
            plain(2).clone_into(&mut also);
            format!("{change}({})", to.expression(arguments.first()?))
        }
        "__digest" if plain(0).eq_ignore_ascii_case("SHA-256") && plain(2).is_empty() => {
            plain(4).clone_into(&mut also);
            let sum = format!("sha256({})", to.expression(arguments.get(1)?));
            if plain(3).eq_ignore_ascii_case("true") { format!("upper({sum})") } else { sum }
        }
        "__env" => {
            let variable = plain(0);
            let is_name = !variable.is_empty() && variable.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            let default = plain(2);
            if !is_name || default.contains(['}', '{', '$']) {
                return None;
            }
            let text = if default.is_empty() {
                format!("${{env.{variable}}}")
            } else {
                format!("${{env.{variable}:-{default}}}")
            };
            to.names.text(&variable.to_ascii_lowercase(), text, "")
        }
        "__chooseRandom" => {
            let (last, choices) = arguments.split_last()?;
            if let [Piece::Text(text)] = &last[..] {
                text.trim().clone_into(&mut also);
            }
            let choices: Vec<String> = choices.iter().map(|c| to.expression(c)).collect();
            if choices.is_empty() {
                return None;
            }
            format!("pick({})", choices.join(", "))
        }
        "__V" => list_item(to, arguments.first()?)?,
        "__eval" | "__evalVar" => {
            let inner = match &arguments.first()?[..] {
                [Piece::Text(name)] if name_of(to, name).is_some() => name_of(to, name)?,
                [Piece::Name(_)] => to.expression(arguments.first()?),
                _ => return None,
            };
            format!("template({inner})")
        }
        _ => return None,
    };
    if !also.is_empty() {
        let variable = to.names.variable(&also);
        if to.sets.iter().all(|(known, _)| *known != variable) {
            to.sets.push((variable.clone(), format!("${{{expression}}}")));
        }
        return Some(variable);
    }
    Some(expression)
}

/// An argument that must be a whole number, if it can be one.
fn whole(to: &mut Translator<'_>, pieces: &[Piece]) -> Option<String> {
    match pieces {
        [Piece::Text(text)] => text.trim().parse::<i64>().ok().map(|n| n.to_string()),
        // A constant variable must be a number, too.
        [Piece::Name(name)] if to.names.fixed(&format!("${{{name}}}")).is_some() => {
            fixed(to, pieces)?;
            Some(to.expression(pieces))
        }
        [Piece::Name(name)] if to.names.meaning(name.trim()).is_none() => None,
        [Piece::Name(_)] => {
            let own = to.expression(pieces);
            // A computed text may be a number. A constant text is not one here, or the lines above
            // would have found it.
            let is_word = to.names.vars.iter().any(|var| var.name == own && !var.value.contains('('));
            (!is_word).then_some(own)
        }
        [Piece::Call { .. }] => Some(to.expression(pieces)),
        _ => None,
    }
}

/// The number that an argument always has.
fn fixed(to: &Translator<'_>, pieces: &[Piece]) -> Option<i64> {
    match pieces {
        [Piece::Text(text)] => text.trim().parse().ok(),
        [Piece::Name(name)] => to.names.fixed(&format!("${{{name}}}"))?.parse().ok(),
        _ => None,
    }
}

fn name_of(to: &Translator<'_>, name: &str) -> Option<String> {
    to.names.meaning(name.trim()).map(Counterpart::expression)
}

fn property(to: &mut Translator<'_>, name: &[Piece], default: Option<&Vec<Piece>>) -> Option<String> {
    let [Piece::Text(name)] = name else { return None };
    let default = match default.map(Vec::as_slice) {
        // JMeter's value for a property that is not given.
        None => "1".to_owned(),
        Some([]) => String::new(),
        Some([Piece::Text(text)]) => crate::template::literal(text),
        Some(pieces) => format!("${{{}}}", to.expression(pieces)),
    };
    Some(to.names.property(name.trim(), default))
}

/// `x_${i}` with `x` a list: JMeter counts from 1.
fn list_item(to: &mut Translator<'_>, pieces: &[Piece]) -> Option<String> {
    let [Piece::Text(stem), index @ (Piece::Name(_) | Piece::Call { .. })] = pieces else { return None };
    let Some(Counterpart::List(list)) = to.names.meaning(stem.strip_suffix('_')?).cloned() else { return None };
    let index = to.expression(std::slice::from_ref(index));
    Some(format!("item({list}, add({index}, -1))"))
}
