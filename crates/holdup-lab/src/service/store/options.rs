//! Options of the document store.

use std::path::PathBuf;

/// See the module.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "A document store")]
pub struct StoreOptions {
    /// Be a document store as well, from the LMDB environment in DIR (made if it does not exist)
    ///
    /// GET /document?id=N (a random one without id) is read through a memory map.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["servers", "blocking_workers"])]
    pub store: Option<PathBuf>,

    /// Number of documents; ids are 1 to N
    #[arg(long, value_name = "N", requires = "store", default_value_t = 10_000,
        value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub documents: u64,

    /// Length of each document
    #[arg(long, value_name = "BYTES", requires = "store", default_value_t = 3_500,
        value_parser = clap::value_parser!(u32).range(64..=65_536))]
    pub document_bytes: u32,
}
