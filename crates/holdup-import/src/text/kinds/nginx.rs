//! nginx' page `stub_status`.

use holdup_recording::Labels;
use holdup_recording::layouts::nginx::figures;

use super::{Kind, text};

pub(super) const KIND: Kind = Kind::lines(
    "stub_status",
    |lines| text(lines, 0).starts_with("Active connections:"),
    |lines, context| {
        let page: Vec<&str> = (0..4).map(|at| text(lines, at)).collect();
        let Some(figures) = figures(&page.join("\n")) else {
            context.unread.push(0);
            return 1;
        };
        let at = context.instant_of("stub_status");
        for (metric, value) in figures {
            context.out.gauge(at, "nginx:", metric.name, Labels::none(), value);
        }
        4
    },
);
