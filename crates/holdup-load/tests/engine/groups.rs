//! Arrivals in groups: what comes at one instant waits behind each other, and that wait counts.

use std::thread;
use std::time::Duration;

use crate::play::{play, scenario};
use crate::servers::http1::{self, OK};
use crate::servers::server;

/// One connection and 10 ms for each request: the last of a group of ten waits for the nine before it.
#[test]
fn a_group_counts_from_its_instant() {
    let port = server(|stream| http1::answer(stream, OK, || thread::sleep(Duration::from_millis(10))));
    let target = format!("http://127.0.0.1:{port}");
    let load = "rate: 20, duration: 2s, connections: 1, arrivals: {groups_of: 10}";
    let played = play(&scenario(&target, load, ""), None);
    played.all("ok");
    let mut rows = played.rows.clone();
    rows.sort_by_key(|row| (row.intended_at, row.done_at));
    let groups: Vec<_> = rows.chunk_by(|a, b| a.intended_at == b.intended_at).collect();
    assert_eq!(groups.iter().map(|group| group.len()).collect::<Vec<_>>(), [10; 4]);
    for (group, next) in groups.iter().zip(&groups[1..]) {
        assert_eq!(next[0].intended_at - group[0].intended_at, 500_000_000, "groups are evenly spaced");
        for (i, row) in group.iter().enumerate() {
            assert!(row.done_at - row.intended_at >= (i as i64 + 1) * 10_000_000, "{i}: {row:?}");
        }
    }
}
