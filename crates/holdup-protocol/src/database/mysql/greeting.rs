//! The server's first packet and the client's reply: capabilities and account.

use super::auth::Plugin;
use super::{Mysql, State, failure, head};
use crate::database::cursor::Cursor;
use crate::database::event::{Error, Event};
use crate::database::inbox::Events;
use crate::database::login::{APPLICATION, TlsMode};
use crate::database::outbox::put_text;

/// Capabilities of either side.
mod capability {
    pub(super) const LONG_PASSWORD: u32 = 1;
    pub(super) const LONG_FLAG: u32 = 1 << 2;
    pub(super) const CONNECT_WITH_DATABASE: u32 = 1 << 3;
    pub(super) const PROTOCOL_41: u32 = 1 << 9;
    pub(super) const TLS: u32 = 1 << 11;
    pub(super) const TRANSACTIONS: u32 = 1 << 13;
    pub(super) const SECURE_CONNECTION: u32 = 1 << 15;
    pub(super) const MULTI_RESULTS: u32 = 1 << 17;
    pub(super) const PREPARED_MULTI_RESULTS: u32 = 1 << 18;
    pub(super) const PLUGIN_AUTH: u32 = 1 << 19;
    pub(super) const ATTRIBUTES: u32 = 1 << 20;
}

/// Required capabilities: servers since MySQL 4.1 have them.
const NEEDED: u32 = capability::PROTOCOL_41 | capability::SECURE_CONNECTION;

/// Capabilities used if the server has them. Local files and several statements in a text are not
/// among them.
const USED: u32 = NEEDED
    | capability::LONG_PASSWORD
    | capability::LONG_FLAG
    | capability::TRANSACTIONS
    | capability::MULTI_RESULTS
    | capability::PREPARED_MULTI_RESULTS
    | capability::PLUGIN_AUTH
    | capability::ATTRIBUTES;

/// `utf8mb4_general_ci`, which has this number in both MySQL and MariaDB.
const CHARACTER_SET: u8 = 45;

/// Most bytes of a packet that the client accepts.
const MAX_PACKET: u32 = 1 << 30;

/// The parsed greeting.
pub(super) struct Greeting {
    capabilities: u32,
    nonce: Vec<u8>,
    plugin: String,
}

impl Greeting {
    /// Reads version 10, the only one since 1998.
    pub(super) fn read(payload: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor(payload);
        if cursor.u8()? != 10 {
            return Err(Error::Protocol("its greeting is not MySQL's (is it a MySQL server?)"));
        }
        cursor.until_nul()?;
        cursor.u32_le()?;
        let mut nonce = cursor.bytes(8)?.to_vec();
        cursor.u8()?;
        let low = cursor.u16_le()?;
        // A very old server's packet ends here; it lacks required capabilities anyway.
        let (_charset, _status) = (cursor.u8()?, cursor.u16_le()?);
        let high = cursor.u16_le()?;
        let capabilities = u32::from(low) | u32::from(high) << 16;
        if capabilities & NEEDED != NEEDED {
            return Err(Error::Protocol("it uses the protocol from before MySQL 4.1"));
        }
        let nonce_bytes = usize::from(cursor.u8()?);
        cursor.bytes(10)?;
        nonce.extend_from_slice(cursor.bytes(nonce_bytes.saturating_sub(8).max(13))?);
        let plugin = if capabilities & capability::PLUGIN_AUTH == 0 {
            String::new()
        } else {
            // Some old servers leave out the NUL.
            let name = cursor.until_nul().unwrap_or(cursor.0);
            String::from_utf8_lossy(name).into_owned()
        };
        Ok(Self { capabilities, nonce, plugin })
    }
}

impl Mysql {
    pub(super) fn greeted(&mut self, payload: &[u8], events: &mut Events<'_>) -> Result<(), Error> {
        if payload.first() == Some(&head::ERROR) {
            return Err(failure(payload)?.refused());
        }
        let greeting = Greeting::read(payload)?;
        if self.tls == TlsMode::Off {
            self.answer_greeting(&greeting, false);
            return Ok(());
        }
        if greeting.capabilities & capability::TLS == 0 {
            return Err(Error::TlsNotOffered);
        }
        let flags = self.flags(&greeting);
        self.reply(|out| put_beginning(out, flags));
        self.state = State::Tls(Box::new(greeting));
        events(Event::StartTls);
        Ok(())
    }

    fn flags(&self, greeting: &Greeting) -> u32 {
        let tls = if self.tls == TlsMode::On { capability::TLS } else { 0 };
        let database = if self.login.database.is_some() { capability::CONNECT_WITH_DATABASE } else { 0 };
        greeting.capabilities & USED | tls | database
    }

    pub(super) fn answer_greeting(&mut self, greeting: &Greeting, is_secure: bool) {
        let flags = self.flags(greeting);
        let (plugin, proof) = Plugin::first(&greeting.plugin, &greeting.nonce, &self.login, is_secure);
        let login = self.login.clone();
        self.reply(|out| {
            put_beginning(out, flags);
            put_text(out, login.user.as_bytes());
            out.push(proof.len() as u8);
            out.extend_from_slice(&proof);
            if let Some(database) = &login.database {
                put_text(out, database.as_bytes());
            }
            if flags & capability::PLUGIN_AUTH != 0 {
                put_text(out, plugin.name().as_bytes());
            }
            if flags & capability::ATTRIBUTES != 0 {
                let attributes = ["program_name", APPLICATION];
                out.push(attributes.iter().map(|text| text.len() as u8 + 1).sum());
                for text in attributes {
                    out.push(text.len() as u8);
                    out.extend_from_slice(text.as_bytes());
                }
            }
        });
        self.state = State::Login(plugin);
    }
}

/// Writes the request for TLS, which is also the start of the reply.
fn put_beginning(out: &mut Vec<u8>, flags: u32) {
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&MAX_PACKET.to_le_bytes());
    out.push(CHARACTER_SET);
    out.extend_from_slice(&[0; 23]);
}
