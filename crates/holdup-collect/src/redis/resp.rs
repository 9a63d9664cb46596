//! The protocol of Redis and Valkey, version 2: commands out, replies in. No I/O. Replies come from a
//! server that need not be one: every length is checked against what is there.

/// A reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// A status or a string; bytes that are not UTF-8 are replaced.
    Text(String),
    /// The server's error, e.g. `NOPERM this user has no permissions to run the 'slowlog|get' command`.
    Error(String),
    Number(i64),
    List(Vec<Reply>),
    Nothing,
}

/// Lists in lists that are followed.
const DEPTH: u32 = 8;

/// The command of these words.
pub(super) fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend(word.as_bytes());
        bytes.extend(b"\r\n");
    }
    bytes
}

/// Why a reply is missing.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// The answer goes on.
    CutOff,
    Foreign(&'static str),
}

/// The `count` replies of an answer; none while it is cut off.
///
/// # Errors
/// If it is in another protocol; nothing of it is repeated.
pub(super) fn replies(mut bytes: &[u8], count: usize) -> Result<Option<Vec<Reply>>, &'static str> {
    let mut all = Vec::new();
    while all.len() < count {
        match reply(&mut bytes, DEPTH) {
            Ok(reply) => all.push(reply),
            Err(Fault::CutOff) => return Ok(None),
            Err(Fault::Foreign(why)) => return Err(why),
        }
    }
    Ok(Some(all))
}

fn reply(bytes: &mut &[u8], depth: u32) -> Result<Reply, Fault> {
    const OTHER: Fault = Fault::Foreign("it answers, but not in the protocol of Redis");
    let (&kind, rest) = bytes.split_first().ok_or(Fault::CutOff)?;
    if !b"+-:$*".contains(&kind) {
        return Err(OTHER);
    }
    let end = rest.windows(2).position(|two| two == b"\r\n").ok_or(Fault::CutOff)?;
    let (line, behind) = (String::from_utf8_lossy(&rest[..end]).into_owned(), &rest[end + 2..]);
    *bytes = behind;
    let number = || line.parse::<i64>().map_err(|_| OTHER);
    match kind {
        b'+' => Ok(Reply::Text(line)),
        b'-' => Ok(Reply::Error(line)),
        b':' => Ok(Reply::Number(number()?)),
        b'$' => {
            let Ok(length) = usize::try_from(number()?) else { return Ok(Reply::Nothing) };
            let text = bytes.get(..length).ok_or(Fault::CutOff)?;
            let text = String::from_utf8_lossy(text).into_owned();
            let rest = bytes.get(length..length.saturating_add(2)).ok_or(Fault::CutOff)?;
            if rest != b"\r\n" {
                return Err(OTHER);
            }
            *bytes = &bytes[length + 2..];
            Ok(Reply::Text(text))
        }
        _ => {
            let Ok(length) = usize::try_from(number()?) else { return Ok(Reply::Nothing) };
            let depth = depth.checked_sub(1).ok_or(Fault::Foreign("its answer is nested too deeply"))?;
            // No room is made for what may not be there.
            let mut list = Vec::new();
            for _ in 0..length {
                list.push(reply(bytes, depth)?);
            }
            Ok(Reply::List(list))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_framed_by_bytes() {
        assert_eq!(command(&["AUTH", "ä"]), b"*2\r\n$4\r\nAUTH\r\n$2\r\n\xc3\xa4\r\n");
    }

    #[test]
    fn replies_of_all_kinds() {
        let text = |text: &str| Reply::Text(text.to_owned());
        let answer = b"+OK\r\n-NOPERM no\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*2\r\n:1\r\n*1\r\n$0\r\n\r\n";
        let inner = Reply::List(vec![text("")]);
        let list = Reply::List(vec![Reply::Number(1), inner]);
        let error = Reply::Error("NOPERM no".to_owned());
        let all = [text("OK"), error, Reply::Number(-7), text("a\r\n"), Reply::Nothing, list];
        assert_eq!(replies(answer, all.len()).unwrap().unwrap(), all);
    }

    #[test]
    fn an_answer_in_pieces_is_waited_for_and_a_foreign_one_is_refused() {
        let answer = b"*2\r\n:1\r\n$5\r\nhello\r\n";
        assert!(replies(answer, 1).unwrap().is_some());
        for end in 0..answer.len() {
            assert_eq!(replies(&answer[..end], 1), Ok(None), "{end}");
        }
        assert_eq!(replies(answer, 2), Ok(None), "one more is asked for");
        assert_eq!(replies(b"$9999999999\r\nx", 1), Ok(None));
        assert_eq!(replies(b"*9999999999\r\n", 1), Ok(None));
        for foreign in ["HTTP/1.1 400 Bad Request\r\n\r\n", ":x\r\n", "$1\r\nab\r\n"] {
            assert!(replies(foreign.as_bytes(), 1).is_err(), "{foreign}");
        }
        assert!(replies(&b"*1\r\n".repeat(100), 1).is_err());
    }
}
