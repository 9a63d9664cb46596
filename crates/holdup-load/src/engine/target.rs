//! Checks the target before anything is sent: it resolves, accepts, and, with TLS, its certificate
//! verifies and it supports the requested version of HTTP.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use super::outcome::Outcome;
use super::tls::{self, Tls, TlsError};
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
    let protocol = match &target.sql {
        None => Some(version.alpn()),
        Some(database) => match database.dialect {
            Dialect::Mysql => None,
            // IANA's name of the protocol; PostgreSQL 17 refuses others.
            Dialect::Postgres => Some(&b"postgresql"[..]),
        },
    };
    let tls = if target.tls { Some(Tls::new(&scenario.http.trust, &target.host, protocol)?) } else { None };
    match reach(target, tls.as_ref(), version) {
        Ok(address) => Ok(CheckedTarget { address: Some(address), tls }),
        Err(_) if scenario.generator.keep_going => Ok(CheckedTarget { address: resolve(target).ok(), tls }),
        Err(error) => Err(error),
    }
}

/// The first address of the target's name.
///
/// # Errors
/// The resolver's.
pub fn resolve(target: &Target) -> io::Result<SocketAddr> {
    let mut addresses = (target.host.as_str(), target.port).to_socket_addrs()?;
    addresses.next().ok_or_else(|| io::Error::other("no address"))
}

fn reach(target: &Target, tls: Option<&Tls>, version: HttpVersion) -> Result<SocketAddr, TargetError> {
    let no_address = |why: String| TargetError::NoAddress { host: target.host.clone(), why };
    let addresses: Vec<SocketAddr> =
        (target.host.as_str(), target.port).to_socket_addrs().map_err(|e| no_address(e.to_string()))?.collect();
    let mut last = None;
    for address in &addresses {
        match TcpStream::connect_timeout(address, FIRST_CONNECT) {
            Ok(stream) => {
                if let Some(database) = &target.sql {
                    log_in(stream, tls, target, database)?;
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
fn log_in(mut stream: TcpStream, tls: Option<&Tls>, target: &Target, address: &Address) -> Result<(), TargetError> {
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
    let mut session = holdup_protocol::database::Session::new(address.dialect, address.login(), address.tls);
    let mut encrypted: Option<Box<rustls::ClientConnection>> = None;
    let mut buffer = [0_u8; 4_096];
    let (mut is_let_in, mut is_told) = (false, false);
    while !is_let_in {
        if let Some(tls) = &encrypted
            && !tls.is_handshaking()
            && !is_told
        {
            is_told = true;
            session.tls_started();
        }
        say(&mut session, &mut encrypted, &mut stream).map_err(no_answer)?;
        let count = match stream.read(&mut buffer) {
            Ok(0) => return Err(refused(format!("it closed the connection before the login; is that {system}?"))),
            Ok(count) => count,
            // A signal says nothing about the server; a stop is noticed once it has answered.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(no_answer(error)),
        };
        let mut plain = Vec::new();
        match &mut encrypted {
            None => plain.extend_from_slice(&buffer[..count]),
            Some(tls) => {
                let mut bytes = &buffer[..count];
                while !bytes.is_empty() {
                    tls.read_tls(&mut bytes).map_err(no_answer)?;
                    let state = tls.process_new_packets().map_err(bad_tls)?;
                    let mut part = vec![0; state.plaintext_bytes_to_read()];
                    tls.reader().read_exact(&mut part).map_err(no_answer)?;
                    plain.extend(part);
                }
            }
        }
        let mut begins_tls = false;
        let fed = session.feed(&plain, &mut |event| match event {
            Event::LoggedIn => is_let_in = true,
            Event::StartTls => begins_tls = true,
            _ => {}
        });
        fed.map_err(|e| refused(format!("{e}{}", way_out(&e, address.dialect))))?;
        if begins_tls {
            say(&mut session, &mut encrypted, &mut stream).map_err(no_answer)?;
            let tls = tls.ok_or_else(|| refused("it wants TLS; add ?tls=on".to_owned()))?;
            encrypted = Some(tls.connection().map_err(|e| refused(e.to_string()))?);
        }
    }
    // Servers count connections that close without a goodbye.
    session.quit();
    let _ = say(&mut session, &mut encrypted, &mut stream);
    Ok(())
}

/// Sends the session's output, encrypted once TLS has begun.
fn say(
    session: &mut holdup_protocol::database::Session,
    encrypted: &mut Option<Box<rustls::ClientConnection>>,
    stream: &mut TcpStream,
) -> io::Result<()> {
    let count = session.output().len();
    match encrypted {
        None => stream.write_all(session.output())?,
        Some(tls) => {
            if !tls.is_handshaking() {
                tls.writer().write_all(session.output())?;
            }
            while tls.wants_write() {
                tls.write_tls(stream)?;
            }
            if tls.is_handshaking() {
                return Ok(());
            }
        }
    }
    session.consumed(count);
    Ok(())
}

fn system(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Mysql => "a MySQL or MariaDB server",
        Dialect::Postgres => "a PostgreSQL server",
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
    let mut buffer = [0_u8; 4_096];
    while connection.is_handshaking() {
        while connection.wants_write() {
            connection.write_tls(&mut stream).map_err(|e| no_tls(e.to_string()))?;
        }
        let count = match stream.read(&mut buffer) {
            Ok(0) => return Err(no_tls("it closed the connection".to_owned())),
            Ok(count) => count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(no_tls(e.to_string())),
        };
        let mut bytes = &buffer[..count];
        while !bytes.is_empty() {
            connection.read_tls(&mut bytes).map_err(|e| no_tls(e.to_string()))?;
            connection.process_new_packets().map_err(of)?;
        }
    }
    if version == HttpVersion::Http2 && connection.alpn_protocol() != Some(version.alpn()) {
        return Err(TargetError::NoHttp2 { target: name() });
    }
    connection.send_close_notify();
    let _ = connection.write_tls(&mut stream).and_then(|_| stream.flush());
    Ok(())
}
