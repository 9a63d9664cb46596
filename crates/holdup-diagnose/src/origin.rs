//! The source that measured response time, in words.

use holdup_signals::client::latency::Origin;

/// A source in words.
pub trait OriginWords {
    /// By whose account, e.g. `by the access log`.
    fn whose(self) -> &'static str;

    /// `text` with its source, unless that is the client.
    fn qualify(self, text: &str) -> String;
}

impl OriginWords for Origin {
    fn whose(self) -> &'static str {
        match self {
            Self::Client => "as the client measured it",
            Self::Traces | Self::InnerTraces => "by the traces",
            Self::AppMetrics | Self::AppMeans => "by the app's metrics",
            Self::AppServer => "by the requests with the app's server",
            Self::AccessLog => "by the access log",
            Self::Proxy => "by the proxy's requests in flight",
            Self::DatabaseStatements => "by the database's counters of statements",
            Self::DatabaseSessions => "by the database's sessions",
            Self::Volume => "by CloudWatch's figures of a volume",
        }
    }

    fn qualify(self, text: &str) -> String {
        match self {
            Self::Client => text.to_owned(),
            Self::Traces => format!("{text}; by the traces"),
            Self::InnerTraces => {
                format!("{text}; in a service behind the one in front, which answered all the same, by the traces")
            }
            Self::AppMetrics => format!("{text}; by the app's own HTTP metrics"),
            Self::AccessLog => format!("{text}; by the access log"),
            Self::AppMeans => format!("{text}; a mean, by the app's own HTTP metrics"),
            Self::AppServer => {
                format!("{text}; by the connections that wait for the app's server or an answer of it, by Little's law")
            }
            Self::Proxy => format!("{text}; by the proxy in front of the app, by Little's law"),
            Self::DatabaseStatements => format!("{text}; only a mean statement in the database, by its counters"),
            Self::DatabaseSessions => {
                format!("{text}; only the wait in the database, by Little's law over its sessions")
            }
            Self::Volume => {
                format!("{text}; this is the database's volume by CloudWatch, because no source measured requests")
            }
        }
    }
}
