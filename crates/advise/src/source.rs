//! Source locations as sentences show them.

use nodewise_placement::Context;
use nodewise_profile::{Frame, SiteId};

/// The location of uses by the main thread outside parallel regions.
pub(crate) const SERIAL: &str = "serial code";

/// `file:line` of a site's innermost frame, or its function.
pub(crate) fn place_of_site(context: &Context<'_>, site: SiteId) -> String {
    let frame = context.profile.site(site).and_then(|s| s.frames.first());
    frame.map_or_else(|| "an unknown place".to_owned(), place_of_frame)
}

/// `file:line` of a frame, or the part of it that is known.
pub(crate) fn place_of_frame(frame: &Frame) -> String {
    match frame.line {
        _ if frame.file.is_empty() && frame.function.is_empty() => "an unknown place".to_owned(),
        _ if frame.file.is_empty() => frame.function.clone(),
        line if frame.is_library() => format!("{}:{line} of the standard library", frame.file_name()),
        line => format!("{}:{line}", frame.file_name()),
    }
}

/// `worker (pool.c:12)`, skipping the standard library's wrapper, which says nothing about the program.
pub(crate) fn routine(start: &Frame) -> String {
    match start.function.as_str() {
        name if name.contains("execute_native_thread_routine") => "code of std::thread".to_owned(),
        name if start.file.is_empty() => name.to_owned(),
        name => format!("{name} ({})", place_of_frame(start)),
    }
}
