//! Span names as they may be recorded. A name should stand for many spans, but packages and apps
//! put whole statements, commands with their keys, and paths with ids into names: so values, and
//! text that looks like one, become `?`. A bare word cannot be distinguished from a name: an app
//! that puts secrets into span names will have them in its recordings.

use std::borrow::Cow;

use crate::bounds::{STATEMENT_BYTES_MAX, TEXT_BYTES_MAX, cut};
use crate::statement::Reading;

/// Longest name examined, except for statements, bytes: a few times what is kept.
const NAME_BYTES_MAX: usize = 1_024;

/// Shortest run of hexadecimal characters that counts as an id; then the same for a run without
/// digits.
const HEX_MIN: usize = 8;
const HEX_LETTERS_MIN: usize = 16;

/// Shortest run of letters and digits that counts as a key if it has two digits.
const KEY_MIN: usize = 16;

/// The recorded name of a span of `resource`, whose system's statements are read by `reading`.
pub fn name(resource: &str, reading: Reading, name: &str) -> String {
    let short = cut(name, NAME_BYTES_MAX);
    let name = match (resource, reading) {
        ("cache", _) => command(short),
        // A document or a list of arguments may follow.
        ("database", Reading::Opaque) => {
            without_values(short.split(['{', '(', '[']).next().unwrap_or_default().trim_end())
        }
        ("database", reading) => match reading.name_without_values(cut(name, STATEMENT_BYTES_MAX)) {
            Some(name) => without_account(&name).into_owned(),
            None => command(short),
        },
        _ => without_values(short),
    };
    cut(&name, TEXT_BYTES_MAX).to_owned()
}

/// Only the first word.
fn command(name: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let name = name.trim_start();
    let end = name.find(|c| !is_part(c)).unwrap_or(name.len());
    without_values(name.get(..end).unwrap_or_default())
}

