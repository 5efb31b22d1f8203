//! Ways in for the fuzz targets.

use crate::summary;

/// What a placed process left.
pub fn summary(bytes: &[u8]) {
    summary::read_everything(bytes);
}
