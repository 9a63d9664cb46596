//! The open streams, by number and by the caller's tag. Numbers are given out in order, so the low
//! bits of one are its place in a small table; if an old stream still holds the place, the next
//! free one is used.

/// Content length of a response that does not declare it.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// Size of the smallest table.
const SMALLEST: usize = 16;

/// An open stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// 0 if the place is free.
    pub id: u32,
    /// The caller's name for it.
    pub tag: u32,
    /// Bytes that arrived and were not yet acknowledged by a window update.
    pub unacknowledged: u32,
    /// Its request was a `HEAD`.
    pub head_request: bool,
    /// The final head has arrived.
    pub answered: bool,
    /// Body bytes received, and (below) expected in total or [`UNKNOWN`].
    pub received: u64,
    pub expected: u64,
}

const FREE: Stream =
    Stream { id: 0, tag: 0, unacknowledged: 0, head_request: false, answered: false, received: 0, expected: UNKNOWN };

/// The table. At most half of it is occupied, so that a free place is always near.
#[derive(Debug)]
pub(super) struct Streams {
    places: Vec<Stream>,
    count: usize,
}

impl Streams {
    pub fn new() -> Self {
        Self { places: vec![FREE; SMALLEST], count: 0 }
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    #[inline]
    fn home(&self, id: u32) -> usize {
        (id >> 1) as usize & (self.places.len() - 1)
    }

    #[inline]
    fn place(&self, id: u32) -> Option<usize> {
        let mut at = self.home(id);
        loop {
            match self.places[at].id {
                found if found == id => return Some(at),
                0 => return None,
                _ => at = (at + 1) & (self.places.len() - 1),
            }
        }
    }

    /// The open stream of that number, which isn't 0.
    #[inline]
    pub fn get(&mut self, id: u32) -> Option<&mut Stream> {
        let at = self.place(id)?;
        self.places.get_mut(at)
    }

    /// Opens a stream with a new number.
    #[inline]
    pub fn open(&mut self, id: u32, tag: u32, head_request: bool) {
        if (self.count + 1) * 2 > self.places.len() {
            self.grow();
        }
        self.put(Stream { id, tag, head_request, ..FREE });
        self.count += 1;
    }

    #[inline]
    fn put(&mut self, stream: Stream) {
        let mut at = self.home(stream.id);
        while self.places[at].id != 0 {
            at = (at + 1) & (self.places.len() - 1);
        }
        self.places[at] = stream;
    }

    fn grow(&mut self) {
        let larger = vec![FREE; self.places.len() * 2];
        for stream in std::mem::replace(&mut self.places, larger) {
            if stream.id != 0 {
                self.put(stream);
            }
        }
    }

    /// Closes it, and moves up those behind it that did not get their own place.
    #[inline]
    pub fn close(&mut self, id: u32) -> Option<Stream> {
        let mut hole = self.place(id)?;
        let closed = self.places[hole];
        let mask = self.places.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let stream = self.places[at];
            if stream.id == 0 {
                break;
            }
            // It may move into the hole if that is at least as close to its own place as where it is now.
            let home = self.home(stream.id);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.places[hole] = stream;
                hole = at;
            }
        }
        self.places[hole] = FREE;
        self.count -= 1;
        Some(closed)
    }

    /// The open stream with the caller's `tag`. Searches all streams, so it is for rare cases.
    pub fn find_tag(&self, tag: u32) -> Option<u32> {
        self.places.iter().find(|stream| stream.id != 0 && stream.tag == tag).map(|stream| stream.id)
    }

    /// Some open stream with a number above `id`. Searches all streams, so it is for rare cases.
    pub fn above(&self, id: u32) -> Option<u32> {
        self.places.iter().map(|stream| stream.id).find(|&open| open > id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_a_map_would() {
        let mut streams = Streams::new();
        let mut open: Vec<u32> = Vec::new();
        let mut random = 1_u32;
        let mut next = 1;
        for _ in 0..20_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if random >> 31 == 0 && open.len() < 60 {
                streams.open(next, next + 7, false);
                open.push(next);
                next += 2;
            } else if !open.is_empty() {
                // The oldest one stays for long, so that numbers wrap around it.
                let at = (random >> 8) as usize % open.len();
                let id = open.swap_remove(if random >> 4 & 63 != 0 { at.max(1).min(open.len() - 1) } else { at });
                assert_eq!(streams.close(id).map(|stream| stream.tag), Some(id + 7));
                assert!(streams.get(id).is_none() && streams.close(id).is_none());
            }
            assert_eq!(streams.count(), open.len());
        }
        for &id in &open {
            assert_eq!(streams.get(id).map(|stream| stream.id), Some(id));
            assert_eq!(streams.find_tag(id + 7), Some(id));
        }
        let highest = open.iter().copied().max().unwrap_or(0);
        assert_eq!((streams.above(highest), streams.above(highest - 1)), (None, Some(highest)));
    }
}
