//! A real nginx: HTTP/1.1 and HTTP/2, in clear text and over TLS. Where it is missing, tests say so and are skipped; with
//! CI set that is a failure.

use std::fs::{self, File};

use holdup_testing::free_port;

use super::tls::{certificate_file, key_file, trusting};

/// Length of `/large`.
pub const LARGE: u64 = 200_000_000;

/// Streams that it takes at once on an HTTP/2 connection.
pub const STREAMS: u32 = 20;

/// Requests that it takes on a connection before it closes that.
pub const KEPT: u64 = 100;

pub struct Nginx {
    http1: u16,
    http2: u16,
    tls: u16,
    _nginx: holdup_testing::Nginx,
}

impl Nginx {
    /// One of its own, or none where there is no nginx.
    pub fn start() -> Option<Self> {
        let (http1, http2, tls) = (free_port(), free_port(), free_port());
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("html")).unwrap();
        // A file with nothing in it takes no place.
        File::create(dir.path().join("html/large")).unwrap().set_len(LARGE).unwrap();
        // It listens on all of its ports before it answers on one.
        let nginx = holdup_testing::Nginx::start(dir, 512, &configuration(http1, http2, tls), tls)?;
        Some(Self { http1, http2, tls, _nginx: nginx })
    }

    /// Its targets, each with the scenario's `http` section for it, with `more` in that.
    pub fn targets(&self, more: &str) -> [(String, String); 4] {
        let comma = if more.is_empty() { "" } else { ", " };
        let address = |port: u16| format!("127.0.0.1:{port}");
        [
            (format!("http://{}", address(self.http1)), format!("http: {{version: 1.1{comma}{more}}}")),
            (format!("http://{}", address(self.http2)), format!("http: {{version: 2{comma}{more}}}")),
            (format!("https://{}", address(self.tls)), trusting(&format!("version: 1.1{comma}{more}"))),
            (format!("https://{}", address(self.tls)), trusting(&format!("version: 2{comma}{more}"))),
        ]
    }
}

fn configuration(http1: u16, http2: u16, tls: u16) -> String {
    let (certificate, key) = (certificate_file(), key_file());
    format!(
        "access_log off;
        client_max_body_size 0; keepalive_requests {KEPT}; http2_max_concurrent_streams {STREAMS};
        server {{
            listen 127.0.0.1:{http1};
            listen 127.0.0.1:{http2} http2;
            listen 127.0.0.1:{tls} ssl http2;
            ssl_certificate {}; ssl_certificate_key {};
            root html; default_type text/plain; absolute_redirect off;
            location = / {{ return 200 ok; }}
            location /relative {{ return 302 /get-only; }}
            location /absolute {{ return 301 $scheme://$http_host/get-only; }}
            location /other {{ return 302 http://127.0.0.1:1/; }}
            location /see {{ return 303 /get-only; }}
            location /again {{ return 307 /five-posted; }}
            location /loop {{ return 302 /loop; }}
            location /get-only {{ if ($request_method != GET) {{ return 405; }} return 200 ok; }}
            location /five-posted {{
                if ($request_method != POST) {{ return 405; }}
                if ($content_length != 5) {{ return 400; }}
                return 200 ok;
            }}
            location /login {{ add_header Set-Cookie 'id=$connection; Path=/'; return 302 /home; }}
            location /home {{ if ($cookie_id != $connection) {{ return 403; }} return 200 ok; }}
            location /token {{ default_type application/json; add_header X-Number 7; return 200 '{{\"token\":\"abc\"}}'; }}
            location /asked {{
                if ($http_authorization != \"Bearer abc\") {{ return 401; }}
                default_type application/json;
                return 200 '{{\"q\":\"$arg_q\",\"packed\":\"$http_accept_encoding\"}}';
            }}
            location /packed {{ if ($http_accept_encoding = '') {{ return 406; }} return 200 ok; }}
            location /upload {{ proxy_pass http://127.0.0.1:{http1}/; }}
        }}",
        certificate.display(),
        key.display(),
    )
}
