//! The cookies that a response sets. [`Response`] itself gives the other header fields.

use std::borrow::Cow;

use crate::script::Response;

/// Value of the cookie of that name as the response leaves it: of several, the last counts. The
/// value is taken as it is, quotation marks included, as browsers do.
pub(crate) fn cookie<'a>(response: &Response<'a>, name: &str) -> Option<Cow<'a, str>> {
    cookie_bytes(response, name).map(String::from_utf8_lossy)
}

/// The same as bytes (RFC 6265, section 5.2: up to the first semicolon, without blanks around name and value; names are
/// compared exactly).
pub(super) fn cookie_bytes<'a>(response: &Response<'a>, name: &str) -> Option<&'a [u8]> {
    let values = response.fields_called("set-cookie").filter_map(|field| {
        let pair = field.split(|byte| *byte == b';').next()?;
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let is_it = pair[..equals].trim_ascii() == name.as_bytes();
        is_it.then(|| pair[equals + 1..].trim_ascii())
    });
    values.last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_ends_at_its_semicolon_and_the_last_one_counts() {
        let fields: Vec<(&[u8], &[u8])> = vec![
            (b"Set-Cookie", b"sid=one; Path=/; HttpOnly"),
            (b"x", b"sid=no"),
            (b"set-cookie", b" sid = \"t=w;o\""),
            (b"SET-COOKIE", b"SID=upper"),
            (b"set-cookie", b"sidx=longer"),
            (b"set-cookie", b"nothing"),
            (b"set-cookie", b""),
            (b"set-cookie", b"; sid=attribute"),
        ];
        let response = Response { fields: &fields, ..Response::default() };
        assert_eq!(cookie(&response, "sid").as_deref(), Some("\"t=w"));
        assert_eq!(cookie(&response, "SID").as_deref(), Some("upper"));
        assert_eq!(cookie(&response, "Path"), None);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let fields: [(&[u8], &[u8]); 2] = [(b"set-cookie", b"a=caf\xe9\0"), (b"set-cookie", b"\xff=1; \xff=2")];
        let response = Response { fields: &fields, ..Response::default() };
        assert_eq!(cookie(&response, "a").as_deref(), Some("caf\u{FFFD}\0"));
        assert_eq!(cookie(&response, "\u{FFFD}"), None);
    }
}
