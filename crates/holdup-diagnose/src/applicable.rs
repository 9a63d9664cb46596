//! Which causes can occur at all: a cause of MySQL's is not a suspect on a host whose database is
//! PostgreSQL. It is neither cleared nor listed as open. The confidence in another cause still
//! counts it as unseen; changing that needs a new calibration.

use holdup_recording::Recording;
use holdup_recording::manifest::CoverageState;

use crate::verdict::NotJudged;

/// Causes that only MySQL, MariaDB and Percona Server can have.
const OF_MYSQL: &[&str] = &["thread_pool_queue", "table_cache_small", "on_disk_temporary_tables"];

/// Causes that only PostgreSQL can have.
const OF_POSTGRESQL: &[&str] = &["toast_rewrite", "autovacuum_pressure"];

/// The causes among `open` that the databases of `recording` can have.
pub(crate) fn among(open: Vec<NotJudged>, recording: &Recording) -> Vec<NotJudged> {
    let watched = Watched::from_recording(recording);
    open.into_iter().filter(|one| watched.can_have(&one.cause)).collect()
}

/// Kinds of database servers that were watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Watched {
    mysql: bool,
    postgresql: bool,
}

impl Watched {
    /// The kinds in `recording`, from the sources that could be read.
    fn from_recording(recording: &Recording) -> Self {
        let has = |scheme: &str| {
            let read = |state: CoverageState| state != CoverageState::Absent;
            recording.manifest.coverage.iter().any(|entry| entry.source.starts_with(scheme) && read(entry.state))
        };
        Self { mysql: has("mysql://"), postgresql: has("postgresql://") || has("postgres://") }
    }

    /// Whether `cause` can occur. If no database was watched, or both kinds were, any can.
    fn can_have(self, cause: &str) -> bool {
        match (self.mysql, self.postgresql) {
            (true, false) => !OF_POSTGRESQL.contains(&cause),
            (false, true) => !OF_MYSQL.contains(&cause),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;

    #[test]
    fn a_server_that_is_not_there_has_no_causes() {
        let watched = |mysql, postgresql| Watched { mysql, postgresql };
        assert!(!watched(true, false).can_have("toast_rewrite") && watched(true, false).can_have("table_cache_small"));
        assert!(!watched(false, true).can_have("table_cache_small") && watched(false, true).can_have("toast_rewrite"));
        for cause in OF_MYSQL.iter().chain(OF_POSTGRESQL) {
            assert!(rules::by_cause(cause).is_some(), "{cause}");
            assert!(watched(false, false).can_have(cause) && watched(true, true).can_have(cause), "{cause}");
        }
    }
}
