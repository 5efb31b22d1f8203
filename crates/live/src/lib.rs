//! The live loop: observe running programs, decide which pages and threads are to move, move them.
//!
//! **Purpose.** A [`Session`] is built from [`Options`] and a [`Target`]: a command that the caller starts, running
//! processes, or a control group. Each [`Session::turn`] reads the page faults that were sampled
//! (`nodewise_observe::faults`). Once an interval it asks the controller (`nodewise_control`) which pages move and,
//! with [`Options::move_threads`], the thread scheduler which nodes threads get. [`Subscriber`]s are told of it as
//! typed [`Event`]s; the profile ([`Recording`]) and the metrics file ([`Metrics`]) are two of them, and the command
//! line adds its own.
//!
//! [`ThreadFollower`] serves a command that runs under a placement: its pages stay where they were placed, and each
//! thread is moved to the node of the data that it works on.
//!
//! **Constraints.** Nothing here reads arguments or writes to a terminal. Kernel settings that a session changes are
//! restored when it is dropped, and by a watchdog process when it is killed. Threads get their affinity masks back at
//! the end; under AsymSched only if that is asked for.
//!
//! **Non-goals.** Starting programs under a placement (the command line with `nodewise_enforce`); serving a page.

#![forbid(unsafe_code)]

mod claims;
mod document;
mod error;
mod event;
mod fault_latency;
mod heat;
mod holding_times;
mod kernel_moves;
mod metrics;
mod mover;
mod options;
mod ranking;
mod recording;
mod residents;
mod roles;
mod session;
mod share_search;
mod shared_pages;
mod status;
mod target;
mod threads;
mod timed_actuator;
mod topology;
mod touched_pages;
mod unconfirmed_moves;

pub use document::Document;
pub use error::LiveError;
pub use event::{Decided, Event, Found, MovedPages, Run, Subscriber};
pub use metrics::Metrics;
pub use options::{ASYM, Options, ThreadMoves};
pub use recording::Recording;
pub use roles::{FollowedThreads, ThreadFollower};
pub use session::Session;
pub use share_search::{Applied, ShareSearch, Sides};
pub use status::{FastMemory, Locality, Status};
pub use target::Target;
pub use threads::{Gain, ThreadSummary, ThreadsMoved};
pub use topology::Topology;
