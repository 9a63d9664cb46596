//! Rows given in the scenario itself.

use super::{Fault, Feeder, FeederError, Table, check_columns};

impl Feeder {
    /// Rows by the names of their columns. The columns are all that any row has, in order of appearance; where a row
    /// lacks one, its cell is empty. A list of mere texts has the column [`Feeder::VALUE`]. Errors name `file`; their
    /// line is the row from 1.
    ///
    /// # Errors
    ///
    /// No rows, or a column without a name or twice in a row.
    ///
    /// ```
    /// use holdup_load::script::Feeder;
    ///
    /// let terms = Feeder::list(&[vec![(Feeder::VALUE, "lamp")], vec![(Feeder::VALUE, "desk")]], "orders.yaml")?;
    /// assert_eq!((terms.columns(), terms.len()), (&["value".to_owned()][..], 2));
    /// assert_eq!(&terms.row(1)[0], "desk");
    /// # Ok::<(), holdup_load::script::FeederError>(())
    /// ```
    pub fn list(rows: &[Vec<(&str, &str)>], file: &str) -> Result<Self, FeederError> {
        let error = |line: usize, fault| FeederError { file: file.to_owned(), line: line as u64, fault };
        let mut columns: Vec<String> = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let before = columns.len();
            for (position, (name, _)) in row.iter().enumerate() {
                if row[..position].iter().any(|(before, _)| before == name) {
                    return Err(error(index + 1, Fault::Twice((*name).to_owned())));
                }
                if !columns.iter().any(|column| column == name) {
                    columns.push((*name).to_owned());
                }
            }
            if columns.len() > before {
                check_columns(&columns).map_err(|fault| error(index + 1, fault))?;
            }
        }
        let mut table = Table::default();
        for (index, row) in rows.iter().enumerate() {
            for column in &columns {
                let cell = row.iter().find(|(name, _)| name == column).map_or("", |(_, cell)| cell);
                table.push(cell).map_err(|fault| error(index + 1, fault))?;
            }
        }
        Self::new(columns, table).map_err(|fault| error(0, fault))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_all_rows() {
        let rows = [vec![("id", "1"), ("name", "é")], vec![], vec![("city", "Bern"), ("id", "3")]];
        let feeder = Feeder::list(&rows, "x").expect("a feeder");
        assert_eq!(feeder.columns(), ["id", "name", "city"]);
        let rows: Vec<Vec<&str>> = (0..feeder.len()).map(|index| feeder.row(index).iter().collect()).collect();
        assert_eq!(rows, [["1", "é", ""], ["", "", ""], ["3", "", "Bern"]]);
    }

    #[test]
    fn beyond_its_end_there_is_nothing() {
        let feeder = Feeder::list(&[vec![("a", "b")]], "x").expect("a feeder");
        for index in [1, 2, usize::MAX] {
            let row = feeder.row(index);
            assert!(row.is_empty() && row.get(0).is_none() && row[0].is_empty());
        }
        assert_eq!((&feeder.row(0)[0], &feeder.row(0)[1], feeder.row(0).len()), ("b", "", 1));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let fault = |rows: &[Vec<(&str, &str)>]| Feeder::list(rows, "x").err().map(|error| error.to_string());
        assert_eq!(fault(&[]).as_deref(), Some("x: has no rows"));
        assert_eq!(fault(&[vec![]]).as_deref(), Some("x: has no rows"));
        assert_eq!(fault(&[vec![("a", "")], vec![("", "")]]).as_deref(), Some("x:2: column 2 has no name"));
        assert_eq!(fault(&[vec![("a", ""), ("a", "")]]).as_deref(), Some("x:1: 'a' is there twice"));
    }
}
