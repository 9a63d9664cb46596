//! The tables of a store as DDL. Names, columns and types come from the rows of `holdup-recording`,
//! which also make the Parquet schema; here are only what a server adds: where a row is from, codecs,
//! order and engines.
//!
//! A row's key is (recording, host, segment, time, row). `row` is its number in the table of that
//! recording and host, from 0; `segment` is `row` divided by 65,536, so a segment is read by the
//! primary index alone, and a row has the same key however the rows were cut when they were sent.

use holdup_recording::{Column, ColumnType, tables};

use crate::dialect::Dialect;

/// Rows of a segment: those of a row group in a finished Parquet file.
pub const SEGMENT_ROWS: u64 = 65_536;

/// Blocks of a table whose tokens a server remembers, so that it drops a repeated one. A push repeats
/// at most the block that was cut off.
const WINDOW_BLOCKS: u32 = 1_000;

/// Text columns with few different values among many rows.
const REPEATED: [&str; 26] = [
    "command",
    "database",
    "digest",
    "host",
    "kind",
    "labels",
    "metric",
    "operation",
    "outcome",
    "phase",
    "process",
    "protocol",
    "recording",
    "resource",
    "server",
    "service",
    "side",
    "source",
    "stage",
    "state",
    "status",
    "system",
    "thread",
    "true_state",
    "user",
    "wchan",
];

/// The table of recordings and the table of their files.
pub const RECORDINGS: &str = "recordings";
pub const FILES: &str = "files";

const fn column(name: &'static str, kind: ColumnType) -> Column {
    Column { name, kind, optional: false }
}

/// Where a row is from: the first columns of every table.
pub const PLACE: [Column; 2] = [column("recording", ColumnType::Text), column("host", ColumnType::Text)];

/// One recording of one host: a row in [`RECORDINGS`]. A later `pushed_at` replaces an earlier one.
pub const ENTRY: [Column; 8] = [
    column("pushed_at", ColumnType::Timestamp),
    column("begun_at", ColumnType::Timestamp),
    column("complete", ColumnType::Bool),
    column("started_at", ColumnType::Timestamp),
    Column { name: "ended_at", kind: ColumnType::Timestamp, optional: true },
    column("state", ColumnType::Text),
    column("holdup", ColumnType::Text),
    column("tables", ColumnType::Json),
];

/// A piece of a file of a recording: a row in [`FILES`].
pub const PIECE: [Column; 6] = [
    column("name", ColumnType::Text),
    column("chunk", ColumnType::Int64),
    column("chunks", ColumnType::Int64),
    column("pushed_at", ColumnType::Timestamp),
    column("sha256", ColumnType::Text),
    column("content", ColumnType::Text),
];

/// How servers share the tables.
#[derive(Clone, Debug, Default)]
pub struct Sharing {
    /// Whether each table is replicated: the server's macros `{shard}` and `{replica}` say where.
    pub replicated: bool,
    /// The cluster over whose shards recordings are spread.
    pub cluster: Option<String>,
}

/// How tables are made.
#[derive(Clone, Debug)]
pub struct Schema {
    /// What the server understands.
    pub dialect: Dialect,
    /// How servers share the tables.
    pub sharing: Sharing,
    /// After how many days the server removes rows; never if none.
    pub ttl_days: Option<u32>,
}

/// A table to be made.
struct Table {
    name: &'static str,
    /// Its columns with the types and codecs of the server, e.g. `row UInt64 CODEC(…)`.
    columns: Vec<String>,
    /// The newest of rows with equal keys stays; any of them if none.
    version: Option<&'static str>,
    /// The column that partitions and TTL go by.
    time: &'static str,
    order: String,
}

impl Schema {
    /// The statements that make every table, in order.
    ///
    /// # Errors
    /// If the cluster's name cannot stand in a statement.
    pub fn statements(&self) -> Result<Vec<String>, String> {
        if let Some(cluster) = &self.sharing.cluster {
            crate::address::check_database(cluster)?;
        }
        let mut made: Vec<Table> =
            tables::schema().into_iter().map(|(name, columns)| self.rows_table(name, columns)).collect();
        made.push(self.own_table(RECORDINGS, &ENTRY, "started_at", "recording, host"));
        made.push(self.own_table(FILES, &PIECE, "pushed_at", "recording, host, name, chunk"));
        Ok(made.iter().flat_map(|table| self.make(table)).collect())
    }

