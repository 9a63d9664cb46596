//! The questions that people ask of a store most, as views beside the tables: both accounts of a
//! request by its id, where the slowest requests' time went, how long endpoints waited for the
//! database, a statement hour by hour, and the response times of each recording. Each counts a row
//! once (`FINAL`). They answer over all recordings: a condition on `recording` belongs in every query
//! of them.

use crate::dialect::Dialect;
use crate::schema::Schema;

/// Length of a point of `database_wait`, nanoseconds and seconds: 10 minutes.
const POINT_NS: u64 = 600_000_000_000;
const POINT_SECONDS: u64 = 600;

/// The same of `digest_hours`.
const HOUR_NS: u64 = 3_600_000_000_000;
const HOUR_SECONDS: u64 = 3_600;

/// Names of the views.
pub const VIEWS: [&str; 5] =
    ["request_accounts", "slowest_by_resource", "database_wait", "digest_hours", "operation_times"];

impl Schema {
    /// The statements that make the views, in order, after the tables.
    pub fn views(&self) -> Vec<String> {
        let on = self.sharing.cluster.as_ref().map_or_else(String::new, |cluster| format!(" ON CLUSTER '{cluster}'"));
        let texts = [
            self.request_accounts(),
            self.slowest_by_resource(),
            self.database_wait(),
            self.digest_hours(),
            self.operation_times(),
        ];
        let made = VIEWS.iter().zip(texts);
        made.map(|(name, text)| format!("CREATE VIEW IF NOT EXISTS {name}{on} AS\n{text}")).collect()
    }

    /// Every row of every account that has a request's id: what the client, the app, the network and
    /// the database say of it.
    fn request_accounts(&self) -> String {
        let part = |account: &str, at: &str, duration: &str, what: &str, resource: &str, outcome: &str, from: &str| {
            format!(
                "SELECT recording, host, \
                 toString(ifNull(trace_id, '')) AS trace_id, '{account}' AS account, {at} AS at, {duration} AS \
                 duration_ns, toString({what}) AS what, toString({resource}) AS resource, toString({outcome}) AS \
                 outcome\nFROM {from} AND trace_id != ''"
            )
        };
        let between = |from: &str, to: &str| format!("{} - {}", self.dialect.ns(to), self.dialect.ns(from));
        let ended = |ended: &str| self.dialect.time(&format!("{} - duration_ns", self.dialect.ns(ended)));
        [
            part(
                "client",
                "intended_at",
                &between("intended_at", "done_at"),
                "operation",
                "'request'",
                "outcome",
                "requests FINAL WHERE 1 = 1",
            ),
            part(
                "app",
                "started_at",
                "duration_ns",
                "ifNull(digest_text, name)",
                "resource",
                "status",
                "spans FINAL WHERE 1 = 1",
            ),
            part(
                "network",
                "request_at",
                &between("request_at", "done_at"),
                "ifNull(digest_text, kind)",
                "'database'",
                "outcome",
                "exchanges FINAL WHERE 1 = 1",
            ),
            part(
                "database",
                &ended("observed_at"),
                "duration_ns",
                "digest_text",
                "'database'",
                "if(errors > 0, 'error', 'ok')",
                "statements FINAL WHERE kind = 'execution'",
            ),
            part(
                "session",
                "observed_at",
                "ifNull(age_ns, toInt64(0))",
                "ifNull(digest_text, command)",
                "true_state",
                "''",
                "sessions FINAL WHERE 1 = 1",
            ),
        ]
        .join("\nUNION ALL\n")
    }

    /// The slowest 1 % of each operation's requests, a row that stands for several counting as often.
    fn slow_requests(&self, columns: &str) -> String {
        let response = format!("{} - {}", self.dialect.ns("done_at"), self.dialect.ns("intended_at"));
        let weight = "toUInt64(greatest(weight, 1))";
        let keys = "recording, toString(operation) AS operation";
        let whole = format!("{keys}, toString(ifNull(trace_id, '')) AS trace_id, {response} AS response_ns");
        match self.dialect {
            Dialect::Current => format!(
                "SELECT {columns} FROM (SELECT {whole}, {weight} AS requests, sum(requests) OVER (PARTITION BY \
                 recording, operation ORDER BY response_ns) AS upto, sum(requests) OVER (PARTITION BY recording, \
                 operation) AS total FROM requests FINAL) WHERE upto >= 0.99 * total"
            ),
            Dialect::Old => format!(
                "SELECT {columns} FROM (SELECT {whole}, {weight} AS requests FROM requests FINAL) ALL INNER JOIN \
                 (SELECT {keys}, quantileExactWeighted(0.99)({response}, {weight}) AS limit_ns FROM requests FINAL \
                 GROUP BY recording, operation) USING (recording, operation) WHERE response_ns >= limit_ns"
            ),
        }
    }

    /// What the slowest 1 % of each operation's requests waited for, as the app's spans say. The
    /// resource `response` is all of their time, as the client saw it.
    fn slowest_by_resource(&self) -> String {
        format!(
            "SELECT recording, operation, resource, sum(requests) AS slow_requests, sum(requests * wait_ns) / \
             sum(requests) / 1e6 AS mean_ms\nFROM (\n    {}\n    UNION ALL\n    SELECT recording, operation, resource, \
             wait_ns, requests\n    FROM (SELECT recording, trace_id, toString(resource) AS \
             resource, sum(duration_ns) AS wait_ns FROM spans FINAL GROUP BY recording, trace_id, resource) AS \
             waits\n    ALL INNER JOIN ({} AND trace_id != '') AS slow USING (recording, trace_id)\n)\nGROUP BY \
             recording, operation, resource",
            self.slow_requests(
                "recording, operation, 'response' AS resource, toInt64(response_ns) AS wait_ns, requests"
            ),
            self.slow_requests("recording, operation, trace_id, requests"),
        )
    }

