//! HAProxy's HTTP log (`option httplog`), with or without the head that syslog adds. Its five times
//! are Tq/Tw/Tc/Tr/Tt: the request's head, the queue, the connection, the server, all of it. Newer
//! versions write TR/Tw/Tc/Tr/Ta in their place.

use std::borrow::Cow;

use super::entry::{Edge, Entry, Field, Part, Scale};

/// # Errors
/// What is missing.
pub fn read(line: &str) -> Result<Entry<'_>, &'static str> {
    const SHAPE: &str = "it is not a line of HAProxy's HTTP log";
    let mut entry = Entry::default();
    let mut rest = line;
    // A process id in brackets stands before the date.
    let after = loop {
        let open = rest.find(" [").ok_or(SHAPE)?;
        let close = open + rest[open..].find(']').ok_or(SHAPE)?;
        if entry.moment(&rest[open + 1..=close], Edge::Start).is_ok() {
            break &rest[close + 1..];
        }
        rest = &rest[close + 1..];
    };
    let mut words = after.split_ascii_whitespace();
    let (_, server) = (words.next(), words.next().ok_or(SHAPE)?);
    let timers: Vec<&str> = words.next().ok_or(SHAPE)?.split('/').collect();
    let &[_, queue, connect, upstream, whole] = timers.as_slice() else {
        return Err("it has no five times as HTTP has");
    };
    entry.put(Field::Status, words.next().ok_or(SHAPE)?)?;
    entry.server = Cow::Borrowed(server.rsplit('/').next().filter(|name| !name.starts_with('<')).unwrap_or_default());
    for (part, text) in [(Part::Queue, queue), (Part::Connect, connect), (Part::Upstream, upstream)] {
        entry.put(Field::Spent(part, Scale::Milliseconds), text)?;
    }
    // With a plus sign, the log was written before the request had ended.
    if !whole.starts_with(['+', '-']) {
        entry.put(Field::Spent(Part::Whole, Scale::Milliseconds), whole)?;
    }
    let quote = after.rfind(" \"").ok_or("it ends before the request line")?;
    let request = after[quote + 2..].trim_end();
    entry.put(Field::Request, request.strip_suffix('"').unwrap_or(request))?;
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"Nov  3 08:09:10 edge haproxy[812]: 192.0.2.7:50112 [03/Nov/2026:08:09:10.250] web~ shop/one 2/310/4/84/401 200 912 - - ---- 9/9/7/3/0 6/0 {agent} "GET /cart/17 HTTP/1.1""#;

    #[test]
    fn its_times() {
        let entry = read(LINE).unwrap();
        assert_eq!((&*entry.method, &*entry.target, entry.status, &*entry.server), ("GET", "/cart/17", 200, "one"));
        let ms = |n: i64| Some(n * 1_000_000);
        assert_eq!((entry.whole_ns, entry.queue_ns), (ms(401), ms(310)));
        assert_eq!((entry.connect_ns, entry.upstream_ns), (ms(4), ms(84)));
        assert_eq!(entry.started_at(), Some(1_793_693_350_250_000_000));
    }

    #[test]
    fn phases_that_a_request_did_not_reach() {
        let line = LINE.replace("2/310/4/84/401 200", "2/5000/-1/-1/5002 503").replace("shop/one", "shop/<NOSRV>");
        let entry = read(&line).unwrap();
        assert_eq!((entry.connect_ns, entry.upstream_ns, entry.status, &*entry.server), (None, None, 503, ""));
        assert_eq!(entry.whole_ns, Some(5_002_000_000));
        assert_eq!(read(&LINE.replace("/401", "/+401")).unwrap().whole_ns, None);
    }

    #[test]
    fn other_lines() {
        let tcp = LINE.replace("2/310/4/84/401", "310/4/401");
        for line in ["", " [", "x [03/Nov/2026:08:09:10.250]", "x [03/Nov/2026:08:09:10.250] a b", &tcp] {
            assert!(read(line).is_err(), "{line}");
        }
        for end in 0..LINE.len() {
            let _ = read(&LINE[..end]);
        }
    }
}
