//! Chooses the relevant tables: those that are written, read, full of dead rows, or large, with
//! most weight on changes since the last list. A table and its TOAST table are chosen together.
//! Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Largest number of chosen tables, TOAST tables not counted.
const CHOSEN: usize = 50;

/// A table's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Rows inserted, updated and deleted.
    pub(super) writes: i64,
    /// Rows read by scans and through indexes.
    pub(super) reads: i64,
}

/// One table or TOAST table of the list.
#[derive(Clone, Debug, Default)]
pub(super) struct ListedTable {
    pub(super) id: i64,
    /// Its TOAST table.
    pub(super) toast: Option<i64>,
    pub(super) pages: i64,
    pub(super) counts: Counts,
    pub(super) dead: i64,
}

/// A table with its TOAST table: its changes since `before`, and its size.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    writes: i64,
    reads: i64,
    dead: i64,
    pages: i64,
}

/// The tables to read until the next list, out of `listed`. Those of `kept` stay while there is
/// room, so that their counters continue.
pub(super) fn choose(listed: &[ListedTable], before: &HashMap<i64, Counts>, kept: &BTreeSet<i64>) -> BTreeSet<i64> {
    let owners: HashMap<i64, i64> = listed.iter().filter_map(|table| Some((table.toast?, table.id))).collect();
    let mut weights: BTreeMap<i64, (Weight, Vec<i64>)> = BTreeMap::new();
    for table in listed {
        let past = before.get(&table.id).copied().unwrap_or_default();
        // A smaller value means that the counters were reset.
        let since = |now: i64, before: i64| if now >= before { now - before } else { now };
        let (weight, members) = weights.entry(owners.get(&table.id).copied().unwrap_or(table.id)).or_default();
        weight.writes += since(table.counts.writes, past.writes);
        weight.reads += since(table.counts.reads, past.reads);
        weight.dead += table.dead;
        weight.pages += table.pages;
        members.push(table.id);
    }
    let top = |key: fn(&Weight) -> i64| {
        let mut all: Vec<(i64, i64)> =
            weights.iter().map(|(id, (weight, _))| (key(weight), *id)).filter(|(key, _)| *key > 0).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.into_iter().map(|(_, id)| id)
    };
    let mut orders: [Box<dyn Iterator<Item = i64>>; 4] = [
        Box::new(top(|weight| weight.writes)),
        Box::new(top(|weight| weight.dead)),
        Box::new(top(|weight| weight.reads)),
        Box::new(top(|weight| weight.pages)),
    ];
    let mut chosen: BTreeSet<i64> = BTreeSet::new();
    // In turns, so that no criterion takes all the room; half of the room is filled before the kept
    // tables are considered.
    take(&mut chosen, CHOSEN / 2, &mut orders);
    let kept = weights.iter().filter(|(_, (_, members))| members.iter().any(|id| kept.contains(id)));
    for (id, _) in kept {
        if chosen.len() < CHOSEN {
            chosen.insert(*id);
        }
    }
    take(&mut chosen, CHOSEN, &mut orders);
    chosen.iter().filter_map(|id| weights.get(id)).flat_map(|(_, members)| members).copied().collect()
}

/// Adds from each of `orders` in turns until there are `most` tables, or all orders are exhausted.
fn take(chosen: &mut BTreeSet<i64>, most: usize, orders: &mut [Box<dyn Iterator<Item = i64> + '_>]) {
    let mut is_left = true;
    while is_left && chosen.len() < most {
        is_left = false;
        for order in orders.iter_mut() {
            if let Some(id) = order.next() {
                is_left = true;
                if chosen.len() < most {
                    chosen.insert(id);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(id: i64, writes: i64) -> ListedTable {
        ListedTable { id, counts: Counts { writes, reads: 0 }, ..ListedTable::default() }
    }

    fn counts(listed: &[ListedTable]) -> HashMap<i64, Counts> {
        listed.iter().map(|table| (table.id, table.counts)).collect()
    }

    #[test]
    fn tables_written_since_the_last_list_come_first() {
        let mut listed: Vec<ListedTable> = (1..=1000).map(|id| table(id, 1_000_000 - id)).collect();
        let first = choose(&listed, &HashMap::new(), &BTreeSet::new());
        assert_eq!(first, (1..=50).collect(), "of the first list what it has had since ever");
        let before = counts(&listed);
        listed[899].counts.writes += 5;
        let second = choose(&listed, &before, &first);
        assert!(second.contains(&900) && second.len() == 50, "{second:?}");
        assert_eq!(second.intersection(&first).count(), 49, "the others stay");
        let anew = [table(7, 3)];
        assert_eq!(choose(&anew, &HashMap::from([(7, Counts { writes: 900, reads: 0 })]), &BTreeSet::new()).len(), 1);
    }

    #[test]
    fn every_reason_has_its_turn() {
        let mut listed: Vec<ListedTable> = (1..=100).map(|id| table(id, id)).collect();
        listed.push(ListedTable { id: 201, dead: 1, ..ListedTable::default() });
        listed.push(ListedTable { id: 202, pages: 1, ..ListedTable::default() });
        listed.push(ListedTable { id: 203, counts: Counts { writes: 0, reads: 1 }, ..ListedTable::default() });
        listed.push(ListedTable { id: 204, ..ListedTable::default() });
        let chosen = choose(&listed, &HashMap::new(), &BTreeSet::new());
        assert!([201, 202, 203, 100].iter().all(|id| chosen.contains(id)), "{chosen:?}");
        assert!(!chosen.contains(&204), "it has nothing and did nothing");
        assert_eq!(chosen.len(), CHOSEN);
    }

    #[test]
    fn a_toast_table_comes_with_its_table() {
        let mut listed: Vec<ListedTable> = (1..=100).map(|id| table(id, 1000)).collect();
        listed.push(ListedTable { toast: Some(301), ..table(300, 1) });
        listed.push(table(301, 50_000));
        let chosen = choose(&listed, &HashMap::new(), &BTreeSet::new());
        assert!(chosen.contains(&300) && chosen.contains(&301));
        assert_eq!(chosen.len(), CHOSEN + 1);
        let alone = [table(9, 5)];
        assert_eq!(choose(&alone, &HashMap::new(), &BTreeSet::new()), BTreeSet::from([9]));
    }
}
