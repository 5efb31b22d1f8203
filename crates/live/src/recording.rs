//! Records a session as a profile: samples by slice, and every page move.

use crate::error::LiveError;
use crate::event::{Event, Found, MovedPages, Subscriber};
use crate::options::Options;
use crate::status::Status;
use crate::target::Target;
use nodewise_linux::{Host, clock};
use nodewise_observe::faults::Traced;
use nodewise_observe::{command_of, host_meta};
use nodewise_placement::Reason;
use nodewise_profile::{Meta, Migration, Observer, SliceId};
use nodewise_store::Writer;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A subscriber that writes the session as a profile.
pub struct Recording {
    folder: PathBuf,
    /// None once the session has ended.
    open: Option<Open>,
    /// The profile is complete, and the user has not been told yet.
    written: bool,
}

/// A profile under construction.
struct Open {
    traced: Traced,
    /// The decision's page size in base pages.
    pages: u32,
    samples: u32,
    share: f64,
}

impl Recording {
    /// A profile in `folder`, which is replaced if `force` is set. Pages are those that `options` decides for.
    ///
    /// # Errors
    /// The folder exists, or cannot be written.
    pub fn new(options: &Options, target: &Target, folder: &Path, force: bool) -> Result<Self, LiveError> {
        let host = Host::default();
        let command = match target {
            Target::Command(words) => words.iter().map(|w| w.to_string_lossy().into_owned()).collect(),
            Target::Processes(pids) => command_of(&host, pids[0]),
            Target::Group(group) => vec![group.display().to_string()],
        };
        let meta = Meta {
            observer: Observer::Faults,
            command,
            slicing: format!("{}ms", options.interval.as_millis()),
            ..host_meta(&host)
        };
        let mut traced = Traced::new(&host, Writer::create(folder, &meta, force)?);
        traced.profile_mut().meta = meta;
        let open = Open {
            traced,
            pages: 1 << options.page_shift(),
            samples: options.minimum_samples,
            share: options.observe,
        };
        Ok(Self {
            folder: folder.to_owned(),
            open: Some(open),
            written: false,
        })
    }

    /// The folder that the profile is written to.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Open {
    /// Ends an interval: closes its slice and writes the manifest, so that the profile is readable if this process is
    /// killed.
    fn cut(&mut self, now_ns: u64, status: &Status) -> Result<(), nodewise_observe::Error> {
        self.traced.look_at_threads();
        self.traced.cut(now_ns)?;
        let (share, samples) = (self.share, self.samples);
        self.traced
            .checkpoint(|meta| describe(meta, now_ns, status, share, samples))
    }

    /// Adds the move of neighbouring pages, by a policy or the kernel.
    fn moved(&mut self, now_ns: u64, by: &str, reason: &Reason, moved: &MovedPages) {
        let page = moved.page;
        let Some(object) = self.traced.object(moved.pid, page) else {
            return; // of a process without samples: the kernel's moves may be
        };
        let slice = slice_of(by, self.traced.slices());
        let len = moved.count.saturating_mul(u64::from(self.pages));
        self.traced.profile_mut().migrations.push(Migration {
            time_ns: now_ns,
            slice,
            page,
            len: u32::try_from(len).unwrap_or(u32::MAX),
            object,
            from: moved.from.0 as u16,
            to: moved.to.0 as u16,
            by: by.to_owned(),
            to_count: reason.to_count,
            home_count: reason.home_count,
            count_threshold: reason.count_threshold,
        });
    }

    fn finish(mut self, now_ns: u64, status: &Status) -> Result<(), nodewise_observe::Error> {
        self.cut(now_ns, status)?;
        let (share, samples) = (self.share, self.samples);
        describe(
            &mut self.traced.profile_mut().meta,
            now_ns,
            status,
            share,
            samples,
        );
        self.traced.finish().map(drop)
    }
}

impl Subscriber for Recording {
    fn receive(&mut self, at: Duration, event: &Event<'_>) -> Result<(), String> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let now_ns = clock::nanoseconds(at);
        match event {
            Event::Sampled(watch) => open.traced.take(watch),
            Event::Found(Found { moved, by, reason }) => open.moved(now_ns, by, reason, moved),
            Event::Complete(status) => open
                .cut(now_ns, status)
                .map_err(|e| format!("{e}; nothing is recorded from here on"))?,
            Event::Decided(decided) if !decided.dry => {
                for run in decided.runs() {
                    if let Some(pid) = decided.watch.pid(run.first.page.process()) {
                        open.moved(now_ns, decided.policy, &run.first.reason, &run.of(pid));
                    }
                }
            }
            Event::Ended(status) => {
                let ended = self.open.take().map(|open| open.finish(now_ns, status));
                ended.transpose().map_err(|e| e.to_string())?;
                self.written = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn take_notice(&mut self) -> Option<String> {
        let written = std::mem::take(&mut self.written);
        written.then(|| format!("wrote {}", self.folder.display()))
    }
}

/// What the manifest says of the session.
fn describe(meta: &mut Meta, now_ns: u64, status: &Status, share: f64, samples: u32) {
    meta.wall_ns = now_ns;
    meta.exit_status = status.status.map(i32::from);
    meta.kernel_migrations = status.figures.kernel_moved;
    meta.sampling = Some(
        status
            .figures
            .sampling(share, samples, Duration::from_nanos(now_ns)),
    );
    meta.held_back = status.held_back.causes();
}

/// The slice of a move, after this many slices were closed. A policy's move belongs to the slice that it judged, as in
/// the simulator: it takes effect in the next one. The kernel's move belongs to the current slice.
fn slice_of(by: &str, cut: usize) -> SliceId {
    match by {
        Migration::KERNEL | Migration::UNKNOWN => SliceId::from_index(cut),
        _ => SliceId::from_index(cut.saturating_sub(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policys_move_carries_the_slice_it_was_decided_on() {
        assert_eq!(slice_of("dominant", 1), SliceId(0));
        assert_eq!(slice_of("dominant", 7), SliceId(6));
        assert_eq!(slice_of(Migration::KERNEL, 7), SliceId(7));
    }
}
