//! A connection that cannot be read (TLS, compressed): the change of direction separates requests
//! from responses. Unasked messages of the server, and requests sent without waiting for responses,
//! are not recognised.

use crate::packets::statement::SentSql;
use crate::packets::turn::{Kind, Outcome, Pending, Turn};

/// Such a connection.
#[derive(Debug, Default)]
pub(crate) struct Opaque {
    pub pending: Pending<()>,
}

impl Opaque {
    /// A connection whose start could be read.
    pub fn new(session_id: Option<i64>) -> Self {
        let mut opaque = Self::default();
        opaque.pending.session_id = session_id;
        opaque
    }

    /// Bytes of the client: more of a request, or a new one if the last was answered.
    pub fn client(&mut self, at: i64, bytes: u64, turns: &mut Vec<Turn>) {
        if bytes == 0 {
            return;
        }
        match self.pending.head() {
            Some((turn, ())) if turn.first_byte_at.is_none() => {
                turn.request_end_at = at;
                turn.done_at = at;
                turn.request_bytes += bytes;
            }
            _ => {
                self.pending.finish(Outcome::Ok, None, turns);
                self.pending.ask(Kind::Opaque, SentSql::default(), (at, at), bytes, ());
            }
        }
    }

    /// Bytes of the server.
    pub fn server(&mut self, at: i64, bytes: u64) {
        if bytes > 0 {
            self.pending.answered(at, at, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns() {
        let (mut opaque, mut turns) = (Opaque::new(Some(7)), Vec::new());
        opaque.server(1, 50);
        opaque.client(10, 100, &mut turns);
        opaque.client(12, 100, &mut turns);
        opaque.server(20, 5);
        opaque.server(25, 6);
        opaque.client(30, 1, &mut turns);
        opaque.pending.finish_all(Outcome::Ok, Outcome::Closed, Some(40), &mut turns);
        let [first, second] = turns.as_slice() else { panic!("{turns:?}") };
        assert_eq!(
            (first.request_at, first.request_end_at, first.first_byte_at, first.done_at),
            (10, 12, Some(20), 25)
        );
        assert_eq!((first.request_bytes, first.response_bytes, first.session_id), (200, 11, Some(7)));
        assert_eq!((second.outcome, second.done_at), (Outcome::Closed, 40));
    }
}
