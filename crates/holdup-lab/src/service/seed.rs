//! Fills the SQLite table `vacancy`. The same number of rows always gives the same content.

use rusqlite::Connection;

const TITLES: &[&str] = &["Driver", "Nurse", "Baker", "Carpenter", "Teacher", "Welder", "Cook", "Analyst", "Surveyor"];
const CITIES: &[&str] = &["Lisbon", "Oslo", "Turin", "Graz", "Gdansk", "Porto", "Ghent", "Split", "Tartu", "Malmo"];
const PHRASES: &[&str] = &[
    "Shifts are planned a month ahead.",
    "We train beginners.",
    "Paid travel from the station.",
    "A permanent contract after half a year.",
    "Tools and clothing are provided.",
    "Two weekends a month are free.",
];

/// Makes `vacancy` with `rows` rows unless the table exists; an existing table stays as it is.
pub fn seed(connection: &mut Connection, rows: u64) -> rusqlite::Result<()> {
    // WAL: readers and a writer do not exclude each other, as on the servers that SQLite represents
    // here.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    if transaction.table_exists(None, "vacancy")? {
        return Ok(());
    }
    transaction.execute_batch(
        "CREATE TABLE vacancy (id INTEGER PRIMARY KEY, title TEXT NOT NULL, city TEXT NOT NULL, salary INTEGER NOT NULL, description TEXT NOT NULL)",
    )?;
    {
        let mut insert = transaction.prepare("INSERT INTO vacancy VALUES (?1, ?2, ?3, ?4, ?5)")?;
        for id in 1..=rows {
            let pick = mix(id);
            let of = |list: &[&'static str], shift: u32| list[(pick >> shift) as usize % list.len()];
            let description = format!("{} {} Reference {pick:016x}.", of(PHRASES, 8), of(PHRASES, 24));
            insert.execute((
                id as i64,
                of(TITLES, 0),
                of(CITIES, 16),
                20_000 + (pick >> 32) as i64 % 60_000,
                description,
            ))?;
        }
    }
    transaction.commit()
}

/// A number that looks random and depends on `n` alone (the finaliser of SplitMix64: Steele, Lea
/// and Flood, 2014).
pub fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_rows_every_time_and_only_once() {
        let sum = |rows| {
            let mut connection = Connection::open_in_memory().expect("memory");
            seed(&mut connection, rows).expect("seeded");
            seed(&mut connection, rows + 5).expect("left as it is");
            connection
                .query_row("SELECT count(*), sum(salary), min(title) FROM vacancy", [], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?))
                })
                .expect("a row")
        };
        assert_eq!(sum(100), sum(100));
        assert_eq!(sum(100).0, 100);
    }
}
