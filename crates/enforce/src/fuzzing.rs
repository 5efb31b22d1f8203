//! Entry points for the fuzz targets.

use crate::summary;

/// Parses the summary file of a placed process.
pub fn summary(bytes: &[u8]) {
    summary::read_everything(bytes);
}
