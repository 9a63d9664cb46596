//! What Puma, uWSGI and PHP-FPM tell of themselves: rows with finite numbers, and nothing in them that is no figure but a number or a pool's
//! name, bounded. Each is given to all three.

#![no_main]

use holdup_collect::{php_fpm, puma, uwsgi};
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
});
