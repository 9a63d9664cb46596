//! Names for texts that are known only when a template is rendered. Such a text may come from a
//! response or a file of rows, which must not get at secrets or the environment.

use std::sync::Arc;

use super::tree::{LateParser, ParseLate};
use crate::script::Names;

/// The known names, and the same without secrets and environment.
pub(super) struct LateNames<'n> {
    names: &'n Names,
    /// Made when it is first needed.
    shared: Option<Arc<Names>>,
    parse: ParseLate,
}

impl<'n> LateNames<'n> {
    pub(super) fn new(names: &'n Names, parse: ParseLate) -> Self {
        Self { names, shared: None, parse }
    }

    /// Where `names` have neither secrets nor environment.
    pub(super) fn shared(names: &'n Arc<Names>, parse: ParseLate) -> Self {
        Self { names, shared: Some(Arc::clone(names)), parse }
    }

    pub(super) fn parser(&mut self) -> LateParser {
        let names = self.shared.get_or_insert_with(|| Arc::new(self.names.without_outside()));
        LateParser { names: Arc::clone(names), parse: self.parse }
    }
}
