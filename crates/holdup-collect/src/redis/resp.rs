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

/// All replies of an answer.
///
/// # Errors
/// If it is cut off, or no such protocol; nothing of it is repeated.
pub(super) fn replies(mut bytes: &[u8]) -> Result<Vec<Reply>, &'static str> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        all.push(reply(&mut bytes, DEPTH)?);
    }
    Ok(all)
}

fn reply(bytes: &mut &[u8], depth: u32) -> Result<Reply, &'static str> {
    const CUT: &str = "its answer is cut off";
    const OTHER: &str = "it answers, but not in the protocol of Redis";
    let (&kind, rest) = bytes.split_first().ok_or(CUT)?;
    if !b"+-:$*".contains(&kind) {
        return Err(OTHER);
    }
    let end = rest.windows(2).position(|two| two == b"\r\n").ok_or(CUT)?;
    let (line, behind) = (String::from_utf8_lossy(&rest[..end]).into_owned(), &rest[end + 2..]);
    *bytes = behind;
    let number = || line.parse::<i64>().map_err(|_| OTHER);
    match kind {
        b'+' => Ok(Reply::Text(line)),
        b'-' => Ok(Reply::Error(line)),
        b':' => Ok(Reply::Number(number()?)),
        b'$' => {
            let Ok(length) = usize::try_from(number()?) else { return Ok(Reply::Nothing) };
            let text = bytes.get(..length).ok_or(CUT)?;
            let text = String::from_utf8_lossy(text).into_owned();
            *bytes = bytes[length..].strip_prefix(b"\r\n").ok_or(CUT)?;
            Ok(Reply::Text(text))
        }
        _ => {
            let Ok(length) = usize::try_from(number()?) else { return Ok(Reply::Nothing) };
            let depth = depth.checked_sub(1).ok_or("its answer is nested too deeply")?;
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
        assert_eq!(
            replies(answer).unwrap(),
            [text("OK"), error, Reply::Number(-7), text("a\r\n"), Reply::Nothing, list].into_iter().collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_cut_or_foreign_answer_is_refused_wherever_it_ends() {
        let answer = b"*2\r\n:1\r\n$5\r\nhello\r\n";
        assert!(replies(answer).is_ok());
        for end in 1..answer.len() {
            assert!(replies(&answer[..end]).is_err(), "{end}");
        }
        for foreign in ["HTTP/1.1 400 Bad Request\r\n\r\n", "$9999999999\r\nx", "*9999999999\r\n", ":x\r\n"] {
            assert!(replies(foreign.as_bytes()).is_err(), "{foreign}");
        }
        assert!(replies(&b"*1\r\n".repeat(100)).is_err());
    }
}
