//! `lopa evaluate`.