    /// How long requests of each endpoint waited for the database, its connections included, in
    /// points of 10 minutes. The endpoint is what the app calls a request.
    fn database_wait(&self) -> String {
        let (started, point) = (self.dialect.ns("started_at"), self.point("began_ns", POINT_NS, POINT_SECONDS));
        format!(
            "SELECT recording, endpoint, {point} AS point, count() AS requests, quantileExact(0.5)(wait_ns) / 1e6 AS p50_ms, quantileExact(0.95)(wait_ns) / 1e6 AS \
             p95_ms, quantileExact(0.99)(wait_ns) / 1e6 AS p99_ms, max(wait_ns) / 1e6 AS max_ms\nFROM (\n    SELECT \
             recording, trace_id, argMinIf(toString(name), {started}, resource = 'request') AS \
             endpoint, min({started}) AS began_ns, sumIf(duration_ns, resource IN ('database', 'pool')) AS wait_ns, \
             countIf(resource = 'request') AS whole\n    FROM spans FINAL\n    GROUP BY recording, trace_id\n)\nWHERE \
             whole > 0\nGROUP BY recording, endpoint, point"
        )
    }

    /// The time at which the point of so many nanoseconds or seconds begins in which `ns` lies.
    fn point(&self, ns: &str, length_ns: u64, seconds: u64) -> String {
        let zone = if self.dialect == Dialect::Current { ", 'UTC'" } else { "" };
        format!("toDateTime(intDiv({ns}, {length_ns}) * {seconds}{zone})")
    }

    /// How often each statement ran in each hour, and how long: by single executions, and by the
    /// server's counters. What the counters counted between two hours is in neither.
    fn digest_hours(&self) -> String {
        let hour = self.point(&self.dialect.ns("observed_at"), HOUR_NS, HOUR_SECONDS);
        let part = |account: &str, calls: &str, total_ns: &str, max_ns: &str, kind: &str, keys: &str| {
            format!(
                "SELECT recording, toString(digest) AS digest, '{account}' AS account, {hour} AS hour, \
                 any(toString(digest_text)) AS words, toInt64({calls}) AS runs, toInt64({total_ns}) AS total_ns, \
                 toInt64({max_ns}) AS max_ns FROM statements FINAL WHERE kind = '{kind}' GROUP BY recording, digest, \
                 hour{keys}"
            )
        };
        let executions = part("executions", "count()", "sum(duration_ns)", "max(duration_ns)", "execution", "");
        let (calls, total) = ("max(calls) - min(calls)", "max(duration_ns) - min(duration_ns)");
        let counters = part("counters", calls, total, "0", "digest_total", ", source, database");
        format!(
            "SELECT recording, digest, account, hour, any(words) AS statement, sum(runs) AS executions, \
             sum(total_ns) / 1e6 AS total_ms, sum(total_ns) / sum(runs) / 1e6 AS mean_ms, max(max_ns) / 1e6 AS \
             max_ms\nFROM (\n    {executions}\n    UNION ALL\n    {counters}\n)\nGROUP BY recording, digest, account, \
             hour\nHAVING executions > 0"
        )
    }

    /// The response times of each operation in each recording, to set releases side by side.
    fn operation_times(&self) -> String {
        let response = format!("{} - {}", self.dialect.ns("done_at"), self.dialect.ns("intended_at"));
        let began = self.point(&self.dialect.ns("intended_at"), 1_000_000_000, 1);
        let rows = format!(
            "recording, toString(operation) AS operation, {began} AS second, {response} AS response_ns, \
             toUInt64(greatest(weight, 1)) AS requests, outcome != 'ok' AS is_failed"
        );
        let (from, at): (String, fn(&str) -> String) = match self.dialect {
            // Windows, because small builds of the engine have no weighted quantile.
            Dialect::Current => (
                format!(
                    "SELECT {rows}, sum(requests) OVER (PARTITION BY recording, operation ORDER BY response_ns) AS \
                     upto, sum(requests) OVER (PARTITION BY recording, operation) AS total FROM requests FINAL"
                ),
                |level| format!("minIf(response_ns, upto >= {level} * total)"),
            ),
            Dialect::Old => (format!("SELECT {rows} FROM requests FINAL"), |level| {
                format!("quantileExactWeighted({level})(response_ns, requests)")
            }),
        };
        let [p50, p95, p99] = ["0.5", "0.95", "0.99"].map(at);
        format!(
            "SELECT recording, operation, min(second) AS began, sum(requests) AS offered, sumIf(requests, is_failed) AS \
             failed, {p50} / 1e6 AS p50_ms, {p95} / 1e6 AS p95_ms, {p99} / 1e6 AS p99_ms, max(response_ns) / 1e6 AS \
             max_ms\nFROM (\n    {from}\n)\nGROUP BY recording, operation"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Sharing;

    #[test]
    fn there_is_a_statement_for_each_view() {
        for (dialect, cluster) in [(Dialect::Current, None), (Dialect::Old, None), (Dialect::Current, Some("main"))] {
            let sharing = Sharing { replicated: false, cluster: cluster.map(str::to_owned) };
            let views = Schema { dialect, sharing, ttl_days: None }.views();
            let on = cluster.map_or_else(String::new, |cluster| format!(" ON CLUSTER '{cluster}'"));
            for (name, text) in VIEWS.iter().zip(&views) {
                assert!(text.starts_with(&format!("CREATE VIEW IF NOT EXISTS {name}{on} AS\nSELECT ")), "{text}");
                assert_eq!(text.contains("Timestamp64"), dialect == Dialect::Current, "{text}");
            }
        }
    }
}
