//! Answers that wait for their service time, and the one stop of a freezing server. Times are nanoseconds of the
//! monotonic clock.

use std::collections::VecDeque;

/// An answer (or several of one connection) that is due later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// When it is to be sent.
    pub due_ns: u64,
    /// Its connection's socket.
    pub fd: i32,
    /// Which connection of that number it was: numbers are used again.
    pub life: u32,
    /// How many answers.
    pub answers: u64,
}

/// Answers in the order of their due times, which is the order of their arrival: all take equally long.
#[derive(Debug, Default)]
pub struct Delay {
    service_ns: u64,
    waiting: VecDeque<Waiting>,
}

impl Delay {
    /// With this service time.
    pub fn new(service_ns: u64) -> Self {
        Self { service_ns, waiting: VecDeque::new() }
    }

    /// Whether answers wait at all.
    pub fn is_on(&self) -> bool {
        self.service_ns > 0
    }

    /// Takes in answers to requests that were read at `now_ns`.
    pub fn push(&mut self, now_ns: u64, fd: i32, life: u32, answers: u64) {
        self.waiting.push_back(Waiting { due_ns: now_ns + self.service_ns, fd, life, answers });
    }

    /// When the next is due.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.waiting.front().map(|first| first.due_ns)
    }

    /// The next one, if it is due.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<Waiting> {
        if self.next_due_ns()? > now_ns {
            return None;
        }
        self.waiting.pop_front()
    }
}

/// A stop of the whole server, once.
#[derive(Clone, Copy, Debug)]
pub struct Freeze {
    /// Nanoseconds after the first request.
    pub after_ns: u64,
    /// How long.
    pub length_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_in_order_and_not_early() {
        let mut delay = Delay::new(10);
        delay.push(100, 3, 0, 1);
        delay.push(105, 4, 0, 2);
        assert_eq!((delay.pop_due(109), delay.next_due_ns()), (None, Some(110)));
        assert_eq!(delay.pop_due(112).map(|w| w.fd), Some(3));
        assert_eq!(delay.pop_due(112), None);
        assert_eq!(delay.pop_due(115).map(|w| w.answers), Some(2));
        assert_eq!(delay.next_due_ns(), None);
    }
}
