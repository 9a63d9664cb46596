//! One value of a row without its Rust type, for stores other than Parquet files. It is borrowed from
//! the row, so passing a table on copies no text.

use std::borrow::Cow;

use crate::labels::Labels;
use crate::text::Text;

/// The value of one column in one row. Times are `Int64`, JSON is `Text`.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'c> {
    /// No value, in an optional column.
    Absent,
    /// 64-bit integer, or nanoseconds since the Unix epoch.
    Int64(i64),
    /// 32-bit integer.
    Int32(i32),
    /// Double-precision number.
    Double(f64),
    /// Truth value.
    Bool(bool),
    /// UTF-8 text.
    Text(Cow<'c, str>),
}

/// A Rust type that can be passed on as a [`Cell`].
pub(crate) trait CellValue: Sized {
    /// The value for another store.
    fn cell(&self) -> Cell<'_>;
    /// The value back; none if the cell has another type.
    fn from_cell(cell: Cell<'_>) -> Option<Self>;
}

macro_rules! plain_cell {
    ($rust:ty, $kind:ident) => {
        impl CellValue for $rust {
            fn cell(&self) -> Cell<'_> {
                Cell::$kind(*self)
            }
            fn from_cell(cell: Cell<'_>) -> Option<Self> {
                if let Cell::$kind(value) = cell { Some(value) } else { None }
            }
        }
    };
}

plain_cell!(i64, Int64);
plain_cell!(i32, Int32);
plain_cell!(f64, Double);
plain_cell!(bool, Bool);

macro_rules! text_cell {
    ($rust:ty, $cell:expr, $from:expr) => {
        impl CellValue for $rust {
            fn cell(&self) -> Cell<'_> {
                let cell: fn(&Self) -> Cow<'_, str> = $cell;
                Cell::Text(cell(self))
            }
            fn from_cell(cell: Cell<'_>) -> Option<Self> {
                let from: fn(Cow<'_, str>) -> Self = $from;
                if let Cell::Text(text) = cell { Some(from(text)) } else { None }
            }
        }
    };
}

text_cell!(String, |text| Cow::Borrowed(text), |text| text.into_owned());
text_cell!(Text, |text| Cow::Borrowed(text.as_str()), |text| Text::from(text.into_owned()));
text_cell!(Labels, |labels| Cow::Owned(labels.to_string()), |text| Labels::from(text.as_ref()));

impl<V: CellValue> CellValue for Option<V> {
    fn cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Absent, V::cell)
    }
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Absent => Some(None),
            cell => V::from_cell(cell).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Event, Session};
    use crate::table::Row;

    fn through<R: Row>(row: &R) -> Option<R> {
        let mut cells = Vec::new();
        row.each_cell(&mut |cell| cells.push(into_owned(cell)));
        assert_eq!(cells.len(), R::COLUMNS.len());
        R::from_cells(&mut cells.into_iter())
    }

    fn into_owned(cell: Cell<'_>) -> Cell<'static> {
        match cell {
            Cell::Text(text) => Cell::Text(Cow::Owned(text.into_owned())),
            Cell::Absent => Cell::Absent,
            Cell::Int64(value) => Cell::Int64(value),
            Cell::Int32(value) => Cell::Int32(value),
            Cell::Double(value) => Cell::Double(value),
            Cell::Bool(value) => Cell::Bool(value),
        }
    }

    #[test]
    fn rows_come_back_from_their_cells() {
        let session = Session {
            observed_at: i64::MIN,
            source: "a\0'\n".into(),
            user: Some("".into()),
            age_ns: Some(-1),
            ..Session::default()
        };
        assert_eq!(through(&session), Some(session));
        let event = Event { labels: Labels::new([("b", "\"\\"), ("a", "\u{1f600}")]), ..Event::default() };
        assert_eq!(through(&event), Some(event));
    }

    #[test]
    fn a_cell_of_another_type_or_none_makes_no_row() {
        let texts = std::iter::repeat_n(Cell::Text(Cow::Borrowed("x")), Event::COLUMNS.len());
        assert_eq!(Event::from_cells(&mut texts.into_iter()), None);
        assert_eq!(Event::from_cells(&mut std::iter::once(Cell::Int64(1))), None);
    }
}
