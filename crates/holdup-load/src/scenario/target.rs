//! The target of the load: a web address, or a database with an account.

use std::sync::Arc;

use holdup_protocol::database::{Address, Secret, TlsMode};

/// `http[s]://host[:port]`, without path or credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Whether it uses TLS: `https`.
    pub tls: bool,
    /// Host name or address, an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The account and the database, if it is a database.
    pub sql: Option<Arc<Address>>,
}

impl Target {
    /// Whether `address` is a database's: `mysql://`, `postgres://` or `mongodb://`.
    pub fn is_database(address: &str) -> bool {
        Address::is_database_address(address)
    }

    /// Reads the address of a database; a missing password is taken from the environment.
    ///
    /// # Errors
    /// A message that says what is wrong with it and never repeats credentials.
    pub fn database(address: &str) -> Result<Self, String> {
        Self::database_called("", address)
    }

    /// The same for one of several databases, called `name`: its own variable takes precedence
    /// (`HOLDUP_MYSQL_PASSWORD_NEW` if it is called `new`).
    ///
    /// # Errors
    /// As [`Self::database`].
    pub fn database_called(name: &str, address: &str) -> Result<Self, String> {
        let mut address = Address::parse(address).map_err(|why| why.to_string())?;
        if address.password.reveal().is_empty() {
            let variable = address.dialect.password_variable();
            let own = (!name.is_empty()).then(|| format!("{variable}_{}", as_variable(name)));
            if let Some(password) = own.and_then(|own| std::env::var(own).ok()).or_else(|| std::env::var(variable).ok())
            {
                address.password = Secret::new(password);
            }
        }
        let tls = address.tls == TlsMode::On;
        Ok(Self { tls, host: address.host.clone(), port: address.port, sql: Some(Arc::new(address)) })
    }

    /// The same target, in `database` if it is a database server whose address names none.
    #[must_use]
    pub fn or_in(self, database: &str) -> Self {
        match &self.sql {
            Some(address) if address.database.is_none() => {
                let address = Address { database: Some(database.to_owned()), ..(**address).clone() };
                Self { sql: Some(Arc::new(address)), ..self }
            }
            _ => self,
        }
    }

    /// Whether its address is on this machine's loopback.
    pub fn is_local(&self) -> bool {
        self.host == "localhost" || self.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// As in a `Host` header.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == default_port(self.tls) { host } else { format!("{host}:{}", self.port) }
    }

    /// Scheme, host and port.
    pub fn url(&self) -> String {
        if let Some(sql) = &self.sql {
            return sql.url();
        }
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }

    /// Splits `http[s]://host[:port][/path]` into target and path (`/` if it has none).
    ///
    /// # Errors
    /// A message that says what is wrong with it and never repeats credentials.
    pub fn parse(url: &str) -> Result<(Self, String), String> {
        let (tls, rest) = match url.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some((scheme, _)) => {
                return Err(format!("unknown scheme \"{scheme}\"; use http:// or https://host:port/path"));
            }
            None if url.contains('@') => return Err("it has no scheme; use http://host:port/path".to_owned()),
            None => return Err(format!("\"{url}\" has no scheme; use http://{url}")),
        };
        let (authority, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
        let default = default_port(tls).to_string();
        if authority.contains('@') {
            return Err("credentials in the URL are not supported; send an Authorization header".to_owned());
        }
        let (host, port) = match authority.strip_prefix('[').and_then(|a| a.split_once(']')) {
            Some((host, "")) => (host, default.as_str()),
            Some((host, rest)) => (host, rest.strip_prefix(':').unwrap_or(rest)),
            None => authority.rsplit_once(':').unwrap_or((authority, default.as_str())),
        };
        if host.is_empty() {
            return Err(format!("\"{url}\" names no host"));
        }
        let port = port.parse().map_err(|_| format!("\"{port}\" is not a port, 1 to 65535"))?;
        Ok((Self { tls, host: host.to_owned(), port, sql: None }, path.to_owned()))
    }
}

fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

/// A name in the spelling of environment variables.
fn as_variable(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        assert_eq!(
            Target::parse("http://[::1]:81/x?y").unwrap(),
            (Target { tls: false, host: "::1".into(), port: 81, sql: None }, "/x?y".into())
        );
        assert_eq!(Target::parse("http://h").unwrap().0.authority(), "h");
        assert_eq!(Target::parse("https://h").unwrap().0.url(), "https://h");
        assert_eq!(Target::parse("https://h:80").unwrap().0.authority(), "h:80");
        for bad in ["ftp://h", "h:80", "http://u:secret@h/", "u:secret@h/", "http://:80", "http://h:99999"] {
            let why = Target::parse(bad).unwrap_err();
            assert!(!why.contains("secret"), "{why}");
        }
    }
}
