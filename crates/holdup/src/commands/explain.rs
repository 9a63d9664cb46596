//! `holdup explain`: what a cause is.

use holdup_diagnose::rules;
use holdup_load::yaml::nearest;

use super::print_json;
use crate::failure::Failure;

/// Say what a cause is, how it is recognised, what else looks like it, and how it is fixed
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  holdup explain\n  holdup explain thread_pool_queue")]
pub struct Args {
    /// Cause; without one, all are listed
    #[arg(value_name = "CAUSE")]
    cause: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let Some(cause) = args.cause else {
        if args.json {
            let all: Vec<_> =
                rules::ALL.iter().map(|r| serde_json::json!({"cause": r.cause, "title": r.doc.title})).collect();
            return print_json(&all);
        }
        for rule in rules::ALL {
            outln!("{:<28}{}", rule.cause, rule.doc.title);
        }
        return Ok(());
    };
    let Some(rule) = rules::by_cause(&cause) else {
        let known: Vec<&str> = rules::ALL.iter().map(|r| r.cause).collect();
        let part = known.iter().copied().find(|name| name.contains(cause.as_str()));
        let hint = nearest(&cause, &known)
            .or(part)
            .map_or_else(|| format!("there are: {}", known.join(", ")), |n| format!("did you mean {n}?"));
        return Err(Failure::Unusable(format!("no cause is called \"{cause}\"; {hint}")));
    };
    if args.json {
        let sections: serde_json::Map<String, serde_json::Value> =
            rule.doc.sections().iter().map(|(heading, text)| ((*heading).to_owned(), (*text).into())).collect();
        return print_json(&serde_json::json!({"cause": rule.cause, "title": rule.doc.title, "sections": sections}));
    }
    let bold = anstyle::Style::new().bold();
    outln!("{bold}{}{bold:#}  ({})", rule.doc.title, rule.cause);
    for (heading, text) in rule.doc.sections() {
        outln!("\n{bold}{heading}{bold:#}\n{text}");
    }
    Ok(())
}