/// `name` up to its query, with `?` for text that looks like a value.
fn without_values(name: &str) -> String {
    let path = name.split_once('?').map_or(name, |(path, _)| path);
    // `/page#fragment`, but not `Orders#show`.
    let path = path.split_once('#').filter(|(path, _)| path.contains('/')).map_or(path, |(path, _)| path);
    let path = without_account(path);
    let mut rest = path.as_ref();
    let mut kept = String::with_capacity(rest.len());
    while let Some(first) = rest.chars().next() {
        let length = if is_part(first) {
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            part(rest.get(..length).unwrap_or_default(), &mut kept);
            length
        } else if matches!(first, '\'' | '"' | '`') && !kept.ends_with(char::is_alphanumeric) {
            kept.push('?');
            let inner = rest.get(1..).unwrap_or_default();
            inner.find(first).map_or(rest.len(), |at| at + 2)
        } else if first == '=' {
            kept.push('=');
            let value = rest.get(1..).unwrap_or_default();
            let length = value.find(|c: char| c.is_whitespace() || matches!(c, '=' | '>' | '&' | ',' | ';' | ')'));
            let length = length.unwrap_or(value.len());
            if length > 0 {
                kept.push('?');
            }
            1 + length
        } else {
            kept.push(first);
            first.len_utf8()
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    kept
}

/// Characters of words, ids, numbers and mail addresses.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '@' | '+' | '%')
}

/// Appends the recordable form of `part` to `kept`.
fn part(part: &str, kept: &mut String) {
    let is_address = part.split_once('@').is_some_and(|(user, host)| {
        user.ends_with(|c: char| c.is_alphanumeric() || c == '_') && host.starts_with(char::is_alphanumeric)
    });
    if is_address {
        return kept.push('?');
    }
    for piece in part.split_inclusive(['.', '@', '+', '%']) {
        let piece_end = piece.trim_end_matches(['.', '@', '+', '%']);
        if is_id(piece_end) {
            kept.push('?');
        } else {
            for word_and_mark in piece_end.split_inclusive(['-', '_']) {
                let plain = word_and_mark.trim_end_matches(['-', '_']);
                word(plain, kept);
                kept.push_str(word_and_mark.get(plain.len()..).unwrap_or_default());
            }
        }
        kept.push_str(piece.get(piece_end.len()..).unwrap_or_default());
    }
}

/// A number, a date, a UUID, a long hexadecimal number.
fn is_id(text: &str) -> bool {
    let has_digit = text.contains(char::is_numeric);
    let is_joined = |c: char| matches!(c, '-' | '_');
    let is_number = text.chars().all(|c| c.is_numeric() || is_joined(c));
    let is_hex = text.len() >= HEX_MIN && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    has_digit && (is_number || is_hex)
}

/// A word of letters and digits. One digit after letters is part of a name (`v2`, `OAuth2Filter`);
/// more are a number.
fn word(word: &str, kept: &mut String) {
    let digits = word.chars().filter(|c| c.is_numeric()).count();
    let is_hex = word.chars().all(|c| c.is_ascii_hexdigit());
    if digits == 0 {
        let is_key = is_hex && word.len() >= HEX_LETTERS_MIN;
        return kept.push_str(if is_key { "?" } else { word });
    }
    let runs = word.split(|c: char| !c.is_numeric()).filter(|run| !run.is_empty()).count();
    let is_key = runs > 1
        || (word.len() >= KEY_MIN && digits > 1)
        || (is_hex && word.len() >= HEX_MIN)
        || word.starts_with(char::is_numeric);
    if is_key {
        return kept.push('?');
    }
    let mut is_masked = false;
    for letter in word.chars() {
        if !letter.is_numeric() || digits == 1 {
            kept.push(letter);
        } else if !is_masked {
            is_masked = true;
            kept.push('?');
        }
    }
}

/// `scheme://user:password@host` without the account.
fn without_account(text: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = text.split_once("://") else { return Cow::Borrowed(text) };
    let authority = rest.split_once('/').map_or(rest, |(authority, _)| authority);
    match authority.rfind('@') {
        Some(at) => Cow::Owned(format!("{scheme}://{}", rest.get(at + 1..).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_and_values_go() {
        for (given, kept) in [
            ("GET /vacancy", "GET /vacancy"),
            ("GET /api/v2/users/{id}", "GET /api/v2/users/{id}"),
            ("GET /users/42/orders/7.json", "GET /users/?/orders/?.json"),
            ("GET /u/550e8400-e29b-41d4-a716-446655440000/x", "GET /u/?/x"),
            ("/blob/deadbeef01", "/blob/?"),
            ("/feedface", "/feedface"),
            ("/2024-05-01/news", "/?/news"),
            ("/s/dQw4w9WgXcQ1234567", "/s/?"),
            ("/s/deadbeefdeadbeef", "/s/?"),
            ("GET http://me:pw@h/x?token=1#y", "GET http://h/x"),
            ("GET /x#frag", "GET /x"),
            ("OrdersController#show", "OrdersController#show"),
            ("OAuth2Filter.doFilter", "OAuth2Filter.doFilter"),
            ("order4711 of user-42", "order? of user-?"),
            ("a1b2c3", "?"),
            ("mail to me.too@example.org now", "mail to ? now"),
            ("@nestjs/core", "@nestjs/core"),
            ("find 'it' and \"that", "find ? and ?"),
            ("don't wait", "don't wait"),
            ("load id=abc, name = x", "load id=?, name = x"),
            ("(a) => b", "(a) => b"),
            ("10.0.0.1:8080", "?.?.?.?:?"),
            ("orders publish", "orders publish"),
            ("r\u{fc}ckgabe \u{664}\u{662}", "r\u{fc}ckgabe ?"),
            ("", ""),
        ] {
            assert_eq!(name("other", Reading::Opaque, given), kept, "{given}");
        }
    }

    #[test]
    fn of_a_command_the_first_word_is_kept() {
        for (given, kept) in
            [("SET user:1 s3cret", "SET"), ("get", "get"), ("GET(a)", "GET"), (" user:42", "user"), ("4711 x", "?")]
        {
            assert_eq!(name("cache", Reading::Opaque, given), kept);
        }
        assert_eq!(name("database", Reading::Opaque, "find shop.users {\"name\": \"s3cret\"}"), "find shop.users");
        let mysql = Reading::for_system(Some("mysql"));
        assert_eq!(name("database", mysql, "SELECT shop.orders_2024"), "SELECT shop.orders_2024");
        assert_eq!(name("database", mysql, "SELECT * FROM t LIMIT 42"), "SELECT * FROM t LIMIT ?");
        assert_eq!(name("database", Reading::for_system(Some("oracle")), "SELECT q'[it's s3cret]'"), "SELECT");
    }
}
