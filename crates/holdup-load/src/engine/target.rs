//! Checks the target before anything is sent: it resolves, accepts, and, with TLS, its certificate
//! verifies and it supports the requested version of HTTP.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use super::outcome::Outcome;
use super::talk::{Talk, TalkError, tls_error};
use super::tls::{self, Tls, TlsError};
use crate::scenario::http::Trust;
use crate::scenario::{HttpVersion, Scenario, Target};
use holdup_protocol::database::{Address, Dialect, Event};

/// How long the target may take to accept the first connection, and to complete the handshake.
const FIRST_CONNECT: Duration = Duration::from_secs(5);

/// Why the target can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The host name has no address.
    #[error("{host}: the name does not resolve ({why}); add --keep-going to start anyway and count the failures")]
    NoAddress {
        /// The host as given.
        host: String,
        /// The resolver's message.
        why: String,
    },
    /// Nothing accepts connections there.
    #[error("{target} does not accept connections ({why}); is the service up, and is that its port?")]
    Down {
        /// Host and port.
        target: String,
        /// The kernel's message.
        why: String,
    },
    /// Its certificate does not verify.
    #[error(
        "the certificate of {target} does not verify ({why}); add --tls-ca FILE to trust its authority, --insecure to accept any certificate, or --keep-going to count it as an error"
    )]
    Certificate {
        /// Host and port.
        target: String,
        /// rustls' words.
        why: String,
    },
    /// It accepts connections without TLS.
    #[error("{target} does not answer with TLS ({why}); should the address begin with http://, or is the port wrong?")]
    NoTls {
        /// Host and port.
        target: String,
        /// What it sent.
        why: String,
    },
    /// It does not speak HTTP/2.
    #[error("{target} does not offer HTTP/2 over TLS; use HTTP/1.1 (http.version: 1.1, or --http 1.1)")]
    NoHttp2 {
        /// Host and port.
        target: String,
    },
    /// It supports only HTTP/2, or something else altogether.
    #[error("{target} does not offer HTTP/1.1 over TLS; try HTTP/2 (http.version: 2, or --http 2)")]
    NoHttp1 {
        /// Host and port.
        target: String,
    },
    /// The database refuses the login.
    #[error("{target}: {why}")]
    Login {
        /// The target as given, without a password.
        target: String,
        /// Its message, and what to do.
        why: String,
    },
    /// TLS can't be set up on this side.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A target that passed the check.
#[derive(Clone)]
pub struct CheckedTarget {
    /// Its address; none if the name does not resolve and the scenario continues all the same.
    pub address: Option<SocketAddr>,
    /// TLS, if the target uses it.
    pub tls: Option<Tls>,
}

/// Checks the target of `scenario`.
///
/// # Errors
/// What is wrong with it, unless the scenario continues all the same.
pub fn check(scenario: &Scenario) -> Result<CheckedTarget, TargetError> {
    let target = &scenario.target;
    let version = scenario.http.version;
    let tls = tls_of(target, &scenario.http.trust, Some(version))?;
    match reach(target, tls.as_ref(), version, scenario.has_transactions()) {
        Ok(address) => Ok(CheckedTarget { address: Some(address), tls }),
        Err(_) if scenario.generator.keep_going => Ok(CheckedTarget { address: resolve(target).ok(), tls }),
        Err(error) => Err(error),
    }
}

/// TLS, if the target speaks it; with HTTP in this version.
fn tls_of(target: &Target, trust: &Trust, version: Option<HttpVersion>) -> Result<Option<Tls>, TlsError> {
    let protocol = match &target.sql {
        None => version.map(HttpVersion::alpn),
        Some(database) => match database.dialect {
            Dialect::Mysql | Dialect::Mongodb => None,
            // IANA's name of the protocol; PostgreSQL 17 refuses others.
            Dialect::Postgres => Some(&b"postgresql"[..]),
        },
    };
    if target.tls { Tls::new(trust, &target.host, protocol).map(Some) } else { Ok(None) }
}

