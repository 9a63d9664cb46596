//! Parses `log:PATH?…`: the file, and the names of its fields.

use std::path::PathBuf;

use super::fields::{Fields, Meaning, RESOURCES, UNITS};

/// Keys accepted after the `?`, besides the resources.
const KEYS: [(&str, Meaning); 6] = [
    ("trace", Meaning::Trace),
    ("total", Meaning::Total),
    ("time", Meaning::Time),
    ("service", Meaning::Service),
    ("name", Meaning::Name),
    ("status", Meaning::Status),
];

/// Keys of the resources.
const WORDS: [&str; RESOURCES.len()] = ["db", "pool", "cache", "http", "queue"];

/// The parsed address.
#[derive(Clone, Debug)]
pub(super) struct Address {
    /// The file.
    pub path: PathBuf,
    /// The names of its fields.
    pub fields: Fields,
}

impl Address {
    /// Parses the text after `log:`.
    ///
    /// # Errors
    /// What is wrong, and which keys are accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        if path.is_empty() {
            return Err("the log's path is missing; write e.g. log:/var/log/app.log".to_owned());
        }
        let mut fields = Fields::default();
        let pairs: Vec<(&str, &str)> = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .collect();
        // The unit applies to all fields, wherever it appears.
        let unit = pairs.iter().rfind(|(key, _)| *key == "unit").map_or("ms", |(_, unit)| unit);
        let unit = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, unit)| *unit);
        let unit = unit.ok_or("unit must be ns, us, ms or s")?;
        for (key, names) in pairs.into_iter().filter(|(key, _)| *key != "unit") {
            let meaning = meaning(key).ok_or_else(|| format!("\"{key}\" is unknown; supported: {}", known()))?;
            let names: Vec<&str> = names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
            if names.is_empty() {
                return Err(format!("{key} needs the name of a field, e.g. {key}=some_name"));
            }
            names.into_iter().for_each(|name| fields.give(name, meaning, unit));
        }
        Ok(Self { path: PathBuf::from(path), fields })
    }
}

fn meaning(key: &str) -> Option<Meaning> {
    if let Some((_, meaning)) = KEYS.iter().find(|(name, _)| *name == key) {
        return Some(*meaning);
    }
    let of = |word: &str| WORDS.iter().position(|known| *known == word);
    match key.strip_suffix("_calls") {
        Some(word) => of(word).map(Meaning::Calls),
        None => of(key).map(Meaning::Wait),
    }
}

fn known() -> String {
    let keys: Vec<&str> = KEYS.iter().map(|(key, _)| *key).chain(WORDS).collect();
    format!("{}, {}_calls and the like, unit", keys.join(", "), WORDS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_named() {
        let address = Address::parse("/var/log/a b.log?trace=req&total=alles&db=sql1,sql2&db_calls=n&unit=us").unwrap();
        assert_eq!(address.path, PathBuf::from("/var/log/a b.log"));
        let fields = &address.fields;
        assert_eq!(fields.meaning("req").map(|(m, _)| m), Some(Meaning::Trace));
        assert_eq!(
            (fields.meaning("sql1"), fields.meaning("sql2")),
            (Some((Meaning::Wait(0), 1e3)), Some((Meaning::Wait(0), 1e3)))
        );
        assert_eq!(fields.meaning("n").map(|(m, _)| m), Some(Meaning::Calls(0)));
        assert_eq!((fields.meaning("trace_id"), fields.meaning("db_ms")), (None, None));
        assert!(fields.meaning("pool_wait").is_some(), "what is not said is as it was");
    }

    #[test]
    fn mistakes_say_the_way_out() {
        for (text, words) in [
            ("", "the log's path is missing"),
            ("?db=x", "the log's path is missing"),
            ("/a?unit=h", "ns, us, ms or s"),
            ("/a?dbb=x", "\"dbb\" is unknown; supported: trace, total, time, service, name, status, db, pool"),
            ("/a?db=", "e.g. db=some_name"),
            ("/a?db", "e.g. db=some_name"),
        ] {
            let error = Address::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
