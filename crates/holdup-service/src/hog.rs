//! The hog: connections of its own that run heavy SQL, or hold locks, beside the service. For labs only.

use crate::ServiceError;
use crate::address::DatabaseAddress;

/// Options of the hog.
#[derive(clap::Args, Clone, Debug)]
pub struct HogOptions {
    /// mysql://user@host:port/database (password also in HOLDUP_MYSQL_PASSWORD)
    #[arg(long, value_name = "DATABASE")]
    pub database: DatabaseAddress,
}

/// Runs it.
///
/// # Errors
/// If the database can't be reached.
pub fn hog(options: HogOptions) -> Result<(), ServiceError> {
    options.database.parse(None).map(drop)
}
