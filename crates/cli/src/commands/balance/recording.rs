//! The session as a profile: what was sampled, slice by slice, and every page that moved.

use super::Arguments;
use super::report::Report;
use super::target::Target;
use crate::commands::record::{command_of, meta_of_host};
use crate::output::say;
use nodewise_linux::Host;
use nodewise_machine::NodeId;
use nodewise_observe::faults::{Traced, Watch};
use nodewise_placement::Reason;
use nodewise_profile::{BASE_PAGE_SHIFT, Meta, Migration, Observer, PageNumber, SliceId};
use nodewise_store::Writer;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A profile under construction.
pub struct Recording {
    traced: Traced,
    folder: PathBuf,
    pages: u32,
    samples: u32,
    share: f64,
}

/// Pages that moved, in decisions' pages.
#[derive(Clone, Copy, Debug)]
pub struct MovedPages {
    pub pid: u32,
    pub page: PageNumber,
    pub count: u64,
    pub from: NodeId,
    pub to: NodeId,
}

impl Recording {
    pub fn new(
        arguments: &Arguments,
        target: &Target,
        folder: &Path,
        page_shift: u32,
    ) -> anyhow::Result<Self> {
        let host = Host::default();
        let command = match target {
            Target::Command(words) => words.iter().map(|w| w.to_string_lossy().into_owned()).collect(),
            Target::Processes(pids) => command_of(&host, pids[0]),
            Target::Group(group) => vec![group.display().to_string()],
        };
        let meta = Meta {
            observer: Observer::Faults,
            command,
            slicing: format!("{}ms", arguments.interval.as_millis()),
            ..meta_of_host(&host)
        };
        let mut traced = Traced::new(&host, Writer::create(folder, &meta, arguments.force)?);
        traced.profile_mut().meta = meta;
        Ok(Self {
            traced,
            folder: folder.to_owned(),
            pages: 1 << page_shift,
            samples: arguments.samples,
            share: arguments.observe,
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn heard(&mut self, watch: &Watch) {
        self.traced.take(watch);
    }

    /// An interval is over; what a policy moves now was decided on it. What is known by now is left, should we
    /// be killed.
    pub fn cut(&mut self, now_ns: u64, report: &Report) -> anyhow::Result<()> {
        self.traced.look_at_threads();
        self.traced.cut(now_ns)?;
        let (share, samples) = (self.share, self.samples);
        Ok(self
            .traced
            .checkpoint(|meta| describe(meta, now_ns, report, share, samples))?)
    }

    /// Neighbours that moved, by a policy or the kernel.
    pub fn moved(&mut self, now_ns: u64, by: &str, reason: &Reason, moved: &MovedPages) {
        let address = moved.page.virtual_number() << BASE_PAGE_SHIFT;
        let Some((page, object)) = self.traced.locate(moved.pid, address) else {
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
            against: reason.against,
        });
    }

    pub fn finish(mut self, now_ns: u64, report: &Report) -> anyhow::Result<()> {
        self.cut(now_ns, report)?;
        describe(
            &mut self.traced.profile_mut().meta,
            now_ns,
            report,
            self.share,
            self.samples,
        );
        self.traced.finish()?;
        say!("wrote {}", self.folder.display());
        Ok(())
    }
}

/// What the manifest says of the session.
fn describe(meta: &mut Meta, now_ns: u64, report: &Report, share: f64, samples: u32) {
    let held_back = &report.held_back;
    meta.wall_ns = now_ns;
    meta.exit_status = report.status.map(i32::from);
    meta.kernel_migrations = report.figures.kernel_moved;
    meta.sampling = Some(
        report
            .figures
            .sampling(share, samples, Duration::from_nanos(now_ns)),
    );
    meta.held_back = [
        ("few samples", held_back.few_samples),
        ("resting", held_back.resting),
        ("rate", held_back.rate),
        ("budget", held_back.budget),
    ]
    .map(|(cause, pages)| (cause.to_owned(), pages))
    .into();
}

/// The slice of a move when so many have been cut. A policy's belongs to the one that it has just judged, as
/// the simulator has it: it takes effect with the next. The kernel's happens in the one under way.
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
