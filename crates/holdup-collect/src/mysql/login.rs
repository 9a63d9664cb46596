//! Logs in, on a thread of its own. The driver never gives up a socket on which no greeting
//! arrives, and abandoning it for a new attempt would put one more connection on a hung server. So
//! a login that takes too long is left to end by itself and keeps its slot.

use std::net::TcpStream;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::sync::mpsc;
use std::time::Duration;

use mysql::{Conn, OptsBuilder, SslOpts};

use super::address::{Address, Tls};
use super::failure::{ANSWER_BYTES, Failure, PATIENCE};
use crate::connections::{DEAD_AFTER_S, PROBED_EVERY_S, Slot};

/// Extra time for the login, beyond that for the connection.
const GREETING: Duration = Duration::from_millis(500);

/// A logged-in connection.
pub(super) struct Login {
    pub(super) conn: Conn,
    /// The same socket.
    pub(super) socket: TcpStream,
    /// Returned last.
    pub(super) slot: Slot,
}

/// Logs in at `port`.
pub(super) fn login(address: &Address, port: u16, slot: Slot) -> Result<Login, Failure> {
    let options = options(address, port);
    let (sender, receiver) = mpsc::channel();
    let work = move || {
        // If the receiver is gone, this drops the connection first and then its slot.
        let _ = sender.send(connect(options, slot));
    };
    std::thread::Builder::new()
        .name("collect login".to_owned())
        .spawn(work)
        .map_err(|error| Failure::Lost(error.to_string()))?;
    match receiver.recv_timeout(PATIENCE + GREETING) {
        Ok(line) => line,
        Err(mpsc::RecvTimeoutError::Timeout) => Err(Failure::silent()),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            Err(Failure::Lost("the login thread ended without a result; please report this".to_owned()))
        }
    }
}

fn connect(options: OptsBuilder, slot: Slot) -> Result<Login, Failure> {
    let conn = Conn::new(options)?;
    // SAFETY: the descriptor belongs to the connection, which outlives this call.
    let socket = unsafe { BorrowedFd::borrow_raw(conn.as_raw_fd()) }.try_clone_to_owned();
    let socket = TcpStream::from(socket.map_err(|error| Failure::Lost(error.to_string()))?);
    // From here on an answer may take this long at most.
    socket.set_read_timeout(Some(PATIENCE)).map_err(|error| Failure::Lost(error.to_string()))?;
    Ok(Login { conn, socket, slot })
}

fn options(address: &Address, port: u16) -> OptsBuilder {
    OptsBuilder::new()
        .ip_or_hostname(Some(address.host.clone()))
        .tcp_port(port)
        .user(Some(address.user.clone()))
        .pass(address.password.0.clone())
        .prefer_socket(false)
        .tcp_connect_timeout(Some(PATIENCE))
        .write_timeout(Some(PATIENCE))
        .tcp_keepalive_time_ms(Some(PROBED_EVERY_S * 1_000))
        .tcp_keepalive_probe_interval_secs(Some(PROBED_EVERY_S))
        .tcp_user_timeout_ms(Some(DEAD_AFTER_S * 1_000))
        .ssl_opts(match &address.tls {
            Tls::Off => None,
            Tls::Require => {
                let anybody = SslOpts::default().with_danger_accept_invalid_certs(true);
                Some(anybody.with_danger_skip_domain_validation(true))
            }
            Tls::Verify(authority) => Some(SslOpts::default().with_root_cert_path(authority.clone())),
        })
        // Set here so that the driver does not query it with an unmarked statement.
        .max_allowed_packet(Some(ANSWER_BYTES))
        .stmt_cache_size(0)
}
