//! Builds one FastCGI 1.0 request as a web server does, and parses its answer. Bytes only.

/// Record types.
const BEGIN: u8 = 1;
const END: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;

const HEADER_BYTES: usize = 8;

/// A GET of `path` with this query; the server closes the connection after the answer.
pub(super) fn request(path: &str, query: &str) -> Vec<u8> {
    let mut parameters = Vec::new();
    for (name, value) in [
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("SERVER_PROTOCOL", "HTTP/1.0"),
        ("REQUEST_METHOD", "GET"),
        ("SCRIPT_NAME", path),
        ("SCRIPT_FILENAME", path),
        ("REQUEST_URI", path),
        ("QUERY_STRING", query),
        ("REMOTE_ADDR", "127.0.0.1"),
    ] {
        for text in [name, value] {
            match u8::try_from(text.len()) {
                Ok(length @ 0..=127) => parameters.push(length),
                _ => parameters.extend((text.len() as u32 | 1 << 31).to_be_bytes()),
            }
        }
        parameters.extend(name.bytes().chain(value.bytes()));
    }
    // Role responder, without keeping the connection.
    let mut bytes = record(BEGIN, &[0, 1, 0, 0, 0, 0, 0, 0]);
    bytes.extend(record(PARAMS, &parameters));
    bytes.extend(record(PARAMS, &[]));
    bytes.extend(record(STDIN, &[]));
    bytes
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    let mut bytes = vec![1, kind, 0, 1, high, low, 0, 0];
    bytes.extend(content);
    bytes
}

/// The standard output in a complete answer; none if it is not FastCGI, or was cut off.
pub(super) fn output(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut output = Vec::new();
    loop {
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let [version, kind, _, _, high, low, padding, _] = *header;
        if version != 1 {
            return None;
        }
        let length = usize::from(u16::from_be_bytes([high, low]));
        let content = bytes.get(HEADER_BYTES..HEADER_BYTES + length)?;
        match kind {
            STDOUT => output.extend(content),
            END => return Some(output),
            _ => {}
        }
        bytes = bytes.get(HEADER_BYTES + length + usize::from(padding)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_and_every_cut_of_it() {
        let mut whole = vec![1, 7, 0, 1, 0, 3, 5, 0, b'e', b'r', b'r', 0, 0, 0, 0, 0];
        whole.extend(record(STDOUT, b"Status: 200\r\n"));
        whole.extend(record(STDOUT, b"\r\n{}"));
        let before_end = whole.len();
        whole.extend(record(END, &[0; 8]));
        assert_eq!(output(&whole).as_deref(), Some(&b"Status: 200\r\n\r\n{}"[..]));
        for end in 0..before_end + HEADER_BYTES {
            assert_eq!(output(&whole[..end]), None, "{end}");
        }
        assert_eq!(output(b"HTTP/1.1 400 Bad Request\r\n\r\n"), None);
    }

    #[test]
    fn lengths_of_one_byte_and_of_four() {
        let long = format!("/{}", "a".repeat(200));
        let bytes = request(&long, "json");
        let at = bytes.windows(11).position(|w| w == b"SCRIPT_NAME").unwrap();
        assert_eq!(bytes[at - 5..at], [11, 0x80, 0, 0, 201]);
    }
}
