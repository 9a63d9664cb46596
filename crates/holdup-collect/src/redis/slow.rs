//! Entries of the slow log, without keys and values.

use std::time::Duration;

use super::resp::Reply;

/// Most arguments in the shape of a command.
const ARGUMENTS: usize = 4;

/// A command of the slow log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Slow {
    pub(super) number: i64,
    /// When it began, seconds since 1970 by the server's clock.
    pub(super) at_s: i64,
    pub(super) took: Duration,
    /// The command without its keys and values.
    pub(super) text: String,
}

/// Which entries were read.
#[derive(Default)]
pub(super) struct SlowLog {
    /// The number of the newest; none before the first look.
    newest: Option<i64>,
}

impl SlowLog {
    /// The entries that came since the last look; of the first look none. Numbers begin anew with the
    /// server, which `has_restarted` since.
    pub(super) fn new_ones(&mut self, entries: Vec<Slow>, has_restarted: bool) -> Vec<Slow> {
        let since = if has_restarted { self.newest.map(|_| -1) } else { self.newest };
        self.newest = entries.iter().map(|one| one.number).chain(since).max().or(Some(-1));
        let Some(since) = since else { return Vec::new() };
        entries.into_iter().filter(|one| one.number > since).collect()
    }
}

/// The entries of an answer; what is not one is left out.
pub(super) fn entries(reply: &Reply) -> Option<Vec<Slow>> {
    let Reply::List(list) = reply else { return None };
    Some(list.iter().filter_map(entry).collect())
}

/// An entry: number, time, microseconds, words, and more in newer versions.
fn entry(entry: &Reply) -> Option<Slow> {
    let Reply::List(entry) = entry else { return None };
    let [Reply::Number(number), Reply::Number(at_s), Reply::Number(took), Reply::List(words), ..] = &entry[..] else {
        return None;
    };
    let took = Duration::from_micros(u64::try_from(*took).ok()?);
    Some(Slow { number: *number, at_s: *at_s, took, text: shape(words)? })
}

/// A command without its keys and values: `HGETALL ?`. The name alone has a fixed set of letters, so that
/// an unknown command tells nothing.
fn shape(words: &[Reply]) -> Option<String> {
    let Some((Reply::Text(name), arguments)) = words.split_first() else { return None };
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) && name.len() <= 40;
    let mut text = if is_name { name.to_ascii_uppercase() } else { "?".to_owned() };
    text += &" ?".repeat(arguments.len().min(ARGUMENTS));
    if arguments.len() > ARGUMENTS {
        text += " …";
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_of_a_command_has_neither_keys_nor_values() {
        let words = |text: &str| text.split(' ').map(|word| Reply::Text(word.to_owned())).collect::<Vec<_>>();
        assert_eq!(shape(&words("hset user:7 token s3cret")).unwrap(), "HSET ? ? ?");
        assert_eq!(shape(&words("mget a b c d e f")).unwrap(), "MGET ? ? ? ? …");
        assert_eq!(shape(&words("'s3cret' x")).unwrap(), "? ?");
        assert!(shape(&[]).is_none());
    }

    #[test]
    fn a_slow_command_counts_once_and_anew_after_a_restart() {
        let mut log = SlowLog::default();
        let mut told = |numbers: &[i64], has_restarted: bool| {
            let slow = |number: &i64| Slow { number: *number, at_s: 0, took: Duration::ZERO, text: String::new() };
            let new = log.new_ones(numbers.iter().map(slow).collect(), has_restarted);
            new.iter().map(|one| one.number).collect::<Vec<_>>()
        };
        assert!(told(&[4, 3], false).is_empty(), "from before");
        assert_eq!(told(&[6, 5, 4], false), [6, 5]);
        assert!(told(&[6, 5], false).is_empty());
        assert!(told(&[], false).is_empty(), "the log was emptied");
        assert_eq!(told(&[7], false), [7], "its numbers go on");
        assert_eq!(told(&[9, 8, 1, 0], true), [9, 8, 1, 0], "as many again since the restart");
        assert!(told(&[], true).is_empty());
        assert_eq!(told(&[0], false), [0]);
    }
}
