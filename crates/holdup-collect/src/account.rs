//! The address of a database: `//[user[:password]@]host[:port][/path][?name=value&…]`. Passwords come
//! from the address, an environment variable or a file, and go only to the server: no name, error or
//! `Debug` output contains them.

use std::path::{Path, PathBuf};

use holdup_protocol::database::Secret;
use holdup_recording::files;

use crate::ProbeError;
use crate::http::decoded;

/// What `read` makes of an address behind its scheme; it says what is wrong with that. The error hides
/// the rest, which may have a password.
pub(crate) fn parse<T>(address: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Result<T, ProbeError> {
    let (scheme, rest) = address.split_once(':').unwrap_or((address, ""));
    read(rest).map_err(|why| ProbeError::BadAddress(format!("--watch {scheme}://…: {why}")))
}

/// The parts of an address, decoded.
#[derive(Debug)]
pub(crate) struct Parts {
    /// Empty without one.
    pub(crate) user: String,
    /// From the address, or from what its options name.
    pub(crate) password: Option<Secret>,
    /// Empty without one.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Behind the first slash after the host.
    pub(crate) path: String,
    /// Names as they are written, and values.
    pub(crate) options: Vec<(String, String)>,
}

impl Parts {
    /// Splits `address`, and reads the file or variable that holds the password.
    ///
    /// # Errors
    /// What is wrong, without the password.
    pub(crate) fn split(address: &str, default_port: u16) -> Result<Self, String> {
        // A password may contain `@`, `/` and `?`: the last `@` separates it from the host.
        let (account, place) = address.rsplit_once('@').unwrap_or(("", address));
        let (place, query) = place.split_once('?').unwrap_or((place, ""));
        let (place, path) = place.split_once('/').unwrap_or((place, ""));
        let (user, password) = account.split_once(':').map_or((account, None), |(user, it)| (user, Some(it)));
        let (host, port) = host_and_port(place, default_port)?;
        let mut parts = Self {
            user: decoded(user)?,
            password: password.map(decoded).transpose()?.map(Secret::new),
            host: decoded(host)?,
            port,
            path: decoded(path)?,
            options: Vec::new(),
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value)?;
            match secret("password", name, &value)? {
                Some(password) => parts.password = Some(password),
                None => parts.options.push((name.to_owned(), value)),
            }
        }
        Ok(parts)
    }

    /// The password; else that of the environment variable `name`, else an empty one.
    pub(crate) fn password_or(password: Option<Secret>, name: &str) -> Secret {
        password.unwrap_or_else(|| Secret::new(std::env::var(name).unwrap_or_default()))
    }
}

/// The secret that the option `name` gives: the variable of `<what>_env`, or the first line of the file of
/// `<what>_file`. None if it is another option.
pub(crate) fn secret(what: &str, name: &str, value: &str) -> Result<Option<Secret>, String> {
    let text = match name.strip_prefix(what) {
        Some("_env") => std::env::var(value)
            .map_err(|_| format!("the environment variable {value}, named by {name}, is not set: export it first"))?,
        Some("_file") => file(name, value)?.lines().next().unwrap_or_default().to_owned(),
        _ => return Ok(None),
    };
    Ok(Some(Secret::new(text)))
}

/// The text of the file `path`, which `parameter` names.
pub(crate) fn file(parameter: &str, path: &str) -> Result<String, String> {
    let home = path.strip_prefix("~/").zip(std::env::var_os("HOME"));
    let place = home.map_or_else(|| PathBuf::from(path), |(rest, home)| Path::new(&home).join(rest));
    files::read_text(&place, files::SMALL_BYTES).map_err(|error| format!("{parameter}={path}: {error}"))
}

/// A file of certificates. What is not a regular file is refused here; whether it is there at all shows
/// when it is needed.
pub(crate) fn certificates(parameter: &str, value: String) -> Result<PathBuf, String> {
    let path = PathBuf::from(&value);
    match files::open(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("{parameter}={value}: {error}")),
        _ => Ok(path),
    }
}

/// Host and port of `place`, e.g. `db:3307`, `[::1]`; `default` if it names no port. The host is
/// not decoded.
///
/// # Errors
/// If the text after the colon is not a port. The error never repeats the input: it may be a
/// password.
fn host_and_port(place: &str, default: u16) -> Result<(&str, u16), String> {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(default), str::parse).ok().filter(|port| *port > 0);
    Ok((host, port.ok_or("the text after the host's colon is not a port number (is an `@` missing?)")?))
}
