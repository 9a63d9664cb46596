//! The URL of a remote write receiver: an address like any of Prometheus', of which messages show
//! less.

use std::fmt;

use holdup_collect::prometheus::address::Address;

/// A parsed receiver address.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Without user and password, but with the query. Never printed: a query can hold a token.
    pub url: String,
    /// The `Authorization` header, if the URL had a user. Never printed.
    pub authorization: Option<String>,
    /// Scheme, host and path, for messages. The query is left out: it does not say where holdup
    /// writes.
    pub shown: String,
}

/// Prints only the part for messages.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Endpoint {
    /// Parses `url`.
    ///
    /// # Errors
    /// If it is malformed; the message does not repeat it.
    pub fn parse(url: &str) -> Result<Self, String> {
        let address = Address::parse(url, "/api/v1/write").map_err(|why| format!("remote write: {why}"))?;
        Ok(Self { url: address.url, authorization: address.authorization, shown: address.place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_in_the_header_alone() {
        let endpoint = Endpoint::parse("https://me:p%40ss@h:9090/api/v1/write?token=zzz#x").unwrap();
        assert_eq!(endpoint.url, "https://h:9090/api/v1/write?token=zzz");
        assert_eq!(endpoint.shown, "https://h:9090/api/v1/write");
        // me:p@ss
        assert_eq!(endpoint.authorization.as_deref(), Some("Basic bWU6cEBzcw=="));
        assert_eq!(format!("{endpoint:?}"), "https://h:9090/api/v1/write");
        assert_eq!(Endpoint::parse("http://[::1]:80").unwrap().url, "http://[::1]:80/");
        assert_eq!(Endpoint::parse("HTTP://[::1]").unwrap().authorization, None);
    }

    #[test]
    fn invalid_addresses_are_refused_without_secrets() {
        for bad in ["", "h:9090", "ftp://h/", "http://", "http://:80/", "http://u:s3@/", "http://h/ b", "http://h:x/"] {
            assert!(!Endpoint::parse(bad).unwrap_err().contains("s3"), "{bad}");
        }
        assert!(Endpoint::parse("http://u:s3/cret@h").unwrap_err().contains("%2F"));
    }
}
