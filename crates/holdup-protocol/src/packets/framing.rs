//! A stream of bytes -> messages, for protocols whose heads give the length of a message. Only the
//! start of a message is kept, and where it is wanted its last bytes; one that arrives complete is not
//! copied. It does not know what messages mean.

/// The format of heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Head {
    /// Three bytes of length, little-endian, one of sequence; a message of 2^24-1 bytes continues
    /// in the next.
    #[default]
    Mysql,
    /// One byte of kind, four of length, big-endian, which includes itself.
    Postgres,
    /// Like `Postgres` without the kind: the first message of a client.
    Startup,
    /// Four bytes of length, little-endian, which includes itself; three more numbers follow.
    Mongodb,
}

impl Head {
    fn length(self) -> usize {
        match self {
            Self::Mysql | Self::Startup | Self::Mongodb => 4,
            Self::Postgres => 5,
        }
    }

    /// Kind (or sequence), number of bytes that follow, and whether the message continues after
    /// those; none if it is invalid.
    fn read(self, head: [u8; 5]) -> Option<(u8, u32, bool)> {
        let [a, b, c, d, e] = head;
        let size = |bytes| u32::from_be_bytes(bytes).checked_sub(4).filter(|length| *length < POSTGRES_BYTES_MAX);
        Some(match self {
            Self::Mysql => {
                let length = u32::from_le_bytes([a, b, c, 0]);
                (d, length, length == MYSQL_FULL)
            }
            Self::Postgres => (a, size([b, c, d, e])?, false),
            Self::Startup => (0, size([a, b, c, d])?, false),
            Self::Mongodb => {
                let length = u32::from_le_bytes([a, b, c, d]);
                (0, length.checked_sub(4).filter(|_| MONGODB_BYTES.contains(&length))?, false)
            }
        })
    }
}

const MYSQL_FULL: u32 = 0xff_ffff;
/// The protocol's own limit (`PQ_LARGE_MESSAGE_LIMIT`): 1 GB.
const POSTGRES_BYTES_MAX: u32 = 1 << 30;

/// The least and the most that a message of MongoDB may have (`MaxMessageSizeBytes`).
pub(crate) const MONGODB_BYTES: std::ops::RangeInclusive<u32> = 16..=48_000_000;

/// One message.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    /// Kind, or sequence number of its first part.
    pub kind: u8,
    /// Its content, as far as it was kept.
    pub content: &'a [u8],
    /// The last bytes of a content that was not kept whole, as far as they are wanted and were captured.
    pub tail: &'a [u8],
    /// Bytes of its content.
    pub length: u64,
    /// Bytes of it with its head or heads.
    pub size: u64,
    /// When its first byte came.
    pub begun_at: i64,
}

/// What the bytes amount to.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    /// More are needed.
    More,
    /// A message has ended.
    Message(Message<'a>),
    /// This is not the head of a message.
    Broken,
}

/// The messages of one direction.
#[derive(Debug, Default)]
pub(crate) struct Framing {
    pub head: Head,
    /// Most bytes of a message's content that are kept.
    keep: usize,
    /// Most bytes at the end of a longer content that are kept, too.
    keep_last: usize,
    partial: [u8; 5],
    partial_length: usize,
    in_body: bool,
    left: u32,
    goes_on: bool,
    is_continued: bool,
    kind: u8,
    kept: Vec<u8>,
    tail: Vec<u8>,
    /// Bytes in the middle were not stored: the kept part ends there.
    is_cut: bool,
    length: u64,
    size: u64,
    begun_at: i64,
}

impl Framing {
    /// Messages with this kind of head, of which so many bytes are kept.
    pub fn new(head: Head, keep: usize) -> Self {
        Self { head, keep, ..Self::default() }
    }

    /// The same, and of longer ones so many bytes at their end.
    pub fn with_tail(self, keep_last: usize) -> Self {
        Self { keep_last, ..self }
    }

    /// Drops a started message: the next byte begins a new one.
    pub fn restart(&mut self) {
        *self = Self::new(self.head, self.keep).with_tail(self.keep_last);
    }

    /// Whether a message has begun and not ended.
    pub fn is_within(&self) -> bool {
        self.in_body || self.partial_length > 0 || self.is_continued
    }

    pub fn memory(&self) -> usize {
        self.kept.capacity() + self.tail.capacity()
    }

