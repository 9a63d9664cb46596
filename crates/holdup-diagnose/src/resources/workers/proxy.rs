//! The queue of a proxy in front of workers, beside the other places where a request waits for one.

use holdup_recording::words::ms;
use holdup_signals::app::app_server::Workers;
use holdup_signals::evidence::Evidence;

use super::Pool;

impl Pool {
    /// Milliseconds of a request that has no worker yet, wherever it waits for one.
    pub fn queued_ms(&self) -> f64 {
        [self.accept_ms, self.inside_ms, self.proxy_ms].into_iter().flatten().sum()
    }

    /// Whether it is known how many requests wait where they wait first.
    pub fn knows_queue(&self) -> bool {
        self.accept_ms.is_some() || self.proxy_ms.is_some()
    }

    /// Share (0-1) of instants with a connection in the accept queue, or with a proxy out of slots
    /// that has a queue.
    pub fn queue_ratio(&self) -> f64 {
        let has_queue = |slots: &&Workers| slots.queue > Some(0.0);
        let at_proxy = self.slots.as_ref().filter(has_queue).map_or(0.0, |slots| slots.full_ratio);
        self.standing_ratio().max(at_proxy)
    }

    /// The requests that wait for a slot of the proxy.
    pub(super) fn proxy_evidence(&self) -> Option<Evidence> {
        let (slots, proxy_ms) = (self.slots.as_ref()?, self.proxy_ms?);
        let own = slots.queue_time_ms.map_or_else(String::new, |own_ms| {
            format!(" ({} by {}'s mean of its last requests)", ms(own_ms), slots.server)
        });
        let text = format!(
            "{:.1} requests on average waited in {} for one of the {:.0} slots of backend {}: at {:.0} requests/s that is {} per request, by Little's law{own}",
            slots.queue.unwrap_or_default(),
            slots.server,
            slots.most,
            slots.backend.as_deref().unwrap_or_default(),
            self.per_second,
            ms(proxy_ms)
        );
        slots.queue_evidence("0", text)
    }
}
