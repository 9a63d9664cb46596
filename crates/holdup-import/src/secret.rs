//! Values that do not belong in a file: passwords, tokens, keys. `${secret.NAME}` replaces them.

use crate::note::{Kind, Notes};

/// Secrets of a scenario: names of environment variables, and the value behind each.
#[derive(Debug, Default)]
pub struct Secrets {
    known: Vec<(String, String)>,
}

impl Secrets {
    /// The name for `value`: its existing one, else a new one like `wanted`, which a note tells the
    /// user to set.
    pub fn name(&mut self, wanted: &str, value: &str, element: &str, line: usize, notes: &mut Notes) -> String {
        if let Some((name, _)) = self.known.iter().find(|(_, v)| v == value) {
            return name.clone();
        }
        let upper: String =
            wanted.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
        let upper = upper.trim_matches('_');
        let upper = if upper.starts_with(|c: char| c.is_ascii_alphabetic()) {
            upper.to_owned()
        } else {
            format!("SECRET_{upper}")
        };
        let upper = upper.trim_end_matches('_').to_owned();
        let mut name = upper.clone();
        for number in 2.. {
            if !self.known.iter().any(|(n, _)| *n == name) {
                break;
            }
            name = format!("{upper}_{number}");
        }
        notes.add(
            Kind::Secret,
            element,
            line,
            format!("its value is ${{secret.{name}}}"),
            format!("export {name}=..."),
        );
        self.known.push((name.clone(), value.to_owned()));
        name
    }

    /// Names, in order of appearance.
    pub fn names(self) -> Vec<String> {
        self.known.into_iter().map(|(name, _)| name).collect()
    }
}

/// Whether a header, parameter or field with that name is likely to hold a secret.
pub fn is_secret(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    const WHOLE: [&str; 9] =
        ["authorization", "proxyauthorization", "pwd", "pass", "auth", "jwt", "pin", "sig", "signature"];
    const PARTS: [&str; 9] =
        ["password", "passwd", "secret", "token", "apikey", "accesskey", "privatekey", "sessionid", "credential"];
    WHOLE.contains(&name.as_str()) || PARTS.iter().any(|part| name.contains(part))
}

/// Separates `Bearer xyz`, so that the part that is not secret stays readable.
pub fn scheme(value: &str) -> (&str, &str) {
    let at = value.find(' ').filter(|at| value[..*at].bytes().all(|b| b.is_ascii_alphabetic()));
    value.split_at(at.map_or(0, |at| at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_one_name() {
        let (mut secrets, mut notes) = (Secrets::default(), Notes::default());
        let mut name = |wanted, value| secrets.name(wanted, value, "header", 1, &mut notes);
        assert_eq!(name("X-Api-Key", "a"), "X_API_KEY");
        assert_eq!(name("x-api-key", "b"), "X_API_KEY_2");
        assert_eq!(name("other", "a"), "X_API_KEY");
        assert_eq!(name("1", "c"), "SECRET_1");
        assert_eq!(secrets.names().len(), 3);
    }

    #[test]
    fn likely_secrets() {
        for name in ["Authorization", "X-Api-Key", "access_token", "userPassword", "client-secret", "X-CSRF-Token"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["Accept", "author", "passenger", "page", "keyword"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
