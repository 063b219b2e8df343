//! Builds guests.
