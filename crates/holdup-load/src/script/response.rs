//! The response as checks and captures see it, and the parts of it that they need. It is only a
//! view: the engine owns the bytes, and keeps no more of a response than the scenario's conditions
//! and captures use.

/// A response over HTTP, or the result of a statement. What a protocol does not have is 0 or empty.
///
/// ```
/// use holdup_load::script::Response;
///
/// let fields: [(&[u8], &[u8]); 1] = [(b"content-type", b"application/json")];
/// let response = Response { status: 200, fields: &fields, body: b"{}", body_bytes: 2, ..Response::default() };
/// assert_eq!(response.fields_called("Content-Type").next(), Some(&b"application/json"[..]));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Response<'a> {
    /// HTTP's status code.
    pub status: u16,
    /// The header fields as received: names in any case (comparisons ignore it), values without the
    /// blanks around them.
    pub fields: &'a [(&'a [u8], &'a [u8])],
    /// The body from its start, as much of it as was kept.
    pub body: &'a [u8],
    /// The body is longer than the kept part.
    pub body_is_cut: bool,
    /// Size of the whole body as received.
    pub body_bytes: u64,
    /// Rows of the statement's result.
    pub rows: u64,
    /// The first row by the names of its columns; none is NULL. Empty if there was no row.
    pub columns: &'a [(&'a str, Option<&'a [u8]>)],
}

impl<'a> Response<'a> {
    /// Values of all fields of that name, whatever its case, in order.
    pub fn fields_called<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let is_it = move |field: &&(&[u8], &[u8])| field.0.eq_ignore_ascii_case(name.as_bytes());
        self.fields.iter().filter(is_it).map(|field| field.1)
    }
}

/// The parts of a response that have to be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The header fields.
    pub head: bool,
    /// The body.
    pub body: bool,
}

impl Needs {
    /// Everything that either needs.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self { head: self.head || other.head, body: self.body || other.body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_whatever_their_case() {
        let fields: [(&[u8], &[u8]); 3] = [(b"Set-Cookie", b"a=1"), (b"x", b"y"), (b"set-cookie", b"b=2")];
        let response = Response { fields: &fields, ..Response::default() };
        assert_eq!(response.fields_called("SET-COOKIE").collect::<Vec<_>>(), [b"a=1", b"b=2"]);
        assert_eq!(response.fields_called("set-cooki").next(), None);
    }

    #[test]
    fn a_union_needs_what_either_does() {
        let (head, body) = (Needs { head: true, body: false }, Needs { head: false, body: true });
        assert_eq!(head.union(body), Needs { head: true, body: true });
        assert_eq!(head.union(Needs::default()), head);
    }
}