/// The first address of the target's name.
///
/// # Errors
/// The resolver's.
pub fn resolve(target: &Target) -> io::Result<SocketAddr> {
    let mut addresses = (target.host.as_str(), target.port).to_socket_addrs()?;
    addresses.next().ok_or_else(|| io::Error::other("no address"))
}

fn reach(
    target: &Target,
    tls: Option<&Tls>,
    version: HttpVersion,
    has_transactions: bool,
) -> Result<SocketAddr, TargetError> {
    let no_address = |why: String| TargetError::NoAddress { host: target.host.clone(), why };
    let addresses: Vec<SocketAddr> =
        (target.host.as_str(), target.port).to_socket_addrs().map_err(|e| no_address(e.to_string()))?.collect();
    let mut last = None;
    for address in &addresses {
        match TcpStream::connect_timeout(address, FIRST_CONNECT) {
            Ok(stream) => {
                if let Some(database) = &target.sql {
                    try_login(stream, tls, (target, database), has_transactions)?;
                } else if let Some(tls) = tls {
                    shake_hands(stream, tls, target, version)?;
                }
                return Ok(*address);
            }
            Err(e) => last = Some(e),
        }
    }
    match last {
        Some(e) => Err(TargetError::Down { target: format!("{}:{}", target.host, target.port), why: e.to_string() }),
        None => Err(no_address("no address".to_owned())),
    }
}

/// Logs in once, so that a bad account is reported before anything is written.
fn try_login(
    stream: TcpStream,
    tls: Option<&Tls>,
    (target, address): (&Target, &Address),
    has_transactions: bool,
) -> Result<(), TargetError> {
    let mut talk = log_in(stream, tls, (target, address))?;
    if has_transactions && !talk.session.has_transactions() {
        let why = "it has no transactions, which the scenario has: they need a replica set, of one member at least";
        return Err(TargetError::Login { target: target.url(), why: why.to_owned() });
    }
    // Servers count connections that close without a goodbye.
    talk.session.quit();
    let _ = talk.say();
    Ok(())
}

/// Connects to a database and logs in; answers may take `patience` from then on.
///
/// # Errors
/// What is wrong, and what to do about it.
pub fn connect(target: &Target, trust: &Trust, patience: Duration) -> Result<Talk, TargetError> {
    let no_address = |why: String| TargetError::NoAddress { host: target.host.clone(), why };
    let Some(database) = &target.sql else { return Err(no_address("it is not a database".to_owned())) };
    let tls = tls_of(target, trust, None)?;
    let address = resolve(target).map_err(|error| no_address(error.to_string()))?;
    let down =
        |e: io::Error| TargetError::Down { target: format!("{}:{}", target.host, target.port), why: e.to_string() };
    let stream = TcpStream::connect_timeout(&address, FIRST_CONNECT).map_err(down)?;
    let talk = log_in(stream, tls.as_ref(), (target, database))?;
    let stream = talk.stream();
    stream.set_read_timeout(Some(patience)).and(stream.set_write_timeout(Some(patience))).map_err(down)?;
    // Each statement is one request: nothing is gained by waiting for more.
    stream.set_nodelay(true).map_err(down)?;
    Ok(talk)
}

fn log_in(stream: TcpStream, tls: Option<&Tls>, (target, address): (&Target, &Address)) -> Result<Talk, TargetError> {
    let refused = |why: String| TargetError::Login { target: target.url(), why };
    let system = system(address.dialect);
    let no_answer = |e: io::Error| match e.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            let seconds = FIRST_CONNECT.as_secs();
            refused(format!("it did not answer within {seconds} s; is that the port of {system}?"))
        }
        _ => refused(format!("the login failed ({e}); is that the port of {system}?")),
    };
    let bad_tls = |e: rustls::Error| match Outcome::from_tls_error(&e, HttpVersion::Http1) {
        Outcome::TlsCertificate => {
            TargetError::Certificate { target: format!("{}:{}", target.host, target.port), why: tls::in_words(&e) }
        }
        _ => refused(format!("TLS failed ({e})")),
    };
    let timeouts = stream.set_read_timeout(Some(FIRST_CONNECT)).and(stream.set_write_timeout(Some(FIRST_CONNECT)));
    timeouts.map_err(no_answer)?;
    let in_words = |error: TalkError| match error {
        TalkError::Io(error) => no_answer(error),
        TalkError::Closed => refused(format!("it closed the connection before the login; is that {system}?")),
        TalkError::Tls(error) => bad_tls(error),
        TalkError::NoTls => refused(TalkError::NoTls.to_string()),
        TalkError::Session(error) => refused(format!("{error}{}", way_out(&error, address.dialect))),
    };
    let session = holdup_protocol::database::Session::new(address.dialect, address.login(), address.tls);
    let mut talk = Talk::new(stream, session, tls).map_err(in_words)?;
    let mut is_let_in = false;
    while !is_let_in {
        talk.step(&mut |event| is_let_in |= event == Event::LoggedIn).map_err(in_words)?;
    }
    Ok(talk)
}

