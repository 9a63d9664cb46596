//! What goes wrong with PostgreSQL: a file each, and a line in [`ALL`], the more specific before what it may be mistaken for.

mod concurrent_commits;
mod concurrent_inserts;
mod concurrent_updates;
mod correlated_subquery;
mod cpu_contention;
mod fetch_large_data;
mod heavy_deletes;
mod insert_large_data;
mod io_contention;
mod missing_index;
mod poor_join;
mod row_lock_contention;
mod too_many_indexes;

use super::Cause;

/// Every cause.
pub const ALL: &[Cause] = &[
    too_many_indexes::CAUSE,
    heavy_deletes::CAUSE,
    insert_large_data::CAUSE,
    missing_index::CAUSE,
    concurrent_inserts::CAUSE,
    concurrent_updates::CAUSE,
    concurrent_commits::CAUSE,
    row_lock_contention::CAUSE,
    correlated_subquery::CAUSE,
    poor_join::CAUSE,
    fetch_large_data::CAUSE,
    io_contention::CAUSE,
    cpu_contention::CAUSE,
];

#[cfg(test)]
mod tests;
