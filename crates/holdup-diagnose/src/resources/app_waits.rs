//! How long a mean request of the app waits for one kind of resource, as spans report it: of single
//! requests that were recorded beside them, or else of the traces alone, where the spans of the
//! service in front are the requests.

use std::collections::BTreeMap;

use holdup_signals::Window;
use holdup_signals::app::accounts::{Accounts, Owner, Resource, SPEAKS, label, trace_of};
use holdup_signals::app::traced::{self, Operation, Requests};

use crate::case::Case;

/// The wait of a mean request, milliseconds on its critical path.
pub struct AppWait {
    /// In the episode.
    pub ms: f64,
    /// In the baseline window, if there is one.
    pub baseline_ms: Option<f64>,
    /// By what it waits for: how much more than in the baseline window.
    pub growth_ms: BTreeMap<String, f64>,
}

/// By what it waits for, milliseconds of a mean request.
type ByName = BTreeMap<String, f64>;

/// The wait for `resource`, which the ledger calls `owner`; none if most requests have no spans.
pub fn waited_for(case: &Case<'_>, owner: Owner, resource: Resource) -> Option<AppWait> {
    of_requests(case, owner, resource).or_else(|| of_traces(case, resource))
}

/// The operations of the service in front; none if their spans cover less than half of the requests
/// that were counted in `window`.
pub fn front<'x, 'a>(case: &Case<'_>, requests: &'x Requests<'a>, window: Window) -> Vec<Operation<'x, 'a>> {
    let service = requests.front();
    let mut operations = requests.operations();
    operations.retain(|operation| Some(operation.service) == service);
    let traced: usize = operations.iter().map(Operation::count).sum();
    let is_enough = case.completed_in(window).map_or(true, |counted| traced as f64 >= SPEAKS * counted);
    if is_enough { operations } else { Vec::new() }
}

fn of_requests(case: &Case<'_>, owner: Owner, resource: Resource) -> Option<AppWait> {
    let ms = case.accounts().mean_ms_of_app(owner)?;
    let baseline = case.baseline_accounts();
    let baseline_ms = baseline.and_then(|baseline| baseline.mean_ms_of_app(owner));
    let before = baseline.map(|baseline| by_name(case, baseline, resource));
    let growth_ms = growth(by_name(case, case.accounts(), resource), before);
    Some(AppWait { ms, baseline_ms, growth_ms })
}

fn of_traces(case: &Case<'_>, resource: Resource) -> Option<AppWait> {
    let now = traced_by_name(case, case.episode(), resource)?;
    let before = case.baseline().and_then(|baseline| traced_by_name(case, baseline.window, resource));
    let ms = now.values().sum();
    let baseline_ms = before.as_ref().map(|before| before.values().sum());
    Some(AppWait { ms, baseline_ms, growth_ms: growth(now, before) })
}

fn growth(mut now: ByName, before: Option<ByName>) -> ByName {
    for (name, ms) in before.unwrap_or_default() {
        *now.entry(name).or_default() -= ms;
    }
    now
}

fn by_name(case: &Case<'_>, accounts: &Accounts<'_>, resource: Resource) -> ByName {
    let mut sums = ByName::new();
    let mut requests = 0.0;
    for account in accounts.all.iter().filter(|account| account.has_app) {
        let Some(app) = trace_of(account.request).and_then(|trace| case.sources().app(trace)) else { continue };
        let count = account.request.count() as f64;
        requests += count;
        for wait in app.waits_for(resource) {
            *sums.entry(label(wait.span).to_owned()).or_default() += wait.counted_ms * count;
        }
    }
    mean_of(sums, requests)
}

fn traced_by_name(case: &Case<'_>, window: Window, resource: Resource) -> Option<ByName> {
    let requests = Requests::collect(case.sources(), window);
    let mut sums = ByName::new();
    let mut count = 0.0;
    for operation in front(case, &requests, window) {
        let accounts: Vec<_> = operation.trees().filter_map(|request| traced::account(&request)).collect();
        // An even choice of a busy operation stands for all of its requests.
        let each = operation.count() as f64 / accounts.len().max(1) as f64;
        for account in &accounts {
            count += each;
            for wait in account.waits_for(resource) {
                *sums.entry(label(wait.span).to_owned()).or_default() += wait.counted_ms * each;
            }
        }
    }
    (count > 0.0).then(|| mean_of(sums, count))
}

fn mean_of(mut sums: ByName, requests: f64) -> ByName {
    sums.values_mut().for_each(|sum| *sum /= f64::max(requests, 1.0));
    sums
}
