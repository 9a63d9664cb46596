//! The distinct requests of a log, and the groups they form: requests that differ only in which row
//! they are about form one operation.

use std::collections::HashMap;
use std::sync::Arc;

use holdup_access::pattern;
use holdup_access::request::{METHODS, Request};

use super::LoggedOperation;
use crate::schedule::ReplayedRequest;

/// Most operations that a log is grouped into.
pub const MAX_OPERATIONS: usize = 50;

/// Name of the operation that counts the rarer requests.
const OTHER: &str = "other";

/// Most distinct requests that are kept, and (below) most bytes of their paths: each is laid out in
/// memory before the run.
const MAX_DISTINCT: usize = 200_000;
const MAX_PATH_BYTES: usize = 64 << 20;

/// Most groups that are kept apart while reading.
const MAX_GROUPS: usize = 5_000;

#[derive(Default)]
pub(super) struct Distinct {
    /// By method, then by path.
    known: [HashMap<Arc<str>, u32>; METHODS.len()],
    requests: Vec<ReplayedRequest>,
    path_bytes: usize,
    groups: Vec<Group>,
    by_pattern: HashMap<String, u32>,
    /// Requests that another request of their group stands in for.
    pub replaced: u64,
}

struct Group {
    name: String,
    members: Vec<u32>,
}

impl Distinct {
    /// The number of `request`. Once the table is full, it is the number of another request of its
    /// group.
    pub fn number(&mut self, request: &Request<'_>) -> u32 {
        let known = METHODS.iter().position(|m| *m == request.method).unwrap_or(0);
        if let Some(&number) = self.known[known].get(&*request.path) {
            return number;
        }
        let group = self.group(request);
        let members = &mut self.groups[group as usize].members;
        let full = self.requests.len() >= MAX_DISTINCT || self.path_bytes + request.path.len() > MAX_PATH_BYTES;
        if full && !members.is_empty() {
            self.replaced += 1;
            return members[(self.replaced % members.len() as u64) as usize];
        }
        let number = self.requests.len() as u32;
        let path: Arc<str> = Arc::from(&*request.path);
        members.push(number);
        self.path_bytes += path.len();
        self.known[known].insert(Arc::clone(&path), number);
        self.requests.push(ReplayedRequest { method: request.method, path, operation: group });
        number
    }

    fn group(&mut self, request: &Request<'_>) -> u32 {
        let pattern = pattern(&request.path);
        let name = if request.method == "GET" { pattern } else { format!("{} {pattern}", request.method) };
        if let Some(&group) = self.by_pattern.get(&name) {
            return group;
        }
        let name = if self.groups.len() + 1 >= MAX_GROUPS { OTHER.to_owned() } else { name };
        if let Some(&group) = self.by_pattern.get(&name) {
            return group;
        }
        let group = self.groups.len() as u32;
        self.by_pattern.insert(name.clone(), group);
        self.groups.push(Group { name, members: Vec::new() });
        group
    }

    /// The requests with their final operations, at most [`MAX_OPERATIONS`], the most frequent
    /// first; `which` are the arrivals.
    pub fn finish(mut self, which: &[u32]) -> (Arc<[ReplayedRequest]>, Vec<LoggedOperation>) {
        let mut counts = vec![0u64; self.groups.len()];
        for &number in which {
            counts[self.requests[number as usize].operation as usize] += 1;
        }
        let mut order: Vec<usize> = (0..self.groups.len()).filter(|&g| counts[g] > 0).collect();
        order.sort_by_key(|&g| (self.groups[g].name == OTHER, std::cmp::Reverse(counts[g]), g));
        let kept = if order.len() > MAX_OPERATIONS { MAX_OPERATIONS - 1 } else { order.len() };
        let mut place = vec![kept as u32; self.groups.len()];
        let mut operations: Vec<LoggedOperation> = Vec::new();
        for (i, &group) in order.iter().enumerate() {
            place[group] = i.min(kept) as u32;
            if i <= kept {
                let example = &self.requests[self.groups[group].members[0] as usize];
                operations.push(LoggedOperation {
                    name: if i == kept { OTHER.to_owned() } else { self.groups[group].name.clone() },
                    method: example.method,
                    path: example.path.to_string(),
                    weight: counts[group].clamp(1, 1_000_000) as u32,
                });
            } else if let Some(other) = operations.last_mut() {
                other.weight = (u64::from(other.weight) + counts[group]).min(1_000_000) as u32;
            }
        }
        for request in &mut self.requests {
            // If the log was cut, a request may have no arrival left; then its operation does not
            // matter.
            request.operation = place[request.operation as usize].min(operations.len().saturating_sub(1) as u32);
        }
        (self.requests.into(), operations)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn get(path: String) -> Request<'static> {
        Request { method: "GET", path: Cow::Owned(path) }
    }

    #[test]
    fn groups_are_the_most_frequent_and_the_rest() {
        let mut distinct = Distinct::default();
        let mut which = Vec::new();
        for page in 0..80 {
            for id in 0..=page {
                which.push(distinct.number(&get(format!("/page-{}/{id}?q={id}", "x".repeat(page)))));
            }
        }
        which.push(distinct.number(&Request { method: "HEAD", path: "/page-/1".into() }));
        let (requests, operations) = distinct.finish(&which);
        assert_eq!((requests.len(), operations.len()), (which.len(), MAX_OPERATIONS));
        assert_eq!(operations[0].name, format!("/page-{}/{{id}}", "x".repeat(79)));
        assert_eq!((operations[0].weight, operations[49].name.as_str()), (80, "other"));
        let total: u64 = operations.iter().map(|o| u64::from(o.weight)).sum();
        assert_eq!(total, which.len() as u64);
        let others = which.iter().filter(|&&n| requests[n as usize].operation == 49).count();
        assert_eq!(others as u32, operations[49].weight);
        let few = Distinct::default().finish(&[]);
        assert!(few.0.is_empty() && few.1.is_empty());
    }

    #[test]
    fn memory_is_bounded_whatever_comes() {
        let mut distinct = Distinct::default();
        let mut which = Vec::new();
        for i in 0..300_000 {
            // Words, not numbers, so that each is a group by itself.
            let word: String = format!("{i:06}").bytes().map(|b| (b + 49) as char).collect();
            which.push(distinct.number(&get(format!("/{word}"))));
        }
        assert!(distinct.groups.len() <= MAX_GROUPS && distinct.requests.len() <= MAX_DISTINCT + MAX_GROUPS);
        assert_eq!(distinct.replaced, 100_000);
        let (requests, operations) = distinct.finish(&which);
        assert_eq!(operations.len(), MAX_OPERATIONS);
        assert!(requests.iter().all(|r| (r.operation as usize) < operations.len()));
    }
}
