//! Pipelining: when the server could start on a request that was sent before earlier ones on the
//! same connection were answered. A server answers the requests of a connection in order, one at a
//! time.

use std::collections::HashMap;

use holdup_recording::rows::Exchange;

/// The request in front of another on its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Front {
    /// None.
    #[default]
    Free,
    /// Another request, whose response ended then.
    Until(i64),
    /// Another request without a row.
    Unknown,
}

impl Front {
    /// The later of `at` and the end of the request in front.
    pub fn later(self, at: i64) -> i64 {
        match self {
            Self::Until(end) => at.max(end),
            Self::Free | Self::Unknown => at,
        }
    }
}

type Connection<'a> = (&'a str, &'a str, &'a str);
/// Ends of responses on one connection, in order.
type Ends = Vec<(i64, i64, i64)>;

/// Connections on which requests were pipelined.
#[derive(Default)]
pub(super) struct Fronts<'a> {
    by_connection: HashMap<Connection<'a>, Ends>,
}

fn connection(row: &Exchange) -> Connection<'_> {
    (row.side.as_str(), row.client.as_str(), row.server.as_str())
}

/// Several responses may end in one packet: the requests then have this order.
fn place(row: &Exchange) -> (i64, i64, i64) {
    (row.done_at, row.request_at, row.ahead)
}

impl<'a> Fronts<'a> {
    pub fn new(rows: &'a [Exchange]) -> Self {
        let mut by_connection: HashMap<Connection<'a>, Ends> = HashMap::new();
        for row in rows.iter().filter(|row| row.ahead > 0) {
            by_connection.entry(connection(row)).or_default();
        }
        if !by_connection.is_empty() {
            for row in rows {
                if let Some(ends) = by_connection.get_mut(&connection(row)) {
                    ends.push(place(row));
                }
            }
        }
        by_connection.values_mut().for_each(|ends| ends.sort_unstable());
        Self { by_connection }
    }

    pub fn of_exchange(&self, row: &Exchange) -> Front {
        if row.ahead == 0 {
            return Front::Free;
        }
        let ends = self.by_connection.get(&connection(row)).map_or(&[][..], Vec::as_slice);
        let before = ends.partition_point(|end| *end < place(row));
        let last = before.checked_sub(1).and_then(|i| ends.get(i));
        // It was unanswered when this request came; a response that ended earlier belongs to
        // another.
        last.filter(|(done_at, ..)| *done_at >= row.request_at)
            .map_or(Front::Unknown, |(done_at, ..)| Front::Until(*done_at))
    }
}
