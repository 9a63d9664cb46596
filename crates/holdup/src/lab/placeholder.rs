//! Placeholders of lab files: finds them in a text, checks them against the lab's declarations, and
//! fills in values. Other text in braces stays unchanged.

use std::collections::BTreeMap;
use std::path::Path;

use holdup_load::yaml::nearest;

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    /// `{dir}` has a key and no name, `{port.db}` has both.
    Placeholder(&'a str, Option<&'a str>),
}

/// Splits a text at its placeholders.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    // Where the next `{` may be; earlier ones opened no placeholder.
    let mut from = 0;
    while let Some(open) = rest[from..].find('{').map(|at| at + from) {
        let inside = &rest[open + 1..];
        let placeholder = inside.find('}').and_then(|close| {
            let (key, name) = match inside[..close].split_once('.') {
                Some((key, name)) => (key, Some(name)),
                None => (&inside[..close], None),
            };
            let ours = match name {
                None => matches!(key, "dir" | "lab" | "kit" | "holdup"),
                Some(name) => matches!(key, "port" | "pid" | "secret" | "said") && is_name(name),
            };
            ours.then_some((close, key, name))
        });
        match placeholder {
            Some((close, key, name)) => {
                found.push(Piece::Text(&rest[..open]));
                found.push(Piece::Placeholder(key, name));
                rest = &inside[close + 1..];
                from = 0;
            }
            None => from = open + 1,
        }
    }
    found.push(Piece::Text(rest));
    found
}

/// Names of labs, ports, secrets, processes and variants: they become parts of file names.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        && text.as_bytes()[0].is_ascii_alphanumeric()
}

/// A hint for an unknown `word`: the nearest of `known`, and all of them.
pub(super) fn instead(word: &str, known: &[&str]) -> String {
    if known.is_empty() {
        return "there are none".to_owned();
    }
    let hint = nearest(word, known).map(|name| format!("did you mean \"{name}\"? ")).unwrap_or_default();
    format!("{hint}there are: {}", known.join(", "))
}

/// What a text may contain, which depends on its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    /// Not where they would be visible: in an argument list (`ps`), or in a scenario, which the
    /// recording keeps.
    pub secrets: bool,
    /// Not before processes run; the same holds for their output.
    pub pids: bool,
}

/// The names a lab declares.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub ports: Vec<String>,
    pub secrets: Vec<String>,
    pub processes: Vec<String>,
}

impl Declared {
    /// Reports the first placeholder of `text` that cannot be filled in.
    pub fn check(&self, text: &str, allowed: Allowed) -> Result<(), String> {
        for piece in pieces(text) {
            let Piece::Placeholder(key, Some(name)) = piece else { continue };
            // The files are the processes' own choice.
            if key == "said" {
                if !allowed.pids {
                    return Err(format!("{{said.{name}}}: no process runs at that point"));
                }
                continue;
            }
            let (known, list) = match key {
                "port" => (&self.ports, "ports"),
                "pid" => (&self.processes, "processes"),
                _ => (&self.secrets, "secrets"),
            };
            if !known.iter().any(|k| k == name) {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let hint = instead(name, &known);
                return Err(format!("{{{key}.{name}}}: unknown name \"{name}\" in {list}; {hint}"));
            }
            if key == "secret" && !allowed.secrets {
                return Err(format!("{{secret.{name}}} is allowed only in env and watch: here others could see it"));
            }
            if key == "pid" && !allowed.pids {
                return Err(format!("{{pid.{name}}}: no process runs at that point"));
            }
        }
        Ok(())
    }
}

/// The current values of a lab's placeholders.
#[derive(Clone, Default)]
pub(super) struct Scope {
    pub dir: String,
    pub lab: String,
    pub kit: String,
    pub holdup: String,
    pub ports: BTreeMap<String, u16>,
    pub secrets: BTreeMap<String, String>,
    /// Processes that have been started.
    pub pids: BTreeMap<String, u32>,
}

