//! The waiting line and its servers, as arithmetic. Requests go in order of arrival to the server
//! that is free first, and each takes a known time. The end of a request is computed from its
//! start, not from the moment at which the service looks. So the capacity is exact however late a
//! busy machine looks. No I/O, no clock: the caller passes the time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Properties of the service.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Servers: requests that are served at once.
    pub servers: usize,
    /// Time for a request that is alone in the service, ns.
    pub service_ns: u64,
    /// Most requests that wait; further ones are refused.
    pub room: usize,
    /// Share of the work that is serial (sigma of the Universal Scalability Law).
    pub contention: f64,
    /// Cost of coordination, for each pair of requests (kappa of the Universal Scalability Law).
    pub coherency: f64,
}

impl Shape {
    /// Service time of a request that begins when `present` requests are in the service, including
    /// itself. By N. J. Gunther's law, N requests at once have N / (1 + σ (N − 1) + κ N (N − 1))
    /// times the throughput of one. N requests that each take that denominator times as long give
    /// exactly this.
    fn time_ns(&self, present: usize) -> u64 {
        let n = present as f64;
        let times = 1.0 + self.contention * (n - 1.0) + self.coherency * n * (n - 1.0);
        (self.service_ns as f64 * times) as u64
    }
}

/// See the module. `T` names a request.
#[derive(Debug)]
pub struct Line<T> {
    shape: Shape,
    waiting: VecDeque<T>,
    /// When each request in service ends, and the order in which they began.
    served: BinaryHeap<Reverse<(u64, u64, T)>>,
    begun: u64,
}

impl<T: Ord> Line<T> {
    /// An empty line.
    pub fn new(shape: Shape) -> Self {
        Self { shape, waiting: VecDeque::new(), served: BinaryHeap::new(), begun: 0 }
    }

    /// Adds a request that arrives at `now`, after [`Line::ended`] has taken all that had ended.
    /// Returns false if the line is full.
    pub fn arrive(&mut self, request: T, now: u64) -> bool {
        if self.served.len() < self.shape.servers {
            self.begin(request, now);
            return true;
        }
        let has_room = self.waiting.len() < self.shape.room;
        if has_room {
            self.waiting.push_back(request);
        }
        has_room
    }

    /// The next request that has ended by `now`; its server began the next one at that moment.
    pub fn ended(&mut self, now: u64) -> Option<T> {
        if self.next_end()? > now {
            return None;
        }
        let Reverse((end, _, request)) = self.served.pop()?;
        if let Some(next) = self.waiting.pop_front() {
            self.begin(next, end);
        }
        Some(request)
    }

    /// When the next request ends, if any is in service.
    pub fn next_end(&self) -> Option<u64> {
        self.served.peek().map(|Reverse((end, _, _))| *end)
    }

    fn begin(&mut self, request: T, now: u64) {
        let present = self.served.len() + 1 + self.waiting.len();
        self.begun += 1;
        self.served.push(Reverse((now + self.shape.time_ns(present), self.begun, request)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { servers: 2, service_ns: 10, room: 3, contention: 0.0, coherency: 0.0 };

    /// All that end by `now`, and when.
    fn drain(line: &mut Line<u32>, now: u64) -> Vec<(u64, u32)> {
        let mut ended = Vec::new();
        while let Some(end) = line.next_end() {
            let Some(request) = line.ended(now) else { break };
            ended.push((end, request));
        }
        ended
    }

    #[test]
    fn requests_end_by_the_servers_clock_not_by_polling() {
        let mut line = Line::new(SHAPE);
        for (request, at) in [(0, 0), (1, 3), (2, 4), (3, 4), (4, 5)] {
            assert!(line.arrive(request, at));
        }
        assert!(!line.arrive(5, 6), "three wait");
        assert_eq!(drain(&mut line, 9), []);
        // Looked at very late: the ends are those of a line that was never idle.
        assert_eq!(drain(&mut line, 1_000), [(10, 0), (13, 1), (20, 2), (23, 3), (30, 4)]);
        assert!(line.arrive(6, 2_000));
        assert_eq!(line.next_end(), Some(2_010), "it was idle");
    }

    #[test]
    fn its_capacity_is_servers_over_time() {
        let mut line = Line::new(Shape { servers: 4, service_ns: 20_000, room: usize::MAX, ..SHAPE });
        for request in 0..1_000 {
            assert!(line.arrive(request, 0));
        }
        let ended = drain(&mut line, u64::MAX);
        assert_eq!(ended.len(), 1_000);
        assert_eq!(ended.last().map(|(end, _)| *end), Some(1_000 / 4 * 20_000));
        assert!(ended.iter().map(|(_, request)| *request).eq(0..1_000), "in order of arrival");
    }

    #[test]
    fn without_room_a_request_that_finds_all_servers_busy_is_refused() {
        let mut line = Line::new(Shape { room: 0, ..SHAPE });
        assert!(line.arrive(0, 0) && line.arrive(1, 0) && !line.arrive(2, 0));
        assert_eq!(drain(&mut line, 10).len(), 2);
        assert!(line.arrive(3, 10));
    }

    /// `present` requests in the service all the time: how many end a service time of one alone.
    fn throughput(shape: Shape, present: u32) -> f64 {
        let mut line = Line::new(shape);
        (0..present).for_each(|request| assert!(line.arrive(request, 0)));
        let (mut ended, mut last) = (0_u32, 0);
        while ended < 20_000 {
            let end = line.next_end().expect("it is busy");
            let request = line.ended(end).expect("it ends");
            assert!(line.arrive(request, end));
            (ended, last) = (ended + 1, end);
        }
        f64::from(ended) * shape.service_ns as f64 / last as f64
    }

    #[test]
    fn it_scales_as_the_law_says_and_backwards_beyond_its_peak() {
        let shape = Shape { servers: 1_000, service_ns: 1_000_000, room: 1_000, contention: 0.05, coherency: 0.001 };
        let law = |n: f64| n / (1.0 + 0.05 * (n - 1.0) + 0.001 * n * (n - 1.0));
        for present in [1, 2, 10, 30, 100, 300] {
            let (got, want) = (throughput(shape, present), law(f64::from(present)));
            assert!((got / want - 1.0).abs() < 0.03, "{present}: {got} for {want}");
        }
        // With few servers it is the line before them that slows them down.
        let few = Shape { servers: 4, ..shape };
        assert!(throughput(few, 4) > 3.0 * throughput(few, 200));
    }
}
