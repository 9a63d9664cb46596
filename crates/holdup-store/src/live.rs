//! A running recording into a store: the rows that have reached the disk since the last call, each
//! once. It has no thread and no clock; a caller that was refused calls again. When the recording has
//! ended, [`push::push_after`](crate::push::push_after) sends the rest, and checks all of it.

use std::path::Path;

use holdup_recording::follow::{Follower, News};
use holdup_recording::tables::{TableVisitor, each_table};
use holdup_recording::{Recording, Row};

use crate::catalog::Place;
use crate::client::Client;
use crate::error::StoreError;
use crate::insert::Inserter;
use crate::push::{self, Progress, Sent};

/// A running recording on its way into a store.
pub struct Live {
    place: Place,
    begun_at: i64,
    follower: Follower,
}

impl Live {
    /// Tells the store that this recording begins.
    ///
    /// # Errors
    /// If the store has another one of that name, or the server refuses.
    pub fn begin(client: &Client, dir: &Path, place: &Place) -> Result<Self, StoreError> {
        let begun_at = push::announce(client, &Recording::manifest(dir)?, place)?;
        Ok(Self { place: place.clone(), begun_at, follower: Follower::new(dir) })
    }

    /// Sends the new rows. `seen` hears how far it is, and returns false to stop.
    ///
    /// # Errors
    /// If the server did not confirm them. The next call sends them again.
    pub fn send(&mut self, client: &Client, seen: &mut dyn FnMut(Progress) -> bool) -> Result<(), StoreError> {
        loop {
            let mut news = self.follower.look()?;
            let is_all = news.is_all();
            each_table(&mut Passing { live: self, client, news: &mut news, seen: &mut *seen })?;
            if is_all {
                return Ok(());
            }
        }
    }

    /// What it has sent.
    pub fn sent(&self) -> Sent {
        Sent { begun_at: self.begun_at, rows: self.follower.rows() }
    }
}

struct Passing<'p> {
    live: &'p mut Live,
    client: &'p Client,
    news: &'p mut News,
    seen: &'p mut dyn FnMut(Progress) -> bool,
}

impl TableVisitor for Passing<'_> {
    type Error = StoreError;

    fn table<R: Row>(&mut self) -> Result<(), StoreError> {
        let inserter = Inserter::new(self.client, self.live.place.clone(), self.live.begun_at);
        let seen = &mut *self.seen;
        self.live.follower.pass::<R, StoreError>(self.news, &mut |first, rows| {
            let mut done = first;
            inserter.insert(first, rows, &mut |count| {
                done += count;
                seen(Progress { table: R::TABLE, rows: done, rows_total: first + rows.len() as u64 })
            })
        })
    }
}
