//! A draw's load as a scenario of holdup.

use std::fmt::Write as _;

use crate::load::{Load, Shape, Share};
use crate::statements::{self, ID};
use crate::topology::App;

/// Where the load goes.
#[derive(Clone, Debug)]
pub struct Target {
    /// `http://…`, `mysql://…` or `postgres://…`.
    pub url: String,
    /// The app behind it, or none: then statements are sent.
    pub app: App,
    /// Whether clients keep their connections.
    pub keep_alive: bool,
}

/// A part of the schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Its name.
    pub name: &'static str,
    /// Requests per second at its start.
    pub from: f64,
    /// Requests per second at its end.
    pub to: f64,
    /// Its length.
    pub seconds: f64,
    /// Weights that it has instead of the load's.
    pub mix: Vec<Share>,
}

/// What a fault of the load itself changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Onset {
    /// When it begins, seconds from the start.
    pub begin: f64,
    /// When it ends.
    pub end: f64,
    /// What the rate is multiplied by.
    pub factor: f64,
    /// Weights of the mix.
    pub mix: Vec<Share>,
}

/// The schedule of `seconds` of load. Only a fault of the load itself has an onset.
pub fn phases(load: &Load, seconds: f64, onset: Option<Onset>) -> Vec<Phase> {
    let end_rate = if load.shape == Shape::Ramp { load.rate * 1.5 } else { load.rate };
    let at = |time: f64| load.rate + (end_rate - load.rate) * time / seconds;
    let mix = Vec::new;
    let Some(Onset { begin, end, factor, mix: changed }) = onset else {
        return vec![Phase { name: "load", from: load.rate, to: end_rate, seconds, mix: mix() }];
    };
    let end = end.min(seconds);
    let mut phases = vec![
        Phase { name: "before", from: at(0.0), to: at(begin), seconds: begin, mix: mix() },
        Phase { name: "more", from: at(begin) * factor, to: at(end) * factor, seconds: end - begin, mix: changed },
    ];
    if end < seconds {
        phases.push(Phase { name: "after", from: at(end), to: end_rate, seconds: seconds - end, mix: mix() });
    }
    phases
}

/// The scenario's text.
pub fn yaml(name: &str, target: &Target, load: &Load, phases: &[Phase]) -> String {
    let mut text = format!("name: {name}\ntarget: {}\nload:\n  phases:\n", target.url);
    for phase in phases {
        let seconds = phase.seconds;
        let rate = if (phase.from - phase.to).abs() < 1e-6 {
            format!("rate: {:.3}", phase.from)
        } else {
            format!("ramp: {{from: {:.3}, to: {:.3}}}", phase.from, phase.to)
        };
        let weights: Vec<String> =
            phase.mix.iter().map(|share| format!("{}: {}", share.operation.name(), share.weight)).collect();
        let mix = if weights.is_empty() { String::new() } else { format!(", mix: {{{}}}", weights.join(", ")) };
        let _ = writeln!(text, "    - {{name: {}, {rate}, for: {:.0}ms{mix}}}", phase.name, seconds * 1e3);
    }
    if load.shape == Shape::Poisson {
        text.push_str("  arrivals: poisson\n");
    }
    let _ = writeln!(text, "  connections: {}\n  timeout: 5s", load.connections);
    if !target.keep_alive {
        text.push_str("http: {keep_alive: false}\n");
    }
    text.push_str("operations:\n");
    for share in &load.mix {
        operation(&mut text, target.app, *share);
    }
    if load.has_objectives {
        text.push_str("thresholds:\n  - p95 < 250ms\n  - errors < 1%\n");
    }
    text
}

fn operation(text: &mut String, app: App, share: Share) {
    let (name, weight) = (share.operation.name(), share.weight);
    let id = format!("${{random(1, {})}}", statements::largest_id(share.operation));
    let _ = writeln!(text, "  - name: {name}\n    weight: {weight}");
    if app != App::None {
        let _ = writeln!(text, "    get: /{name}?id={id}");
        return;
    }
    let sql: Vec<String> = statements::of_operation(share.operation).iter().map(|sql| sql.replace(ID, &id)).collect();
    if let [only] = &sql[..] {
        let _ = writeln!(text, "    query: {only:?}");
        return;
    }
    text.push_str("    transaction:\n");
    for statement in &sql {
        let _ = writeln!(text, "      - {{query: {statement:?}}}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Operation;

    fn load(shape: Shape) -> Load {
        let mix = vec![Share { operation: Operation::Order, weight: 3 }];
        Load { rate: 100.0, shape, mix, connections: 20, has_objectives: true }
    }

    #[test]
    fn more_load_is_a_phase_of_its_own() {
        let mix = vec![Share { operation: Operation::Order, weight: 9 }];
        let onset = Onset { begin: 8.0, end: 23.0, factor: 3.0, mix };
        let all = phases(&load(Shape::Even), 25.0, Some(onset));
        let rates: Vec<(f64, f64)> = all.iter().map(|phase| (phase.from, phase.seconds)).collect();
        assert_eq!(rates, [(100.0, 8.0), (300.0, 15.0), (100.0, 2.0)]);
        assert_eq!((all[0].mix.len(), all[1].mix[0].weight, all[2].mix.len()), (0, 9, 0));
        let ramp = phases(&load(Shape::Ramp), 25.0, None);
        assert_eq!((ramp[0].from, ramp[0].to), (100.0, 150.0));
    }

    #[test]
    fn an_app_is_asked_by_path_and_a_database_by_statement() {
        let phases = phases(&load(Shape::Poisson), 20.0, None);
        let target = |app| Target { url: "http://127.0.0.1:1".to_owned(), app, keep_alive: app != App::None };
        let by_app = yaml("a", &target(App::Rust), &load(Shape::Poisson), &phases);
        assert!(by_app.contains("get: /order?id=${random(1, 60000)}"), "{by_app}");
        assert!(by_app.contains("arrivals: poisson") && by_app.contains("{name: load, rate: 100.000, for: 20000ms}"));
        let direct = yaml("a", &target(App::None), &load(Shape::Even), &phases);
        assert!(direct.contains("http: {keep_alive: false}\n") && !by_app.contains("keep_alive"));
        assert!(direct.contains("transaction:\n      - {query: \"INSERT INTO orders"), "{direct}");
    }
}
