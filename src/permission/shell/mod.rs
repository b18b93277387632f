//! Splits a shell line into parts.
