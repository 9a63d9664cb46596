//! Writes BSON: the commands that a client sends, and documents of tests. Values keep the order in which
//! they are added. Names must not contain a zero byte, at which BSON ends them: such a name is cut.

/// A document under construction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Writer {
    body: Vec<u8>,
}

impl Writer {
    /// An empty document.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A list, whose items `fill` adds under the names `0`, `1`, ….
    #[must_use]
    pub fn list(fill: impl FnOnce(Self) -> Self) -> Self {
        fill(Self::new())
    }

    /// Adds an integer.
    #[must_use]
    pub fn int(self, name: &str, value: i32) -> Self {
        self.put(0x10, name, &value.to_le_bytes())
    }

    /// Adds an integer of 64 bits.
    #[must_use]
    pub fn long(self, name: &str, value: i64) -> Self {
        self.put(0x12, name, &value.to_le_bytes())
    }

    /// Adds a floating-point number.
    #[must_use]
    pub fn double(self, name: &str, value: f64) -> Self {
        self.put(0x01, name, &value.to_le_bytes())
    }

    /// Adds true or false.
    #[must_use]
    pub fn bool(self, name: &str, value: bool) -> Self {
        self.put(0x08, name, &[u8::from(value)])
    }

    /// Adds an instant, milliseconds since 1970.
    #[must_use]
    pub fn time(self, name: &str, ms: i64) -> Self {
        self.put(0x09, name, &ms.to_le_bytes())
    }

    /// Adds a text.
    #[must_use]
    pub fn text(self, name: &str, value: &str) -> Self {
        let length = (value.len() as u32 + 1).to_le_bytes();
        self.put(0x02, name, &[&length[..], value.as_bytes(), &[0]].concat())
    }

    /// Adds bytes.
    #[must_use]
    pub fn binary(self, name: &str, value: &[u8]) -> Self {
        self.binary_of(0, name, value)
    }

    /// Adds bytes of a kind, such as 4 for a UUID.
    #[must_use]
    pub fn binary_of(self, kind: u8, name: &str, value: &[u8]) -> Self {
        let length = (value.len() as u32).to_le_bytes();
        self.put(0x05, name, &[&length[..], &[kind], value].concat())
    }

    /// Adds nothing under a name.
    #[must_use]
    pub fn null(self, name: &str) -> Self {
        self.put(0x0a, name, &[])
    }

    /// Adds an id of a document.
    #[must_use]
    pub fn id(self, name: &str, value: &[u8; 12]) -> Self {
        self.put(0x07, name, value)
    }

    /// Adds a decimal number: see [`crate::decimal`].
    #[must_use]
    pub fn decimal(self, name: &str, value: &[u8; 16]) -> Self {
        self.put(0x13, name, value)
    }

    /// Adds a pattern with its options. Neither may contain a zero byte, at which it is cut.
    #[must_use]
    pub fn pattern(self, name: &str, pattern: &str, options: &str) -> Self {
        let part = |text: &str| [text.split('\0').next().unwrap_or_default().as_bytes(), &[0]].concat();
        self.put(0x0b, name, &[part(pattern), part(options)].concat())
    }

    /// Adds a position in the oplog.
    #[must_use]
    pub fn timestamp(self, name: &str, seconds: u32, increment: u32) -> Self {
        self.put(0x11, name, &[increment.to_le_bytes(), seconds.to_le_bytes()].concat())
    }

    /// Adds what comes before every other value, or after every other.
    #[must_use]
    pub fn end_of_order(self, name: &str, is_last: bool) -> Self {
        self.put(if is_last { 0x7f } else { 0xff }, name, &[])
    }

    /// Adds all of `other`.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.body.extend(&other.body);
        self
    }

    /// Bytes so far.
    #[must_use]
    pub fn size(&self) -> usize {
        self.body.len()
    }

    /// Adds a document.
    #[must_use]
    pub fn document(self, name: &str, value: Self) -> Self {
        self.put(0x03, name, &value.finish())
    }

    /// Adds a list.
    #[must_use]
    pub fn list_of(self, name: &str, value: Self) -> Self {
        self.put(0x04, name, &value.finish())
    }

    /// The document's bytes.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        let length = (self.body.len() as u32 + 5).to_le_bytes();
        [&length[..], &self.body, &[0]].concat()
    }

    fn put(mut self, kind: u8, name: &str, value: &[u8]) -> Self {
        self.body.push(kind);
        self.body.extend(name.split('\0').next().unwrap_or_default().as_bytes());
        self.body.push(0);
        self.body.extend(value);
        self
    }
}
