//! Tests of slices.
