//! Running programs to profiles.
