//! The replies to commands: OK or error, columns and rows, further results, prepared statements.
//! Rows are counted; the bytes of unwanted ones are not even collected.

use super::phase::{EOF_BELOW_BYTES, Handle, Phase};
use super::{FULL_PAYLOAD, Mysql, State, failure, head, row, status};
use crate::database::answer::Column;
use crate::database::cursor::Cursor;
use crate::database::event::Error;
use crate::database::inbox::Events;

/// Most columns of a result (MySQL's own limit is 4,096).
const MAX_COLUMNS: u64 = 1 << 16;

/// A flag of columns.
const UNSIGNED: u16 = 1 << 5;

/// The content of an OK packet.
pub(super) struct Ok {
    affected: u64,
    pub(super) status: u16,
    warnings: u16,
}

impl Ok {
    pub(super) fn read(payload: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor(payload);
        cursor.u8()?;
        let affected = cursor.packed()?;
        let _last_id = cursor.packed()?;
        let status = cursor.u16_le()?;
        // Before version 4.1 there were none.
        Result::Ok(Self { affected, status, warnings: cursor.u16_le().unwrap_or(0) })
    }
}

impl Mysql {
    /// Takes a packet of `length` bytes.
    pub(super) fn answered(
        &mut self,
        phase: Phase,
        payload: &[u8],
        length: usize,
        events: &mut Events<'_>,
    ) -> Result<(), Error> {
        // A full packet is a part of a row: its first byte means nothing.
        let first = if length == FULL_PAYLOAD { None } else { payload.first().copied() };
        if let Some(head::ERROR) = first {
            self.failed(failure(payload)?, events);
            return Result::Ok(());
        }
        match phase {
            Phase::Answer { is_binary } => self.begins(payload, is_binary, events)?,
            Phase::Columns { left: 0, is_binary } => {
                if first != Some(head::EOF) || length >= EOF_BELOW_BYTES {
                    return Err(Error::Protocol("more columns than announced"));
                }
                self.state = State::Busy(Phase::Rows { is_binary });
            }
            Phase::Columns { left, is_binary } => {
                if self.answer.wants_row() {
                    let (name, column) = definition(payload)?;
                    self.answer.column(name, column);
                    if self.answer.keeps_every_row && !self.answer.wants_row() {
                        return Err(Error::TooLarge("the names of columns"));
                    }
                }
                self.state = State::Busy(Phase::Columns { left: left - 1, is_binary });
            }
            Phase::Rows { .. } if first == Some(head::EOF) && length < EOF_BELOW_BYTES => {
                let mut cursor = Cursor(payload);
                cursor.u8()?;
                self.answer.warnings += u64::from(cursor.u16_le()?);
                self.status = cursor.u16_le()?;
                self.result_ended(phase, events);
            }
            Phase::Rows { is_binary } => {
                self.answer.count_row(payload, length);
                if self.answer.wants_row() {
                    self.pass_row(payload, length, is_binary, events)?;
                }
                self.state = State::Busy(phase);
            }
            Phase::Prepare => self.prepare_answered(payload, events)?,
            Phase::Definitions { left, handle } => self.await_definitions(left - 1, handle, events),
        }
        Result::Ok(())
    }

    fn begins(&mut self, payload: &[u8], is_binary: bool, events: &mut Events<'_>) -> Result<(), Error> {
        match payload.first() {
            Some(&head::OK) => {
                let ok = Ok::read(payload)?;
                self.status = ok.status;
                self.answer.affected = self.answer.affected.saturating_add(ok.affected);
                self.answer.warnings += u64::from(ok.warnings);
                self.result_ended(Phase::Answer { is_binary }, events);
            }
            Some(&head::LOCAL_FILE) => return Err(Error::Refused("a file of the client")),
            _ => {
                let left = Cursor(payload).packed()?;
                if left > MAX_COLUMNS {
                    return Err(Error::TooLarge("the number of columns"));
                }
                self.answer.columns_begin();
                self.state = State::Busy(Phase::Columns { left, is_binary });
            }
        }
        Result::Ok(())
    }

    /// Another result may follow.
    fn result_ended(&mut self, phase: Phase, events: &mut Events<'_>) {
        let (Phase::Answer { is_binary } | Phase::Rows { is_binary }) = phase else { return };
        if self.status & status::MORE_RESULTS != 0 {
            self.state = State::Busy(Phase::Answer { is_binary });
        } else {
            self.ended(events);
        }
    }

    fn pass_row(
        &mut self,
        payload: &[u8],
        length: usize,
        is_binary: bool,
        events: &mut Events<'_>,
    ) -> Result<(), Error> {
        if payload.len() < length {
            self.answer.no_row();
            return Result::Ok(());
        }
        let statement = self.job.at;
        if is_binary {
            let texts = row::binary(payload, &self.answer.columns)?;
            let values: Vec<Option<&[u8]>> = texts.iter().map(Option::as_deref).collect();
            self.answer.row(statement, &values, events)
        } else {
            self.answer.row(statement, &row::text(payload, self.answer.columns.len())?, events)
        }
    }

    fn prepare_answered(&mut self, payload: &[u8], events: &mut Events<'_>) -> Result<(), Error> {
        let mut cursor = Cursor(payload);
        if cursor.u8()? != head::OK {
            return Err(Error::Protocol("a packet that does not answer a statement to prepare"));
        }
        let id = cursor.u32_le()?;
        let (columns, parameters) = (cursor.u16_le()?, cursor.u16_le()?);
        // Each kind that is present is followed by an EOF.
        let packets = |count: u16| u32::from(count) + u32::from(count > 0);
        self.await_definitions(packets(columns) + packets(parameters), Handle { id, parameters }, events);
        Result::Ok(())
    }

    fn await_definitions(&mut self, left: u32, handle: Handle, events: &mut Events<'_>) {
        if left > 0 {
            self.state = State::Busy(Phase::Definitions { left, handle });
        } else {
            self.prepared(handle, events);
        }
    }
}

/// Name and type of a column.
fn definition(payload: &[u8]) -> Result<(&[u8], Column), Error> {
    let mut cursor = Cursor(payload);
    // Catalog, schema, table, the table's original name.
    for _ in 0..4 {
        cursor.packed_bytes()?;
    }
    let name = cursor.packed_bytes()?;
    let _own_name = cursor.packed_bytes()?;
    // The length of the following bytes, the character set, the length.
    cursor.bytes(1 + 2 + 4)?;
    let kind = cursor.u8()?;
    let flags = cursor.u16_le()?;
    Result::Ok((name, Column { kind, is_unsigned: flags & UNSIGNED != 0, decimals: cursor.u8()? }))
}
