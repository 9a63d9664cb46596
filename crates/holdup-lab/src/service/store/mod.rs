//! A document store on LMDB. Documents are read through a memory map. So a read that misses memory
//! is a page fault in the request's thread, and the kernel decides how much it reads. The settings
//! are LMDB's own. In particular `MDB_NORDAHEAD`, which would tell the kernel that reads are
//! random, is off, as in most programs. Nothing writes to the store while it is served.

mod options;
mod seed;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions};
use hyper::StatusCode;
use serde_json::json;

use crate::service::answer::Answer;
use crate::service::http::Request;
use crate::service::metrics::Metrics;
use crate::service::seed::mix;
use crate::service::{Options, ServiceError};
pub use options::StoreOptions;
use seed::key;

/// Path prefix of documents.
const ROUTE: &str = "/document";

/// Labels of a read, as OpenTelemetry has them for databases.
const GET: &str = "db_system_name=\"lmdb\",db_operation_name=\"GET\"";

/// LMDB's page size: a document takes a multiple of it, and an entry in a leaf.
const PAGE_BYTES: u64 = 4_096;

/// See the module.
pub struct Store {
    env: Env,
    database: Database<Bytes, Bytes>,
    documents: u64,
    drawn: AtomicU64,
}

impl Store {
    /// Opens the store that `options` name, if any; makes it if it does not exist.
    ///
    /// # Errors
    ///
    /// If it cannot be made or opened, or holds a different number of documents.
    pub fn open(options: &Options) -> Result<Option<Self>, ServiceError> {
        let StoreOptions { store: Some(folder), documents, document_bytes } = &options.store else { return Ok(None) };
        make(folder, *documents, *document_bytes).map_err(|why| failed(folder, why))?;
        let store = Self::open_made(folder).map_err(|why| failed(folder, why))?;
        if store.documents == *documents {
            return Ok(Some(store));
        }
        let why = format!("it has {} documents, not {documents}; remove it, or give their number", store.documents);
        Err(ServiceError::Store { folder: folder.clone(), why })
    }

    fn open_made(folder: &Path) -> heed::Result<Self> {
        // Without a lock file. Nothing writes to the store, and LMDB would update its table of
        // readers in that file for each read, on the very disk under test.
        let env = open(folder, 0, EnvFlags::READ_ONLY | EnvFlags::NO_LOCK)?;
        let transaction = env.read_txn()?;
        let database = env.open_database(&transaction, None)?.ok_or(heed::MdbError::NotFound)?;
        let documents = database.len(&transaction)?;
        // The environment knows the opened database only after this.
        transaction.commit()?;
        Ok(Self { env, database, documents, drawn: AtomicU64::new(0) })
    }

    /// Answers a request for a document; none for other requests.
    pub fn answer(&self, request: &Request, metrics: &Metrics) -> Option<Answer> {
        if request.path != ROUTE {
            return None;
        }
        let error = |status, why: &str| Some(Answer::json(status, &json!({ "error": why }), ROUTE.to_owned()));
        if request.method != "GET" {
            return error(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered");
        }
        let asked = request.query.split('&').find_map(|pair| pair.strip_prefix("id="));
        let id = match asked.map(str::parse) {
            None => self.draw_id(),
            Some(Ok(id)) => id,
            Some(Err(_)) => return error(StatusCode::BAD_REQUEST, "id must be a whole number"),
        };
        let begun = Instant::now();
        let document = self.read(id);
        metrics.operation.observe(GET, begun.elapsed());
        match document {
            Ok(Some(body)) => Some(Answer { body, route: ROUTE.to_owned(), ..Answer::empty(StatusCode::OK) }),
            Ok(None) => error(StatusCode::NOT_FOUND, "no such document"),
            Err(why) => {
                eprintln!("{ROUTE}: {why}");
                error(StatusCode::INTERNAL_SERVER_ERROR, "the store failed")
            }
        }
    }

    /// A copy of a document, which reads every byte of it from the map.
    fn read(&self, id: u64) -> heed::Result<Option<String>> {
        let transaction = self.env.read_txn()?;
        let document = self.database.get(&transaction, &key(id))?;
        Ok(document.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
    }

    fn draw_id(&self) -> u64 {
        mix(self.drawn.fetch_add(1, Ordering::Relaxed) + 1) % self.documents + 1
    }
}

/// Makes the store in `folder`, unless it exists.
fn make(folder: &Path, documents: u64, bytes: u32) -> heed::Result<()> {
    if folder.join("data.mdb").exists() {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    let pages = documents * (2 + u64::from(bytes).div_ceil(PAGE_BYTES)) + 4_096;
    // Made as fast as possible, and synced once at the end: an interrupted store has too few
    // documents.
    let env = open(folder, pages * PAGE_BYTES, EnvFlags::NO_SYNC)?;
    let mut transaction = env.write_txn()?;
    let database = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    seed::seed(&env, database, documents, bytes as usize)?;
    env.prepare_for_closing().wait();
    Ok(())
}

/// Opens the environment in `folder`; with 0 bytes, the map is as large as the file.
fn open(folder: &Path, map_bytes: u64, flags: EnvFlags) -> heed::Result<Env> {
    let mut options = EnvOpenOptions::new();
    if map_bytes > 0 {
        options.map_size(map_bytes as usize);
    }
    // SAFETY: the folder belongs to this program, which alone writes to it, and only before any
    // reader opens it, so mapped data does not change. Without syncs a crash can only lose a store
    // that is made again.
    unsafe { options.flags(flags).open(folder) }
}

fn failed(folder: &Path, why: heed::Error) -> ServiceError {
    ServiceError::Store { folder: folder.to_owned(), why: why.to_string() }
}
