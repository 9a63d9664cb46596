//! The rows of one window: what the app reported about its requests and waits, and what the packets
//! show about statements.

use holdup_recording::rows::{Exchange, Span};

use crate::{Missing, View};

impl<'a> View<'a> {
    /// Spans, and sums of waits, that began in the window.
    ///
    /// # Errors
    /// If none were recorded, or they lack one of `columns`.
    pub fn spans(&self, columns: &[&'static str]) -> Result<Vec<&'a Span>, Missing> {
        let enable = "--watch otlp, with the app's OpenTelemetry exporter pointed at it";
        let rows = self.recording.tables.spans.with_columns(columns).map_err(|what| Missing::new(what, enable))?;
        if rows.is_empty() {
            return Err(Missing::new("the app's own spans of its requests", enable));
        }
        Ok(rows.iter().filter(|s| self.window.contains(s.started_at)).collect())
    }

    /// Exchanges with a database whose request was seen in the window.
    ///
    /// # Errors
    /// If none were recorded, or they lack one of `columns`.
    pub fn exchanges(&self, columns: &[&'static str]) -> Result<Vec<&'a Exchange>, Missing> {
        let enable = "--watch wire:PORT with the database's port, as root or with CAP_NET_RAW";
        let rows = self.recording.tables.exchanges.with_columns(columns).map_err(|what| Missing::new(what, enable))?;
        if rows.is_empty() {
            return Err(Missing::new("requests and responses from packets (exchanges)", enable));
        }
        Ok(rows.iter().filter(|e| self.window.contains(e.request_at)).collect())
    }
}
