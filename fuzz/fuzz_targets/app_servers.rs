//! What Puma, uWSGI, PHP-FPM and HAProxy report: rows with finite numbers, and names of pools, all
//! bounded. Each input is given to all four.

#![no_main]

use holdup_collect::{haproxy, php_fpm, puma, uwsgi};
use holdup_recording::Batch;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut batch = Batch::default();
    let _ = puma::samples(input, 0, &mut batch);
    let _ = uwsgi::samples(input, &mut batch);
    let of_php = batch.samples.len();
    let _ = php_fpm::samples(input, &mut batch);
    for (sample, at) in batch.samples.iter().zip(0..) {
        assert!(sample.value.is_finite());
        for (name, value) in sample.labels.iter() {
            let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            let is_pool = at >= of_php && name == "pool" && value.chars().count() <= 100;
            assert!(is_number || is_pool, "{name}={value}");
        }
    }
    let mut proxies = Batch::default();
    let _ = haproxy::samples(input, &mut proxies);
    assert!(proxies.samples.len() < 10_000);
    for sample in &proxies.samples {
        assert!(sample.value.is_finite() && sample.labels.iter().all(|(_, value)| value.chars().count() <= 100));
    }
});
