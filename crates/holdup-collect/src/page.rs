//! A status page as a source: a program that tells all of itself in one answer. A collector of such a
//! page says how to ask, and which figure of the answer is which metric.

use std::time::Duration;

use holdup_recording::{Batch, Coverage};

use crate::reading::{Out, tell};
use crate::{Collector, ProbeError, ReadError};

/// Time limit of one request.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// Why a page has no figures.
#[derive(Debug)]
pub(crate) enum PageError {
    /// A password or a token is wrong or missing.
    Denied(String),
    Other(String),
}

impl From<String> for PageError {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

/// How to ask a program, and what it says.
pub(crate) trait StatusPage: Send + 'static {
    /// The content of an answer.
    type Figures;

    /// Asks once.
    ///
    /// # Errors
    /// Why an answer is missing, or not one of this program; without a secret.
    fn ask(&self) -> Result<Self::Figures, PageError>;

    /// Adds the samples of an answer.
    fn put(figures: &Self::Figures, out: &mut Out);

    /// Names and values of settings that the answer tells.
    fn settings(_: &Self::Figures) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// A page as a source.
struct Page<P> {
    source: String,
    page: P,
    /// Those of the last answer: a full program may be too busy to answer again.
    settings: Vec<(&'static str, String)>,
}

/// The collector of `page`, whose rows are called `source`.
pub(crate) fn collector(source: String, page: impl StatusPage) -> Box<dyn Collector> {
    Box::new(Page { source, page, settings: Vec::new() })
}

impl<P: StatusPage> Collector for Page<P> {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let figures = self.page.ask().map_err(|error| match error {
            PageError::Denied(why) => ProbeError::denied(&self.source, why),
            PageError::Other(why) => ProbeError::unreachable(&self.source, why),
        })?;
        self.settings = P::settings(&figures);
        Ok(Coverage::with_parts(&self.source, Vec::new()))
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        tell(batch, &self.source, self.settings.iter().cloned());
        Ok(())
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut out = Out::new(batch, &self.source);
        let figures = out.read(|| self.page.ask());
        let figures = figures.map_err(|(PageError::Denied(why) | PageError::Other(why))| ReadError(why))?;
        P::put(&figures, &mut out);
        self.settings = P::settings(&figures);
        Ok(())
    }
}
