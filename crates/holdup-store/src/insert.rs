//! Sends rows of a table into a store, so that a row arrives once however often it is sent. A part of
//! at most some megabytes is one request. Its token says which rows of which recording it has, so a
//! current server drops the part if it already has it; any server's merges drop equal keys.

use std::io::Write as _;

use holdup_recording::Row;
use sha2::{Digest as _, Sha256};

use crate::catalog::{Place, insertion_named, put_place};
use crate::client::Client;
use crate::dialect::Dialect;
use crate::error::StoreError;
use crate::rowbinary::put;
use crate::schema::{PLACE, SEGMENT_ROWS};
use crate::statement::Statement;

/// Bytes of rows in one request.
const PART_BYTES: usize = 8 << 20;

/// Sends rows of one recording of one host.
pub struct Inserter<'c> {
    client: &'c Client,
    place: Place,
    /// When the recording's first push began. It is in every token: rows that were removed and come
    /// again are new ones.
    begun_at: i64,
}

impl<'c> Inserter<'c> {
    /// Sends to `client`.
    pub fn new(client: &'c Client, place: Place, begun_at: i64) -> Self {
        Self { client, place, begun_at }
    }

    /// Sends `rows`, the first of which has the number `first` in its table. `sent` is called after
    /// each part with the number of its rows; it returns false to stop.
    ///
    /// # Errors
    /// If the server does not take them, after several attempts. The same call can be repeated.
    pub fn insert<R: Row>(&self, first: u64, rows: &[R], sent: &mut dyn FnMut(u64) -> bool) -> Result<(), StoreError> {
        let mut body = Vec::with_capacity(PART_BYTES.min(rows.len() * 256));
        let (mut from, mut number) = (first, first);
        for row in rows {
            self.encode(&mut body, number, row);
            number += 1;
            if body.len() >= PART_BYTES {
                self.send::<R>(from, number - from, &body, sent)?;
                body.clear();
                from = number;
            }
        }
        if number > from { self.send::<R>(from, number - from, &body, sent) } else { Ok(()) }
    }

    fn encode<R: Row>(&self, body: &mut Vec<u8>, number: u64, row: &R) {
        put_place(body, &self.place);
        // 2^48 rows would take years.
        body.extend(((number / SEGMENT_ROWS) as u32).to_le_bytes());
        body.extend(number.to_le_bytes());
        let mut columns = R::COLUMNS.iter();
        row.each_cell(&mut |cell| {
            if let Some(column) = columns.next() {
                put(body, column, &cell);
            }
        });
    }

    fn send<R: Row>(
        &self,
        from: u64,
        count: u64,
        body: &[u8],
        sent: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), StoreError> {
        self.client.insert(&self.statement::<R>(from, count), body, &mut || sent(0))?;
        if sent(count) { Ok(()) } else { Err(StoreError::Stopped) }
    }

    fn statement<R: Row>(&self, from: u64, count: u64) -> Statement {
        let place = PLACE.iter().map(|column| column.name).chain(["segment", "row"]);
        let names = place.chain(R::COLUMNS.iter().map(|column| column.name));
        let dialect = self.client.dialect();
        let statement = insertion_named(dialect, R::TABLE, names);
        match dialect {
            Dialect::Old => statement,
            // Times far apart lie in many partitions.
            Dialect::Current => statement
                .setting("insert_deduplication_token", self.token(R::TABLE, from, count))
                .setting("max_partitions_per_insert_block", 0),
        }
    }

    fn token(&self, table: &str, from: u64, count: u64) -> String {
        token(&self.place, self.begun_at, table, from, count)
    }
}

/// The same for the same rows, from any sender. The lengths keep two names from reading as two
/// others.
fn token(place: &Place, begun_at: i64, table: &str, from: u64, count: u64) -> String {
    let (recording, host) = (&place.recording, &place.host);
    let mut hash = Sha256::new();
    let _ = write!(hash, "{}:{recording}{}:{host}{begun_at} {table} {from} {count}", recording.len(), host.len());
    let digest = hash.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_that_of_its_rows_alone() {
        let at = |recording: &str, host: &str| Place { recording: recording.to_owned(), host: host.to_owned() };
        let one = token(&at("a", "b"), 1, "requests", 0, 10);
        // Of another process, too: this is the SHA-256 of `1:a1:b1 requests 0 10`.
        assert_eq!(one, "242f934f2d93e094ee55ce4d53fdd84becda84f60270de740919a7e5f392ef86");
        let others = [
            token(&at("ab", ""), 1, "requests", 0, 10),
            token(&at("", "ab"), 1, "requests", 0, 10),
            token(&at("a", "b"), 2, "requests", 0, 10),
            token(&at("a", "b"), 1, "samples", 0, 10),
            token(&at("a", "b"), 1, "requests", 0, 11),
            token(&at("a", "b"), 1, "requests", 10, 10),
            token(&at("a1:b", ""), 1, "requests", 0, 10),
        ];
        assert!(others.iter().all(|other| *other != one && other.len() == 64));
    }
}
