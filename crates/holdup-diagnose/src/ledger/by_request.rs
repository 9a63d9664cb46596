//! The ledger's rows from joined requests: exact for each, if they are most of a band.

use std::collections::HashMap;

use holdup_recording::rows::Request;

use super::{LedgerRow, Part};
use holdup_recording::words::round;
use holdup_signals::app::accounts::{Account, Accounts, Amounts, Owner, SPEAKS};
use holdup_signals::time::requests::{mean_over, response_ms, service_ms};

/// Joined accounts by request.
pub(crate) struct Joined<'x, 'a>(HashMap<*const Request, &'x Account<'a>>);

impl<'x, 'a> Joined<'x, 'a> {
    /// Indexes `accounts`.
    pub fn new(accounts: &'x Accounts<'a>) -> Self {
        let joined = accounts.all.iter().filter(|a| a.is_joined);
        Self(joined.map(|a| (std::ptr::from_ref(a.request), a)).collect())
    }

    /// The row of a band, if most of its `requests` are joined. The client's measurements cover all
    /// of them; the parts within service time are those of the joined ones, scaled to it.
    pub fn row(&self, operation: &str, band: &str, requests: &[&Request]) -> Option<LedgerRow> {
        let mut sum = Amounts::default();
        let (mut joined, mut all, mut joined_service_ms) = (0.0, 0.0, 0.0);
        for request in requests {
            let count = request.count() as f64;
            all += count;
            let Some(account) = self.0.get(&std::ptr::from_ref(*request)) else { continue };
            joined += count;
            joined_service_ms += service_ms(request).unwrap_or(0.0) * count;
            sum.add_all(&account.amounts, count);
        }
        if joined < SPEAKS * all || joined == 0.0 {
            return None;
        }
        let mean = |f: fn(&Request) -> f64| mean_over(requests.iter().copied(), |r| Some(f(r))).unwrap_or(0.0);
        let response = mean(response_ms);
        let service = mean(|r| service_ms(r).unwrap_or(0.0));
        let scale = if joined_service_ms > 0.0 { service / joined_service_ms } else { 0.0 };
        let amount = |owner: Owner| match owner {
            Owner::ClientQueue => (mean(holdup_signals::time::requests::client_queue_ms), 0.0),
            Owner::Connect => (mean(|r| r.connect_ns as f64 / 1e6), 0.0),
            Owner::SendLag => (mean(|r| holdup_signals::time::requests::send_lag_ms(r).unwrap_or(0.0)), 0.0),
            owner => (sum.ms(owner) * scale, sum.error_ms(owner) * scale),
        };
        let amounts = Owner::ALL.map(|owner| (owner, amount(owner)));
        let owned: f64 = amounts.iter().map(|(_, (ms, _))| ms).sum();
        let is_shown = |owner: Owner, ms: f64| (owner as usize) <= Owner::SendLag as usize || round(ms, 3) > 0.0;
        Some(LedgerRow {
            operation: operation.to_owned(),
            band: band.to_owned(),
            requests: requests.iter().map(|r| r.count()).sum(),
            response_ms: round(response, 3),
            parts: amounts
                .iter()
                .filter(|(owner, (ms, _))| is_shown(*owner, *ms))
                .map(|(owner, (ms, error_ms))| Part {
                    part: owner.name().to_owned(),
                    ms: round(*ms, 3),
                    error_ms: round(error_ms.min(response), 3),
                })
                .collect(),
            residual_ms: round(response - owned, 3),
        })
    }
}
