//! Sockets by state: `netstat -ant | awk '{print $6}' | sort | uniq -c`, the counts of an `awk` array,
//! and the summary of `ss -s`.

use holdup_recording::{Labels, metrics};

use super::{Columns, Context, Kind, Line, command, number, rows, text};

pub(super) const KIND: Kind = Kind::lines("sockets by state", recognises, read);

pub(super) const SUMMARY: Kind = Kind::lines("ss -s", |lines| is_summary(text(lines, 0)), read_summary);

/// `netstat -L` of FreeBSD: the accept queue, what is half open, and the limit.
pub(super) const QUEUES: Kind = Kind::lines(
    "netstat -L",
    |lines| queue(text(lines, 0)).is_some(),
    |lines, context| {
        let at = context.instant_of("netstat -L");
        let queues: Vec<_> = lines.iter().map_while(|line| queue(&line.text)).collect();
        for (port, length, limit) in &queues {
            let labels = Labels::new([("port", port.to_string())]);
            context.out.host(at, metrics::tcp::ACCEPT_QUEUE_LENGTH, labels.clone(), *length);
            context.out.host(at, metrics::tcp::ACCEPT_QUEUE_LIMIT, labels, *limit);
        }
        queues.len()
    },
);

/// `tcp4  192/0/128  *.80`
fn queue(line: &str) -> Option<(u16, f64, f64)> {
    let mut words = line.split_whitespace();
    let (kind, figures, address) = (words.next()?, words.next()?, words.next()?);
    let (length, rest) = figures.split_once('/').filter(|_| kind.starts_with("tcp"))?;
    let (_, limit) = rest.split_once('/')?;
    Some((address.rsplit(['.', ':']).next()?.parse().ok()?, number(length)?, number(limit)?))
}

/// The names in the summary, and the states.
const NAMES: [(&str, &str); 2] = [("estab", "ESTAB"), ("timewait", "TIME-WAIT")];

fn recognises(lines: &[Line]) -> bool {
    is_header(lines) || state_first(text(lines, 0)).is_some()
}

fn is_header(lines: &[Line]) -> bool {
    Columns::new(text(lines, 0)).has(&["COUNT", "SOCKETS"])
}

/// `TIME_WAIT 4711`, as `awk` counts: the state, and how many there are.
fn state_first(line: &str) -> Option<(&'static str, f64)> {
    let (state, count) = line.trim().split_once([' ', '\t', ':', '=', ','])?;
    let is_name = state.len() >= 5 && state.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-'));
    let count = count.trim_start_matches([' ', '\t', ':', '=', ',', '>']);
    Some((command::socket_state(state).filter(|_| is_name)?, number(count)?))
}

fn put(state: &str, count: f64, at: i64, context: &mut Context) {
    context.out.host(at, metrics::tcp::SOCKETS, Labels::new([("state", state)]), count);
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of("sockets by state");
    if !is_header(lines) {
        let counts: Vec<_> = lines.iter().map_while(|line| state_first(&line.text)).collect();
        counts.iter().for_each(|(state, count)| put(state, *count, at, context));
        return counts.len();
    }
    let mut used = 1;
    for (place, line) in (1..).zip(rows(lines, is_header)) {
        let (count, state) = line.text.trim().split_once(char::is_whitespace).unwrap_or_default();
        match (number(count), command::socket_state(state.trim())) {
            (Some(count), Some(state)) => put(state, count, at, context),
            // Words of the header are counted, too.
            (Some(_), None) => {}
            _ => context.unread.push(place),
        }
        used = place + 1;
    }
    used
}

/// `TCP:   50 (estab 10, closed 5, orphaned 0, timewait 3)`
fn is_summary(line: &str) -> bool {
    line.starts_with("TCP:") && line.contains("(estab ")
        || line.starts_with("Total: ") && number(line.get(7..).unwrap_or("").split(' ').next().unwrap_or("")).is_some()
}

fn read_summary(lines: &[Line], context: &mut Context) -> usize {
    let is_own = |line: &&Line| is_summary(&line.text) || line.is_blank();
    let used = lines.iter().take_while(is_own).count();
    let Some(line) = lines.iter().take(used).find(|line| line.text.starts_with("TCP:")) else { return used.max(1) };
    let at = context.instant_of("ss -s");
    let inner = line.text.split_once('(').map_or("", |(_, inner)| inner).trim_end_matches(')');
    for (name, count) in inner.split(',').filter_map(|part| part.trim().split_once(' ')) {
        let count = number(count.split('/').next().unwrap_or(count));
        if let Some(((_, state), count)) = NAMES.iter().find(|(known, _)| *known == name).zip(count) {
            put(state, count, at, context);
        }
    }
    // Below is a table by transport.
    let table = lines.iter().skip(used).take_while(|line| !line.is_blank());
    let is_table = text(lines, used).starts_with("Transport");
    used + if is_table { table.count() } else { 0 }
}
