//! What a server's version understands. ClickHouse from 22.8 on has parameters of queries, times in
//! nanoseconds, codecs and tokens that drop repeated blocks. Debian's package, 18.16, has none of
//! them: there times are integers, and equal rows fall together by their key alone. RowBinary is the
//! same for both.

/// The first version with everything that [`Dialect::Current`] uses.
const CURRENT: (u32, u32) = (22, 8);

/// What a server's version understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// From 22.8 on.
    Current,
    /// Before.
    Old,
}

impl Dialect {
    /// The dialect of a version as `version()` gives it, e.g. `26.9.1.1`; none if it is not one.
    pub fn from_version(version: &str) -> Option<Self> {
        let mut parts = version.trim().split('.').map(str::parse::<u32>);
        let version = (parts.next()?.ok()?, parts.next()?.ok()?);
        Some(if version >= CURRENT { Self::Current } else { Self::Old })
    }

    /// A time of the tables as nanoseconds.
    pub(crate) fn ns(self, time: &str) -> String {
        match self {
            Self::Current => format!("toUnixTimestamp64Nano({time})"),
            Self::Old => time.to_owned(),
        }
    }

    /// Nanoseconds as a time of the tables.
    pub(crate) fn time(self, ns: &str) -> String {
        match self {
            Self::Current => format!("fromUnixTimestamp64Nano({ns}, 'UTC')"),
            Self::Old => ns.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Dialect;

    #[test]
    fn versions() {
        for (version, dialect) in [
            ("18.16.1", Some(Dialect::Old)),
            ("22.7.3.5", Some(Dialect::Old)),
            ("22.8.1.2097\n", Some(Dialect::Current)),
            ("26.9.0.1", Some(Dialect::Current)),
            ("<html>", None),
            ("26", None),
        ] {
            assert_eq!(Dialect::from_version(version), dialect, "{version}");
        }
    }
}
