//! Pasted text of standard tools, files parted by zero bytes: rows with finite numbers, counters
//! that never fall, and the same rows again.
#![no_main]

use std::collections::BTreeMap;

use holdup_import::text::{Pasted, Understood, recognises};
use libfuzzer_sys::fuzz_target;

/// 2026-11-26 10:11:12 UTC.
const AT: i64 = 1_795_687_872_000_000_000;

fuzz_target!(|input: &[u8]| {
    let found = read(input);
    check(&found);
    let again = read(input);
    assert_eq!(found.batch.samples, again.batch.samples);
    assert_eq!((found.parts, found.unread_total), (again.parts, again.unread_total));
    recognises(input);
});

fn read(input: &[u8]) -> Understood {
    let mut pasted = Pasted::new(None);
    for file in input.split(|byte| *byte == 0) {
        pasted.read("file", file, AT);
    }
    pasted.finish()
}

fn check(found: &Understood) {
    assert!(found.unread.len() <= found.unread_total);
    assert!(found.parts.iter().all(|part| part.first_line <= part.last_line), "{:?}", found.parts);
    let mut cpu: BTreeMap<String, f64> = BTreeMap::new();
    for row in &found.batch.samples {
        assert!(row.value.is_finite() && !row.source.is_empty(), "{row:?}");
        if row.metric == "system_cpu_time_seconds_total" {
            let before = cpu.insert(row.labels.to_string(), row.value);
            assert!(before.is_none_or(|before| before <= row.value), "{row:?} after {before:?}");
        }
    }
}
