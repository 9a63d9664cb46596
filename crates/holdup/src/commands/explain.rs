//! `holdup explain`: prints the page on a cause.

use holdup_diagnose::explain::pages;
use holdup_load::yaml::nearest;

use super::print_json;
use crate::failure::Failure;

/// Explain a cause: how to recognise it, its look-alikes, its fix
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  holdup explain\n  holdup explain thread_pool_queue\n  holdup explain network_delay --json"
)]
pub struct Args {
    /// Cause; lists all without one
    #[arg(value_name = "CAUSE")]
    cause: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let pages = pages();
    let Some(cause) = args.cause else {
        if args.json {
            let all: Vec<_> =
                pages.iter().map(|page| serde_json::json!({"cause": page.cause, "title": page.title})).collect();
            return print_json(&all);
        }
        for page in pages {
            outln!("{:<28}{}", page.cause, page.title);
        }
        return Ok(());
    };
    let Some(page) = pages.iter().find(|page| page.cause.slug() == cause) else {
        let known: Vec<&str> = pages.iter().map(|page| page.cause.slug()).collect();
        let part = known.iter().copied().find(|name| name.contains(cause.as_str()));
        let hint = nearest(&cause, &known)
            .or(part)
            .map_or_else(|| format!("there are: {}", known.join(", ")), |n| format!("did you mean {n}?"));
        return Err(Failure::Unusable(format!("no cause is called \"{cause}\"; {hint}")));
    };
    if args.json {
        let sections: serde_json::Map<String, serde_json::Value> =
            page.sections.iter().map(|(heading, text)| ((*heading).to_owned(), text.as_str().into())).collect();
        return print_json(&serde_json::json!({"cause": page.cause, "title": page.title, "sections": sections}));
    }
    let bold = crate::terminal::style::Style::new().bold();
    outln!("{bold}{}{bold:#}  ({})", page.title, page.cause);
    for (heading, text) in &page.sections {
        outln!("\n{bold}{heading}{bold:#}\n{text}");
    }
    Ok(())
}