fn system(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Mysql => "a MySQL or MariaDB server",
        Dialect::Postgres => "a PostgreSQL server",
        Dialect::Mongodb => "a server of MongoDB's protocol",
    }
}

/// What to do about a failed login, as a continuation of the error.
fn way_out(error: &holdup_protocol::database::Error, dialect: Dialect) -> String {
    use holdup_protocol::database::Error;
    let (Error::LoginRefused { code, .. } | Error::ClosedByServer { code, .. }) = error else {
        return match error {
            Error::Protocol(_) | Error::TooLarge(_) => format!("; is that the port of {}?", system(dialect)),
            _ => String::new(),
        };
    };
    match code.as_str() {
        "1045" | "1698" | "28P01" | "28000" => {
            let variable = dialect.password_variable();
            format!(
                "; the password is taken from the address or from the environment: read -rs {variable}; export {variable}"
            )
        }
        "18" => {
            let variable = dialect.password_variable();
            format!(
                "; the account is looked up in the database of ?authSource= (without it, in the one after the slash), and \
                 its password is taken from the address or from the environment: read -rs {variable}; export {variable}"
            )
        }
        "1049" | "3D000" => "; the database is the part after the slash of the address".to_owned(),
        "1044" | "42501" => {
            "; the database (the part after the slash) does not exist, or the account has no rights on it".to_owned()
        }
        "1040" | "1203" | "1226" | "53300" => {
            "; all its connections are in use: raise its limit above the load's connections, or add --keep-going"
                .to_owned()
        }
        "1129" | "1130" => "; the server refuses all accounts from this machine".to_owned(),
        _ => String::new(),
    }
}

fn shake_hands(mut stream: TcpStream, tls: &Tls, target: &Target, version: HttpVersion) -> Result<(), TargetError> {
    let name = || format!("{}:{}", target.host, target.port);
    let no_tls = |why: String| TargetError::NoTls { target: name(), why };
    let of = |error: rustls::Error| match Outcome::from_tls_error(&error, version) {
        Outcome::TlsCertificate => TargetError::Certificate { target: name(), why: tls::in_words(&error) },
        Outcome::Http2Refused => TargetError::NoHttp2 { target: name() },
        _ if matches!(&error, rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol)) => {
            TargetError::NoHttp1 { target: name() }
        }
        _ => no_tls(error.to_string()),
    };
    let mut connection = tls.connection().map_err(of)?;
    let timeouts = stream.set_read_timeout(Some(FIRST_CONNECT)).and(stream.set_write_timeout(Some(FIRST_CONNECT)));
    timeouts.map_err(|e| no_tls(e.to_string()))?;
    connection.complete_io(&mut stream).map_err(|e| match tls_error(&e) {
        Some(error) => of(error.clone()),
        None if e.kind() == io::ErrorKind::UnexpectedEof => no_tls("it closed the connection".to_owned()),
        None => no_tls(e.to_string()),
    })?;
    if version == HttpVersion::Http2 && connection.alpn_protocol() != Some(version.alpn()) {
        return Err(TargetError::NoHttp2 { target: name() });
    }
    connection.send_close_notify();
    let _ = connection.write_tls(&mut stream).and_then(|_| stream.flush());
    Ok(())
}
