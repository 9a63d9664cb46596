//! The formats that are recognised by their lines, and the choice among them: the one that reads
//! most of the first lines, and their times.

use super::columns::Columns;
use super::entry::{Edge, Entry, Field, Part, Scale};
use super::template::{Template, nginx_variable};
use super::{haproxy, names};

/// How the lines of a log are read.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// By a format string.
    Template(Template),
    /// HAProxy's HTTP log.
    Haproxy,
    /// W3C's extended format, whose columns the log names.
    Columns(Columns),
    /// JSON lines.
    Json,
    /// Lines of `key=value`.
    Pairs,
}

/// A format with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Format {
    /// The format in words.
    pub name: String,
    /// How its lines are read.
    pub shape: Shape,
}

impl Format {
    /// The format of a string that the operator gave.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_user(text: &str) -> Result<Self, String> {
        let (template, syntax) = Template::from_user(text)?;
        Ok(Self { name: format!("the given format of {}", syntax.words()), shape: Shape::Template(template) })
    }

    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read<'a>(&self, line: &'a str) -> Result<Entry<'a>, &'static str> {
        match &self.shape {
            Shape::Template(template) => template.read(line),
            Shape::Haproxy => haproxy::read(line),
            Shape::Columns(columns) => columns.read(line),
            Shape::Json => names::json(line),
            Shape::Pairs => names::pairs(line),
        }
    }

    /// The format of `lines`, and how many of them it reads.
    pub fn detect(lines: &[&str]) -> Option<(Self, usize)> {
        let mut columns = Columns::default();
        if lines.iter().any(|line| columns.directive(line)) {
            let rows = lines.iter().filter(|line| !line.starts_with('#'));
            let read = rows.filter(|line| columns.read(line).is_ok()).count();
            return Some((Self { name: "W3C extended log".to_owned(), shape: Shape::Columns(columns) }, read));
        }
        let mut best: Option<(usize, Self, usize)> = None;
        for (name, shape) in known() {
            let format = Self { name, shape };
            let (read, timed, longest_ns) = format.fit(lines);
            // Whole numbers below 1,000 in every line are seconds, not microseconds.
            if read == 0 || format.name.ends_with("%D") && longest_ns < 1_000_000 {
                continue;
            }
            if best.as_ref().is_none_or(|(score, ..)| read + timed > *score) {
                best = Some((read + timed, format, read));
            }
        }
        best.map(|(_, format, read)| (format, read))
    }

    /// Lines that it reads, those of them with a response time, and the longest one.
    fn fit(&self, lines: &[&str]) -> (usize, usize, i64) {
        let has_own_names = matches!(self.shape, Shape::Json | Shape::Pairs);
        let mut found = (0, 0, 0);
        for line in lines {
            let Ok(entry) = self.read(line) else { continue };
            if has_own_names && entry.status == 0 && entry.method.is_empty() {
                continue;
            }
            found.0 += 1;
            found.1 += usize::from(entry.whole_ns.is_some());
            found.2 = found.2.max(entry.whole_ns.unwrap_or(0));
        }
        found
    }
}

const COMMON: &str = r#"$remote_addr $ident $user [$time_local] "$request" $status $bytes"#;
const AGENT: &str = r#" "$referer" "$agent""#;
const FORWARDED: &str = r#" "$forwarded""#;

