//! The start of a MySQL or MariaDB connection: the server's greeting and the client's reply. It
//! reads the connection id, the capabilities of both sides, the account and the database, but never
//! the password.

/// A client's capabilities, as bits of its reply (MySQL: `mysql_com.h`; MariaDB: "Connection" in
/// its protocol reference).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    low: u32,
    /// MariaDB's own, if the client is MariaDB's.
    mariadb: u32,
}

const MYSQL: u32 = 1;
const WITH_DATABASE: u32 = 1 << 3;
const COMPRESS: u32 = 1 << 5;
const PROTOCOL_41: u32 = 1 << 9;
const SECURE_CONNECTION: u32 = 1 << 15;
const SSL: u32 = 1 << 11;
const DEPRECATE_EOF: u32 = 1 << 24;
const OPTIONAL_METADATA: u32 = 1 << 25;
const ZSTD: u32 = 1 << 26;
const QUERY_ATTRIBUTES: u32 = 1 << 27;
const MARIADB_CACHE_METADATA: u32 = 1 << 4;

impl Capabilities {
    /// The capabilities that both have.
    pub fn both(self, other: Self) -> Self {
        Self { low: self.low & other.low, mariadb: self.mariadb & other.mariadb }
    }

    pub fn is_compressed(self) -> bool {
        self.low & (COMPRESS | ZSTD) != 0
    }

    pub fn deprecates_eof(self) -> bool {
        self.low & DEPRECATE_EOF != 0
    }

    /// Whether a query may have attributes (MySQL 8.0.23).
    pub fn has_query_attributes(self) -> bool {
        self.low & QUERY_ATTRIBUTES != 0
    }

    /// Whether results may come without the description of their columns.
    pub fn has_optional_metadata(self) -> bool {
        self.low & OPTIONAL_METADATA != 0 || self.mariadb & MARIADB_CACHE_METADATA != 0
    }
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|two| u16::from_le_bytes(*two))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|four| u32::from_le_bytes(*four))
}

/// Connection id and capabilities of a greeting (protocol version 10).
pub(crate) fn greeting(content: &[u8]) -> Option<(u32, Capabilities)> {
    let (10, rest) = content.split_first()? else { return None };
    let end = rest.iter().position(|byte| *byte == 0)?;
    let rest = rest.get(end + 1..)?;
    let id = u32_at(rest, 0)?;
    // After the id: 8 bytes of scramble, a filler, capabilities, character set, status, more
    // capabilities, length of the scramble, 6 reserved, and MariaDB's own capabilities, which are
    // reserved and 0 for others.
    let half = |at| u32::from(u16_at(rest, at).unwrap_or(0));
    let low = half(13) | half(18) << 16;
    let mariadb = if low & MYSQL == 0 { u32_at(rest, 27).unwrap_or(0) } else { 0 };
    Some((id, Capabilities { low, mariadb }))
}

/// Account and database of a client's reply (protocol 4.1): after 32 bytes come the account, its
/// proof, and the database.
pub(crate) fn client_identity(content: &[u8], both: Capabilities) -> (Vec<u8>, Vec<u8>) {
    let text = |bytes: &[u8]| bytes.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
    let Some(rest) = content.get(32..).filter(|_| both.low & PROTOCOL_41 != 0) else {
        // Before 4.1: two bytes of capabilities, three for a length.
        let rest = content.get(5..).filter(|_| both.low & PROTOCOL_41 == 0).unwrap_or_default();
        return (text(rest), Vec::new());
    };
    let user = text(rest);
    let behind = rest.get(user.len() + 1..).unwrap_or_default();
    let proof = match behind.first() {
        Some(length) if both.low & SECURE_CONNECTION != 0 => usize::from(*length) + 1,
        _ => text(behind).len() + 1,
    };
    let database =
        if both.low & WITH_DATABASE != 0 { text(behind.get(proof..).unwrap_or_default()) } else { Vec::new() };
    (user, database)
}

/// A client's reply to the greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginReply {
    /// It requests TLS, and the actual reply is encrypted.
    Tls,
    /// It contains the account.
    Login(Capabilities),
}

/// Reads a client's reply; none if it is too short.
pub(crate) fn login_reply(content: &[u8], length: u64) -> Option<LoginReply> {
    // Before 4.1 the capabilities had two bytes.
    let low = u32_at(content, 0).or_else(|| u16_at(content, 0).map(u32::from))?;
    if low & SSL != 0 && length <= 32 {
        return Some(LoginReply::Tls);
    }
    // Capabilities, largest packet, character set, 19 reserved, and MariaDB's own.
    let mariadb = if low & MYSQL == 0 { u32_at(content, 28).unwrap_or(0) } else { 0 };
    Some(LoginReply::Login(Capabilities { low, mariadb }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings() {
        let bytes = b"\x0a5.5.5-10.11\0\x07\x01\0\0abcdefgh\0\xfe\xff\x2d\x02\0\xff\xdf\x15\0\0\0\0\0\0\x1d\0\0\0ijklmnopqrst\0mysql_native_password\0";
        let (id, capabilities) = greeting(bytes).unwrap();
        assert_eq!(id, 0x107);
        assert!(capabilities.deprecates_eof() && capabilities.has_optional_metadata() && capabilities.is_compressed());
        for end in 0..bytes.len() {
            let _ = greeting(&bytes[..end]);
        }
        assert_eq!(greeting(b"\x09x\0\0\0\0\0"), None);
    }

    #[test]
    fn answers() {
        let tls = [&0x0800_0a00_u32.to_le_bytes()[..], &[0; 28]].concat();
        assert_eq!(login_reply(&tls, 32), Some(LoginReply::Tls));
        let Some(LoginReply::Login(capabilities)) = login_reply(&0x0a00_0001_u32.to_le_bytes(), 90) else { panic!() };
        assert!(capabilities.has_query_attributes() && !capabilities.deprecates_eof());
        assert_eq!(login_reply(b"\0", 1), None);
    }
}
