//! `/proc/pressure/{cpu,io,memory}`: the share of time in which some or all tasks stalled. The means of the
//! last ten seconds are rates of the collector's counter. The resource is in the line, in a title above
//! it, or in the command.

use holdup_recording::{Labels, metrics};

use super::{Context, HOST, Kind, Line, Report, number, text};

pub(super) const KIND: Kind = Kind::lines("/proc/pressure", recognises, read);

/// The resources in the order of `cat /proc/pressure/*`.
const RESOURCES: [&str; 3] = ["cpu", "io", "memory"];

/// What `avg10` covers, nanoseconds.
const TEN_SECONDS: i64 = 10_000_000_000;

fn recognises(lines: &[Line]) -> bool {
    is_title(text(lines, 0)) && entry(text(lines, 1)).is_some() || entry(text(lines, 0)).is_some()
}

/// `==> /proc/pressure/io <==`
fn is_title(line: &str) -> bool {
    line.starts_with("==>") && resource(line).is_some()
}

fn resource(text: &str) -> Option<&'static str> {
    let (_, rest) = text.split_once("pressure/")?;
    RESOURCES.into_iter().find(|name| rest.starts_with(name))
}

/// The file before it, if any, `some` or `full`, and the share (percent) of `avg10`.
fn entry(line: &str) -> Option<(&str, &str, f64)> {
    let (head, rest) = line.split_once(" avg10=")?;
    let (file, kind) = head.rsplit_once(':').unwrap_or(("", head.trim()));
    let share = number(rest.split_whitespace().next()?).filter(|share| (0.0..=100.0).contains(share))?;
    matches!(kind, "some" | "full").then_some((file, kind, share))
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of("/proc/pressure");
    let report = Report { at, interval_ns: TEN_SECONDS, is_since_boot: false };
    let asked: Vec<&'static str> = context.words().filter_map(resource).collect();
    let is_all = asked.is_empty() && context.words().any(|word| word.ends_with("pressure/*"));
    let mut order = if is_all { RESOURCES.to_vec() } else { asked }.into_iter();
    let (mut of, mut used) = (None, 0);
    for (place, line) in lines.iter().enumerate() {
        if is_title(&line.text) {
            of = resource(&line.text);
        } else if let Some((file, kind, share)) = entry(&line.text) {
            // Each file begins with `some`.
            let is_titled = !file.is_empty() || lines.iter().any(|line| is_title(&line.text));
            if kind == "some" && !is_titled {
                of = order.next();
            }
            match resource(file).or(of) {
                Some(resource) => {
                    let labels = Labels::new([("resource", resource), ("kind", kind)]);
                    context.out.rate("pressure", report, HOST, (metrics::host::PRESSURE, labels), share / 100.0);
                }
                None => context.unread.push(place),
            }
        } else if !line.is_blank() {
            break;
        }
        used = place + 1;
    }
    used
}
