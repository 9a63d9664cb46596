//! `kubectl get events`, also `-o wide` and of all namespaces, and `kubectl events`.

use super::super::{Context, Kind, Line};
use super::happened::Happened;
use super::{age_ns, asked_namespace, each_row, has_columns, repeated, source};

pub(in super::super) const KIND: Kind = Kind::lines("kubectl get events", recognises, read);

fn recognises(lines: &[Line]) -> bool {
    has_columns(lines, &["OBJECT", "MESSAGE", "REASON"]) || has_columns(lines, &["NAME", "KIND", "MESSAGE", "REASON"])
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let now = context.instant_of(KIND.name);
    let asked = asked_namespace(context);
    each_row(lines, context, recognises, |row, context| {
        let reason = row.text(&["REASON"])?;
        let (last, over, count) = row.text(&["LAST SEEN", "LASTSEEN"]).and_then(repeated)?;
        let first = row.text(&["FIRST SEEN", "FIRSTSEEN"]).and_then(age_ns).or(over);
        let count = row.text(&["COUNT"]).and_then(|count| count.parse().ok()).unwrap_or(count);
        // Before 1.14 kind and name are columns of their own.
        let (object, (kind, name)) = match row.text(&["OBJECT"]) {
            Some(object) => (object, object.split_once('/').unwrap_or(("", object))),
            None => (row.text(&["NAME"])?, (row.text(&["KIND"])?, row.text(&["NAME"])?)),
        };
        let is_pod = kind.eq_ignore_ascii_case("pod");
        let namespace = row.text(&["NAMESPACE"]).unwrap_or(&asked);
        let container = row.text(&["SUBOBJECT"]).and_then(in_braces);
        Happened {
            source: source(namespace, is_pod.then_some(name)),
            first: first.map(|age| now.saturating_sub(age)),
            last: now.saturating_sub(last),
            count,
            reason,
            message: row.text(&["MESSAGE"]).unwrap_or_default(),
            severity: row.text(&["TYPE"]).unwrap_or_default(),
            container,
            object: (!is_pod).then(|| object.to_owned()),
        }
        .put(context);
        Some(())
    })
}

/// The container in `spec.containers{app}`.
pub(super) fn in_braces(text: &str) -> Option<&str> {
    text.split_once('{').and_then(|(_, rest)| rest.strip_suffix('}'))
}
