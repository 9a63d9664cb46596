//! `holdup generate` on real servers: a run that is killed at any time and goes on has the rows of one that was not,
//! none lost and none twice; and it leaves alone what it did not make.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use holdup_mongodb::Writer;
use holdup_testing::ferretdb::{CANARY as MONGODB_CANARY, Server};
use holdup_testing::{Postgres, Which};

use crate::mariadb::{self, CANARY, MariaDb};
use crate::mongodb;
use crate::program::{Finished, Running, finish, holdup};

/// For whatever only has to happen at some time.
const PATIENCE: Duration = Duration::from_secs(120);

/// Documents that are read at once: an answer has a limit.
const PIECE: i32 = 2_000;

/// A schema with every kind of field.
const SCHEMA: &str = "collection: orders
seed: 7
fields:
  no: {sequence: {from: 1000, step: 10}}
  customer: {uniform: 1..5000}
  price: {uniform: 0.50..99.99}
  product: {zipf: {of: 1000, exponent: 1.1}}
  state: {choice: {paid: 90, open: 9, \"it's \\\\ odd\": 1}, nulls: 0.1}
  note: {words: 3..5}
  at: {date: 2024-01-01..2026-01-01}
  gift: {chance: 0.2}
  ref: uuid
  address: {nested: {city: {choice: [A, B]}, zip: {uniform: 10000..99999}}}
  items: {array: {length: 1..3, of: {nested: {sku: {text: 3..3}}}}}
";

/// A server that can be filled.
trait Place {
    /// An address without a password, with the variable that has it.
    fn to(&self) -> (String, &'static str, &'static str);
    /// How many rows `table` has.
    fn count(&self, table: &str) -> u64;
    /// A text that differs if any value of any row does.
    fn hash(&self, table: &str) -> String;
    /// Removes some rows.
    fn remove(&self, table: &str, keys: &[u32]);
}

impl Place for Server {
    fn to(&self) -> (String, &'static str, &'static str) {
        let address = format!("mongodb://holdup@127.0.0.1:{}/shop?authSource=accounts", self.port);
        (address, "HOLDUP_MONGODB_PASSWORD", MONGODB_CANARY)
    }

    fn count(&self, table: &str) -> u64 {
        let answer = self.client().run("shop", Writer::new().text("count", table));
        answer.get("n").unwrap().number().unwrap() as u64
    }

    fn hash(&self, table: &str) -> String {
        let mut client = self.client();
        let find = Writer::new().text("find", table).int("batchSize", PIECE);
        let mut answer = client.run("shop", find);
        let mut batch = "firstBatch";
        // Documents come in any order: FerretDB sorts a whole collection for each piece of it.
        let (mut sum, mut count) = (0_u64, 0);
        loop {
            let cursor = answer.at(&["cursor"]).unwrap();
            let documents = cursor.get(batch).unwrap().items();
            count += documents.len();
            for document in documents {
                let text = format!("{document:?}");
                let hash =
                    text.bytes().fold(0, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
                sum = sum.wrapping_add(hash);
            }
            let id = cursor.get("id").unwrap().number().unwrap() as i64;
            if id == 0 {
                return format!("{count} {sum:x}");
            }
            let more = Writer::new().long("getMore", id).text("collection", table).int("batchSize", PIECE);
            answer = client.run("shop", more);
            batch = "nextBatch";
        }
    }

    fn remove(&self, table: &str, keys: &[u32]) {
        let deletes = Writer::list(|list| {
            keys.iter().enumerate().fold(list, |list, (place, key)| {
                let query = Writer::new().int("_id", *key as i32);
                list.document(&place.to_string(), Writer::new().document("q", query).int("limit", 1))
            })
        });
        self.client().run("shop", Writer::new().text("delete", table).list_of("deletes", deletes));
    }
}

fn in_list(keys: &[u32]) -> String {
    keys.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

impl Place for MariaDb {
    fn to(&self) -> (String, &'static str, &'static str) {
        let address = self.address("app", CANARY).replace(&format!(":{CANARY}"), "");
        (format!("{address}/shop"), "HOLDUP_MYSQL_PASSWORD", CANARY)
    }

    fn count(&self, table: &str) -> u64 {
        self.ask(&format!("SELECT COUNT(*) FROM shop.{table}")).map_or(0, |count| count.trim().parse().unwrap())
    }

    fn hash(&self, table: &str) -> String {
        let all = "id, no, customer, price, product, state, note, at, gift, ref, address, items";
        let row = format!("CRC32(CONCAT_WS('|', {all}, state IS NULL))");
        self.run(&format!("SELECT SUM({row}), SUM({row} * id), MIN(id), MAX(id) FROM shop.{table}"))
    }

    fn remove(&self, table: &str, keys: &[u32]) {
        self.run(&format!("DELETE FROM shop.{table} WHERE id IN ({})", in_list(keys)));
    }
}

impl Place for Postgres {
    fn to(&self) -> (String, &'static str, &'static str) {
        (self.url("boss", "postgres"), "HOLDUP_POSTGRES_PASSWORD", "")
    }

    fn count(&self, table: &str) -> u64 {
        if self.run(&format!("SELECT to_regclass('{table}') IS NULL")) == "t" {
            return 0;
        }
        self.run(&format!("SELECT COUNT(*) FROM {table}")).parse().unwrap()
    }

    fn hash(&self, table: &str) -> String {
        self.run(&format!("SELECT md5(string_agg(t::text, '|' ORDER BY id)) FROM {table} AS t"))
    }

    fn remove(&self, table: &str, keys: &[u32]) {
        self.run(&format!("DELETE FROM {table} WHERE id IN ({})", in_list(keys)));
    }
}

fn generate(place: &impl Place, file: &Path, rows: u64, more: &[&str]) -> Command {
    let (address, variable, password) = place.to();
    let mut command = holdup(["generate", "--to", &address, "--rows", &rows.to_string()]);
    command.arg(file).args(more).env(variable, password);
    command
}

/// The schema for another table.
fn schema(dir: &Path, table: &str) -> PathBuf {
    let file = dir.join(format!("{table}.yaml"));
    std::fs::write(&file, SCHEMA.replace("orders", table)).unwrap();
    file
}

fn is_well(done: &Finished) {
    assert_eq!(done.code(), Some(0), "{}{}", done.stdout, done.stderr);
}

/// Kills a run several times, and compares what becomes of it with a run that was left alone.
fn killed_and_resumed(place: &impl Place, rows: u64) {
    let dir = tempfile::tempdir().unwrap();
    let (broken, whole) = (schema(dir.path(), "broken"), schema(dir.path(), "whole"));
    is_well(&finish(generate(place, &whole, rows, &[]), 300));
    let mut kills = 0;
    for part in 1..=3 {
        let run = Running::start(&mut generate(place, &broken, rows, &[]));
        let begun = Instant::now();
        while place.count("broken") < rows * part / 5 {
            assert!(begun.elapsed() < PATIENCE, "no rows");
            std::thread::sleep(Duration::from_millis(5));
        }
        kills += u32::from(place.count("broken") < rows);
        run.signal(libc::SIGKILL);
        let _ = run.finish(PATIENCE);
    }
    assert!(kills > 0, "every run was over before it could be killed");
    // Gaps where an interrupted run may leave them.
    let last = place.count("broken") as u32;
    place.remove("broken", &[last - 3_000, last - 2_001, last - 2_000]);
    goes_on(place, &broken, rows);
    // Once more changes nothing.
    is_well(&finish(generate(place, &broken, rows, &[]), 300));
    assert_eq!(place.count("broken"), rows);
}

/// A run that goes on finds what is there, and makes it the same as the whole.
fn goes_on(place: &impl Place, broken: &Path, rows: u64) {
    let done = finish(generate(place, broken, rows, &[]), 300);
    is_well(&done);
    assert!(done.stdout.contains(" were there"), "{}", done.stdout);
    assert_eq!((place.count("broken"), place.count("whole")), (rows, rows));
    assert_eq!(place.hash("broken"), place.hash("whole"));
}

/// A server finishes what a killed run had sent, also after the next run has looked for its keys: `insert` takes two seconds
/// until its row is there.
fn finished_late(place: &impl Place, insert: impl Fn(u32) + Sync) {
    let dir = tempfile::tempdir().unwrap();
    let file = schema(dir.path(), "late");
    is_well(&finish(generate(place, &file, 1_000, &[]), 120));
    std::thread::scope(|scope| {
        scope.spawn(|| insert(1_500));
        std::thread::sleep(Duration::from_millis(700));
        is_well(&finish(generate(place, &file, 2_000, &[]), 120));
    });
    assert_eq!(place.count("late"), 2_000);
}

/// Goes on where a shorter run ended, with gaps as an interrupted run may leave them: what is there is known by the rows
/// alone, so a killed run is no other than this.
fn resumed(place: &impl Place, rows: u64) {
    let dir = tempfile::tempdir().unwrap();
    let (broken, whole) = (schema(dir.path(), "broken"), schema(dir.path(), "whole"));
    is_well(&finish(generate(place, &whole, rows, &[]), 300));
    is_well(&finish(generate(place, &broken, rows / 2, &[]), 300));
    let last = place.count("broken") as u32;
    place.remove("broken", &[last - 1_200, last - 101, last - 100]);
    goes_on(place, &broken, rows);
}

/// What it did not make it leaves alone.
fn leaves_others_alone(place: &impl Place) {
    let dir = tempfile::tempdir().unwrap();
    let file = schema(dir.path(), "few");
    is_well(&finish(generate(place, &file, 3_000, &["--seed", "1"]), 120));
    let before = place.hash("few");
    for (rows, more, words) in
        [(4_000, ["--seed", "2"], "did not make"), (2_000, ["--seed", "1"], "keys up to 3000, and 2000 rows")]
    {
        let done = finish(generate(place, &file, rows, &more), 120);
        assert!(done.code() == Some(2) && done.stderr.contains(words), "{}", done.stderr);
        assert!(done.stderr.contains("--add"), "{}", done.stderr);
    }
    assert_eq!(place.hash("few"), before);
    is_well(&finish(generate(place, &file, 500, &["--seed", "2", "--add"]), 120));
    assert_eq!(place.count("few"), 3_500);
}

#[test]
fn mongodb() {
    let Some(server) = Server::start() else { return };
    leaves_others_alone(&server);
    by_objectid(&server);
    // What MongoDB cannot have is said before anything is inserted.
    let dir = tempfile::tempdir().unwrap();
    for (from, to, words) in [
        ("seed: 7", "key: no2", "MongoDB's documents have the key _id"),
        ("collection: orders", "collection: a$b", "a$b cannot be the name of a collection"),
    ] {
        let file = dir.path().join("refused.yaml");
        std::fs::write(&file, SCHEMA.replacen(from, to, 1)).unwrap();
        let done = finish(generate(&server, &file, 10, &[]), 60);
        assert!(done.code() == Some(2) && done.stderr.contains(words), "{to}: {}", done.stderr);
    }
}

/// Documents whose keys are ObjectIds: they are counted on, found again and read by a scenario's own words.
fn by_objectid(server: &Server) {
    let dir = tempfile::tempdir().unwrap();
    let file = schema(dir.path(), "ids");
    std::fs::write(&file, SCHEMA.replace("collection: orders", "collection: ids\nids: objectid")).unwrap();
    is_well(&finish(generate(server, &file, 1_200, &[]), 120));
    let deletes = Writer::new().document("q", Writer::new().int("no", 1000 + 10 * 1_099)).int("limit", 1);
    let deletes = Writer::new().document("0", deletes);
    server.client().run("shop", Writer::new().text("delete", "ids").list_of("deletes", deletes));
    assert_eq!(server.count("ids"), 1_199);
    let done = finish(generate(server, &file, 2_000, &[]), 120);
    is_well(&done);
    assert!(done.stdout.contains("1,199 were there"), "{}", done.stdout);
    assert_eq!(server.count("ids"), 2_000);
    let key = Writer::new().id("_id", &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x00]);
    let query = Writer::new().text("count", "ids").document("query", key.int("no", 1000 + 10 * 1_099));
    assert_eq!(server.client().run("shop", query).get("n").unwrap().number(), Some(1.0));
}

#[test]
fn mongodb_on_postgresql() {
    let Some((server, _postgres)) = mongodb::on_postgresql() else { return };
    // Each range of keys takes long there, too.
    resumed(&server, 3_000);
    leaves_others_alone(&server);
}

#[test]
fn mysql() {
    if !mariadb::is_here() {
        return;
    }
    let server = mariadb::start();
    server.run(&format!(
        "CREATE DATABASE shop; CREATE USER app@'%' IDENTIFIED BY '{CANARY}'; GRANT ALL ON shop.* TO app@'%';"
    ));
    killed_and_resumed(&server, 60_000);
    leaves_others_alone(&server);
    finished_late(&server, |key| {
        let row = format!("INSERT INTO shop.late SELECT * FROM shop.whole WHERE id = {key}");
        server.run(&format!("BEGIN; {row}; SELECT SLEEP(2); COMMIT"));
    });
}

#[test]
fn postgresql() {
    let Some(server) = Postgres::of(Which::System, &[]) else { return };
    killed_and_resumed(&server, 200_000);
    leaves_others_alone(&server);
    finished_late(&server, |key| {
        let row = format!("INSERT INTO late SELECT * FROM whole WHERE id = {key}");
        server.run(&format!("BEGIN; {row}; SELECT pg_sleep(2); COMMIT"));
    });
    // No interrupted run leaves a gap so far from the end.
    server.remove("whole", &[70_000]);
    let dir = tempfile::tempdir().unwrap();
    let done = finish(generate(&server, &schema(dir.path(), "whole"), 200_000, &[]), 120);
    assert!(done.code() == Some(2) && done.stderr.contains("whole lacks 1 of its first"), "{}", done.stderr);
}

#[test]
fn a_schema_is_checked_and_shown_without_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let file = schema(dir.path(), "orders");
    let done = finish(holdup(["generate", "--check", "--rows", "2"]).arg(&file), 30);
    is_well(&done);
    assert_eq!(done.stdout.lines().count(), 2);
    assert!(done.stdout.starts_with('{') && done.stdout.contains("\"no\":1000"), "{}", done.stdout);
    for (arguments, words) in [
        (&["--to", "http://h"][..], "--to: expected mongodb://"),
        (&["--to", "mongodb://u:s3cr3tC4nary@127.0.0.1:1/shop"], "does not accept connections"),
        (&["--to", "mongodb://127.0.0.1:1"], "after the slash"),
        (&[], "--to"),
    ] {
        let done = finish(holdup(["generate", "--rows", "2"]).arg(&file).args(arguments), 30);
        assert_eq!(done.code(), Some(2), "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains(words) && !done.stderr.contains("s3cr3t"), "{words}: {}", done.stderr);
    }
}
