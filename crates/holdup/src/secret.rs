//! Hides secrets of the command line: in the process list, by overwriting them, and in messages
//! about wrong arguments.

use std::ffi::OsString;
use std::fs;
use std::ops::Range;

use holdup_recording::secret::{redact_value, spans};

/// Flags whose whole value may be a secret.
const FLAGS: [&str; 5] = ["--header", "--var", "--body", "--param", "-H"];

/// `text`, which may repeat some of `arguments`, with their secrets redacted.
pub fn redact_arguments(text: &str, arguments: &[OsString]) -> String {
    let mut shown = text.to_owned();
    let mut arguments: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    arguments.sort_by_key(|argument| std::cmp::Reverse(argument.len()));
    for argument in arguments {
        // `--flag=VALUE` may be repeated in pieces.
        for piece in [Some(argument), argument.split_once('=').map(|(_, value)| value)].into_iter().flatten() {
            let redacted = redact_value(piece);
            if redacted != piece {
                shown = shown.replace(piece, &redacted);
            }
        }
    }
    shown
}

/// The parts of the argument `text`, which follows `before`, that must be hidden.
fn hidden(before: &str, text: &str) -> Vec<Range<usize>> {
    let is_place = |value: &str| value.starts_with('@') && !value.starts_with("@@");
    let whole = |from: usize| (!is_place(&text[from..])).then_some(from..text.len()).into_iter().collect();
    if FLAGS.contains(&before) {
        return whole(0);
    }
    let own = FLAGS.iter().find_map(|flag| {
        let rest = text.strip_prefix(flag)?;
        let is_value = rest.starts_with('=') || !flag.starts_with("--") && !rest.is_empty();
        is_value.then(|| text.len() - rest.len() + usize::from(rest.starts_with('=')))
    });
    own.map_or_else(|| spans(text), whole)
}

/// Overwrites secrets on this process's own command line, so that `ps` and `/proc/PID/cmdline` show
/// `xxx`. It does nothing if the kernel does not say where the arguments are. Secrets from a file
/// or the environment never are on a command line.
pub fn hide_in_process_list() {
    let Ok(line) = fs::read("/proc/self/cmdline") else { return };
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return };
    // Fields after the name in parentheses, counted from the state (3): arg_start is 48, arg_end
    // 49; see proc_pid_stat(5).
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
    let (mut offset, mut before) = (0, "");
    for argument in line.split(|b| *b == 0) {
        let text = std::str::from_utf8(argument).unwrap_or_default();
        for span in hidden(before, text) {
            // SAFETY: the kernel says that this process's arguments lie at start..end, and the
            // bytes read from there have exactly that length. They are ours to write (PR_SET_MM is
            // not needed), no reference to them is alive (clap has copied them), and only bytes of
            // one argument are replaced, none of them NUL.
            unsafe {
                std::ptr::write_bytes((start + offset + span.start) as *mut u8, b'x', span.len());
            }
        }
        (offset, before) = (offset + argument.len() + 1, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_flags_are_hidden_and_places_are_not() {
        for (before, text, expected) in [
            ("-H", "A: b", &[(0, 4)][..]),
            ("run", "-HA: b", &[(2, 6)]),
            ("run", "--var=a=b", &[(6, 9)]),
            ("--var", "@file", &[]),
            ("--body", "@@file", &[(0, 6)]),
            ("run", "--header", &[]),
            ("--watch", "mysql://u:a b@h", &[(10, 13)]),
            ("run", "--url=http://h/?sig=x", &[(20, 21)]),
        ] {
            let found: Vec<_> = hidden(before, text).into_iter().map(|span| (span.start, span.end)).collect();
            assert_eq!(found, expected, "{before} {text}");
        }
    }

    #[test]
    fn messages_repeat_arguments_without_their_secrets() {
        let arguments = ["--to=mysql://u:a b@h", "x"].map(OsString::from);
        let text = redact_arguments("unexpected 'mysql://u:a b@h' for '--to=mysql://u:a b@h'", &arguments);
        assert_eq!(text, "unexpected 'mysql://u:***@h' for '--to=mysql://u:***@h'");
    }
}
