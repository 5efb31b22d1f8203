//! Rules made real on a running kernel.
