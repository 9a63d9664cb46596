//! The schema's file: YAML that names a collection or a table, and says of each field how its values come
//! about. Every mistake is said with its line and what would be right, before anything is connected.

mod kinds;
#[cfg(test)]
mod tests;

use holdup_load::YamlError;
use holdup_load::yaml::Node;

use crate::field::Field;

/// Most rows: keys stay exact in every client, also where numbers are floating point.
const ROWS_MAX: u64 = 1 << 53;

/// Keys of the file.
const KEYS: [&str; 7] = ["collection", "table", "key", "ids", "rows", "seed", "fields"];

/// What the keys of a collection are. Either sorts as the row's number does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ids {
    /// The row's number.
    #[default]
    Number,
    /// An `ObjectId` whose 24 digits are the row's number, so that a scenario can write it.
    ObjectId,
}

/// What to make.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The name of the collection or table.
    pub table: String,
    /// The name of the field with the row's number, from 1; none for the one that is usual on the server.
    pub key: Option<String>,
    /// What a collection's keys are; a table's are numbers.
    pub(crate) ids: Ids,
    /// How many rows.
    pub rows: u64,
    /// The seed of all random values.
    pub seed: u64,
    pub(crate) fields: Vec<Field>,
}

impl Schema {
    /// Reads the text of `file`; `rows` and `seed` replace those that it has.
    ///
    /// # Errors
    /// The first mistake, with its line and what would be right.
    pub fn read(text: &str, file: &str, rows: Option<u64>, seed: Option<u64>) -> Result<Self, YamlError> {
        let root = Node::parse(text, file)?;
        let map = root.map(&KEYS)?;
        let table = match (map.get("collection"), map.get("table")) {
            (Some(name), None) | (None, Some(name)) => name,
            (None, None) => return Err(root.error("say what to fill: collection: NAME or table: NAME")),
            (Some(_), Some(table)) => return Err(table.error("collection and table exclude each other; keep one")),
        };
        let fields = map.need("fields")?;
        let fields = kinds::fields(fields)?;
        let key = map.get("key").map(|key| key.text().map(str::to_owned)).transpose()?;
        for name in key.iter().map(String::as_str).chain(["_id", "id"].into_iter().filter(|_| key.is_none())) {
            if fields.iter().any(|field| &*field.name == name) {
                let why = format!("\"{name}\" is the key, which is the row's number; name another one with key: NAME");
                return Err(map.need("fields")?.error(why));
            }
        }
        let ids = map.get("ids").map(ids).transpose()?.unwrap_or_default();
        let given = map.get("rows").map(|node| node.integer("rows", 1..=ROWS_MAX)).transpose()?;
        let rows = rows.or(given).ok_or_else(|| root.error("say how many: rows: 1000000, or --rows 1000000"))?;
        let own = map.get("seed").map(|node| node.integer("the seed", 0..=u64::MAX)).transpose()?;
        Ok(Self { table: table.text()?.to_owned(), key, ids, rows, seed: seed.or(own).unwrap_or(1), fields })
    }
}

fn ids(node: &Node) -> Result<Ids, YamlError> {
    match node.text()? {
        "number" => Ok(Ids::Number),
        "objectid" => Ok(Ids::ObjectId),
        other => Err(node.error(format!("expected number or objectid, found \"{other}\""))),
    }
}
