//! HAProxy's `show stat` (CSV, whose head may begin with `# `) and `show info`: the figures that the
//! collector reads from the stats socket.

use holdup_recording::Labels;
use holdup_recording::layouts::haproxy::{BACKEND, FRONTEND, INFO as LINES, QUEUE, SERVER};
use holdup_recording::metrics::{Metric, haproxy as metric};

use super::{Context, Kind, Line, number, text};

pub(super) const STATS: Kind = Kind::lines("haproxy show stat", |lines| is_header(text(lines, 0)), read);

pub(super) const INFO: Kind =
    Kind::lines("haproxy show info", |lines| text(lines, 0).trim() == "Name: HAProxy", read_info);

/// The source of its rows.
const SOURCE: &str = "haproxy:";

/// Whether a line that begins as a prompt does is the table's head.
pub(in super::super) fn is_header(line: &str) -> bool {
    let line = line.strip_prefix('#').map_or(line, str::trim_start);
    line.starts_with("pxname,svname,") || line.contains(",svname,") && line.contains(",qcur,")
}

/// The fields of a line of CSV.
fn fields(line: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line.as_bytes());
    let record = reader.records().next().and_then(Result::ok);
    record.map_or_else(Vec::new, |record| record.iter().map(str::to_owned).collect())
}

/// A proxy or a server.
struct Row<'r> {
    names: &'r [String],
    values: Vec<String>,
}

impl Row<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        let place = self.names.iter().position(|known| known == name)?;
        self.values.get(place).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn number(&self, name: &str) -> Option<f64> {
        number(self.text(name)?)
    }

    fn put(&self, at: i64, context: &mut Context, labels: &Labels, columns: &[(&str, Metric, f64)]) {
        for (column, metric, unit) in columns {
            if let Some(value) = self.number(column) {
                context.out.gauge(at, SOURCE, metric.name, labels.clone(), value * unit);
            }
        }
    }
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of("haproxy show stat");
    let head = text(lines, 0).trim_start_matches(['#', ' ']);
    let names = fields(head);
    let mut used = 1;
    for line in lines.iter().skip(1).take_while(|line| !line.is_blank()) {
        let row = Row { names: &names, values: fields(&line.text) };
        // The last line may be cut; its last field then is, too.
        let (Some(proxy), Some(server)) = (row.text("pxname"), row.text("svname")) else { break };
        if !line.text.contains(',') || is_header(&line.text) {
            break;
        }
        put(&row, proxy, server, at, context);
        used += 1;
    }
    used
}

fn put(row: &Row<'_>, proxy: &str, server: &str, at: i64, context: &mut Context) {
    match server {
        "FRONTEND" => row.put(at, context, &Labels::new([("frontend", proxy)]), FRONTEND),
        "BACKEND" => {
            let labels = Labels::new([("backend", proxy)]);
            row.put(at, context, &labels, QUEUE);
            row.put(at, context, &labels, BACKEND);
            // In TCP mode it counts connections only.
            let column = if row.number("req_tot").is_some() { "req_tot" } else { "stot" };
            row.put(at, context, &labels, &[(column, metric::REQUESTS, 1.0)]);
        }
        _ => {
            let labels = Labels::new([("backend", proxy), ("server", server)]);
            row.put(at, context, &labels, QUEUE);
            row.put(at, context, &labels, SERVER);
            let Some(status) = row.text("status") else { return };
            let is_up = status.starts_with("UP") || status == "no check";
            if is_up && row.number("slim").is_some_and(|slots| slots > 0.0) {
                row.put(at, context, &labels, &[("slim", metric::SLOTS, 1.0), ("scur", metric::SLOTS_USED, 1.0)]);
            }
            context.out.gauge(at, SOURCE, metric::SERVER_UP.name, labels, f64::from(u8::from(is_up)));
        }
    }
}

fn read_info(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of("haproxy show info");
    let used = lines.iter().take_while(|line| line.text.contains(':')).count();
    for (name, value) in lines.iter().take(used).filter_map(|line| line.text.split_once(':')) {
        let known = LINES.iter().find(|(known, ..)| *known == name.trim());
        if let Some(((_, metric, unit), value)) = known.zip(number(value)) {
            context.out.gauge(at, SOURCE, metric.name, Labels::none(), value * unit);
        }
    }
    used.max(1)
}
