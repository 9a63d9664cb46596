//! A PostgreSQL server's messages about itself: connections, checkpoints, temporary files, waits
//! for locks, vacuums. It keeps names of accounts, databases, hosts and tables, which are not
//! values of statements.

use crate::digest::attribute::{duration, number};
use crate::digest::tally::Tally;

/// The text behind `mark` in `text`.
fn rest<'a>(text: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    text.get(memchr::memmem::find(text, mark)? + mark.len()..)
}

/// A number behind `mark` in `text`.
fn behind(text: &[u8], mark: &[u8]) -> Option<u64> {
    let rest = rest(text, mark)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    number(rest.get(..digits)?)
}

/// Seconds with a fraction behind `mark`, as microseconds.
fn seconds(text: &[u8], mark: &[u8]) -> Option<u64> {
    let rest = rest(text, mark)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    crate::digest::attribute::seconds(rest.get(..digits)?)
}

/// A word behind `mark`: the name of an account, a database or a host.
fn word<'a>(text: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    let rest = rest(text, mark)?;
    let end = rest.iter().position(|byte| *byte == b' ' || *byte == b'\n').unwrap_or(rest.len());
    rest.get(..end).filter(|word| !word.is_empty())
}

/// The text between quotes behind `mark`.
fn quoted<'a>(text: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    rest(text, mark)?.split(|byte| *byte == b'"').next()
}

