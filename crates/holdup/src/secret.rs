//! Keeps passwords and tokens of addresses (`scheme://user:password@host?token=secret`) out of sight.

use std::fs;

/// `text` with the password of every `scheme://user:password@` in it, and of every `?token=…` the token, replaced by `***`.
pub fn redact(text: &str) -> String {
    let text = &redact_passwords(text);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    while let Some((from, to)) = token(text, done) {
        out.push_str(&text[done..from]);
        out.push_str("***");
        done = to;
    }
    out.push_str(&text[done..]);
    out
}

fn redact_passwords(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        rest = after;
        if let Some((from, to)) = password(before, rest) {
            out.push_str(&rest[..from]);
            out.push_str("***");
            rest = &rest[to..];
        }
    }
    out.push_str(rest);
    out
}

/// Names of keys whose value is a secret, wherever they stand in a scenario: header fields, parts of a JSON body,
/// query parameters.
const SECRET_KEYS: [&str; 9] =
    ["authorization", "cookie", "token", "secret", "password", "passwd", "api-key", "api_key", "apikey"];

/// A scenario's text as it may be kept: without passwords of addresses and without the values of keys that
/// name a secret. It may take more than it should, never the other way round.
pub fn redact_scenario(text: &str) -> String {
    redact(text).lines().map(|line| redact_keys(line) + "\n").collect()
}

/// `line` with what follows a secret's key replaced by `***`, up to the end of the value.
fn redact_keys(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    let mut out = String::new();
    let mut done = 0;
    while let Some((at, key)) =
        SECRET_KEYS.iter().filter_map(|key| Some((done + lower[done..].find(key)?, *key))).min_by_key(|(at, _)| *at)
    {
        let rest = &line[at + key.len()..];
        // The key may go on (`x-auth-token-id`, a closing quote) before its `:` or `=`.
        let name_end = rest.find(|c: char| !(c.is_alphanumeric() || "-_\"'\\ ".contains(c))).unwrap_or(rest.len());
        let value = at + key.len() + name_end + 1;
        if !matches!(rest[name_end..].chars().next(), Some(':' | '=')) {
            out.push_str(&line[done..at + key.len()]);
            done = at + key.len();
            continue;
        }
        let is_query = rest[name_end..].starts_with('=');
        let end = line[value..].find(|c| if is_query { "&\"' ,}".contains(c) } else { ",}".contains(c) });
        out.push_str(&line[done..value]);
        out.push_str(if is_query { "***" } else { " ***" });
        done = end.map_or(line.len(), |end| value + end);
    }
    out.push_str(&line[done..]);
    out
}

/// Where in `rest`, which follows `before` that ends in `://`, the password stands, if there is one.
///
/// In a web address the password ends before the path. In a database's it may hold a raw `/` or `@` that was
/// not percent-encoded: there everything up to the last `@` is taken for it, so that no part of it is left.
fn password(before: &str, rest: &str) -> Option<(usize, usize)> {
    let web = before.ends_with("http://") || before.ends_with("https://");
    let ends = |c: char| c.is_whitespace() || c == '"' || c == '\'' || web && matches!(c, '/' | '?' | '#');
    let address = &rest[..rest.find(ends).unwrap_or(rest.len())];
    let at = address.rfind('@')?;
    let colon = address[..at].find(':')?;
    Some((colon + 1, at))
}

/// Where in `text`, behind `start`, the next value of a query's `token` stands.
fn token(text: &str, start: usize) -> Option<(usize, usize)> {
    let rest = &text[start..];
    let places = ["?token=", "&token="].into_iter().filter_map(|key| rest.find(key).map(|at| start + at + key.len()));
    let from = places.min()?;
    let ends = |c: char| c.is_whitespace() || "&#\"',]".contains(c);
    Some((from, text[from..].find(ends).map_or(text.len(), |end| from + end)))
}

/// Overwrites the passwords and tokens of addresses on this process's own command line, so that `ps` and
/// `/proc/PID/cmdline` show `xxx`. Where the kernel does not say where the arguments lie, nothing is done:
/// HOLDUP_MYSQL_PASSWORD never is on a command line.
pub fn hide_in_process_list() {
    let Ok(line) = fs::read("/proc/self/cmdline") else { return };
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return };
    // Fields after the name in parentheses, from the state (3) on: arg_start is 48, arg_end 49; see proc_pid_stat(5).
    let Some((_, fields)) = stat.rsplit_once(')') else { return };
    let mut fields = fields.split_ascii_whitespace().skip(45);
    let (Some(start), Some(end)) =
        (fields.next().and_then(|f| f.parse::<usize>().ok()), fields.next().and_then(|f| f.parse::<usize>().ok()))
    else {
        return;
    };
    if start == 0 || end.saturating_sub(start) != line.len() {
        return;
    }
    let mut offset = 0;
    for argument in line.split(|b| *b == 0) {
        let Ok(text) = std::str::from_utf8(argument) else {
            offset += argument.len() + 1;
            continue;
        };
        let scheme_end = text.find("://").map(|at| at + 3);
        let password = scheme_end.and_then(|end| {
            let (from, to) = password(&text[..end], &text[end..])?;
            Some((end + from, end + to))
        });
        for (from, to) in password.into_iter().chain(token(text, 0)) {
            // SAFETY: the kernel says that this process's arguments lie at start..end, and what was read from
            // there has just that length. They are ours to write (PR_SET_MM is not needed), no reference to
            // them is alive (clap has copied them), and only bytes of one argument are replaced, none of them NUL.
            unsafe {
                std::ptr::write_bytes((start + offset + from) as *mut u8, b'x', to - from);
            }
        }
        offset += argument.len() + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_scenario_go() {
        for (text, expected) in [
            ("    Authorization: Bearer abc.def", "    Authorization: ***\n"),
            ("headers: {X-Api-Key: 's3cr3t', Accept: '*/*'}", "headers: {X-Api-Key: ***, Accept: '*/*'}\n"),
            ("body: '{\"user\": \"u\", \"password\": \"pw\"}'", "body: '{\"user\": \"u\", \"password\": ***}'\n"),
            ("get: /search?token=abc&q=x", "get: /search?token=***&q=x\n"),
            ("name: token refresh", "name: token refresh\n"),
            ("- mysql://u:pw@h", "- mysql://u:***@h\n"),
        ] {
            assert_eq!(redact_scenario(text), expected);
        }
    }

    #[test]
    fn passwords_go_and_the_rest_stays() {
        for (text, expected) in [
            ("mysql://u:s3cr3t@h:3306/db", "mysql://u:***@h:3306/db"),
            (
                "watch: [host, \"mysql://u:p@ss/w@h\", prometheus:http://h/m]",
                "watch: [host, \"mysql://u:***@h\", prometheus:http://h/m]",
            ),
            ("mysql://u@h", "mysql://u@h"),
            ("http://h:80/x?mail=a@b", "http://h:80/x?mail=a@b"),
            ("a://u:1@h b://v:2@i", "a://u:***@h b://v:***@i"),
            ("puma:http://h:9293?token=s3cr3t", "puma:http://h:9293?token=***"),
            (
                "[\"puma:unix:/run/p?a=b&token=s3cr3t\", x?token=2&b]",
                "[\"puma:unix:/run/p?a=b&token=***\", x?token=***&b]",
            ),
        ] {
            assert_eq!(redact(text), expected);
        }
    }
}
