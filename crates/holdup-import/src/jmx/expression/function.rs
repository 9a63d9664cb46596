//! JMeter's functions as expressions of holdup's templates.

use super::Translator;
use crate::jmx::names::Counterpart;
use crate::jmx::piece::Piece;

/// Formats of `__time` that give a moment as in RFC 3339, except for the time zone.
const RFC3339_LIKE: [&str; 4] =
    ["yyyy-MM-dd'T'HH:mm:ss.SSS", "yyyy-MM-dd'T'HH:mm:ss", "YYYY-MM-dd'T'HH:mm:ss", "yyyy-MM-ddTHH:mm:ss"];

/// Translates a call; none if holdup has no such function.
pub fn call(to: &mut Translator<'_>, name: &str, arguments: &[Vec<Piece>]) -> Option<String> {
    let expression = expression(to, name, arguments)?;
    let also = also_set(name, arguments);
    if also.is_empty() {
        return Some(expression);
    }
    let variable = to.names.variable(also);
    if to.sets.iter().all(|(known, _)| *known != variable) {
        to.sets.push((variable.clone(), format!("${{{expression}}}")));
    }
    Some(variable)
}

/// The variable that gets the value as well: the last argument of many functions. Empty without one.
fn also_set<'a>(name: &str, arguments: &'a [Vec<Piece>]) -> &'a str {
    let at = match name {
        "__time" | "__property" | "__counter" | "__base64Encode" => 1,
        "__Random" | "__RandomString" | "__changeCase" => 2,
        "__digest" => 4,
        "__intSum" | "__longSum" => summands(arguments),
        "__chooseRandom" => arguments.len().saturating_sub(1),
        _ => return "",
    };
    plain(arguments, at)
}

/// An argument that is only text; else empty.
fn plain(arguments: &[Vec<Piece>], index: usize) -> &str {
    match arguments.get(index).map(Vec::as_slice) {
        Some([Piece::Text(text)]) => text.trim(),
        _ => "",
    }
}

fn expression(to: &mut Translator<'_>, name: &str, arguments: &[Vec<Piece>]) -> Option<String> {
    Some(match name {
        "__UUID" => "uuid()".to_owned(),
        "__Random" => random(to, arguments)?,
        "__RandomString" => random_text(to, name, arguments)?,
        "__time" => time(to, name, arguments)?,
        "__P" => property(to, arguments.first()?, arguments.get(1))?,
        "__property" => property(to, arguments.first()?, arguments.get(2))?,
        "__threadNum" => {
            to.differs(name, "the scenario uses the session's number, which does not repeat");
            "session()".to_owned()
        }
        "__counter" => {
            to.differs(name, "numbers are unique in the whole run, but may have gaps");
            "number()".to_owned()
        }
        "__intSum" | "__longSum" => sum(to, arguments)?,
        "__urlencode" => format!("url({})", to.expression(arguments.first()?)),
        "__base64Encode" => format!("base64({})", to.expression(arguments.first()?)),
        "__toLowerCase" | "__lowercase" => format!("lower({})", to.expression(arguments.first()?)),
        "__toUpperCase" | "__uppercase" => format!("upper({})", to.expression(arguments.first()?)),
        "__changeCase" => {
            let change = match plain(arguments, 1) {
                "LOWER" => "lower",
                "UPPER" | "" => "upper",
                _ => return None,
            };
            format!("{change}({})", to.expression(arguments.first()?))
        }
        "__digest" if plain(arguments, 0).eq_ignore_ascii_case("SHA-256") && plain(arguments, 2).is_empty() => {
            let sum = format!("sha256({})", to.expression(arguments.get(1)?));
            if plain(arguments, 3).eq_ignore_ascii_case("true") { format!("upper({sum})") } else { sum }
        }
        "__env" => environment(to, arguments)?,
        "__chooseRandom" => {
            let (_, choices) = arguments.split_last()?;
            let choices: Vec<String> = choices.iter().map(|c| to.expression(c)).collect();
            if choices.is_empty() {
                return None;
            }
            format!("pick({})", choices.join(", "))
        }
        "__V" => list_item(to, arguments.first()?)?,
        "__eval" | "__evalVar" => template(to, arguments.first()?)?,
        _ => return None,
    })
}

fn random(to: &mut Translator<'_>, arguments: &[Vec<Piece>]) -> Option<String> {
    let (low, high) = (arguments.first()?, arguments.get(1)?);
    if fixed(to, low).zip(fixed(to, high)).is_some_and(|(low, high)| low > high) {
        return None;
    }
    Some(format!("random({}, {})", whole(to, low)?, whole(to, high)?))
}

fn random_text(to: &mut Translator<'_>, name: &str, arguments: &[Vec<Piece>]) -> Option<String> {
    let from = plain(arguments, 1);
    if !from.is_empty() && (from.len() < 20 || !from.bytes().all(|b| b.is_ascii_alphanumeric())) {
        to.differs(name, "the scenario uses letters and digits");
    }
    let length = whole(to, arguments.first()?)?;
    if fixed(to, arguments.first()?).is_some_and(|n| !(0..=100_000).contains(&n)) {
        return None;
    }
    Some(format!("random_text({length})"))
}

fn time(to: &mut Translator<'_>, name: &str, arguments: &[Vec<Piece>]) -> Option<String> {
    let unit = match plain(arguments, 0) {
        "" => "ms",
        "/1000" => "s",
        format if RFC3339_LIKE.iter().any(|known| format.starts_with(known)) => {
            to.differs(name, "the scenario writes it as 2026-01-31T08:49:37.250Z, in UTC");
            "rfc3339"
        }
        _ => return None,
    };
    Some(format!("now('{unit}')"))
}

/// The number of summands: the last argument may be a variable.
fn summands(arguments: &[Vec<Piece>]) -> usize {
    let is_name = |pieces: &[Piece]| matches!(pieces, [Piece::Text(t)] if t.trim().parse::<i64>().is_err());
    arguments.len() - usize::from(arguments.last().is_some_and(|last| is_name(last)))
}

fn sum(to: &mut Translator<'_>, arguments: &[Vec<Piece>]) -> Option<String> {
    let mut sum = whole(to, arguments.first()?)?;
    for argument in arguments.get(1..summands(arguments))? {
        sum = format!("add({sum}, {})", whole(to, argument)?);
    }
    Some(sum)
}

fn environment(to: &mut Translator<'_>, arguments: &[Vec<Piece>]) -> Option<String> {
    let (variable, default) = (plain(arguments, 0), plain(arguments, 2));
    let is_name = !variable.is_empty() && variable.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !is_name || default.contains(['}', '{', '$']) {
        return None;
    }
    let text =
        if default.is_empty() { format!("${{env.{variable}}}") } else { format!("${{env.{variable}:-{default}}}") };
    Some(to.names.text(&variable.to_ascii_lowercase(), text, ""))
}

/// A text that is itself a template.
fn template(to: &mut Translator<'_>, argument: &[Piece]) -> Option<String> {
    let inner = match argument {
        [Piece::Text(name)] if name_of(to, name).is_some() => name_of(to, name)?,
        [Piece::Name(_)] => to.expression(argument),
        _ => return None,
    };
    Some(format!("template({inner})"))
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