    /// Takes bytes of `input` up to the end of a message.
    pub fn next<'m, 'i: 'm>(&'m mut self, input: &mut &'i [u8], at: i64) -> Step<'m> {
        loop {
            if !self.in_body {
                let wanted = self.head.length() - self.partial_length;
                let (head, rest) = input.split_at(wanted.min(input.len()));
                if head.is_empty() {
                    return Step::More;
                }
                if self.partial_length == 0 && !self.is_continued {
                    self.begun_at = at;
                    (self.length, self.size, self.is_cut) = (0, 0, false);
                    self.kept.clear();
                    self.tail.clear();
                }
                if let Some(place) = self.partial.get_mut(self.partial_length..self.partial_length + head.len()) {
                    place.copy_from_slice(head);
                }
                self.partial_length += head.len();
                *input = rest;
                if self.partial_length < self.head.length() {
                    return Step::More;
                }
                let Some((kind, left, goes_on)) = self.head.read(self.partial) else { return Step::Broken };
                if !self.is_continued {
                    self.kind = kind;
                }
                self.partial_length = 0;
                (self.in_body, self.left, self.goes_on) = (true, left, goes_on);
                self.length += u64::from(left);
                self.size += u64::from(left) + self.head.length() as u64;
                if !goes_on
                    && !self.is_continued
                    && let Some((content, rest)) = input.split_at_checked(left as usize)
                {
                    *input = rest;
                    self.in_body = false;
                    let (content, tail) = match content.get(..self.keep) {
                        Some(kept) if kept.len() < content.len() => {
                            (kept, content.get(content.len().saturating_sub(self.keep_last)..).unwrap_or_default())
                        }
                        _ => (content, &[][..]),
                    };
                    return Step::Message(self.message(content, tail));
                }
            }
            let (body, rest) = input.split_at((self.left as usize).min(input.len()));
            *input = rest;
            self.left -= body.len() as u32;
            if !self.is_cut {
                let room = self.keep.saturating_sub(self.kept.len());
                self.kept.extend_from_slice(body.get(..room).unwrap_or(body));
            }
            self.keep_tail(body);
            if self.left > 0 {
                return Step::More;
            }
            self.in_body = false;
            self.is_continued = self.goes_on;
            if !self.is_continued {
                return Step::Message(self.kept_message());
            }
        }
    }

