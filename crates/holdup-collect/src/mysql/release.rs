//! Kind and version of a server, as it reports them.

/// Kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    MariaDb,
    MySql,
    Percona,
}

/// Kind and version of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Release {
    pub(super) flavour: Flavour,
    pub(super) version: (u16, u16, u16),
}

impl Release {
    /// Parses `@@version` and `@@version_comment`.
    pub(super) fn parse(version: &str, comment: &str) -> Self {
        let flavour = if version.contains("MariaDB") || comment.to_ascii_lowercase().contains("mariadb") {
            Flavour::MariaDb
        } else if comment.contains("Percona") {
            Flavour::Percona
        } else {
            Flavour::MySql
        };
        let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        Self { flavour, version: (next(), next(), next()) }
    }

    pub(super) fn is_mariadb(self) -> bool {
        self.flavour == Flavour::MariaDb
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases() {
        let release = Release::parse("10.5.10-MariaDB-log", "mariadb.org binary distribution");
        assert_eq!((release.flavour, release.version), (Flavour::MariaDb, (10, 5, 10)));
        assert_eq!(Release::parse("8.0.36-28", "Percona Server (GPL)").flavour, Flavour::Percona);
    }
}