impl Scope {
    /// Fills in the placeholders of a checked text.
    ///
    /// # Errors
    /// The name of a process that has not been started, or of a file that no process wrote.
    pub fn fill(&self, text: &str) -> Result<String, String> {
        let mut filled = String::with_capacity(text.len());
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Placeholder("dir", _) => filled.push_str(&self.dir),
                Piece::Placeholder("lab", _) => filled.push_str(&self.lab),
                Piece::Placeholder("kit", _) => filled.push_str(&self.kit),
                Piece::Placeholder("holdup", _) => filled.push_str(&self.holdup),
                Piece::Placeholder(key, name) => {
                    let name = name.unwrap_or_default();
                    let value = match key {
                        "port" => self.ports.get(name).map(u16::to_string),
                        "pid" => self.pids.get(name).map(u32::to_string),
                        "said" => self.file_text(name),
                        _ => self.secrets.get(name).cloned(),
                    };
                    filled.push_str(&value.ok_or_else(|| name.to_owned())?);
                }
            }
        }
        Ok(filled)
    }

    /// The text that a process wrote to the file of that name in the scratch folder.
    fn file_text(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(Path::new(&self.dir).join(name)).ok()?;
        Some(text.trim().to_owned())
    }

    /// The text without the lab's secrets, because servers quote their input in their logs.
    pub fn redact(&self, text: &str) -> String {
        let mut values: Vec<&String> = self.secrets.values().collect();
        // A secret may begin with another one.
        values.sort_by_key(|v| std::cmp::Reverse(v.len()));
        values.into_iter().fold(text.to_owned(), |text, value| text.replace(value.as_str(), "***"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        Scope {
            dir: "/t".to_owned(),
            ports: BTreeMap::from([("db".to_owned(), 4711)]),
            secrets: BTreeMap::from([("a".to_owned(), "hush".to_owned()), ("b".to_owned(), "hush-hush".to_owned())]),
            ..Scope::default()
        }
    }

    #[test]
    fn fills_what_it_knows_and_leaves_the_rest() {
        let fill = |text: &str| scope().fill(text);
        assert_eq!(fill("{dir}/x:{port.db}{port.db}").unwrap(), "/t/x:47114711");
        assert_eq!(fill("id = {id} {{dir} {port} {").unwrap(), "id = {id} {/t {port} {");
        assert_eq!(fill("${HOME} {a.b} {port.}").unwrap(), "${HOME} {a.b} {port.}");
        assert_eq!(fill("{pid.db}").unwrap_err(), "db");
    }

    #[test]
    fn placeholders_read_files_that_a_process_wrote() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("net-database"), "10.1.2.3\n").unwrap();
        let scope = Scope { dir: dir.path().display().to_string(), ..scope() };
        assert_eq!(scope.fill("tcp {said.net-database}:{port.db}").unwrap(), "tcp 10.1.2.3:4711");
        assert_eq!(scope.fill("{said.net-app}").unwrap_err(), "net-app");
        let early = Allowed { secrets: false, pids: false };
        assert!(Declared::default().check("{said.x}", early).unwrap_err().contains("no process runs at that point"));
    }

    #[test]
    fn check_names_the_nearest_and_refuses_secrets() {
        let declared =
            Declared { ports: vec!["db_extra".to_owned()], secrets: vec!["app".to_owned()], processes: vec![] };
        let all = Allowed { secrets: true, pids: true };
        assert!(declared.check("{port.db_extr}", all).unwrap_err().contains("did you mean \"db_extra\"?"));
        assert!(declared.check("{secret.app} {id}", all).is_ok());
        let error = declared.check("{secret.app}", Allowed { secrets: false, pids: true }).unwrap_err();
        assert!(error.contains("only in env and watch"), "{error}");
    }

    #[test]
    fn redacts_the_longest_first() {
        assert_eq!(scope().redact("user hush-hush and hush"), "user *** and ***");
    }
}
