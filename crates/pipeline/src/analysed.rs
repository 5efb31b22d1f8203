//! A profile with metrics, predictions and advice, as `report`, `serve` and `top` show it.

use crate::compare::moving::{Limits, Split, split};
use crate::passes::LaterPasses;
use crate::selection::{Files, Selected, Selection};
use anyhow::bail;
use nodewise_advise::{MIN_GAIN, ReportOptions, advise};
use nodewise_analysis::{Affinity, HomeCounts, LastWrites, NodeCounts, Usage};
use nodewise_page::{Film, Placement, Placements, View};
use nodewise_placement::{Context, Copies, INSTANCES, MIRROR, Mapping, page_policy, thread_policy};
use nodewise_profile::ObjectId;
use nodewise_report::{Findings, Report};
use nodewise_simulation::{Moving, Parameters, Prediction, Simulation};
use std::path::{Path, PathBuf};

/// The default thread placement if only sharing is known, and (`IN_ORDER`) if nothing is known.
const SHARING: &str = "sharing-aware";
const IN_ORDER: &str = "compact";
/// The baseline of all comparisons.
const FIRST_TOUCH: &str = "first-touch";

/// A profile with its metrics, predictions and advice.
pub struct Analysed {
    /// Profile, histogram, affinity and machine.
    pub selected: Selected,
    /// The mappings compared; the first is first-touch.
    pub mappings: Vec<Mapping>,
    /// Predicted costs of the mappings, in the same order.
    pub simulation: Simulation,
    /// The report, with verdict and advice.
    pub report: Report,
    /// The objects of the report, in its order.
    pub objects: Vec<ObjectId>,
    /// Remarks of policies on their mappings.
    pub notes: Vec<String>,
}

/// A program as typed in a shell: one in the current folder needs a slash.
fn typed(program: &Path) -> String {
    let text = program.display().to_string();
    match text.contains('/') {
        true => text,
        false => format!("./{text}"),
    }
}

impl Analysed {
    /// Accesses with pages where they were first touched: `[node of the thread][node of the page]`.
    #[must_use]
    pub fn accesses_by_node(&self) -> Vec<Vec<u64>> {
        let (selected, homes) = (&self.selected, &self.mappings[0].nodes);
        let nodes = selected.machine.node_count();
        HomeCounts::of(&selected.histogram, &selected.affinity, &[homes], nodes, |_| true)[0].of_chosen()
    }

    /// Number of pages: `[node that accesses them most][node that first touched them]`.
    #[must_use]
    pub fn pages_by_node(&self) -> Vec<Vec<u64>> {
        let selected = &self.selected;
        let nodes = selected.machine.node_count();
        let mut pages = vec![vec![0; nodes]; nodes];
        let mut counts = NodeCounts::new(nodes);
        for (page, home) in selected.histogram.iter().zip(&self.mappings[0].nodes) {
            let most = counts.load(page.entries, &selected.affinity).dominant().0;
            pages[most.index()][home.index()] += 1;
        }
        pages
    }

    /// Analyses a profile with the policies of a comma-separated list; first-touch comes first, whether it is listed or
    /// not. The list may contain one `balance:P`. The report then has the moves that this policy would make within
    /// `limits`, from where pages are first touched, unless the profile has recorded moves. If `balance:P` is the only
    /// entry, it is compared with all policies.
    ///
    /// # Errors
    /// Those of [`Selection::open`] and [`Selected::mappings`]; also if there are several policies that move pages, or
    /// the profile cannot be read to its end.
    pub fn of(selection: &Selection, policies: &str, limits: &Limits) -> anyhow::Result<Self> {
        Ok(Self::read(selection, policies, limits, false)?.0)
    }

    /// The page's view of a profile, and the remarks of policies on their mappings.
    ///
    /// # Errors
    /// Those of [`Analysed::of`].
    pub fn view(
        selection: &Selection,
        policies: &str,
        limits: &Limits,
    ) -> anyhow::Result<(View, Vec<String>)> {
        let (mut analysed, film) = Self::read(selection, policies, limits, true)?;
        let notes = std::mem::take(&mut analysed.notes);
        Ok((analysed.shown(film.expect("asked for"))?, notes))
    }

