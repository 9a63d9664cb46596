//! Collectors of app servers, on real ones: Puma, gunicorn, unicorn, uWSGI, PHP-FPM, and HAProxy and
//! nginx in front of them, each in a folder and on a port of its own. Where one is not installed its
//! test says so and passes, unless `CI` is set.

mod opensearch;
mod outside;
mod php_fpm;
mod programs;
mod proxies;
mod puma;
mod redis;
mod turns;
mod uwsgi;

use std::time::{Duration, Instant};

use holdup_collect::watch::{Options, collector};
use holdup_collect::{Collector, ProbeError};
use holdup_recording::Batch;

/// For whatever only has to happen at some time.
const PATIENCE: Duration = Duration::from_secs(60);

fn watch(address: &str) -> Box<dyn Collector> {
    collector(address, &Options::default()).expect("an address")
}

fn probed(address: &str) -> Box<dyn Collector> {
    let mut source = watch(address);
    source.probe().expect("a source");
    source
}

fn refused(address: &str) -> ProbeError {
    watch(address).probe().expect_err("no source")
}

/// Sum of `metric` over the series that have all of `labels`; none if there is no such series.
fn sum(batch: &Batch, metric: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let found = batch.samples.iter().filter(|s| s.metric == metric && s.labels.contains(labels));
    found.map(|s| s.value).reduce(|a, b| a + b)
}

/// Samples until `enough` says so; gives the last one, and all events.
fn until(source: &mut dyn Collector, what: &str, mut enough: impl FnMut(&Batch) -> bool) -> Batch {
    let deadline = Instant::now() + PATIENCE;
    let mut events = Vec::new();
    loop {
        let mut batch = Batch::default();
        // What comes and goes may do so while it is looked at.
        let result = source.sample(&mut batch);
        events.append(&mut batch.events);
        batch.events.clone_from(&events);
        if enough(&batch) {
            return batch;
        }
        assert!(Instant::now() < deadline, "no {what}: {result:?} {:#?}", shown(&batch));
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn shown(batch: &Batch) -> Vec<String> {
    let samples = batch.samples.iter().map(|s| format!("{} {} {}", s.metric, s.labels, s.value));
    samples.chain(batch.events.iter().map(|e| format!("event {} {}", e.kind, e.labels))).collect()
}
