//! The one or two servers that play a mix: their names, and the sources to watch while one of them
//! plays.

use holdup_load::scenario::Target;

use crate::failure::Failure;
use crate::repeat::interleave::checked_name;
use holdup_recording::secret::redact_value;

/// Default names of two servers, the baseline first.
const NAMES: [&str; 2] = ["old", "new"];

/// Schemes of sources that belong to one server.
const OF_A_SERVER: [&str; 3] = ["mysql:", "postgres:", "postgresql:"];

/// A server that plays a mix.
#[derive(Debug)]
pub struct Server {
    /// Its name; empty if it is the only one and has none.
    pub name: String,
    /// Its address and account.
    pub target: Target,
}

/// Parses `--to`: one server, or the old one and the new one.
///
/// # Errors
/// If one is not a database, there are more than two, or both have the same name. Errors do not
/// repeat passwords.
pub fn read(texts: &[String]) -> Result<Vec<Server>, Failure> {
    let bad = |why: String| Failure::Unusable(format!("--to: {why}"));
    if texts.len() > NAMES.len() {
        return Err(bad(format!("expected one server, or an old and a new one; you named {}", texts.len())));
    }
    let mut servers: Vec<Server> = Vec::new();
    for (text, default) in texts.iter().zip(NAMES) {
        let (name, address) = split_name(text);
        if !Target::is_database(address) || address.starts_with("mongodb") {
            return Err(bad("expected a database: mysql://USER@HOST[:PORT][/DATABASE] or postgres://…".to_owned()));
        }
        let name = match name {
            Some(name) => checked_name(name).map_err(bad)?,
            None if texts.len() > 1 => default,
            None => "",
        };
        if servers.iter().any(|other| other.name == name) {
            return Err(bad(format!("both servers are called {name}: give them different names, old=… new=…")));
        }
        let target = Target::database_called(name, address).map_err(bad)?;
        servers.push(Server { name: name.to_owned(), target });
    }
    Ok(servers)
}

impl Server {
    /// Whether it speaks PostgreSQL's protocol.
    pub fn is_postgres(&self) -> bool {
        self.target.url().starts_with("postgres")
    }

    /// The `sources` to watch while this one of `all` plays: the common ones, and its own
    /// (`new=mysql://…`).
    ///
    /// # Errors
    /// If a source names an unknown server, or belongs to one of two without saying which.
    pub fn watched(&self, sources: &[String], all: &[Self]) -> Result<Vec<String>, Failure> {
        let bad = |source: &str, why: String| Failure::Unusable(format!("--watch {}: {why}", redact_value(source)));
        let mut watched = Vec::new();
        for source in sources {
            match split_name(source) {
                (Some(name), own) if name == self.name => watched.push(own.to_owned()),
                (Some(name), _) if all.iter().any(|other| other.name == name) => {}
                (Some(name), _) => return Err(bad(source, format!("no server is called {name}"))),
                (None, _) if all.len() > 1 && OF_A_SERVER.iter().any(|begin| source.starts_with(begin)) => {
                    let names: Vec<String> = all.iter().map(|server| format!("{}=…", server.name)).collect();
                    return Err(bad(source, format!("name its server: {}", names.join(" or "))));
                }
                (None, _) => watched.push(source.clone()),
            }
        }
        Ok(watched)
    }
}

/// Parses `NAME=ADDRESS`. An `=` inside an address has a colon before it.
fn split_name(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((name, address)) if !name.contains(':') => (Some(name), address),
        _ => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(texts: &[&str]) -> Result<Vec<Server>, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        read(&texts).map_err(|failure| match failure {
            Failure::Unusable(why) => why,
            other => format!("{other:?}"),
        })
    }

    #[test]
    fn two_servers_have_names_and_one_needs_none() {
        let names =
            |texts: &[&str]| -> Vec<String> { servers(texts).unwrap().into_iter().map(|server| server.name).collect() };
        let (a, b) = ("mysql://app:p=w@h/shop", "mysql://app@g/shop?tls=on");
        assert_eq!(names(&[a]), [""]);
        assert_eq!(names(&[a, b]), ["old", "new"]);
        assert_eq!(names(&["10.11=mysql://app@h", "11.8=mysql://app@h"]), ["10.11", "11.8"]);
        for (texts, word) in [
            (&[a, b, a][..], "you named 3"),
            (&["new=mysql://app@h", "mysql://app@g"], "both servers are called new"),
            (&["../x=mysql://app@h", a], "letters, digits"),
            (&["http://h"], "expected a database"),
            (&["old=app:canary@h", a], "expected a database"),
        ] {
            let why = servers(texts).unwrap_err();
            assert!(why.contains(word) && !why.contains("canary"), "{texts:?}: {why}");
        }
    }

    #[test]
    fn each_is_watched_by_its_own_sources_and_by_those_of_all() {
        let all = servers(&["mysql://app@h", "mysql://app@g"]).unwrap();
        let watched = |sources: &[&str], of: usize| {
            let sources: Vec<String> = sources.iter().map(|source| (*source).to_owned()).collect();
            all[of].watched(&sources, &all)
        };
        let sources = ["host", "wire:6033=mysql", "old=mysql://w@h?plans=explain", "new=mysql://w@g?plans=explain"];
        assert_eq!(watched(&sources, 0).unwrap(), ["host", "wire:6033=mysql", "mysql://w@h?plans=explain"]);
        assert_eq!(watched(&sources, 1).unwrap(), ["host", "wire:6033=mysql", "mysql://w@g?plans=explain"]);
        for (source, word) in
            [("mysql://w:canary@h", "old=… or new=…"), ("older=mysql://w:canary@h", "no server is called older")]
        {
            let why = match watched(&[source], 0) {
                Err(Failure::Unusable(why)) => why,
                other => panic!("{other:?}"),
            };
            assert!(why.contains(word) && !why.contains("canary"), "{why}");
        }
    }
}
