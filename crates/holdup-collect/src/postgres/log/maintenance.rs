//! Messages about the server's own work, as labels: vacuum and analyze (whose wording changed in
//! nearly every version from 10 to 18), and checkpoints. Figures are located by the words next to
//! them, so that additions and reordering do no harm.

use holdup_recording::Labels;

/// An automatic vacuum or analyze of a table: kind of event and labels.
pub(super) fn vacuum(message: &str) -> Option<(&'static str, Labels)> {
    let line = message.lines().next()?;
    let (what, rest) = line.strip_prefix("automatic ")?.split_once(" of table \"")?;
    let (name, behind) = rest.rsplit_once('"')?;
    let kind = if what == "analyze" {
        "autoanalyze"
    } else if what.starts_with("vacuum") || what.starts_with("aggressive vacuum") {
        "autovacuum"
    } else {
        return None;
    };
    // The database precedes the first dot; names are not quoted, so this is a best guess.
    let (database, table) = name.split_once('.')?;
    let mut labels = Labels::new([("database", database), ("table", table)]);
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            labels = std::mem::take(&mut labels).with(name, value);
        }
    };
    put("aggressive", what.contains("aggressive").then(|| "1".to_owned()));
    put("to_prevent_wraparound", what.contains("wraparound").then(|| "1".to_owned()));
    put("index_scans", after(behind, "index scans: "));
    removed(message, &mut put);
    index_scan(message, &mut put);
    resources(message, &mut put);
    Some((kind, labels))
}

/// Takes a label, if it has a value.
type Put<'p> = dyn FnMut(&str, Option<String>) + 'p;

/// The part of a message behind `begin`, up to the end of its line.
fn part<'m>(message: &'m str, begin: &str) -> &'m str {
    message.lines().map(str::trim).find_map(|line| line.split_once(begin)).map_or("", |(_, rest)| rest)
}

/// Pages and tuples that vacuum removed, left or froze.
fn removed(message: &str, put: &mut Put<'_>) {
    let starting = |begin: &str| message.lines().map(str::trim).find_map(|line| line.strip_prefix(begin));
    // The line of an index contains `pages` as well.
    let pages = starting("pages: ").unwrap_or_else(|| part(message, "pages: "));
    let tuples = starting("tuples: ").unwrap_or_default();
    for (name, words) in [
        ("pages_removed", " removed"),
        ("pages_remain", " remain"),
        ("pages_scanned", " scanned ("),
        ("pages_eagerly_scanned", " eagerly scanned"),
        ("pages_skipped_pinned", " skipped due to pins"),
        ("pages_skipped_frozen", " skipped frozen"),
    ] {
        put(name, before(pages, words));
    }
    for (name, words) in [
        ("tuples_removed", " removed"),
        ("tuples_remain", " remain"),
        ("tuples_dead_not_removable", " are dead but not yet removable"),
    ] {
        put(name, before(tuples, words));
    }
    put("tuples_missed", before(part(message, "tuples missed: "), " dead from"));
    put("cutoff_age_transactions", after(message, "which was "));
    put("tuples_frozen", before(part(message, "frozen: "), " tuples frozen"));
}

/// Whether the indexes were scanned, and why.
fn index_scan(message: &str, put: &mut Put<'_>) {
    for how in
        ["index scan needed: ", "index scan not needed: ", "index scan bypassed: ", "index scan bypassed by failsafe: "]
    {
        let told = part(message, how);
        if !told.is_empty() {
            let word = how.trim_start_matches("index scan ").trim_end_matches(": ").replace(' ', "_");
            put("index_scan", Some(word));
            put("dead_item_pages", before(told, " pages from table"));
            put("dead_items", before(told, " dead item identifiers"));
        }
    }
}

