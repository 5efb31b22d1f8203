//! Text output of `files`.

mod placed;
mod survey;

pub use placed::placed;
pub use survey::survey;