    /// The statements that add to `table` the columns that it lacks, because an older holdup made it.
    /// `existing` are its columns on the server.
    pub fn additions(&self, table: &str, existing: &[String]) -> Vec<String> {
        let all = tables::schema();
        let columns = all.iter().find(|(name, _)| *name == table).map_or(&[][..], |(_, columns)| columns);
        let missing = columns.iter().filter(|column| existing.iter().all(|name| name != column.name));
        let add = |target: &str, column: &Column| {
            let unless = if self.dialect == Dialect::Current { "IF NOT EXISTS " } else { "" };
            format!("ALTER TABLE {target} ADD COLUMN {unless}{}", self.column(column))
        };
        let targets = match &self.sharing.cluster {
            None => vec![table.to_owned()],
            Some(cluster) => ["_shard", ""].map(|part| format!("{table}{part} ON CLUSTER '{cluster}'")).into(),
        };
        missing.flat_map(|column| targets.iter().map(|target| add(target, column)).collect::<Vec<_>>()).collect()
    }

    /// The name under which a table keeps its rows on one server.
    pub fn kept_in(&self, table: &str) -> String {
        if self.sharing.cluster.is_some() { format!("{table}_shard") } else { table.to_owned() }
    }

    fn rows_table(&self, name: &'static str, columns: &[Column]) -> Table {
        let time = first_time(columns);
        let (segment_codec, row_codec) = match self.dialect {
            Dialect::Current => (" CODEC(Delta, ZSTD)", " CODEC(DoubleDelta, ZSTD)"),
            Dialect::Old => ("", ""),
        };
        let mut lines: Vec<String> = PLACE.iter().map(|column| self.column(column)).collect();
        lines.push(format!("`segment` UInt32{segment_codec}"));
        lines.push(format!("`row` UInt64{row_codec}"));
        lines.extend(columns.iter().map(|column| self.column(column)));
        if self.dialect == Dialect::Current {
            lines.push(format!("INDEX by_time `{time}` TYPE minmax GRANULARITY 1"));
        }
        Table { name, columns: lines, version: None, time, order: format!("recording, host, segment, `{time}`, row") }
    }

    fn own_table(&self, name: &'static str, columns: &[Column], time: &'static str, order: &str) -> Table {
        let columns = PLACE.iter().chain(columns).map(|column| self.column(column)).collect();
        Table { name, columns, version: Some("pushed_at"), time, order: order.to_owned() }
    }

    fn column(&self, column: &Column) -> String {
        let is_old = self.dialect == Dialect::Old;
        let is_repeated = REPEATED.contains(&column.name) && !is_old;
        let plain = match column.kind {
            ColumnType::Int64 => "Int64",
            ColumnType::Int32 => "Int32",
            ColumnType::Timestamp if is_old => "Int64",
            ColumnType::Timestamp => "DateTime64(9, 'UTC')",
            ColumnType::Double => "Float64",
            ColumnType::Bool if is_old => "UInt8",
            ColumnType::Bool => "Bool",
            ColumnType::Text | ColumnType::Json => "String",
        };
        let mut kind = if column.optional { format!("Nullable({plain})") } else { plain.to_owned() };
        let is_text = matches!(column.kind, ColumnType::Text | ColumnType::Json);
        if is_text && is_repeated {
            kind = format!("LowCardinality({kind})");
        }
        let codec = match column.kind {
            _ if is_old => "",
            ColumnType::Timestamp => " CODEC(DoubleDelta, ZSTD)",
            ColumnType::Int64 | ColumnType::Int32 => " CODEC(T64, ZSTD)",
            ColumnType::Double => " CODEC(Gorilla, ZSTD)",
            ColumnType::Text | ColumnType::Json | ColumnType::Bool => " CODEC(ZSTD)",
        };
        format!("`{}` {kind}{codec}", column.name)
    }

    /// The statements for one table: with a cluster, one on each shard and one over all shards.
    fn make(&self, table: &Table) -> Vec<String> {
        let Some(cluster) = &self.sharing.cluster else { return vec![self.create(table, table.name, "")] };
        let on = format!(" ON CLUSTER '{cluster}'");
        let (name, local) = (table.name, format!("{}_shard", table.name));
        // All rows of a recording's host lie on one shard, where equal keys meet.
        let over = format!(
            "CREATE TABLE IF NOT EXISTS {name}{on} AS {local}\nENGINE = Distributed('{cluster}', currentDatabase(), \
             '{local}', cityHash64(recording, host))"
        );
        vec![self.create(table, &local, &on), over]
    }

