//! When PostgreSQL's autovacuum starts on a table.

use crate::View;
use crate::database::tables::TableWrites;

/// The threshold of autovacuum: scale factor and constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VacuumThreshold {
    /// Share (0-1) of the live rows.
    pub scale: f64,
    /// Rows added to it.
    pub threshold: f64,
}

impl VacuumThreshold {
    /// PostgreSQL's own defaults.
    pub const BY_DEFAULT: Self = Self { scale: 0.2, threshold: 50.0 };

    /// The options of `table`, else the server's settings.
    pub fn set(view: &View<'_>, table: &TableWrites) -> Self {
        let options = view.setting_of(&table.source, &format!("reloptions:{}", table.table)).unwrap_or_default();
        let own = |name: &str| {
            let pair = options
                .trim_matches(['{', '}'])
                .split(',')
                .find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='));
            pair.and_then(|value| value.parse::<f64>().ok())
        };
        let number = |name: &str, default: f64| {
            let of_server = || view.setting_of(&table.source, name)?.parse::<f64>().ok();
            own(name).or_else(of_server).unwrap_or(default)
        };
        Self {
            scale: number("autovacuum_vacuum_scale_factor", Self::BY_DEFAULT.scale),
            threshold: number("autovacuum_vacuum_threshold", Self::BY_DEFAULT.threshold),
        }
    }

    /// Dead rows at which a run starts.
    pub fn at(&self, live: f64) -> f64 {
        self.threshold + self.scale * live
    }
}

/// Dead rows at which a run on `table` starts, by its options or the server's settings.
pub fn fires_at(view: &View<'_>, table: &TableWrites) -> f64 {
    VacuumThreshold::set(view, table).at(table.live.unwrap_or(0.0))
}
