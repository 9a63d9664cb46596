//! Stacks of a program's threads: `gdb`'s `thread apply all bt`, `pstack`, what `pt-pmp` sums up of them, thread
//! dumps of a JVM and of Go. What a thread waits for shows in the innermost function that is known; the
//! threads are counted by that.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use holdup_recording::{Labels, metrics};
use regex::Regex;

use super::{Context, Kind, Line, number, text};

pub(super) const KIND: Kind = Kind::lines("stacks of threads", |lines| begins(lines).is_some(), read);

/// Functions and what a thread in them waits for: MySQL and MariaDB, PostgreSQL, pools and clients on a JVM,
/// Go. The first line that one of a stack's functions fits counts.
const WAITS: [(&str, &str); 38] = [
    ("lock_wait_suspend_thread", "row_lock"),
    ("lock_wait(", "row_lock"),
    ("row_mysql_handle_errors", "row_lock"),
    ("MDL_wait::timed_wait", "metadata_lock"),
    ("MDL_context::acquire_lock", "metadata_lock"),
    ("thr_multi_lock", "table_lock"),
    ("ProcSleep", "row_lock"),
    ("XactLockTableWait", "row_lock"),
    ("log_write_up_to", "log"),
    ("ordered_commit", "log"),
    ("XLogFlush", "log"),
    ("log_free_check", "flush"),
    ("buf_LRU_get_free_block", "flush"),
    ("buf_flush_wait", "flush"),
    ("buf_read_page", "page"),
    ("buf_wait_for_read", "page"),
    ("buf_page_get_gen", "page"),
    ("unlink", "removal"),
    ("my_delete", "removal"),
    ("tdc_acquire_share", "table_cache"),
    ("HikariPool.getConnection", "pool"),
    ("GenericObjectPool.borrowObject", "pool"),
    ("getPoolEntryBlocking", "pool"),
    ("DruidDataSource.takeLast", "pool"),
    ("DruidDataSource.pollLast", "pool"),
    ("BasicResourcePool.awaitAvailable", "pool"),
    ("tomcat.jdbc.pool.ConnectionPool.borrowConnection", "pool"),
    ("database/sql.(*DB).conn", "pool"),
    ("pgxpool.(*Pool).Acquire", "pool"),
    ("com.mysql.", "database"),
    ("org.mariadb.jdbc", "database"),
    ("org.postgresql.", "database"),
    ("oracle.jdbc", "database"),
    ("org.apache.http.", "http"),
    ("org.apache.hc.", "http"),
    ("sun.net.www.http.HttpClient", "http"),
    ("okhttp3.", "http"),
    ("net/http.(*persistConn)", "http"),
];

/// Lines of one stack that are read.
const FRAMES: usize = 200;

struct Patterns {
    /// `  17 pthread_cond_wait,os_event_wait,…`
    summed: Regex,
    /// The head of one thread.
    head: Regex,
}

fn patterns() -> Option<&'static Patterns> {
    static ALL: OnceLock<Option<Patterns>> = OnceLock::new();
    let make = || {
        Some(Patterns {
            summed: Regex::new(r"^\s*(\d+)\s+(?:[\w.:~*&<>()@-]+,){2,}[\w.:~*&<>()@-]+").ok()?,
            head: Regex::new(r#"^(?:Thread \d+ \((?:Thread 0x|LWP)|goroutine \d+ \[|"[^"]+" #?\d*.*\b(?:prio|tid)=)"#)
                .ok()?,
        })
    };
    ALL.get_or_init(make).as_ref()
}

/// How the stacks that begin here are printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Summed,
    Each,
}

fn begins(lines: &[Line]) -> Option<Form> {
    let (first, patterns) = (text(lines, 0), patterns()?);
    if patterns.head.is_match(first) {
        return Some(Form::Each);
    }
    let is_summed = first.matches(',').count() >= 2 && patterns.summed.is_match(first);
    // A name of a function that any of them ends in.
    let is_stack = ["clone", "start_thread", "pthread", "main", "thread"].iter().any(|name| first.contains(name));
    (is_summed && is_stack).then_some(Form::Summed)
}