/// `0:00:01.234`, with hours and minutes in front, as microseconds.
fn clock(text: &[u8]) -> Option<u64> {
    let text = text.split(|byte| *byte == b' ').next()?;
    let mut parts = text.rsplitn(3, |byte| *byte == b':');
    let (second, minute, hour) =
        (crate::digest::attribute::seconds(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
    hour.checked_mul(3_600)?.checked_add(minute * 60)?.checked_mul(1_000_000)?.checked_add(second)
}

/// Counts what a message says.
pub(super) fn take(message: &[u8], tally: &mut Tally) {
    let begins = |begin: &str| message.starts_with(begin.as_bytes());
    let has = |words: &[u8]| memchr::memmem::find(message, words).is_some();
    if begins("connection received") || begins("connection authorized") || begins("disconnection") {
        connection(message, tally);
    } else if begins("checkpoint") || begins("restartpoint") {
        checkpoint(message, tally);
    } else if begins("temporary file") {
        if let Some(bytes) = behind(message, b"size ") {
            tally.server.figure("temporary_file_bytes", bytes);
        }
    } else if begins("process ") && has(b" still waiting for ") {
        tally.server.count("lock_waits");
        lock(message, b" still waiting for ", "locks_waited_for", tally);
    } else if begins("process ") && has(b" acquired ") {
        tally.server.count("locks_acquired");
        if let Some(waited) = lock(message, b" acquired ", "locks_acquired_after", tally) {
            tally.server.figure("lock_wait_us", waited);
        }
    } else if begins("automatic vacuum") || begins("automatic aggressive vacuum") {
        vacuum(message, tally);
    } else if begins("automatic analyze") {
        tally.server.count("autoanalyzes");
        let elapsed = seconds(message, b"elapsed: ").unwrap_or(0);
        tally.server.figure("autoanalyze_us", elapsed);
        if let Some(table) = quoted(message, b"table \"") {
            tally.server.named("autoanalyzes_by_table", table, elapsed);
        }
    } else {
        tally.server.count("other_messages");
    }
}

fn connection(message: &[u8], tally: &mut Tally) {
    let server = &mut tally.server;
    if message.starts_with(b"connection received") {
        server.count("connections_received");
        if let Some(host) = word(message, b"host=") {
            server.named("connections_by_host", host, 0);
        }
    } else if message.starts_with(b"connection authorized") {
        server.count("connections_authorized");
        if let Some(user) = word(message, b"user=") {
            server.named("connections_by_user", user, 0);
        }
        if let Some(database) = word(message, b"database=") {
            server.named("connections_by_database", database, 0);
        }
        if memchr::memmem::find(message, b"SSL enabled").is_some() {
            server.count("connections_encrypted");
        }
    } else {
        server.count("disconnections");
        if let Some(took) = rest(message, b"session time: ").and_then(clock) {
            server.figure("session_us", took);
            if let Some(database) = word(message, b"database=") {
                server.named("sessions_by_database", database, took);
            }
        }
    }
}

fn checkpoint(message: &[u8], tally: &mut Tally) {
    let server = &mut tally.server;
    let has = |words: &[u8]| memchr::memmem::find(message, words).is_some();
    if has(b" starting:") {
        server.count("checkpoints_started");
        for cause in rest(message, b"starting:").unwrap_or_default().split(|byte| *byte == b' ') {
            if matches!(cause, b"time" | b"wal" | b"xlog" | b"immediate" | b"force" | b"shutdown" | b"end-of-recovery")
            {
                server.named("checkpoints_by_cause", cause, 0);
            }
        }
    } else if has(b" complete:") {
        server.count("checkpoints");
        if let Some(buffers) = behind(message, b"wrote ") {
            server.figure("checkpoint_buffers", buffers);
        }
        for (name, mark) in [
            ("checkpoint_write_us", &b"write="[..]),
            ("checkpoint_sync_us", b"sync="),
            ("checkpoint_us", b"total="),
            ("checkpoint_longest_sync_us", b"longest="),
        ] {
            if let Some(value) = seconds(message, mark) {
                server.figure(name, value);
            }
        }
        if let Some(kilobytes) = behind(message, b"distance=") {
            server.figure("checkpoint_distance_bytes", kilobytes.saturating_mul(1_024));
        }
        if let Some(removed) = behind(message, b"removed, ") {
            server.figure("checkpoint_wal_files_recycled", removed);
        }
    } else if has(b"too frequently") {
        server.count("checkpoints_too_frequent");
    } else {
        server.count("other_messages");
    }
}

/// The mode and the kind of object of a lock, such as `ShareLock on transaction`, and the time
/// waited for it.
fn lock(message: &[u8], mark: &[u8], name: &'static str, tally: &mut Tally) -> Option<u64> {
    let rest = rest(message, mark)?;
    let words: Vec<&[u8]> = rest.split(|byte| *byte == b' ').take(3).collect();
    let waited = duration(self::rest(rest, b" after ")?).map(|(us, _)| us);
    tally.server.named(name, &words.join(&b' '), waited.unwrap_or(0));
    waited
}

fn vacuum(message: &[u8], tally: &mut Tally) {
    let server = &mut tally.server;
    server.count("autovacuums");
    for (name, mark) in [
        ("autovacuum_tuples_removed", &b"tuples: "[..]),
        ("autovacuum_pages_removed", b"pages: "),
        ("autovacuum_index_scans", b"index scans: "),
    ] {
        if let Some(value) = behind(message, mark) {
            server.figure(name, value);
        }
    }
    // Before 10: `sec elapsed 0.01 sec`.
    let elapsed = seconds(message, b"elapsed: ").or_else(|| seconds(message, b"elapsed "));
    if let Some(elapsed) = elapsed {
        server.figure("autovacuum_us", elapsed);
    }
    if let Some(table) = quoted(message, b"table \"") {
        server.named("autovacuums_by_table", table, elapsed.unwrap_or(0));
    }
    if message.starts_with(b"automatic aggressive") || memchr::memmem::find(message, b"prevent wraparound").is_some() {
        server.count("autovacuums_against_wraparound");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::select::Select;
    use crate::digest::tally::Identity;

    #[test]
    fn the_servers_own_work_is_counted() {
        let mut tally = Tally::new(holdup_sql::Dialect::PostgreSql, Identity::Holdup, Select::default());
        for message in [
            "connection received: host=10.0.0.7 port=4711",
            "connection authorized: user=app database=shop SSL enabled (protocol=TLSv1.3)",
            "disconnection: session time: 1:00:01.500 user=app database=shop host=10.0.0.7 port=4711",
            "checkpoint starting: immediate force wait",
            "checkpoint complete: wrote 70 buffers (0.4%); 0 WAL file(s) added, 0 removed, 2 recycled; write=0.269 s, sync=0.003 s, total=1.275 s; sync files=3, longest=0.002 s, average=0.001 s; distance=16 kB, estimate=16 kB",
            "process 12 still waiting for ShareLock on transaction 733 after 1000.123 ms",
            "process 12 acquired ShareLock on transaction 733 after 2500.5 ms",
            "automatic vacuum of table \"shop.public.t\": index scans: 1\npages: 3 removed, 9 remain\ntuples: 11 removed, 5 remain\nsystem usage: CPU: user: 0.00 s, system: 0.00 s, elapsed: 0.25 s",
            "automatic analyze of table \"shop.public.t\" system usage: CPU: user: 0.00 s, system: 0.00 s, elapsed: 0.05 s",
            "temporary file: path \"base/pgsql_tmp/pgsql_tmp1.0\", size 1048576",
        ] {
            take(message.as_bytes(), &mut tally);
        }
        let server = &tally.server;
        let sum = |name: &str| server.figures.get(name).map(|figure| figure.sum);
        for (name, value) in [
            ("session_us", 3_601_500_000),
            ("checkpoint_us", 1_275_000),
            ("checkpoint_buffers", 70),
            ("checkpoint_distance_bytes", 16_384),
            ("checkpoint_wal_files_recycled", 2),
            ("lock_wait_us", 2_500_500),
            ("autovacuum_us", 250_000),
            ("autovacuum_tuples_removed", 11),
            ("autoanalyze_us", 50_000),
            ("temporary_file_bytes", 1_048_576),
        ] {
            assert_eq!(sum(name), Some(value), "{name}");
        }
        let named =
            |kind: &'static str, name: &str| server.names.get(&(kind, name.to_owned())).map(|one| (one.count, one.sum));
        assert_eq!(named("connections_by_user", "app"), Some((1, 0)));
        assert_eq!(named("autovacuums_by_table", "shop.public.t"), Some((1, 250_000)));
        assert_eq!(named("locks_acquired_after", "ShareLock on transaction"), Some((1, 2_500_500)));
        assert_eq!(named("checkpoints_by_cause", "immediate"), Some((1, 0)));
        for message in
            ["checkpoint complete: wrote", "process ", "disconnection: session time: x", "automatic vacuum of table \""]
        {
            take(message.as_bytes(), &mut tally);
        }
    }
}
