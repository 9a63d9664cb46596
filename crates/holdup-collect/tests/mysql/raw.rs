//! MySQL's protocol as far as a test needs it to send any bytes of any length as one statement: root's, by the socket.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use crate::server::Server;

/// What the client says that it can do: protocol 4.1, its way to log in. Not several statements at once.
const CAPABILITIES: u32 = 0x200 | 0x8000;

pub struct Raw(UnixStream);

impl Raw {
    /// In the character set of this number: 8 is latin1, 33 is utf8.
    pub fn connect(server: &Server, character_set: u8) -> Self {
        let mut raw = Self(UnixStream::connect(server.socket()).unwrap());
        raw.packet();
        let mut login = CAPABILITIES.to_le_bytes().to_vec();
        login.extend(0x100_0000_u32.to_le_bytes());
        login.push(character_set);
        login.extend([0; 23]);
        login.extend(b"root\0\0");
        raw.send(1, &login);
        assert_eq!(raw.packet().first(), Some(&0), "root has no password");
        raw
    }

    /// The connection, to be kept open.
    pub fn into_stream(self) -> UnixStream {
        self.0
    }

    /// A packet; a long one in parts, the last of which is not full.
    fn send(&mut self, mut number: u8, mut body: &[u8]) {
        loop {
            let (part, rest) = body.split_at(body.len().min(0xff_ffff));
            let length = u32::try_from(part.len()).unwrap().to_le_bytes();
            self.0.write_all(&[&length[..3], &[number]].concat()).unwrap();
            self.0.write_all(part).unwrap();
            if part.len() < 0xff_ffff {
                return;
            }
            (number, body) = (number + 1, rest);
        }
    }

    /// Sends a statement, whose answer is not read.
    pub fn start(&mut self, sql: &[u8]) {
        self.send(0, &[b"\x03", sql].concat());
    }

    fn packet(&mut self) -> Vec<u8> {
        let mut head = [0; 4];
        self.0.read_exact(&mut head).unwrap();
        let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
        self.0.read_exact(&mut body).unwrap();
        body
    }

    /// The rows of a statement, as the server sends them; none if it refuses it.
    pub fn run(&mut self, sql: &[u8]) -> Option<Vec<Vec<u8>>> {
        self.start(sql);
        let first = self.packet();
        match first.first() {
            Some(0xff) => return None,
            Some(0) => return Some(Vec::new()),
            _ => {}
        }
        let mut rows = Vec::new();
        let mut ends = 0;
        while ends < 2 {
            let packet = self.packet();
            match packet.first() {
                Some(0xff) => return None,
                Some(0xfe) if packet.len() < 9 => ends += 1,
                _ if ends == 1 => rows.push(packet),
                _ => {}
            }
        }
        Some(rows)
    }
}