/// What nginx' formats have after the combined one.
const NGINX_TAILS: [(&str, &str); 9] = [
    (
        "rt= uct= uht= urt=",
        r#" rt=$request_time uct="$upstream_connect_time" uht="$header" urt="$upstream_response_time""#,
    ),
    ("rt= uct= uht= urt=", " rt=$request_time uct=$upstream_connect_time uht=$header urt=$upstream_response_time"),
    ("rt= urt=", " rt=$request_time urt=$upstream_response_time"),
    ("rt=", " rt=$request_time"),
    (
        "request_time= upstream_response_time=",
        " request_time=$request_time upstream_response_time=$upstream_response_time",
    ),
    (
        "ingress controller",
        " $length $request_time [$name] [$other] $upstream_addr $size $upstream_response_time $ustatus $id",
    ),
    ("$request_time $upstream_response_time", " $request_time $upstream_response_time"),
    ("\"$request_time\" \"$upstream_response_time\"", r#" "$request_time" "$upstream_response_time""#),
    ("$request_time", " $request_time"),
];

const ENVOY_HEAD: &str = r#"[%START_TIME%] "%REQ(:METHOD)% %REQ(:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS%"#;
const ENVOY_TAIL: &str = r#" %BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%A%" "%B%" "%C%" "%D%" "%UPSTREAM_HOST%""#;

const BALANCER: &str =
    r#"$end $name $client $server $queue $target $response $status $tstatus $received $sent "$request" $rest"#;

/// Amazon's columns.
fn balancer_variable(name: &str) -> Field {
    match name {
        "end" => Field::Moment(Edge::End),
        "server" => Field::Server,
        "queue" => Field::Summand(Part::Queue, Scale::Seconds),
        "target" => Field::Summand(Part::Upstream, Scale::Seconds),
        "response" => Field::Summand(Part::Response, Scale::Seconds),
        "status" => Field::Status,
        "request" => Field::Request,
        _ => Field::Other,
    }
}

/// Apache's columns: the moment is that of the arrival.
fn apache_variable(name: &str) -> Field {
    match name {
        "time_local" => Field::Moment(Edge::Start),
        "D" => Field::Spent(Part::Whole, Scale::Microseconds),
        "T" => Field::Spent(Part::Whole, Scale::Seconds),
        _ => nginx_variable(name),
    }
}

/// Every known format, the more precise first.
fn known() -> Vec<(String, Shape)> {
    let mut all = Vec::new();
    let mut add = |name: String, compiled: Result<Template, String>| {
        all.extend(compiled.ok().map(|template| (name, Shape::Template(template))));
    };
    let heads = [
        ("combined", format!("{COMMON}{AGENT}")),
        ("combined with X-Forwarded-For", format!("{COMMON}{AGENT}{FORWARDED}")),
        ("common", COMMON.to_owned()),
    ];
    for (head, text) in &heads {
        for (tail, more) in NGINX_TAILS {
            add(format!("nginx, {head} and {tail}"), Template::nginx(&format!("{text}{more}"), &nginx_variable));
        }
        for (tail, more) in [("%T/%D", " $seconds/$D"), ("%D", " $D"), ("%T", " $T")] {
            add(format!("Apache, {head} and {tail}"), Template::nginx(&format!("{text}{more}"), &apache_variable));
        }
    }
    add("Envoy, default".to_owned(), Template::envoy(&format!("{ENVOY_HEAD}{ENVOY_TAIL}")));
    let istio = format!(r#"{ENVOY_HEAD} %E% %F% "%G%"{ENVOY_TAIL} %H%"#);
    add("Envoy, Istio's default".to_owned(), Template::envoy(&istio));
    add("AWS application load balancer".to_owned(), Template::nginx(&format!("$type {BALANCER}"), &balancer_variable));
    add("AWS classic load balancer".to_owned(), Template::nginx(BALANCER, &balancer_variable));
    let [combined, forwarded, common] = &heads;
    for (head, text) in [combined, forwarded] {
        add((*head).to_owned(), Template::nginx(text, &nginx_variable));
    }
    add("combined and unknown fields".to_owned(), Template::nginx(&format!("{COMMON}{AGENT} $rest"), &nginx_variable));
    add(common.0.to_owned(), Template::nginx(&common.1, &nginx_variable));
    all.push(("HAProxy, HTTP".to_owned(), Shape::Haproxy));
    all.push(("JSON lines".to_owned(), Shape::Json));
    all.push(("key=value lines".to_owned(), Shape::Pairs));
    all
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
