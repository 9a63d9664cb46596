//! Rows as texts. Those of prepared statements are binary: numbers and times are formatted here as
//! the server would. A floating-point number becomes the shortest text with the same value.

use std::io::Write as _;

use crate::database::answer::Column;
use crate::database::cursor::Cursor;
use crate::database::event::Error;

/// Numbers of types.
pub(crate) mod kind {
    pub(crate) const TINY: u8 = 1;
    pub(crate) const SHORT: u8 = 2;
    pub(crate) const LONG: u8 = 3;
    pub(crate) const FLOAT: u8 = 4;
    pub(crate) const DOUBLE: u8 = 5;
    pub(crate) const NULL: u8 = 6;
    pub(crate) const TIMESTAMP: u8 = 7;
    pub(crate) const LONG_LONG: u8 = 8;
    pub(crate) const INT24: u8 = 9;
    pub(crate) const DATE: u8 = 10;
    pub(crate) const TIME: u8 = 11;
    pub(crate) const DATETIME: u8 = 12;
    pub(crate) const YEAR: u8 = 13;
}

/// Stands for NULL in a row of text.
const NULL: u8 = 0xfb;

/// Decimals of a column without a fixed number of them.
pub(crate) const MAX_DECIMALS: u8 = 6;

/// The values of a text row.
pub(super) fn text(payload: &[u8], columns: usize) -> Result<Vec<Option<&[u8]>>, Error> {
    let mut cursor = Cursor(payload);
    let mut values = Vec::with_capacity(columns);
    while let [first, rest @ ..] = cursor.0 {
        // A packet of 16 MiB may hold as many values.
        if values.len() == columns {
            return Err(Error::Protocol("a row has more or fewer values than there are columns"));
        }
        values.push(if *first == NULL {
            cursor.0 = rest;
            None
        } else {
            Some(cursor.packed_bytes()?)
        });
    }
    Ok(values)
}

/// The values of a binary row, as text.
pub(super) fn binary(payload: &[u8], columns: &[Column]) -> Result<Vec<Option<Vec<u8>>>, Error> {
    let mut cursor = Cursor(payload);
    cursor.u8()?;
    // The first two bits are unused.
    let nulls = cursor.bytes((columns.len() + 2).div_ceil(8))?;
    let value = |(number, column): (usize, &Column)| {
        let bit = number + 2;
        if nulls[bit / 8] >> (bit % 8) & 1 == 1 || column.kind == kind::NULL {
            return Ok(None);
        }
        value(&mut cursor, column).map(Some)
    };
    columns.iter().enumerate().map(value).collect()
}

/// Whether values of this type are numbers.
pub(crate) fn is_number(kind: u8) -> bool {
    matches!(kind, kind::TINY..=kind::DOUBLE | kind::LONG_LONG | kind::INT24 | kind::YEAR)
}

/// The value of a column, of a row or for a parameter, as text.
pub(crate) fn value(cursor: &mut Cursor<'_>, column: &Column) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let number = |signed: i64, unsigned: u64| {
        if column.is_unsigned { unsigned.to_string() } else { signed.to_string() }.into_bytes()
    };
    match column.kind {
        kind::TINY => {
            let [byte] = cursor.array()?;
            out = number(i64::from(byte.cast_signed()), u64::from(byte));
        }
        kind::SHORT | kind::YEAR => {
            let value = cursor.u16_le()?;
            out = number(i64::from(value.cast_signed()), u64::from(value));
        }
        kind::LONG | kind::INT24 => {
            let value = cursor.u32_le()?;
            out = number(i64::from(value.cast_signed()), u64::from(value));
        }
        kind::LONG_LONG => {
            let value = u64::from_le_bytes(cursor.array()?);
            out = number(value.cast_signed(), value);
        }
        kind::FLOAT => out = f32::from_le_bytes(cursor.array()?).to_string().into_bytes(),
        kind::DOUBLE => out = f64::from_le_bytes(cursor.array()?).to_string().into_bytes(),
        kind::DATE | kind::DATETIME | kind::TIMESTAMP => moment(cursor, column, &mut out)?,
        kind::TIME => span(cursor, column, &mut out)?,
        // Strings, blobs, decimals, bits, enumerations, JSON.
        _ => out.extend_from_slice(cursor.packed_bytes()?),
    }
    Ok(out)
}

/// A date, with the time of day if the column has one. Omitted trailing fields are zero.
fn moment(cursor: &mut Cursor<'_>, column: &Column, out: &mut Vec<u8>) -> Result<(), Error> {
    let length = cursor.u8()?;
    let mut given = Cursor(cursor.bytes(usize::from(length))?);
    let (year, month, day) = if length >= 4 { (given.u16_le()?, given.u8()?, given.u8()?) } else { Default::default() };
    // Writing to memory does not fail.
    let _ = write!(out, "{year:04}-{month:02}-{day:02}");
    if column.kind == kind::DATE {
        return Ok(());
    }
    let [hour, minute, second] = if length >= 7 { given.array()? } else { [0; 3] };
    let _ = write!(out, " {hour:02}:{minute:02}:{second:02}");
    let micros = if length >= 11 { given.u32_le()? } else { 0 };
    fraction(micros, column, out);
    Ok(())
}

/// A time, which may be negative and longer than a day.
fn span(cursor: &mut Cursor<'_>, column: &Column, out: &mut Vec<u8>) -> Result<(), Error> {
    let length = cursor.u8()?;
    let mut given = Cursor(cursor.bytes(usize::from(length))?);
    let (sign, days, [hour, minute, second]) =
        if length >= 8 { (given.u8()?, given.u32_le()?, given.array()?) } else { Default::default() };
    let hours = u64::from(days) * 24 + u64::from(hour);
    let _ = write!(out, "{}{hours:02}:{minute:02}:{second:02}", if sign == 0 { "" } else { "-" });
    let micros = if length >= 12 { given.u32_le()? } else { 0 };
    fraction(micros, column, out);
    Ok(())
}

fn fraction(micros: u32, column: &Column, out: &mut Vec<u8>) {
    let digits = match column.decimals {
        0 => return,
        digits @ 1..=MAX_DECIMALS => usize::from(digits),
        _ if micros == 0 => return,
        _ => usize::from(MAX_DECIMALS),
    };
    let all = format!("{micros:06}");
    out.push(b'.');
    out.extend_from_slice(&all.as_bytes()[..digits]);
}
