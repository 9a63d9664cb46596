//! One declaration per table: the [`table!`] macro turns a documented struct into its Parquet
//! schema and the code that writes and reads its columns. Reading tolerates change in both
//! directions: a column the file lacks is empty and named in [`Table::missing`](crate::Table), and
//! unknown columns are ignored.

use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::RowGroupReader;
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::{Type, TypePtr};

use crate::cell::{Cell, CellValue};
use crate::labels::Labels;
use crate::text::{Names, Text};

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// 64-bit integer.
    Int64,
    /// 32-bit integer.
    Int32,
    /// Nanoseconds since the Unix epoch, UTC.
    Timestamp,
    /// Double-precision number.
    Double,
    /// Truth value.
    Bool,
    /// UTF-8 text.
    Text,
    /// UTF-8 text with a JSON object.
    Json,
}

/// One column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ColumnType,
    /// Whether a value may be absent.
    pub optional: bool,
}

impl Column {
    pub(crate) const fn is_time(&self) -> bool {
        matches!(self.kind, ColumnType::Timestamp)
    }
}

/// Most memory for the texts of a column in one row group: a dictionary can repeat one text in each
/// row.
const COLUMN_BYTES_MAX: usize = 256 << 20;

/// A struct that is a row of a table.
pub trait Row: Sized + Clone + Send + 'static {
    /// The name of the table, and of its file without `.parquet`.
    const TABLE: &'static str;
    /// Its columns in order.
    const COLUMNS: &'static [Column];

    /// Writes column `index` of `rows` to `writer`.
    #[doc(hidden)]
    fn write_column(rows: &[Self], index: usize, writer: SerializedColumnWriter<'_>) -> Result<()>;

    /// Approximate memory of the row, in bytes.
    #[doc(hidden)]
    fn bytes(&self) -> usize;

    /// The same without texts that rows share.
    #[doc(hidden)]
    fn own_bytes(&self) -> usize;

    /// Passes the value of each column to `visit`, in order.
    fn each_cell(&self, visit: &mut dyn FnMut(Cell<'_>));

    /// The row of these values; none if one is missing or of another type.
    fn from_cells(cells: &mut dyn Iterator<Item = Cell<'_>>) -> Option<Self>;

    /// Moves every time by `by_ns` nanoseconds.
    #[doc(hidden)]
    fn move_times(&mut self, by_ns: i64);

    /// Reads a row group. `positions[i]` is the position of column `i` in the file, if it exists.
    #[doc(hidden)]
    fn read_group(group: &dyn RowGroupReader, positions: &[Option<usize>]) -> Result<Vec<Self>>;
}

/// Position of the column by which rows of a table are placed in time: its first time.
pub(crate) fn time_column<R: Row>() -> Option<usize> {
    R::COLUMNS.iter().position(Column::is_time)
}

/// The Parquet schema of a table without the columns in `lacking`.
pub(crate) fn parquet_schema<R: Row>(lacking: &[String]) -> Result<TypePtr> {
    let fields = R::COLUMNS.iter().filter(|c| !is_lacking(lacking, c)).map(|c| {
        let (physical, logical) = match c.kind {
            ColumnType::Int64 => (Physical::INT64, None),
            ColumnType::Int32 => (Physical::INT32, None),
            ColumnType::Timestamp => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
            ColumnType::Double => (Physical::DOUBLE, None),
            ColumnType::Bool => (Physical::BOOLEAN, None),
            ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnType::Json => (Physical::BYTE_ARRAY, Some(LogicalType::Json)),
        };
        let repetition = if c.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(c.name, physical)
            .with_repetition(repetition)
            .with_converted_type(ConvertedType::NONE)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    });
    Ok(Arc::new(Type::group_type_builder(R::TABLE).with_fields(fields.collect::<Result<_>>()?).build()?))
}

/// Whether `lacking` names the column.
pub(crate) fn is_lacking(lacking: &[String], column: &Column) -> bool {
    lacking.iter().any(|name| name == column.name)
}

/// A Rust type that can be a column.
pub(crate) trait Field: CellValue {
    type Parquet: DataType;
    /// Data shared by the values of one column of one row group.
    type Shared: Default;
    const KIND: ColumnType;
    const OPTIONAL: bool;

    /// The stored form of the value; none if it is absent.
    fn store(&self) -> Option<<Self::Parquet as DataType>::T>;
    /// The value from its stored form.
    fn load(stored: Option<&<Self::Parquet as DataType>::T>, shared: &mut Self::Shared) -> Self;
    /// Moves a time by `by_ns` nanoseconds. Only whole numbers are times.
    fn move_by(&mut self, _by_ns: i64) {}
    /// Bytes outside of its own size. A text that rows share counts for each of them.
    fn heap_bytes(&self) -> usize {
        0
    }
    /// The same without texts that rows share.
    fn own_bytes(&self) -> usize {
        self.heap_bytes()
    }
}

macro_rules! plain_field {
    ($rust:ty, $parquet:ty, $kind:ident $(, $more:item)?) => {
        impl Field for $rust {
            type Parquet = $parquet;
            type Shared = ();
            const KIND: ColumnType = ColumnType::$kind;
            const OPTIONAL: bool = false;
            fn store(&self) -> Option<<$parquet as DataType>::T> {
                Some(*self)
            }
            fn load(stored: Option<&<$parquet as DataType>::T>, (): &mut ()) -> Self {
                stored.copied().unwrap_or_default()
            }
            $($more)?
        }
    };
}

plain_field!(
    i64,
    Int64Type,
    Int64,
    fn move_by(&mut self, by_ns: i64) {
        *self = self.saturating_add(by_ns);
    }
);
plain_field!(i32, Int32Type, Int32);
plain_field!(f64, DoubleType, Double);
plain_field!(bool, BoolType, Bool);

impl Field for String {
    type Parquet = ByteArrayType;
    type Shared = ();
    const KIND: ColumnType = ColumnType::Text;
    const OPTIONAL: bool = false;
    fn store(&self) -> Option<ByteArray> {
        Some(ByteArray::from(self.as_str()))
    }
    fn load(stored: Option<&ByteArray>, (): &mut ()) -> Self {
        stored.map(|b| String::from_utf8_lossy(b.data()).into_owned()).unwrap_or_default()
    }
    fn heap_bytes(&self) -> usize {
        self.len()
    }
}

impl Field for Text {
    type Parquet = ByteArrayType;
    type Shared = Names;
    const KIND: ColumnType = ColumnType::Text;
    const OPTIONAL: bool = false;
    fn store(&self) -> Option<ByteArray> {
        Some(ByteArray::from(self.as_str()))
    }
    fn load(stored: Option<&ByteArray>, shared: &mut Names) -> Self {
        let number = shared.number(stored.map_or(&[], ByteArray::data));
        shared.text(number).clone()
    }
    fn heap_bytes(&self) -> usize {
        self.len()
    }
    fn own_bytes(&self) -> usize {
        0
    }
}

impl Field for Labels {
    type Parquet = ByteArrayType;
    type Shared = ();
    const KIND: ColumnType = ColumnType::Json;
    const OPTIONAL: bool = false;
    fn store(&self) -> Option<ByteArray> {
        Some(ByteArray::from(self.to_string().into_bytes()))
    }
    fn load(stored: Option<&ByteArray>, (): &mut ()) -> Self {
        stored.map(|b| Labels::from(String::from_utf8_lossy(b.data()).as_ref())).unwrap_or_default()
    }
    fn heap_bytes(&self) -> usize {
        self.iter().map(|(name, value)| 2 * std::mem::size_of::<String>() + name.len() + value.len()).sum()
    }
}

impl<F: Field> Field for Option<F> {
    type Parquet = F::Parquet;
    type Shared = F::Shared;
    const KIND: ColumnType = F::KIND;
    const OPTIONAL: bool = true;
    fn store(&self) -> Option<<F::Parquet as DataType>::T> {
        self.as_ref().and_then(F::store)
    }
    fn load(stored: Option<&<F::Parquet as DataType>::T>, shared: &mut F::Shared) -> Self {
        stored.map(|value| F::load(Some(value), shared))
    }
    fn move_by(&mut self, by_ns: i64) {
        self.iter_mut().for_each(|value| value.move_by(by_ns));
    }
    fn heap_bytes(&self) -> usize {
        self.as_ref().map_or(0, F::heap_bytes)
    }
    fn own_bytes(&self) -> usize {
        self.as_ref().map_or(0, F::own_bytes)
    }
}

/// The column type for type `F` and `name`: an integer whose name ends in `_at` is a time.
pub(crate) const fn column<F: Field>(name: &'static str) -> Column {
    let bytes = name.as_bytes();
    let n = bytes.len();
    let is_time = matches!(F::KIND, ColumnType::Int64)
        && (n == 2 || (n > 2 && bytes[n - 3] == b'_'))
        && bytes[n - 2] == b'a'
        && bytes[n - 1] == b't';
    Column { name, kind: if is_time { ColumnType::Timestamp } else { F::KIND }, optional: F::OPTIONAL }
}

pub(crate) fn write_field<F: Field>(
    values: impl Iterator<Item = F>,
    mut writer: SerializedColumnWriter<'_>,
) -> Result<()> {
    let mut stored = Vec::new();
    let mut levels = Vec::new();
    for value in values {
        let value = value.store();
        levels.push(i16::from(value.is_some()));
        stored.extend(value);
    }
    writer.typed::<F::Parquet>().write_batch(&stored, F::OPTIONAL.then_some(levels.as_slice()), None)?;
    writer.close()
}

/// A column of a row group in stored form.
pub(crate) struct StoredColumn<D: DataType> {
    values: Vec<D::T>,
    /// Whether each row has a value; none if all have one.
    levels: Option<Vec<i16>>,
    /// Number of rows, if the file lacks the column.
    lacking: usize,
}

impl<D: DataType> StoredColumn<D> {
    /// Reads the column at `position` of `group`, if it exists.
    pub fn read(group: &dyn RowGroupReader, position: Option<usize>) -> Result<Self> {
        let count = usize::try_from(group.metadata().num_rows()).map_err(|e| ParquetError::General(e.to_string()))?;
        let Some(position) = position else {
            return Ok(Self { values: Vec::new(), levels: None, lacking: count });
        };
        let descriptor = group.metadata().column(position).column_descr_ptr();
        if descriptor.physical_type() != D::get_physical_type() {
            return Err(ParquetError::General(format!(
                "column {} holds {}, not {}",
                descriptor.name(),
                descriptor.physical_type(),
                D::get_physical_type()
            )));
        }
        let optional = descriptor.max_def_level() > 0;
        let mut reader: ColumnReaderImpl<D> = get_typed_column_reader(group.get_column_reader(position)?);
        let mut values = Vec::with_capacity(count);
        let mut levels = Vec::with_capacity(if optional { count } else { 0 });
        let mut read = 0;
        while read < count {
            let (records, _, _) = reader.read_records(
                count - read,
                if optional { Some(&mut levels) } else { None },
                None,
                &mut values,
            )?;
            if records == 0 {
                let why = format!("column {} ends after {read} of {count} rows", descriptor.name());
                return Err(ParquetError::EOF(why));
            }
            read += records;
        }
        Ok(Self { values, levels: optional.then_some(levels), lacking: 0 })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.levels.as_ref().map_or(self.values.len(), Vec::len) + self.lacking
    }

    /// The values of all rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<&D::T>> {
        let mut values = self.values.iter();
        let own = (0..self.len() - self.lacking).map(move |row| {
            let is_there = self.levels.as_ref().is_none_or(|levels| levels[row] > 0);
            if is_there { values.next() } else { None }
        });
        own.chain(std::iter::repeat_n(None, self.lacking))
    }
}

pub(crate) fn read_field<F: Field>(group: &dyn RowGroupReader, position: Option<usize>) -> Result<Vec<F>> {
    let stored = StoredColumn::<F::Parquet>::read(group, position)?;
    let mut shared = F::Shared::default();
    let mut bytes = 0;
    let load = |value| {
        let field = F::load(value, &mut shared);
        bytes += field.own_bytes();
        if bytes > COLUMN_BYTES_MAX {
            let mib = COLUMN_BYTES_MAX >> 20;
            return Err(ParquetError::General(format!(
                "a column's texts unpack to more than {mib} MiB in one row group"
            )));
        }
        Ok(field)
    };
    stored.iter().map(load).collect()
}

/// Declares a row struct and its table: `table! { /// doc pub struct Name in "table" { /// doc column: Type, … } }`.
macro_rules! table {
    (
        $(#[$meta:meta])*
        pub struct $name:ident in $table:literal {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $type, )*
        }

        impl crate::table::Row for $name {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [crate::table::Column] =
                &[$(crate::table::column::<$type>(stringify!($field))),*];

            fn write_column(
                rows: &[Self],
                index: usize,
                writer: parquet::file::writer::SerializedColumnWriter<'_>,
            ) -> parquet::errors::Result<()> {
                let name = Self::COLUMNS[index].name;
                $(
                    if name == stringify!($field) {
                        return crate::table::write_field(rows.iter().map(|row| row.$field.clone()), writer);
                    }
                )*
                unreachable!("column {name} is declared in COLUMNS")
            }

            fn bytes(&self) -> usize {
                std::mem::size_of::<Self>() $(+ crate::table::Field::heap_bytes(&self.$field))*
            }

            fn own_bytes(&self) -> usize {
                std::mem::size_of::<Self>() $(+ crate::table::Field::own_bytes(&self.$field))*
            }

            fn move_times(&mut self, by_ns: i64) {
                $(
                    if const { crate::table::column::<$type>(stringify!($field)).is_time() } {
                        crate::table::Field::move_by(&mut self.$field, by_ns);
                    }
                )*
            }

            fn each_cell(&self, visit: &mut dyn FnMut(crate::cell::Cell<'_>)) {
                $(visit(crate::cell::CellValue::cell(&self.$field));)*
            }

            fn from_cells(cells: &mut dyn Iterator<Item = crate::cell::Cell<'_>>) -> Option<Self> {
                Some($name { $($field: crate::cell::CellValue::from_cell(cells.next()?)?,)* })
            }

            fn read_group(
                group: &dyn parquet::file::reader::RowGroupReader,
                positions: &[Option<usize>],
            ) -> parquet::errors::Result<Vec<Self>> {
                let mut positions = positions.iter().copied();
                $(
                    let mut $field = crate::table::read_field::<$type>(group, positions.next().flatten())?.into_iter();
                )*
                let count = group.metadata().num_rows();
                Ok((0..count)
                    .map(|_| $name { $($field: $field.next().unwrap_or_default(),)* })
                    .collect())
            }
        }
    };
}
pub(crate) use table;