    fn create(&self, table: &Table, name: &str, on: &str) -> String {
        let (time, order) = (table.time, &table.order);
        let month = match self.dialect {
            Dialect::Current => format!("toYYYYMM(`{time}`)"),
            Dialect::Old => format!("toYYYYMM(toDateTime(intDiv(`{time}`, 1000000000)))"),
        };
        let columns = table.columns.join(",\n    ");
        let mut text = format!(
            "CREATE TABLE IF NOT EXISTS {name}{on} (\n    {columns}\n)\nENGINE = {}\nPARTITION BY {month}\n\
             ORDER BY ({order})",
            self.engine(name, table.version)
        );
        if let Some(days) = self.ttl_days {
            text.push_str(&format!("\nTTL toDateTime(`{time}`) + INTERVAL {days} DAY"));
        }
        if self.dialect == Dialect::Current {
            let setting = if self.sharing.replicated { "replicated" } else { "non_replicated" };
            text.push_str(&format!("\nSETTINGS {setting}_deduplication_window = {WINDOW_BLOCKS}"));
        }
        text
    }

    fn engine(&self, name: &str, version: Option<&str>) -> String {
        let version = version.unwrap_or_default();
        if !self.sharing.replicated {
            return format!("ReplacingMergeTree({version})");
        }
        // An old server knows no macro for the database.
        let folder = if self.dialect == Dialect::Current { "{database}/" } else { "holdup/" };
        let version = if version.is_empty() { String::new() } else { format!(", {version}") };
        format!("ReplicatedReplacingMergeTree('/clickhouse/tables/{{shard}}/{folder}{name}', '{{replica}}'{version})")
    }
}

