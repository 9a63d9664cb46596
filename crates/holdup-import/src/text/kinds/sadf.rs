//! `sadf -j`: what `sar` recorded, as JSON. Each entry has its own time and interval, and its
//! figures are rates over that.

use holdup_recording::clock;

use super::sysstat::{DISK, INTERFACE, put_device, put_host};
use super::{Context, Document, Kind, Report, Value, cpu_table};

pub(super) const KIND: Kind = Kind::document("sadf -j", |head| head.at(&["sysstat", "hosts"]).is_some(), read);

/// Sections with figures of the host.
const SECTIONS: [&str; 5] = ["swap-pages", "paging", "process-and-context-switch", "queue", "memory"];

fn read(document: &Document, context: &mut Context) {
    if document.is_cut {
        context.out.note("sadf -j: the document ends before its last bracket; what follows is unknown");
    }
    let before = context.out.count();
    for host in document.value.at(&["sysstat", "hosts"]).map(Value::items).unwrap_or_default() {
        context.out.learn_cpus(host.get("number-of-cpus").and_then(Value::number).unwrap_or(0.0));
        for entry in host.get("statistics").map(Value::items).unwrap_or_default() {
            if let Some(report) = report(entry, context) {
                put(entry, report, context);
            }
        }
    }
    if context.out.count() == before {
        context.unread.push(0);
    }
}

/// When an entry was recorded, and over which time.
fn report(entry: &Value, context: &mut Context) -> Option<Report> {
    let stamp = entry.get("timestamp")?;
    let (day, time) = (stamp.get("date")?.text()?, stamp.get("time")?.text()?);
    let interval_s = stamp.get("interval")?.number().filter(|seconds| (0.0..1e7).contains(seconds))?;
    let at = clock::parse_rfc3339(&format!("{day}T{time}Z"))?;
    if !stamp.get("utc").is_some_and(Value::is_true) {
        context.out.note("times without a zone were read as UTC");
    }
    context.set_time(at);
    Some(Report { at, interval_ns: (interval_s * 1e9) as i64, is_since_boot: false })
}

fn put(entry: &Value, report: Report, context: &mut Context) {
    let number = |value: &Value, fields: &[&str]| fields.iter().find_map(|field| value.get(field)?.number());
    for cpu in ["cpu-load", "cpu-load-all"].iter().filter_map(|name| entry.get(name)).flat_map(Value::items) {
        let name = cpu.get("cpu");
        if name.and_then(Value::text) == Some("all") || name.and_then(Value::number) == Some(-1.0) {
            context.out.cpu("sadf", report, &cpu_table::shares(|fields| number(cpu, fields), &[]));
        }
    }
    let sections = || SECTIONS.iter().filter_map(|section| entry.get(section));
    put_host("sadf", report, context, &|fields| sections().find_map(|section| number(section, fields)));
    let disks = entry.get("disk").map(Value::items).unwrap_or_default().iter();
    let disks = disks.map(|disk| (&DISK[..], "disk-device", disk));
    let parts = ["net-dev", "net-edev"].iter().filter_map(|part| entry.at(&["network", part])).flat_map(Value::items);
    for (figures, name, thing) in disks.chain(parts.map(|interface| (&INTERFACE[..], "iface", interface))) {
        if let Some(device) = thing.get(name).and_then(Value::text) {
            put_device(figures, device, ("sadf", report), context, &|fields| number(thing, fields));
        }
    }
}