    /// Analyses the profile, with a film of the run if `filmed` is set: the first pass makes the histogram, from which policies make
    /// mappings; in the [later passes](LaterPasses) these are predicted; then come advice and the report.
    fn read(
        selection: &Selection,
        policies: &str,
        limits: &Limits,
        filmed: bool,
    ) -> anyhow::Result<(Self, Option<Film>)> {
        let (mut sums, mut writes) = (Usage::default(), LastWrites::default());
        let selected = selection.open_with(&mut [&mut sums, &mut writes])?;
        let list = split(policies);
        let parameters = selection.parameters(&selection.machine, &selected.profile().meta);
        let (moving, own_moves) = mover(&selected, &list, limits, &parameters)?;
        let pages = match list.pages.as_str() {
            "" => "all",
            pages => pages,
        };
        let (mappings, mut notes) = selected.mappings(pages)?;
        let copies = copies(&selected, &list, &writes)?;
        notes.extend(own_moves);
        let mappings = with_baseline(&selected, mappings);
        let mut found = LaterPasses::of(&selected, &mappings, moving, copies, sums, filmed, &parameters)?;
        if list.copies.is_empty() {
            let mirrored = found.copies.first();
            if !mirrored.is_some_and(|mirror| gains_more(mirror, &found.simulation)) {
                found.copies.clear();
            }
        }
        let context = selected.context();
        // The options of the next command that the report suggests.
        let report_options = ReportOptions {
            profile: selected.reader.folder().display().to_string(),
            machine: selection.machine.clone(),
            plain: selection
                .plain
                .clone()
                .or_else(|| selected.profile().meta.plain_program.as_ref().map(PathBuf::from))
                .map(|p| typed(&p)),
            map: unused_map("app"),
        };
        let advice = advise(
            &context,
            &found.simulation,
            &mappings[0],
            &found.usage,
            found.matched.as_ref(),
            &report_options,
            found.samples,
        );
        let report = Report::new(&Findings {
            context: &context,
            mappings: &mappings,
            simulation: &found.simulation,
            moving: found.moving.as_ref(),
            copies: &found.copies,
            advice: &advice,
            timeline: &found.timeline,
        });
        let analysed = Self {
            objects: advice.objects.iter().map(|o| o.blame.object).collect(),
            simulation: found.simulation,
            selected,
            mappings,
            report,
            notes,
        };
        Ok((analysed, found.film))
    }

    fn shown(self, film: Film) -> anyhow::Result<View> {
        let after = self.placed(SHARING, self.chosen())?;
        let context = self.selected.context();
        let in_order = match context.affinity.name == SHARING {
            true => Some(thread_policy(
                IN_ORDER,
                context.profile,
                context.histogram,
                context.machine,
                &Files,
            )?),
            false => None,
        };
        let before = Placement {
            affinity: context.affinity.clone(),
            mapping: self.mappings[0].clone(),
        };
        let placements = Placements {
            in_order,
            before,
            after,
        };
        let Selected {
            reader,
            histogram,
            affinity,
            machine,
        } = self.selected;
        Ok(View::new(nodewise_page::Findings {
            folder: reader.folder().display().to_string(),
            profile: reader.profile(),
            machine: &machine,
            simulation: &self.simulation,
            histogram,
            affinity,
            mappings: self.mappings,
            report: self.report,
            objects: self.objects,
            film,
            placements,
        }))
    }

    /// Places threads by the policy `threads`, and pages as `pages` would place them for these threads.
    fn placed(&self, threads: &str, pages: &Mapping) -> anyhow::Result<Placement> {
        let context = self.selected.context();
        let Context {
            profile,
            histogram,
            machine,
            ..
        } = context;
        let affinity: Affinity = match context.affinity.name == threads {
            true => context.affinity.clone(),
            false => thread_policy(threads, profile, histogram, machine, &Files)?,
        };
        let mapping = match affinity == *context.affinity {
            true => pages.clone(),
            false => page_policy(&pages.policy, machine, &Files)?.try_place(&Context {
                affinity: &affinity,
                ..context
            })?,
        };
        Ok(Placement { affinity, mapping })
    }