/// What it cost: buffers, reads and writes, log, CPU and time.
fn resources(message: &str, put: &mut Put<'_>) {
    let buffers = part(message, "buffer usage: ");
    put("buffers_hit", before(buffers, " hits"));
    // Called misses until 16.
    put("buffers_missed", before(buffers, " misses").or_else(|| before(buffers, " reads")));
    put("buffers_dirtied", before(buffers, " dirtied"));
    let megabytes = |words: &str| {
        let rate: f64 = after(message, words)?.parse().ok()?;
        Some(format!("{:.0}", rate * 1024.0 * 1024.0))
    };
    put("read_bytes_per_second", megabytes("avg read rate: "));
    put("write_bytes_per_second", megabytes("avg write rate: "));
    let timings = part(message, "I/O timings: ");
    put("read_ms", after(timings, "read: "));
    put("write_ms", after(timings, "write: "));
    put("delay_ms", after(message, "delay time: "));
    let log = part(message, "WAL usage: ");
    put("wal_records", before(log, " records"));
    put("wal_full_page_images", before(log, " full page images"));
    put("wal_bytes", before(log, " bytes"));
    let usage = message.split_once("system usage: ").map_or("", |(_, rest)| rest);
    put("cpu_user_ms", milliseconds(usage, "user: "));
    put("cpu_system_ms", milliseconds(usage, "system: "));
    put("elapsed_ms", milliseconds(usage, "elapsed: "));
}

/// The reason of a starting checkpoint: `time`, `wal`, `immediate force wait`, …
pub(super) fn checkpoint_cause(message: &str) -> Option<&str> {
    message.strip_prefix("checkpoint starting: ").or_else(|| message.strip_prefix("restartpoint starting: "))
}

/// Labels of a finished checkpoint.
pub(super) fn checkpoint(message: &str) -> Option<Labels> {
    let rest = ["checkpoint", "restartpoint"]
        .iter()
        .find_map(|what| message.strip_prefix(what)?.strip_prefix(" complete: "))?;
    let mut labels = Labels::none();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            labels = std::mem::take(&mut labels).with(name, value);
        }
    };
    put("buffers_written", after(rest, "wrote "));
    put("slru_buffers_written", before(rest, " SLRU buffers"));
    put(
        "wal_files_added",
        before(rest, " WAL file(s) added").or_else(|| before(rest, " transaction log file(s) added")),
    );
    put("wal_files_removed", before(rest, " removed"));
    put("wal_files_recycled", before(rest, " recycled"));
    for (name, words) in [
        ("write_ms", "write="),
        ("sync_ms", "sync="),
        ("total_ms", "total="),
        ("sync_longest_ms", "longest="),
        ("sync_average_ms", "average="),
    ] {
        put(name, milliseconds(rest, words));
    }
    put("files_synced", after(rest, "sync files="));
    let kilobytes = |words: &str| Some(after(rest, words)?.parse::<u64>().ok()?.checked_mul(1024)?.to_string());
    put("distance_bytes", kilobytes("distance="));
    put("estimate_bytes", kilobytes("estimate="));
    Some(labels)
}

/// The number after `words`.
pub(super) fn after(text: &str, words: &str) -> Option<String> {
    let (_, behind) = text.split_once(words)?;
    let end = behind.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(behind.len());
    number(behind.get(..end)?)
}

/// The number before `words`.
fn before(text: &str, words: &str) -> Option<String> {
    let (ahead, _) = text.split_once(words)?;
    let begin = ahead.rfind(|char: char| !char.is_ascii_digit() && char != '.').map_or(0, |at| at + 1);
    number(ahead.get(begin..)?)
}

fn number(text: &str) -> Option<String> {
    let text = text.trim_end_matches('.');
    (text.len() < 25 && text.parse::<f64>().is_ok()).then(|| text.to_owned())
}

