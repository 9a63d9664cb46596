//! The scenario's text for the recording: the tree as it was read, without its secrets, however
//! they are written. A value is secret if its key, or one above it, says so, if it looks like a
//! secret, or if a secret is filled into it. Header fields identify users by names that any app may
//! make up: of all but the [harmless](HARMLESS_HEADERS) ones only the names are kept.

use std::collections::BTreeSet;
use std::convert::Infallible;

use holdup_recording::secret::{HIDDEN, is_secret_name, redact_value, spans};

use crate::yaml::{Node, YamlError};

/// Shortest secret that is masked in messages: shorter ones are parts of words.
const SHORTEST: usize = 4;

/// Header fields, in lower case, whose values say what a request asks for and not for whom (RFC 9110,
/// RFC 9111).
const HARMLESS_HEADERS: [&str; 18] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "content-encoding",
    "content-language",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "pragma",
    "te",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// A scenario's text and the secrets that were removed from it.
pub struct MaskedText {
    /// YAML without secrets.
    pub text: String,
    secrets: Vec<String>,
}

impl MaskedText {
    /// From `root`, a scenario that may be wrong in any way.
    pub fn from_tree(root: &Node) -> Self {
        let (mut secrets, mut names) = (Vec::new(), BTreeSet::new());
        let hidden = hide(root, &BTreeSet::new(), &mut |secret| {
            names.extend(filled_in(secret));
            secrets.push(secret.to_owned());
        });
        // Variables used in a secret's place are secrets themselves.
        let kept =
            if names.is_empty() { hidden } else { hide(root, &names, &mut |secret| secrets.push(secret.to_owned())) };
        secrets.retain(|secret| secret.len() >= SHORTEST);
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self { text: kept.to_yaml(), secrets }
    }

    /// Adds `value` to the secrets.
    pub fn add_secret(&mut self, value: &str) {
        if value.len() >= SHORTEST {
            self.secrets.push(value.to_owned());
        }
    }

    /// `error` without secrets.
    pub fn masked(&self, mut error: YamlError) -> YamlError {
        for secret in &self.secrets {
            error.message = error.message.replace(secret, HIDDEN);
        }
        error
    }
}

/// The text of a scenario that was made from flags, without secrets.
pub fn mask(text: &str) -> String {
    Node::parse(text, "the quick form").map_or_else(|_| String::new(), |root| MaskedText::from_tree(&root).text)
}

/// `root` without its secrets, which are passed to `found`; `names` are the secret variables.
fn hide(root: &Node, names: &BTreeSet<String>, found: &mut impl FnMut(&str)) -> Node {
    let mut kept = root.clone();
    let Ok(()) = kept.fill(&mut |place, text| {
        if is_secret_place(&place.path(), names) {
            found(text);
            return Ok::<_, Infallible>(Some(HIDDEN.to_owned()));
        }
        spans(text).into_iter().for_each(|span| found(&text[span]));
        Ok(Some(redact_value(text)))
    });
    kept
}

/// Whether a key on the way to `path` names a secret. `secrets` holds names of variables; those of
/// `define` are the scenario's own.
fn is_secret_place(path: &str, names: &BTreeSet<String>) -> bool {
    let mut keys = path.split(['.', '[']).filter(|key| !key.ends_with(']'));
    let first = keys.next().unwrap_or_default();
    let own = match first {
        "secrets" => return false,
        "define" => keys.next(),
        _ => None,
    };
    let is_header = |name: &str| !HARMLESS_HEADERS.contains(&name.to_ascii_lowercase().as_str());
    let mut after = path.split(['.', '[']).skip_while(|key| *key != "headers").skip(1);
    if after.next().is_some_and(is_header) {
        return true;
    }
    let is_var = first == "vars" && keys.clone().next().is_some_and(|name| names.contains(name));
    is_var || own.is_none() && is_secret_name(first) || keys.any(is_secret_name)
}

/// The names filled into `text`: all words of `${name}`, `${name.column}`, `${default(name, 1)}`.
fn filled_in(text: &str) -> impl Iterator<Item = String> {
    let blanks = text.split("${").skip(1).map(|rest| rest.split('}').next().unwrap_or_default());
    let words = blanks.flat_map(|blank| blank.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_filled_into_a_secret_are_masked() {
        let text = "vars: {handle: canary, page: 2}\nsecrets: [TOKEN]\ndefine: {get_token: [get: /x]}\nheaders:\n  Authorization: >-\n    Digest a=\"${handle}\",\n    b=canary\n";
        let kept = mask(text);
        assert_eq!(
            kept,
            "vars:\n  handle: \"***\"\n  page: 2\nsecrets:\n  - TOKEN\ndefine:\n  get_token:\n    -\n      get: /x\nheaders:\n  Authorization: \"***\"\n"
        );
    }

    #[test]
    fn of_header_fields_only_harmless_values_are_kept() {
        let text = "vars: {visit: ada-1, page: 2}\nheaders: {Accept: text/html, X-Session-Id: s-4711, X-Visit: \"${visit}\"}\nrequests:\n  - get: /x?p=${page}\n    headers: {X-Tenant: acme, user-agent: probe}\n";
        let kept = mask(text);
        for gone in ["s-4711", "ada-1", "acme", "${visit}"] {
            assert!(!kept.contains(gone), "{gone} in {kept}");
        }
        for stays in ["text/html", "X-Session-Id", "X-Visit", "X-Tenant", "probe", "page: 2", "/x?p=${page}"] {
            assert!(kept.contains(stays), "{stays} not in {kept}");
        }
    }

    #[test]
    fn messages_repeat_none() {
        let root = Node::parse("target: 'mysql://u:a canary@h'\npassword: x\n", "s.yaml").unwrap();
        let error = MaskedText::from_tree(&root).masked(root.error("found \"mysql://u:a canary@h\" and x"));
        assert_eq!(error.message, "found \"mysql://u:***@h\" and x");
    }
}
