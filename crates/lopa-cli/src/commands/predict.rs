//! `lopa predict`.