/// Seconds after `words`, in milliseconds.
fn milliseconds(text: &str, words: &str) -> Option<String> {
    let seconds: f64 = after(text, words)?.parse().ok()?;
    Some(format!("{:.0}", seconds * 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(message: &str) -> (&'static str, Labels) {
        vacuum(message).unwrap_or_else(|| panic!("{message}"))
    }

    fn has(labels: &Labels, wanted: &[(&str, &str)]) {
        for (name, value) in wanted {
            assert_eq!(labels.get(name), Some(*value), "{name}: {labels}");
        }
    }

    const COMMON: [(&str, &str); 9] = [
        ("table", "public.article"),
        ("database", "shop"),
        ("index_scans", "1"),
        ("tuples_removed", "50000"),
        ("tuples_dead_not_removable", "7"),
        ("buffers_missed", "3"),
        ("write_bytes_per_second", "4789895"),
        ("wal_bytes", "1234567"),
        ("elapsed_ms", "2250"),
    ];

    #[test]
    fn vacuum_of_13() {
        let (kind, told) = labels(
            "automatic vacuum of table \"shop.public.article\": index scans: 1\npages: 0 removed, 443 remain, 1 skipped due to pins, 2 skipped frozen\n\
             tuples: 50000 removed, 50010 remain, 7 are dead but not yet removable, oldest xmin: 746\nbuffer usage: 1500 hits, 3 misses, 900 dirtied\n\
             avg read rate: 0.010 MB/s, avg write rate: 4.568 MB/s\nsystem usage: CPU: user: 0.04 s, system: 0.01 s, elapsed: 2.25 s\n\
             WAL usage: 1329 records, 443 full page images, 1234567 bytes",
        );
        assert_eq!(kind, "autovacuum");
        has(&told, &COMMON);
        has(&told, &[("pages_skipped_frozen", "2"), ("pages_remain", "443"), ("cpu_user_ms", "40")]);
    }

    #[test]
    fn vacuum_of_15() {
        let (_, told) = labels(
            "automatic vacuum of table \"shop.public.article\": index scans: 1\npages: 0 removed, 443 remain, 443 scanned (100.00% of total)\n\
             tuples: 50000 removed, 50010 remain, 7 are dead but not yet removable\nremovable cutoff: 746, which was 12 XIDs old when operation ended\n\
             new relfrozenxid: 745, which is 2 XIDs ahead of previous value\nindex scan needed: 221 pages from table (49.89% of total) had 50000 dead item identifiers removed\n\
             index \"article_pkey\": pages: 276 in total, 5 newly deleted, 6 currently deleted, 8 reusable\nI/O timings: read: 1.500 ms, write: 2.500 ms\n\
             avg read rate: 0.010 MB/s, avg write rate: 4.568 MB/s\nbuffer usage: 1500 hits, 3 misses, 900 dirtied\n\
             WAL usage: 1329 records, 443 full page images, 1234567 bytes\nsystem usage: CPU: user: 0.04 s, system: 0.01 s, elapsed: 2.25 s",
        );
        has(&told, &COMMON);
        let more = [
            ("cutoff_age_transactions", "12"),
            ("index_scan", "needed"),
            ("dead_items", "50000"),
            ("read_ms", "1.500"),
            ("pages_scanned", "443"),
        ];
        has(&told, &more);
        assert_eq!(told.get("pages_removed"), Some("0"));
    }

    #[test]
    fn vacuum_of_18_of_a_toast_table() {
        let (_, told) = labels(
            "automatic aggressive vacuum to prevent wraparound of table \"shop.pg_toast.pg_toast_16385\": index scans: 0\n\
             pages: 0 removed, 443 remain, 443 scanned (100.00% of total), 5 eagerly scanned\ntuples: 50000 removed, 50010 remain, 7 are dead but not yet removable\n\
             tuples missed: 9 dead from 2 pages not removed due to cleanup lock contention\nremovable cutoff: 746, which was 12 XIDs old when operation ended\n\
             frozen: 3 pages from table (1.00% of total) had 99 tuples frozen\nvisibility map: 4 pages set all-visible, 3 pages set all-frozen (1 were all-visible)\n\
             index scan bypassed: 2 pages from table (0.45% of total) have 11 dead item identifiers\ndelay time: 1000.250 ms\n\
             avg read rate: 0.010 MB/s, avg write rate: 4.568 MB/s\nbuffer usage: 1500 hits, 3 reads, 900 dirtied\n\
             WAL usage: 1329 records, 443 full page images, 1234567 bytes, 5 buffers full\nsystem usage: CPU: user: 0.04 s, system: 0.01 s, elapsed: 2.25 s",
        );
        has(&told, &COMMON[3..]);
        has(
            &told,
            &[
                ("table", "pg_toast.pg_toast_16385"),
                ("aggressive", "1"),
                ("to_prevent_wraparound", "1"),
                ("tuples_missed", "9"),
            ],
        );
        has(
            &told,
            &[
                ("tuples_frozen", "99"),
                ("index_scan", "bypassed"),
                ("delay_ms", "1000.250"),
                ("pages_eagerly_scanned", "5"),
            ],
        );
    }

    #[test]
    fn analyze_of_13_and_14() {
        for message in [
            "automatic analyze of table \"shop.public.t\" system usage: CPU: user: 0.04 s, system: 0.01 s, elapsed: 0.25 s",
            "automatic analyze of table \"shop.public.t\"\navg read rate: 1.000 MB/s, avg write rate: 0.000 MB/s\nbuffer usage: 1 hits, 2 misses, 3 dirtied\n\
             system usage: CPU: user: 0.04 s, system: 0.01 s, elapsed: 0.25 s",
        ] {
            let (kind, told) = labels(message);
            assert_eq!(kind, "autoanalyze");
            has(&told, &[("table", "public.t"), ("elapsed_ms", "250")]);
        }
        assert_eq!(vacuum("automatic vacuum of table"), None);
        assert_eq!(vacuum("vacuum of table \"a.b.c\""), None);
    }

    #[test]
    fn sizes_that_no_server_has_are_left_out() {
        let of = |size: &str| checkpoint(&format!("checkpoint complete: distance=2 kB, estimate={size} kB")).unwrap();
        let (honest, hostile) = (of("3"), of("88888888888888888"));
        assert_eq!((honest.get("distance_bytes"), honest.get("estimate_bytes")), (Some("2048"), Some("3072")));
        assert_eq!((hostile.get("distance_bytes"), hostile.get("estimate_bytes")), (Some("2048"), None));
    }

    #[test]
    fn checkpoints_of_13_and_17() {
        let old = checkpoint(
            "checkpoint complete: wrote 1234 buffers (7.5%); 0 WAL file(s) added, 1 removed, 2 recycled; write=9.987 s, sync=0.250 s, total=10.300 s; \
             sync files=5, longest=0.125 s, average=0.050 s; distance=1000 kB, estimate=2000 kB",
        );
        let old = old.expect("a checkpoint");
        has(&old, &[("buffers_written", "1234"), ("write_ms", "9987"), ("sync_ms", "250"), ("total_ms", "10300")]);
        has(&old, &[("wal_files_recycled", "2"), ("files_synced", "5"), ("distance_bytes", "1024000")]);
        let new = checkpoint(
            "restartpoint complete: wrote 5 buffers (0.0%), wrote 3 SLRU buffers; 0 WAL file(s) added, 0 removed, 0 recycled; write=0.1 s, sync=0.0 s, \
             total=0.2 s; sync files=0, longest=0.000 s, average=0.000 s; distance=0 kB, estimate=0 kB; lsn=0/1, redo lsn=0/1",
        );
        has(&new.expect("one"), &[("buffers_written", "5"), ("slru_buffers_written", "3"), ("total_ms", "200")]);
        assert_eq!(checkpoint_cause("checkpoint starting: immediate force wait"), Some("immediate force wait"));
        assert_eq!(checkpoint("checkpoint starting: time"), None);
    }
}
