//! Responses whole, cut, hostile.
