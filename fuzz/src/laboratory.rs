//! What a guest, its counter and a placed process say.

/// The counter's rows, in pieces.
pub fn rows(data: &[u8]) {
    nodewise_lab::fuzzing::rows(data);
}

/// Lines and bytes on the control channel.
pub fn control(data: &[u8]) {
    nodewise_lab::fuzzing::control(data);
}

/// What a placed process left of itself.
pub fn summary(data: &[u8]) {
    nodewise_enforce::fuzzing::summary(data);
}
