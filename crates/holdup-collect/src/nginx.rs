//! `--watch nginx:http://HOST:PORT/PATH`: nginx' page `stub_status`. It shows how many connections
//! nginx has, how many of them are busy, and how many it dropped for want of room. It has no times:
//! those are in the access log, which `log:` follows.

use holdup_recording::Labels;
use holdup_recording::layouts::nginx::figures;
use holdup_recording::metrics::Metric;

use crate::options::Options;
use crate::page::{self, PageError, StatusPage, TIMEOUT};
use crate::prometheus::address::Address;
use crate::reading::Out;
use crate::{Collector, http};

/// Largest answer accepted: the page has four lines.
const BODY_BYTES_MAX: u64 = 64 << 10;

const EXAMPLE: &str = "nginx:http://127.0.0.1:8080/stub_status (in nginx' configuration: location = /stub_status { stub_status; allow 127.0.0.1; deny all; })";

/// An nginx.
struct Nginx {
    agent: ureq::Agent,
    url: Address,
}

/// Makes the collector for `nginx:…`, the URL of the page.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    let url = Address::parse_like(rest, EXAMPLE)?;
    Ok(page::collector(format!("nginx:{}", url.place), Nginx { agent: http::agent(TIMEOUT, "text/plain"), url }))
}

impl StatusPage for Nginx {
    type Figures = Vec<(Metric, f64)>;

    fn ask(&self) -> Result<Self::Figures, PageError> {
        let answer = http::get(&self.agent, &self.url.url, self.url.authorization.as_deref(), BODY_BYTES_MAX)?;
        Ok(match answer.status {
            200 => figures(&String::from_utf8_lossy(&answer.body))
                .ok_or_else(|| format!("its answer is not the page of stub_status; expected {EXAMPLE}")),
            status @ (401 | 403) => Err(format!(
                "it answers with status {status}: allow this address in that location, or use http://USER:PASSWORD@…"
            )),
            status => Err(format!("it answers with status {status}; expected {EXAMPLE}")),
        }?)
    }

    fn put(figures: &Self::Figures, out: &mut Out) {
        figures.iter().for_each(|(metric, value)| out.put(metric, Labels::none(), *value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_and_others() {
        let page =
            "Active connections: 9 \nserver accepts handled requests\n 16 15 31 \nReading: 1 Writing: 2 Waiting: 6 \n";
        let values = |page: &str| figures(page).map(|all| all.iter().map(|(_, value)| *value).collect::<Vec<_>>());
        let expected = Some(vec![9.0, 1.0, 2.0, 6.0, 16.0, 15.0, 31.0]);
        assert_eq!(values(page), expected);
        let more = page.replace("handled requests", "handled times requests").replace("15 31", "15 7 31");
        assert_eq!(values(&more), expected, "columns are found by name");
        for end in 0..page.len() - 4 {
            assert_eq!(values(&page[..end]), None, "{end}");
        }
        assert_eq!(values("<html>Welcome to nginx!</html>"), None);
    }

    #[test]
    fn addresses() {
        let make = |address| crate::watch::collector(address, &Options::default());
        let source = make("nginx:http://me:canary@h:81/s?token=canary").unwrap().source();
        assert_eq!(source, "nginx:http://h:81/s");
        for bad in ["nginx:", "nginx:h:80", "nginx:ftp://h/s", "nginx:http://me:canary@/s"] {
            let error = make(bad).err().unwrap().to_string();
            assert!(error.contains("nginx:http://") && !error.contains("canary"), "{error}");
        }
    }
}
