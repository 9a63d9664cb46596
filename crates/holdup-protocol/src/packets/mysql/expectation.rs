//! What a command sends, and which response it expects.

use holdup_sql::Dialect;

use super::command::{Command, sql};
use super::login::u32_at;
use super::response::{Expected, Place, PreparePlace};
use super::{LAST_PREPARED, Mysql};
use crate::packets::piece::Sinks;
use crate::packets::statement::SentSql;

impl Mysql {
    /// The SQL of a command with this `content`, and the response to come; none for a command without
    /// one.
    pub(super) fn expectation(
        &mut self,
        command: Command,
        content: &[u8],
        to: &mut Sinks<'_>,
    ) -> Option<(SentSql, Expected)> {
        let id = u32_at(content, 0);
        Some(match command {
            Command::Quit | Command::LongData | Command::Close => return None,
            Command::Query => {
                let text = sql(content, self.has_attributes);
                let sent = text.map(|text| to.statements.digest(text, Dialect::MySql)).unwrap_or_default();
                (sent, Expected::Results(Place::Start))
            }
            Command::Prepare => {
                let sent = to.statements.digest(content, Dialect::MySql);
                self.last_prepared = sent.clone();
                (sent.clone(), Expected::Prepared { sent, place: PreparePlace::Start })
            }
            Command::Execute => (self.prepared_as(id), Expected::Results(Place::Start)),
            Command::Fetch => (self.prepared_as(id).without_trace(), Expected::Rows),
            Command::FieldList => (SentSql::default(), Expected::Fields),
            Command::Processes => (SentSql::default(), Expected::Results(Place::Start)),
            Command::ChangeUser => (SentSql::default(), Expected::Login),
            Command::Stream => (SentSql::default(), Expected::Anything),
            Command::Reset => {
                self.prepared.clear();
                (SentSql::default(), Expected::Simple)
            }
            Command::Simple => (SentSql::default(), Expected::Simple),
        })
    }

    fn prepared_as(&mut self, id: Option<u32>) -> SentSql {
        match id {
            Some(LAST_PREPARED) => {
                // It has no number yet, and must not lend its trace again once it has one.
                if let Some((_, Expected::Prepared { sent, .. })) = self.talk.pending.last() {
                    *sent = sent.without_trace();
                }
                self.last_prepared.lend()
            }
            Some(id) => self.prepared.get_mut(&id).map(|(sent, _)| sent.lend()).unwrap_or_default(),
            None => SentSql::default(),
        }
    }
}