/// The column by which rows are placed in time: the first time.
pub(crate) fn first_time(columns: &[Column]) -> &'static str {
    columns.iter().find(|column| column.kind == ColumnType::Timestamp).map_or("observed_at", |column| column.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(dialect: Dialect) -> Schema {
        Schema { dialect, sharing: Sharing::default(), ttl_days: None }
    }

    fn made(schema: &Schema, table: &str) -> String {
        let start = format!("CREATE TABLE IF NOT EXISTS {table}");
        let mut found = schema.statements().unwrap().into_iter();
        found.find(|text| text[start.len()..].starts_with([' ', '\n']) && text.starts_with(&start)).unwrap()
    }

    #[test]
    fn tables_and_columns_are_those_of_the_files() {
        for dialect in [Dialect::Current, Dialect::Old] {
            let all = schema(dialect);
            assert_eq!(all.statements().unwrap().len(), tables::schema().len() + 2);
            for (table, columns) in tables::schema() {
                let text = made(&all, table);
                let lines = text.lines().skip(1).take_while(|line| *line != ")");
                let names: Vec<&str> = lines.filter_map(|line| line.split('`').nth(1)).collect();
                let expected =
                    ["recording", "host", "segment", "row"].into_iter().chain(columns.iter().map(|c| c.name));
                let is_current = dialect == Dialect::Current;
                let expected: Vec<&str> = expected.chain(is_current.then(|| first_time(columns))).collect();
                assert_eq!(names, expected, "{table}");
            }
        }
    }

    #[test]
    fn every_table_has_a_time_that_is_always_there() {
        for (table, columns) in tables::schema() {
            let time = columns.iter().find(|column| column.kind == ColumnType::Timestamp).unwrap();
            assert!(!time.optional, "{table}.{}", time.name);
            let taken = ["recording", "host", "segment", "row"];
            assert!(columns.iter().all(|column| !taken.contains(&column.name)), "{table}");
        }
        for name in REPEATED {
            let place = PLACE.iter().any(|column| column.name == name);
            let is_there = |(_, columns): &(_, &[Column])| {
                columns.iter().any(|c| c.name == name && matches!(c.kind, ColumnType::Text | ColumnType::Json))
            };
            assert!(place || tables::schema().iter().any(is_there), "{name}");
        }
    }

    #[test]
    fn a_current_server_gets_types_and_codecs() {
        let text = made(&Schema { ttl_days: Some(30), ..schema(Dialect::Current) }, "events");
        assert_eq!(
            text,
            "CREATE TABLE IF NOT EXISTS events (\n    \
             `recording` LowCardinality(String) CODEC(ZSTD),\n    \
             `host` LowCardinality(String) CODEC(ZSTD),\n    \
             `segment` UInt32 CODEC(Delta, ZSTD),\n    \
             `row` UInt64 CODEC(DoubleDelta, ZSTD),\n    \
             `observed_at` DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD),\n    \
             `source` LowCardinality(String) CODEC(ZSTD),\n    \
             `kind` LowCardinality(String) CODEC(ZSTD),\n    \
             `text` String CODEC(ZSTD),\n    \
             `labels` LowCardinality(String) CODEC(ZSTD),\n    \
             INDEX by_time `observed_at` TYPE minmax GRANULARITY 1\n)\n\
             ENGINE = ReplacingMergeTree()\n\
             PARTITION BY toYYYYMM(`observed_at`)\n\
             ORDER BY (recording, host, segment, `observed_at`, row)\n\
             TTL toDateTime(`observed_at`) + INTERVAL 30 DAY\n\
             SETTINGS non_replicated_deduplication_window = 1000"
        );
        let requests = made(&schema(Dialect::Current), "requests");
        assert!(requests.contains("`status` Nullable(Int32) CODEC(T64, ZSTD)"), "{requests}");
        let sessions = made(&schema(Dialect::Current), "sessions");
        assert!(sessions.contains("`user` LowCardinality(Nullable(String)) CODEC(ZSTD)"), "{sessions}");
    }

    #[test]
    fn an_old_server_gets_plain_types() {
        let text = made(&schema(Dialect::Old), "requests");
        assert!(text.contains("`intended_at` Int64,") && text.contains("`ready_at` Nullable(Int64),"), "{text}");
        assert!(!text.contains("CODEC") && !text.contains("LowCardinality") && !text.contains("SETTINGS"), "{text}");
        assert!(text.contains("toYYYYMM(toDateTime(intDiv(`intended_at`, 1000000000)))"), "{text}");
    }

    #[test]
    fn a_table_of_an_older_holdup_gets_its_columns() {
        let current = schema(Dialect::Current);
        let mut existing: Vec<String> = ["observed_at", "source", "kind", "labels"].map(str::to_owned).into();
        assert_eq!(
            current.additions("events", &existing),
            ["ALTER TABLE events ADD COLUMN IF NOT EXISTS `text` String CODEC(ZSTD)"]
        );
        let sharing = Sharing { replicated: false, cluster: Some("c".to_owned()) };
        let both = Schema { sharing, ..current.clone() }.additions("events", &existing);
        assert!(both[0].starts_with("ALTER TABLE events_shard ON CLUSTER 'c' ADD"), "{both:?}");
        assert!(both[1].starts_with("ALTER TABLE events ON CLUSTER 'c' ADD"), "{both:?}");
        existing.push("text".to_owned());
        assert!(current.additions("events", &existing).is_empty());
    }

    #[test]
    fn replicas_and_shards() {
        let sharing = Sharing { replicated: true, cluster: Some("main".to_owned()) };
        let shared = Schema { sharing, ..schema(Dialect::Current) };
        let local = made(&shared, "recordings_shard");
        assert!(local.starts_with("CREATE TABLE IF NOT EXISTS recordings_shard ON CLUSTER 'main' ("), "{local}");
        let engine = "ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/recordings_shard', \
                      '{replica}', pushed_at)";
        assert!(
            local.contains(engine) && local.ends_with("\nSETTINGS replicated_deduplication_window = 1000"),
            "{local}"
        );
        assert_eq!(
            made(&shared, "recordings"),
            "CREATE TABLE IF NOT EXISTS recordings ON CLUSTER 'main' AS recordings_shard\nENGINE = \
             Distributed('main', currentDatabase(), 'recordings_shard', cityHash64(recording, host))"
        );
        let hostile = Sharing { replicated: false, cluster: Some("a' (".to_owned()) };
        assert!(Schema { sharing: hostile, ..schema(Dialect::Current) }.statements().is_err());
    }
}