/// What a thread with this stack waits for; none if that is not known, as of one without work.
fn wait<'l>(mut frames: impl Iterator<Item = &'l str>) -> Option<&'static str> {
    let mut is_blocked = false;
    let known = frames.find_map(|frame| {
        // The JVM says so of a thread in front of a monitor.
        is_blocked |= frame.contains("State: BLOCKED");
        WAITS.iter().find(|(function, _)| frame.contains(function)).map(|(_, wait)| *wait)
    });
    if is_blocked { Some("monitor") } else { known }
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let (Some(form), Some(patterns)) = (begins(lines), patterns()) else { return 1 };
    let at = context.instant_of(KIND.name);
    let mut waits: BTreeMap<&str, f64> = BTreeMap::new();
    let mut used = 0;
    if form == Form::Summed {
        for line in lines {
            let Some(found) = patterns.summed.captures(&line.text) else { break };
            used += 1;
            let count = found.get(1).and_then(|count| number(count.as_str())).unwrap_or(1.0);
            if let Some(wait) = wait(line.text.split(',')) {
                *waits.entry(wait).or_default() += count;
            }
        }
    } else {
        while used < lines.len() && patterns.head.is_match(text(lines, used)) {
            let rest = lines.get(used + 1..).unwrap_or_default();
            let is_end = |line: &Line| line.is_blank() || patterns.head.is_match(&line.text);
            let frames = rest.iter().position(is_end).unwrap_or(rest.len());
            let stack = rest.iter().take(frames.min(FRAMES)).map(|line| line.text.as_str());
            if let Some(wait) = wait(stack) {
                *waits.entry(wait).or_default() += 1.0;
            }
            let blanks = rest.iter().skip(frames).take_while(|line| line.is_blank()).count();
            used += 1 + frames + blanks;
        }
    }
    for (wait, count) in waits {
        context.out.host(at, metrics::process::WAITING_STACKS, Labels::new([("wait", wait)]), count);
    }
    used.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(dump: &str) -> Vec<(String, f64)> {
        let mut context = Context::default();
        let lines = super::super::super::paste::lines(dump.as_bytes(), |_| false);
        let used = read(&lines, &mut context);
        assert_eq!(used, lines.len(), "{dump}");
        let samples = context.out.batch.samples.iter();
        samples.map(|row| (row.labels.get("wait").unwrap_or_default().to_owned(), row.value)).collect()
    }

    #[test]
    fn threads_are_counted_by_what_they_wait_for_in_every_form() {
        let summed = "    31 pthread_cond_timedwait,MDL_wait::timed_wait,MDL_context::acquire_lock,open_table,start_thread,clone\n     4 poll(libc.so.6),vio_io_wait,do_command,start_thread,clone\n";
        assert_eq!(waits(summed), [("metadata_lock".to_owned(), 31.0)]);
        let gdb = "Thread 3 (Thread 0x7f1 (LWP 12)):\n#0  0x1 in pthread_cond_wait () from /lib\n#1  0x2 in log_write_up_to (lsn=7) at log0log.cc:9\n\nThread 2 (Thread 0x7f2 (LWP 13)):\n#0  0x1 in poll ()\n";
        assert_eq!(waits(gdb), [("log".to_owned(), 1.0)]);
        let jvm = "\"exec-7\" #57 daemon prio=5 os_prio=0 tid=0x1 nid=0x2 waiting on condition\n   java.lang.Thread.State: TIMED_WAITING (parking)\n\tat sun.misc.Unsafe.park(Native Method)\n\tat com.zaxxer.hikari.pool.HikariPool.getConnection(HikariPool.java:1)\n\n\"exec-8\" #58 daemon prio=5 tid=0x3 waiting for monitor entry\n   java.lang.Thread.State: BLOCKED (on object monitor)\n\tat shop.Cart.total(Cart.java:7)\n";
        assert_eq!(waits(jvm), [("monitor".to_owned(), 1.0), ("pool".to_owned(), 1.0)]);
        let go = "goroutine 57 [select, 2 minutes]:\ndatabase/sql.(*DB).conn(0xc000)\n\t/usr/lib/go/src/database/sql/sql.go:1\n";
        assert_eq!(waits(go), [("pool".to_owned(), 1.0)]);
    }

    #[test]
    fn other_lists_with_commas_are_not_stacks() {
        for line in ["  17 apples,pears,plums", "1,2,3,4", "\"a\",\"b\",\"c\""] {
            let lines = super::super::super::paste::lines(line.as_bytes(), |_| false);
            assert!(begins(&lines).is_none(), "{line}");
        }
    }
}
