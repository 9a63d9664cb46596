//! A session with a database: its account, and the statements it runs before anything else.

use std::sync::Arc;

use holdup_protocol::database::{Address, Login};

use crate::scenario::HttpVersion;
use crate::schedule::played::MixSettings;

/// A session with a database.
pub struct DatabaseSession {
    address: Arc<Address>,
    /// The account that the next socket uses.
    pub login: Arc<Login>,
    /// How the sessions of a recorded mix behave.
    manner: Option<Arc<MixSettings>>,
    pub session: holdup_protocol::database::Session,
    /// The login succeeded.
    pub is_logged_in: bool,
    /// The login succeeded, and the initial statements are running.
    pub is_opening: bool,
}

impl DatabaseSession {
    /// For a socket that is being connected.
    pub fn new(address: Arc<Address>, login: Arc<Login>, manner: Option<Arc<MixSettings>>) -> Self {
        let mut session = holdup_protocol::database::Session::new(address.dialect, Arc::clone(&login), address.tls);
        if let Some(manner) = &manner {
            session.take_rows(manner.rows);
            session.leave_transactions();
        }
        Self { address, login, manner, session, is_logged_in: false, is_opening: false }
    }

    /// The same for a new socket.
    pub fn again(&self) -> Self {
        Self::new(Arc::clone(&self.address), Arc::clone(&self.login), self.manner.clone())
    }

    /// The login succeeded. True if the session can be used now; otherwise its initial statements
    /// have to run first.
    pub fn let_in(&mut self) -> bool {
        self.is_logged_in = true;
        let opening = self.manner.as_ref().map_or(&[][..], |manner| &manner.opening);
        self.is_opening = !opening.is_empty() && self.session.execute(opening, false).is_ok();
        !self.is_opening
    }
}

/// The protocol of the target.
#[derive(Clone)]
pub enum TargetProtocol {
    /// HTTP.
    Http(HttpVersion),
    /// SQL, with this account and, for a recorded mix, the manner of its sessions.
    Sql(Arc<Address>, Arc<Login>, Option<Arc<MixSettings>>),
}
