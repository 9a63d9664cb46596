//! Plays the same mix on two servers in rounds, and compares them statement by statement. Each server
//! plays once per round, and the first of a round is the last of the next. Each turn is a separate
//! recording; a file beside them says which is which.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::compare::by_statements;
use super::super::compare_groups::NamedGroup;
use super::super::{judge, print_json};
use super::servers::Server;
use super::{Args, Mix, check};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::repeat::interleave::{Interleave, Turn, prefix_failure};
use crate::repeat::order::balanced;
use crate::{repeat, session, terminal};

/// Default number of rounds: a machine that disturbs one server for a whole round stands out among
/// three.
const ROUNDS: u32 = 3;

/// Most rounds.
pub const MOST: i64 = 1_000;

/// Rejects flags that need two servers.
///
/// # Errors
/// If `args` hold such a flag.
pub fn refuse(args: &Args) -> Result<(), Failure> {
    let asked = [
        ("--rounds", args.rounds.is_some()),
        ("--carries", args.carries.is_some()),
        ("--order-seed", args.order_seed.is_some()),
    ];
    match asked.iter().find(|(_, is_asked)| *is_asked) {
        Some((flag, _)) => {
            Err(Failure::Unusable(format!("{flag} needs two servers: give --to twice, the old server first")))
        }
        None => Ok(()),
    }
}

/// Plays all rounds on both `servers`, the old one first, and compares them.
pub fn run(args: &Args, mix: &mut Mix, servers: &[Server]) -> Result<(), Failure> {
    let dir = args.output.empty_dir("upgrade")?;
    // Report a problem of the second server before the first has played for an hour.
    for server in servers {
        let scenario = args.scenario(mix, server, servers)?;
        if !args.check {
            let mut progress = Progress::new(args.output.quiet, None);
            session::check(&args.session(&scenario, &dir), &mut progress, &AtomicBool::new(false))
                .map_err(|failure| prefix_failure(&server.name, failure))?;
        }
    }
    if args.check {
        return check(args, &mix.facts);
    }
    let stop = crate::stop::stop_flag()?;
    let held = repeat::folder(&dir)?;
    let say = |text: &str| args.output.say(text);
    mix.facts.lines().iter().for_each(|line| say(line));
    let seed = repeat::seed(args.order_seed);
    let order = balanced(servers.len(), args.rounds.unwrap_or(ROUNDS), seed);
    let turns: Vec<&str> = order.iter().map(|(_, which)| servers[*which].name.as_str()).collect();
    say(&format!("{} replays: {} (order drawn by --order-seed {seed})", order.len(), turns.join(" ")));
    let versions = servers.iter().map(|server| server.name.clone()).collect();
    let mut done = Interleave { order: Vec::new(), versions, seed, scenario: "replay".to_owned() };
    let mut ended = Ok(());
    for (at, (round, which)) in order.iter().enumerate() {
        let server = &servers[*which];
        say(&format!("replay {} of {}: {}, round {round}", at + 1, order.len(), server.name));
        let turn =
            Turn { name: server.name.clone(), round: *round, path: PathBuf::from(format!("{}-{round}", server.name)) };
        let scenario = args.scenario(mix, server, servers)?;
        let mut progress = Progress::for_scenario(&scenario, args.output.quiet);
        let mut play = || {
            if stop.load(Ordering::Relaxed) {
                return Err(Failure::Interrupted);
            }
            let recorded = args.play(&mix.facts, &scenario, &dir.join(&turn.path), &mut progress, &stop)?;
            let (diagnosis, reported) = judge(&recorded);
            say(&format!("  {}", diagnosis.headline));
            recorded.whole()?;
            // A replay that was cut off cannot stand beside complete ones.
            if recorded.interrupted {
                return Err(Failure::Interrupted);
            }
            reported
        };
        match play() {
            Ok(()) => {
                done.order.push(turn);
                done.write(&held)?;
            }
            Err(failure) => {
                ended = Err(prefix_failure(&format!("{} of round {round}", server.name), failure));
                break;
            }
        }
    }
    compare(args, &done, &dir)?;
    ended
}

/// Compares the rounds that both have played.
fn compare(args: &Args, done: &Interleave, dir: &Path) -> Result<(), Failure> {
    let group = |name: &String| NamedGroup {
        name: name.clone(),
        recordings: done
            .order
            .iter()
            .filter(|turn| turn.name == *name)
            .map(|turn| (dir.join(&turn.path), Some(turn.round)))
            .collect(),
    };
    let groups: Vec<NamedGroup> = done.versions.iter().map(group).collect();
    let [old, new] = groups.as_slice() else { return Ok(()) };
    if !old.recordings.iter().any(|(_, round)| new.recordings.iter().any(|(_, other)| other == round)) {
        errln!("nothing to compare: no round was played on both servers; the recordings are in {}", dir.display());
        return Ok(());
    }
    let report = by_statements(old, new, args.carries)?;
    if args.output.json {
        return print_json(&report);
    }
    terminal::print(&terminal::statements(&report, false));
    outln!("\nrecordings  {}", dir.display());
    Ok(())
}