    /// The mapping that the verdict recommends, else the best of the others.
    fn chosen(&self) -> &Mapping {
        let others = &self.mappings[1..];
        let policy = &self.report.verdict.policy;
        let predicted = others.iter().zip(self.simulation.predictions.iter().skip(1));
        let seconds = |p: &Prediction| p.seconds.typical;
        let best = match self.report.program.exact {
            true => predicted.min_by(|a, b| seconds(a.1).total_cmp(&seconds(b.1))),
            false => predicted.max_by(|a, b| a.1.local_fraction.total_cmp(&b.1.local_fraction)),
        };
        let recommended = others.iter().find(|m| m.policy == *policy);
        recommended.or(best.map(|b| b.0)).unwrap_or(&self.mappings[0])
    }
}

/// The only policy of a list that moves pages; if the profile has recorded moves, `None`, and a remark.
fn mover(
    selected: &Selected,
    list: &Split,
    limits: &Limits,
    parameters: &Parameters,
) -> anyhow::Result<(Option<Moving>, Option<String>)> {
    let policy = match &list.moving[..] {
        [] => return Ok((None, None)),
        [one] if one == "replay" => bail!("recorded moves are shown without asking for `replay`"),
        [one] => one,
        _ => bail!(
            "a report shows the moves of one policy, as --policy balance:out-w; `nodewise simulate` compares several"
        ),
    };
    let mut moving = limits.moving(policy, selected, parameters)?;
    moving.traced = true;
    let profile = selected.profile();
    let meta = &profile.meta;
    let recorded = !profile.migrations.is_empty()
        || !meta.held_back.is_empty()
        || meta.kernel_migrations.is_some_and(|pages| pages > 0);
    Ok(match recorded {
        false => (Some(moving), None),
        true => (
            None,
            Some(format!(
                "{}: shows what was moved or held back while this was recorded; `nodewise simulate` compares it with {policy}",
                selected.reader.folder().display()
            )),
        ),
    })
}

/// The policies of a list that give pages several nodes. Without any, `mirror`, if accesses were counted and it has something to copy,
/// and beside it `instances`, if they fit: what a user can do without changing the program.
fn copies(selected: &Selected, list: &Split, writes: &LastWrites) -> anyhow::Result<Vec<Copies>> {
    if !list.copies.is_empty() {
        return selected.copies(&list.copies, writes);
    }
    let counted = !selected.profile().meta.observer.is_sampled();
    let several = selected.machine.cpu_nodes().count() > 1;
    let found = match counted && several && selected.histogram.shift == 0 {
        true => selected.copies(&[MIRROR.to_owned()], writes)?,
        false => Vec::new(),
    };
    let mut found: Vec<Copies> = found.into_iter().filter(|c| !c.objects.is_empty()).collect();
    if !found.is_empty() {
        found.extend(
            selected
                .copies(&[INSTANCES.to_owned()], writes)
                .into_iter()
                .flatten(),
        );
    }
    Ok(found)
}

/// Whether copies, once filled, are predicted to be so much faster than every placement that a change of the program is
/// worth it.
fn gains_more(copies: &Prediction, simulation: &Simulation) -> bool {
    let placed = simulation.placements().map(|p| p.speedup_later.typical);
    copies.speedup_later.typical > placed.fold(1.0, f64::max) * (1.0 + MIN_GAIN)
}

/// Puts first-touch, the baseline, before the other mappings.
fn with_baseline(selected: &Selected, mut mappings: Vec<Mapping>) -> Vec<Mapping> {
    let is_baseline = |m: &Mapping| m.policy == FIRST_TOUCH;
    let known = mappings
        .iter()
        .position(is_baseline)
        .map(|at| mappings.remove(at));
    mappings.retain(|m| !is_baseline(m));
    let baseline = known.unwrap_or_else(|| Mapping {
        policy: FIRST_TOUCH.into(),
        nodes: selected.first_touch(),
    });
    mappings.insert(0, baseline);
    mappings
}

/// A name for a map in the current folder that no file has: `STEM.map`, `STEM-2.map` …
#[must_use]
pub fn unused_map(stem: &str) -> String {
    let numbered = |n: u32| match n {
        1 => format!("{stem}.map"),
        _ => format!("{stem}-{n}.map"),
    };
    let unused = (1..)
        .map(numbered)
        .find(|file| Path::new(file).symlink_metadata().is_err());
    unused.unwrap_or_else(|| numbered(1))
}
