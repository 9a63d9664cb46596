//! What to do about rejected tasks, by what held the threads.

use super::holders::{Holder, Kind};
use super::refusals::Refusals;
use crate::change::Fix;

const LATER: &str = "Documents become visible to searches up to 30 s later.";

const REFRESH_LESS: &str = "curl -X PUT 'http://HOST:9200/INDEX/_settings' -H 'Content-Type: application/json' -d '{\"index.refresh_interval\": \"30s\"}'";

/// Safest first.
pub(super) fn fixes(of: &Refusals<'_>, holders: &[Holder]) -> Vec<Fix> {
    let own = match holders.first().map(|holder| holder.kind) {
        Some(Kind::Merges | Kind::Refreshes) => Fix::by_command(
            "Refresh less often: fewer segments then have to be merged.",
            Some(REFRESH_LESS),
            Some(LATER),
        ),
        Some(Kind::Collections) => Fix::advice(
            "Find what fills the heap: large bulk requests, aggregations, too many shards. Give the node more heap if the machine has the memory.",
            Some("A heap above half of the memory takes the page cache that searches need."),
        ),
        Some(Kind::Disk) => Fix::advice(
            "Give the node's data a faster disk, or spread its shards over more nodes.",
            Some("Shards that move load the disks of both nodes."),
        ),
        Some(Kind::Threads) | None if of.are_writes() => Fix::advice(
            "Send fewer bulk requests at once, each of 5 to 15 MB.",
            Some("Each takes longer, and its memory counts until it is done."),
        ),
        Some(Kind::Threads) | None => Fix::advice(
            "Send fewer searches at once, or let each read fewer shards; add replicas on further nodes.",
            Some("Replicas cost disk space, and each write is done once more."),
        ),
    };
    let again = if of.are_writes() {
        "Have clients send the rejected items of a bulk request again after a pause that doubles. Leave the queue's length: a longer one takes heap and only delays."
    } else {
        "Have clients wait before they repeat a rejected search. Leave the queue's length: a longer one only delays."
    };
    vec![Fix::advice(again, None), own]
}
