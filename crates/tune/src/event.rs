//! What a tuning reports while it runs.

/// An event while a tuning runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something the user should know: one line.
    Note(String),
    /// Measuring begins; the value is the total number of runs.
    Begins(u64),
    /// One run has ended.
    ProgramResult,
    /// All runs are done, or the time limit is reached.
    Ends,
}

/// Receives events; called from one thread, in order.
pub type Listener<'a> = &'a mut dyn FnMut(Event);

/// Reports something that the user should know: one line.
pub(crate) fn note(to: Listener<'_>, text: impl Into<String>) {
    to(Event::Note(text.into()));
}
