//! Formats the present time as text. It reads no clock.

use holdup_recording::clock;
use jiff::{SignedDuration, Timestamp};

const NS: i64 = 1_000_000_000;

/// Format of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Whole units since the Unix epoch, of so many nanoseconds.
    Since(i64),
    /// RFC 3339 in UTC with milliseconds: `2026-01-31T08:49:37.250Z`.
    Rfc3339,
    /// RFC 9110, section 5.6.7: `Sat, 31 Jan 2026 08:49:37 GMT`.
    Http,
}

impl Moment {
    /// By the name that `now` takes.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "s" => Self::Since(NS),
            "ms" => Self::Since(1_000_000),
            "us" => Self::Since(1_000),
            "ns" => Self::Since(1),
            "rfc3339" => Self::Rfc3339,
            "http" => Self::Http,
            _ => return None,
        })
    }

    /// Writes the time `unix_ns`.
    pub(super) fn write(self, unix_ns: i64, out: &mut Vec<u8>) {
        match self {
            Self::Since(unit) => out.extend_from_slice(itoa::Buffer::new().format(unix_ns.div_euclid(unit)).as_bytes()),
            Self::Rfc3339 => out.extend_from_slice(clock::rfc3339(unix_ns).as_bytes()),
            Self::Http => {
                let moment = Timestamp::UNIX_EPOCH + SignedDuration::from_nanos(unix_ns);
                // The years 1677 to 2262, which have four digits, so that it cannot fail.
                out.extend_from_slice(moment.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string().as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(form: &str, unix_ns: i64) -> String {
        let mut out = Vec::new();
        Moment::by_name(form).expect("a form").write(unix_ns, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn each_form() {
        let at = 784_111_777_250_001_009;
        assert_eq!(written("s", at), "784111777");
        assert_eq!(written("ms", at), "784111777250");
        assert_eq!(written("us", at), "784111777250001");
        assert_eq!(written("ns", at), "784111777250001009");
        assert_eq!(written("rfc3339", at), "1994-11-06T08:49:37.250Z");
        assert_eq!(written("http", at), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(Moment::by_name("m"), None);
    }

    #[test]
    fn the_calendar_turns_where_it_should() {
        assert_eq!(written("rfc3339", 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(written("rfc3339", -1_000_000), "1969-12-31T23:59:59.999Z");
        assert_eq!(written("rfc3339", 951_782_400 * NS), "2000-02-29T00:00:00.000Z");
        assert_eq!(written("http", 1_767_225_599 * NS), "Wed, 31 Dec 2025 23:59:59 GMT");
        assert_eq!(written("rfc3339", i64::MIN), "1677-09-21T00:12:43.145Z");
        assert_eq!(written("rfc3339", i64::MAX), "2262-04-11T23:47:16.854Z");
    }
}
