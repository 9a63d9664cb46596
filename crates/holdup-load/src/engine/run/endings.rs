//! What happens when a request has ended: it is written down, or follows a redirect, and its lane goes to the next.

use super::Loop;
use super::demand::Demand;
use crate::engine::connection::Stage;
use crate::engine::outcome::Outcome;
use crate::engine::plan::{Plan, Prepared};
use crate::sys::monotonic_ns;

/// A user of a closed model whose connection could not be made, or broke, tries again after this.
const RETRY_NS: i64 = 100_000_000;

impl Loop<'_> {
    pub(super) fn keep_cookies(&mut self, index: u32) {
        for (lane, header) in std::mem::take(&mut self.set_cookies) {
            let Some(request) = self.lanes.get(lane) else { continue };
            let own = &self.plan.requests[request.request as usize];
            let path = &request.instead.as_deref().unwrap_or(own).path;
            self.connections[index as usize].cookies.get_or_insert_default().take(&header, path);
        }
    }

    /// A request ended at `at`; unless it leads on to another place, its lane is free.
    pub(super) fn finish(&mut self, lane: u32, outcome: Outcome, at: i64) {
        let mut outcome = outcome;
        if outcome == Outcome::Ok
            && let Some(request) = self.lanes.get_mut(lane)
            && let Some(location) = request.location.take()
        {
            let own = &self.plan.requests[request.request as usize];
            let asked: &Prepared = request.instead.as_deref().unwrap_or(own);
            if let Some(next) = self.plan.redirected(asked, request.status, &location) {
                if request.hops < self.plan.scenario.http.redirects {
                    return self.follow(lane, next);
                }
                outcome = Outcome::TooManyRedirects;
            }
        }
        let Some(request) = self.lanes.end(lane, at) else { return };
        self.books.enter(self.plan, &request, outcome, at, true);
        self.release(lane, outcome, at);
    }

    fn follow(&mut self, lane: u32, next: Prepared) {
        let index = self.lanes.connection(lane);
        let connection = &self.connections[index as usize];
        let cookies = connection.cookies.as_ref().and_then(|c| c.header(&next.path));
        let next = match cookies {
            Some(cookies) => Plan::with_cookies(&next, &cookies),
            None => next,
        };
        let stage = connection.stage();
        if let Some(request) = self.lanes.get_mut(lane) {
            request.hops += 1;
            request.status = 0;
            request.instead = Some(Box::new(next));
        }
        let now = monotonic_ns();
        if stage == Stage::Open {
            self.launch(lane, now);
        } else {
            self.open(index, now);
        }
    }

    /// A lane became free at `at`.
    pub(super) fn release(&mut self, lane: u32, outcome: Outcome, at: i64) {
        let index = self.lanes.connection(lane);
        let connection = &self.connections[index as usize];
        let is_open = connection.stage() == Stage::Open && connection.is_reusable();
        let generation = connection.generation();
        match &mut self.demand {
            Demand::Open(_) => {
                // One that timed out while it waited for room is still set aside.
                if is_open && !connection.spare.contains(&lane) {
                    self.idle.push_back((lane, generation));
                }
            }
            Demand::Closed(users) => {
                let due = at + users.think_ns;
                if is_open && users.think_ns == 0 && due < users.until {
                    self.ask(lane, due);
                } else {
                    let could_not_connect = !is_open && outcome.is_failure();
                    users.think(lane, due + if could_not_connect { RETRY_NS } else { 0 });
                }
            }
        }
    }
}
