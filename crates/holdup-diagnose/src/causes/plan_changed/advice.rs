//! What to do about a statement with another plan.

use crate::change::Fix;
use holdup_recording::plan::Node;
use holdup_signals::DigestUse;
use holdup_signals::database::plans::Parting;

use crate::causes::parts::identifier;

/// Restore the index or the statistics, where the plans part; then look at the plan.
pub(super) fn fixes(of: &DigestUse, parting: Option<Parting<'_>>) -> Vec<Fix> {
    let is_postgresql = of.source.starts_with("postgresql");
    let (before, after) = parting.map_or((None, None), |parting| (parting.before, parting.after));
    let schema = [after, before].into_iter().flatten().find_map(|node| node.schema.clone());
    let table = [after, before].into_iter().flatten().find_map(|node| node.relation.clone());
    let quoted = |name: &str| identifier::quoted(name, if is_postgresql { '"' } else { '`' });
    let table = table.map(|table| match schema {
        Some(schema) => format!("{}.{}", quoted(&schema), quoted(&table)),
        None => quoted(&table),
    });
    let mut fixes = Vec::new();
    let index = |node: &Node| node.all().into_iter().find_map(|node| node.index.clone());
    let lost = before.and_then(index).filter(|lost| after.and_then(index).as_ref() != Some(lost));
    if let (Some(index), Some(table)) = (lost, &table) {
        let command = if is_postgresql {
            format!(
                "SELECT indexrelid::regclass, indisvalid, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = {}::regclass;",
                identifier::string(table)
            )
        } else {
            format!("SHOW INDEX FROM {table};")
        };
        fixes.push(Fix {
            text: format!(
                "Check that the index {index} still exists and is valid. If not, create it (with CONCURRENTLY, or ALGORITHM=INPLACE, LOCK=NONE)."
            ),
            command: Some(command),
            keep: None,
            risk: Some("Creating an index reads the whole table once and takes disk space.".to_owned()),
        });
    }
    if let Some(table) = &table {
        let command = if is_postgresql { format!("ANALYZE {table};") } else { format!("ANALYZE TABLE {table};") };
        fixes.push(Fix {
            text: format!("Update the statistics of {table}: wrong row estimates lead to wrong plans."),
            command: Some(command),
            keep: None,
            risk: Some("Reads a sample of the table. Plans of other statements may change, too.".to_owned()),
        });
    }
    let command = if is_postgresql {
        format!("EXPLAIN (ANALYZE, BUFFERS, SETTINGS) {};", of.text.trim_end_matches(';'))
    } else {
        format!("EXPLAIN FORMAT=JSON {};", of.text.trim_end_matches(';'))
    };
    fixes.push(Fix {
        text: "See the plan with a value for each ?, and compare the planner's settings with earlier ones.".to_owned(),
        command: Some(command),
        keep: None,
        risk: None,
    });
    fixes
}
