//! Fills a store. The same id always gives the same document.

use heed::types::Bytes;
use heed::{Database, Env, PutFlags};

use crate::service::seed::mix;

/// Documents of one transaction: some ten megabytes, so that making a large store takes little
/// memory.
const BATCH: u64 = 4_096;

/// Source of the documents' text.
const QUARRY_BYTES: usize = 256 * 1024;

const WORDS: &[&str] = &[
    "invoice", "river", "seven", "ledger", "north", "paper", "signal", "garden", "amber", "thread", "window", "market",
    "copper", "letter", "harbour", "minute",
];

/// Puts documents 1 to `documents` into an empty `database`.
pub fn seed(env: &Env, database: Database<Bytes, Bytes>, documents: u64, bytes: usize) -> heed::Result<()> {
    let quarry = quarry();
    let mut id = 0;
    while id < documents {
        let mut transaction = env.write_txn()?;
        for _ in 0..BATCH.min(documents - id) {
            id += 1;
            // Ids are in order, so each document goes behind the last without a search.
            let document = document(&quarry, id, bytes);
            database.put_with_flags(&mut transaction, PutFlags::APPEND, &key(id), document.as_bytes())?;
        }
        transaction.commit()?;
    }
    env.force_sync()
}

/// The key of a document: big-endian, so that keys sort like ids.
pub fn key(id: u64) -> [u8; 8] {
    id.to_be_bytes()
}

/// A document, as JSON of exactly that many bytes.
fn document(quarry: &str, id: u64, bytes: usize) -> String {
    let mut text = format!("{{\"id\":{id},\"text\":\"");
    let room = bytes.saturating_sub(text.len() + 2);
    let from = mix(id) as usize % (quarry.len() - room);
    text.push_str(&quarry[from..from + room]);
    text.push_str("\"}");
    text
}

/// Words in random order, much longer than any document. Cutting from it is quick even in a debug
/// build.
fn quarry() -> String {
    let mut text = String::with_capacity(QUARRY_BYTES + 16);
    let mut drawn = 0;
    while text.len() < QUARRY_BYTES {
        drawn += 1;
        text.push_str(WORDS[mix(drawn) as usize % WORDS.len()]);
        text.push(' ');
    }
    text
}
