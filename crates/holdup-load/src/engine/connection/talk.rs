//! A conversation with a database: as whom, and what is executed before anything else.

use std::sync::Arc;

use holdup_protocol::database::{Address, Login};

use crate::scenario::HttpVersion;
use crate::schedule::played::Manner;

/// A conversation with a database.
pub struct Talk {
    address: Arc<Address>,
    /// The account that the next socket is used by.
    pub login: Arc<Login>,
    /// How the sessions of a recorded mix behave.
    manner: Option<Arc<Manner>>,
    pub session: holdup_protocol::database::Session,
    /// The account was let in.
    pub is_logged_in: bool,
    /// It was let in and executes what it begins with.
    pub is_opening: bool,
}

impl Talk {
    /// On a socket that is being connected.
    pub fn new(address: Arc<Address>, login: Arc<Login>, manner: Option<Arc<Manner>>) -> Self {
        let mut session = holdup_protocol::database::Session::new(address.dialect, Arc::clone(&login), address.tls);
        if let Some(manner) = &manner {
            session.take_rows(manner.rows);
            session.leave_transactions();
        }
        Self { address, login, manner, session, is_logged_in: false, is_opening: false }
    }

    /// The same on a new socket.
    pub fn again(&self) -> Self {
        Self::new(Arc::clone(&self.address), Arc::clone(&self.login), self.manner.clone())
    }

    /// It was let in. Whether it can be used now: what it begins with may have to be executed first.
    pub fn let_in(&mut self) -> bool {
        self.is_logged_in = true;
        let opening = self.manner.as_ref().map_or(&[][..], |manner| &manner.opening);
        self.is_opening = !opening.is_empty() && self.session.execute(opening, false).is_ok();
        !self.is_opening
    }
}

/// What is spoken with the target.
#[derive(Clone)]
pub enum Language {
    /// HTTP.
    Http(HttpVersion),
    /// SQL, with this account, and how the sessions of a recorded mix behave if it is one.
    Sql(Arc<Address>, Arc<Login>, Option<Arc<Manner>>),
}
