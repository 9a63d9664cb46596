//! Where requests end in a stream of bytes that arrives in pieces of any size. It knows the empty line that ends a
//! header, and nothing else of HTTP.

/// How much of an empty line (`\r\n\r\n`) has been seen at the end of what came so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends {
    seen: u8,
}

impl Ends {
    /// Number of requests that end in `bytes`, which follow what was given before.
    pub fn count(&mut self, bytes: &[u8]) -> u64 {
        let mut ended = 0;
        for &byte in bytes {
            self.seen = match (byte, self.seen) {
                (b'\r', 2) => 3,
                (b'\r', _) => 1,
                (b'\n', 1) => 2,
                (b'\n', 3) => {
                    ended += 1;
                    0
                }
                _ => 0,
            };
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

    #[test]
    fn pieces_of_any_size_and_many_at_once() {
        for cut in 0..ONE.len() {
            let mut ends = Ends::default();
            let (head, tail) = ONE.split_at(cut);
            assert_eq!(ends.count(head) + ends.count(tail), 1, "cut at {cut}");
        }
        let mut ends = Ends::default();
        assert_eq!(ends.count(&ONE.repeat(3)), 3);
        assert_eq!(ONE.iter().map(|byte| ends.count(&[*byte])).sum::<u64>(), 1);
    }

    #[test]
    fn what_only_looks_like_an_end() {
        assert_eq!(Ends::default().count(b"a\r\nb\r\nc\n\n\r\r\n\r"), 0);
        assert_eq!(Ends::default().count(b"\r\r\n\r\n"), 1);
    }
}
