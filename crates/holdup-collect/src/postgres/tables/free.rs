//! Estimates how much of a table's file holds no live row, and names which of three methods was
//! used. The exact figure would require reading the whole table. Pure.

/// The facts about a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableFacts<'a> {
    pub(super) is_toast: bool,
    pub(super) size_bytes: f64,
    /// Live rows, and dead ones not yet removed, as the server estimates them.
    pub(super) live: f64,
    pub(super) dead: f64,
    /// Mean width of a row's columns, bytes: known after an analyze, to accounts that may read the
    /// table.
    pub(super) width_bytes: Option<f64>,
    /// Its options, e.g. `fillfactor=70`.
    pub(super) options: &'a str,
    pub(super) block_bytes: f64,
}

/// Chunks per page of a TOAST table: the server chooses their size so.
const CHUNKS: f64 = 4.0;

/// Bytes of a page's header; then of a row's header with its item pointer.
const PAGE_HEAD: f64 = 24.0;
const ROW_HEAD: f64 = 24.0;
const ROW_PLACE: f64 = 4.0;

/// Bytes without a live row, and the method: `toast_chunks` assumes that every chunk is full (a
/// lower bound); `widths` uses the mean row width; `dead_rows` counts only dead rows not yet
/// removed.
pub(super) fn estimate(known: &TableFacts<'_>) -> Option<(&'static str, f64)> {
    if known.size_bytes <= 0.0 {
        return None;
    }
    let free = |pages: f64| (known.size_bytes - pages.ceil() * known.block_bytes).max(0.0);
    if known.is_toast && known.live > 0.0 {
        return Some(("toast_chunks", free(known.live / CHUNKS)));
    }
    if let Some(width) = known.width_bytes.filter(|_| known.live > 0.0) {
        let row = (ROW_HEAD + width.ceil() + 7.0).div_euclid(8.0) * 8.0 + ROW_PLACE;
        let room = (known.block_bytes - PAGE_HEAD) * fill(known.options) / 100.0;
        return Some(("widths", free(known.live / (room / row).floor().max(1.0))));
    }
    let rows = known.live + known.dead;
    (rows > 0.0).then(|| ("dead_rows", known.size_bytes * known.dead / rows))
}

/// The configured fill factor of its pages, in percent.
fn fill(options: &str) -> f64 {
    let given = options.split(',').find_map(|option| option.strip_prefix("fillfactor="));
    given.and_then(|value| value.parse().ok()).filter(|fill| (10.0..=100.0).contains(fill)).unwrap_or(100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: f64 = 8192.0;

    fn known(pages: f64, live: f64, dead: f64) -> TableFacts<'static> {
        TableFacts {
            is_toast: false,
            size_bytes: pages * PAGE,
            live,
            dead,
            width_bytes: None,
            options: "",
            block_bytes: PAGE,
        }
    }

    #[test]
    fn the_best_of_what_is_known_is_taken_and_named() {
        let toast = TableFacts { is_toast: true, ..known(100.0, 200.0, 0.0) };
        assert_eq!(estimate(&toast), Some(("toast_chunks", 50.0 * PAGE)));
        // 24 + 68 is 96 with its alignment, 100 with its place: 81 rows a page, and 40 of a page half full.
        let wide = TableFacts { width_bytes: Some(68.0), ..known(10.0, 405.0, 0.0) };
        assert_eq!(estimate(&wide), Some(("widths", 5.0 * PAGE)));
        assert_eq!(estimate(&TableFacts { options: "autovacuum_enabled=on,fillfactor=50", ..wide }).unwrap().1, 0.0);
        assert_eq!(estimate(&known(10.0, 30.0, 10.0)), Some(("dead_rows", 2.5 * PAGE)));
    }

    #[test]
    fn nothing_is_made_up() {
        assert_eq!(estimate(&known(0.0, 5.0, 5.0)), None);
        assert_eq!(estimate(&known(10.0, 0.0, 0.0)), None, "never counted");
        let few = TableFacts { width_bytes: Some(100.0), ..known(1.0, 1e9, 0.0) };
        assert_eq!(estimate(&few).unwrap().1, 0.0, "an estimate of more rows than have room");
    }
}