    /// `count` bytes were not stored. Returns the message if they end it. If they reach beyond it,
    /// the start of the next is unknown.
    pub fn skip(&mut self, count: u32) -> Step<'_> {
        if count == 0 {
            return Step::More;
        }
        if !self.in_body || count > self.left {
            return Step::Broken;
        }
        self.is_cut = true;
        self.tail.clear();
        self.left -= count;
        if self.left > 0 {
            return Step::More;
        }
        self.in_body = false;
        self.is_continued = self.goes_on;
        if self.is_continued { Step::More } else { Step::Message(self.kept_message()) }
    }

    fn message<'a>(&self, content: &'a [u8], tail: &'a [u8]) -> Message<'a> {
        let Self { kind, length, size, begun_at, .. } = *self;
        Message { kind, content, tail, length, size, begun_at }
    }

    /// The last bytes of what has come so far.
    fn keep_tail(&mut self, body: &[u8]) {
        let last = body.get(body.len().saturating_sub(self.keep_last)..).unwrap_or_default();
        let surplus = (self.tail.len() + last.len()).saturating_sub(self.keep_last);
        self.tail.drain(..surplus.min(self.tail.len()));
        self.tail.extend_from_slice(last);
    }

    fn kept_message(&mut self) -> Message<'_> {
        // Free a large message's memory before small ones.
        if self.kept.len() < 1024 && self.kept.capacity() > 8192 {
            self.kept.shrink_to(4096);
        }
        let Self { kind, length, size, begun_at, .. } = *self;
        let is_whole = self.kept.len() as u64 == length;
        let tail = if is_whole { &[][..] } else { &self.tail };
        Message { kind, content: &self.kept, tail, length, size, begun_at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(framing: &mut Framing, bytes: &[u8], piece: usize) -> Vec<(u8, Vec<u8>, u64)> {
        let mut seen = Vec::new();
        for mut piece in bytes.chunks(piece) {
            loop {
                match framing.next(&mut piece, 0) {
                    Step::Message(message) => seen.push((message.kind, message.content.to_vec(), message.length)),
                    Step::More => break,
                    Step::Broken => panic!("broken"),
                }
            }
        }
        seen
    }

    #[test]
    fn the_same_however_they_are_cut() {
        let bytes = b"\x03\0\0\x01abc\0\0\0\x02\x05\0\0\x03hello";
        let expected = [(1, b"abc".to_vec(), 3), (2, Vec::new(), 0), (3, b"hell".to_vec(), 5)];
        for piece in 1..=bytes.len() {
            assert_eq!(all(&mut Framing::new(Head::Mysql, 4), bytes, piece), expected, "{piece}");
        }
        let bytes = b"Z\0\0\0\x05IQ\0\0\0\x07ab\0";
        for piece in 1..=bytes.len() {
            let seen = all(&mut Framing::new(Head::Postgres, 100), bytes, piece);
            assert_eq!(seen, [(b'Z', b"I".to_vec(), 1), (b'Q', b"ab\0".to_vec(), 3)]);
        }
    }

    #[test]
    fn the_last_bytes_are_the_same_however_they_are_cut() {
        let bytes = b"\x0c\0\0\x01abcdefghijkl\x05\0\0\x02hello\x03\0\0\x03xyz";
        for piece in 1..=bytes.len() {
            let mut framing = Framing::new(Head::Mysql, 4).with_tail(3);
            let mut seen = Vec::new();
            for mut piece in bytes.chunks(piece) {
                while let Step::Message(message) = framing.next(&mut piece, 0) {
                    seen.push((message.content.to_vec(), message.tail.to_vec()));
                }
            }
            let expected = [(&b"abcd"[..], &b"jkl"[..]), (b"hell", b"llo"), (b"xyz", b"")];
            let expected = expected.map(|(content, tail)| (content.to_vec(), tail.to_vec()));
            assert_eq!(seen, expected, "{piece}");
        }
        // Behind a gap the end is known if it was captured.
        let mut framing = Framing::new(Head::Mysql, 4).with_tail(3);
        let mut input: &[u8] = b"\x0c\0\0\x01abcdef";
        assert!(matches!(framing.next(&mut input, 0), Step::More) && matches!(framing.skip(4), Step::More));
        let mut input: &[u8] = b"kl";
        let Step::Message(message) = framing.next(&mut input, 0) else { panic!("not ended") };
        assert_eq!((message.content, message.tail), (&b"abcd"[..], &b"kl"[..]));
    }

    #[test]
    fn sixteen_megabytes_go_on() {
        let mut bytes = vec![0xff, 0xff, 0xff, 0];
        bytes.resize(4 + 0xff_ffff, b'x');
        bytes.extend(b"\x02\0\0\x01yz\0\0\0\0");
        let seen = all(&mut Framing::new(Head::Mysql, 3), &bytes, 10_000);
        assert_eq!(seen, [(0, b"xxx".to_vec(), 0xff_ffff + 2), (0, Vec::new(), 0)]);
    }

    #[test]
    fn bytes_not_stored_in_a_message_are_skipped() {
        let mut framing = Framing::new(Head::Mysql, 100);
        let mut input: &[u8] = b"\x0a\0\0\x01abc";
        assert!(matches!(framing.next(&mut input, 0), Step::More));
        assert!(matches!(framing.skip(5), Step::More));
        let mut input: &[u8] = b"ij";
        let Step::Message(message) = framing.next(&mut input, 0) else { panic!() };
        assert_eq!((message.content, message.length), (&b"abc"[..], 10), "nothing from behind the hole");
        assert!(matches!(framing.skip(1), Step::Broken));
    }

    #[test]
    fn lengths_that_cannot_be() {
        let mut input: &[u8] = b"Q\0\0\0\x03";
        assert!(matches!(Framing::new(Head::Postgres, 9).next(&mut input, 0), Step::Broken));
        let mut input: &[u8] = b"Q\xff\xff\xff\xff";
        assert!(matches!(Framing::new(Head::Postgres, 9).next(&mut input, 0), Step::Broken));
        for mut input in [&b"\x0f\0\0\0"[..], b"\x01\x6c\xdc\x02"] {
            assert!(matches!(Framing::new(Head::Mongodb, 9).next(&mut input, 0), Step::Broken));
        }
    }
}
