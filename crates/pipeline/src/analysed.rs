//! From a profile to everything that is said of it: what `report`, `serve` and `top` share.

use crate::selection::{Files, Selected, Selection};
use nodewise_advise::{Advice, Asked, Matched, advise};
use nodewise_analysis::{Affinity, Samples, Timeline, Usage};
use nodewise_page::{Placement, View};
use nodewise_placement::{Context, Mapping, page_policy, thread_policy};
use nodewise_profile::ObjectId;
use nodewise_report::{Findings, Report};
use nodewise_simulation::{Moving, Parameters, Prediction, Simulation, simulate_moving};

/// How threads are placed where sharing alone decides, and where nobody has thought about it.
const SHARING: &str = "sharing-aware";
const IN_ORDER: &str = "compact";

/// A profile, judged.
pub struct Analysed {
    /// Profile, histogram, affinity and machine.
    pub selected: Selected,
    /// The mappings compared; the first is first-touch.
    pub mappings: Vec<Mapping>,
    /// Their predicted cost, in the same order.
    pub simulation: Simulation,
    /// What it amounts to.
    pub report: Report,
    /// The objects of the report, in its order.
    pub objects: Vec<ObjectId>,
    /// What policies note about their mappings.
    pub notes: Vec<String>,
}

impl Analysed {
    /// Judges a profile with the policies of a comma-separated list; first-touch comes first, asked for or not.
    ///
    /// # Errors
    /// As [`Selection::open`] and [`Selected::mappings`]; or the profile cannot be read through.
    pub fn of(selection: &Selection, policies: &str) -> anyhow::Result<Self> {
        let selected = selection.open()?;
        let (mappings, notes) = selected.mappings(policies)?;
        let mappings = with_baseline(&selected, mappings);
        let (context, reader) = (selected.context(), &selected.reader);
        let simulation = simulate_moving(
            &context,
            &mappings,
            replayed(&context),
            reader,
            &Parameters::default(),
        )?;
        let advice = advice(selection, &selected, &mappings, &simulation)?;
        let (homes, nodes) = (&mappings[0].nodes, selected.machine.node_count());
        let (profile, histogram, affinity) = (context.profile, context.histogram, context.affinity);
        let timeline = Timeline::of(reader, profile, histogram, affinity, homes, nodes)?;
        let report = Report::new(&Findings {
            context: &context,
            mappings: &mappings,
            simulation: &simulation,
            advice: &advice,
            timeline: &timeline,
        });
        Ok(Self {
            objects: advice.blame.iter().map(|b| b.object).collect(),
            selected,
            mappings,
            simulation,
            report,
            notes,
        })
    }

    /// What a page shows of it.
    ///
    /// # Errors
    /// As [`Analysed::of`].
    pub fn view(self) -> anyhow::Result<View> {
        let after = self.placed(SHARING, self.chosen())?;
        let now = match self.selected.affinity.name.as_str() {
            SHARING => IN_ORDER,
            other => other,
        };
        let before = self.placed(now, &self.mappings[0])?;
        let Selected {
            reader,
            histogram,
            affinity,
            machine,
        } = self.selected;
        let findings = nodewise_page::Findings {
            folder: reader.folder().display().to_string(),
            profile: reader.profile(),
            machine: &machine,
            simulation: &self.simulation,
            histogram,
            affinity,
            mappings: self.mappings,
            report: self.report,
            objects: self.objects,
            before,
            after,
        };
        Ok(View::new(findings, &reader)?)
    }

    /// Threads by a policy, and pages as another would have them then.
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

    /// What the verdict recommends, else the best of the others.
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

fn advice(
    selection: &Selection,
    selected: &Selected,
    mappings: &[Mapping],
    simulation: &Simulation,
) -> anyhow::Result<Advice> {
    let (context, reader) = (selected.context(), &selected.reader);
    let usage = Usage::of(reader, context.profile, context.histogram)?;
    let matched = Matched::predict(&context, &usage, simulation, mappings, reader)?;
    let Context {
        profile,
        histogram,
        affinity,
        machine,
    } = context;
    let samples = Samples::of(reader, profile, histogram, affinity, machine.node_count())?;
    // What whoever copies the next command would ask with.
    let asked = Asked {
        profile: reader.folder().display().to_string(),
        machine: selection.machine.clone(),
    };
    Ok(advise(
        &context,
        simulation,
        &mappings[0],
        &usage,
        matched.as_ref(),
        &asked,
        samples,
    ))
}

/// What was moved while it ran, where it is known which nodes threads were on.
fn replayed(context: &Context<'_>) -> Vec<Moving> {
    let migrations = &context.profile.migrations;
    match context.affinity.name == "recorded" && !migrations.is_empty() {
        true => vec![Moving::replay(0, migrations)],
        false => Vec::new(),
    }
}

/// Everything is compared with first-touch.
fn with_baseline(selected: &Selected, mut mappings: Vec<Mapping>) -> Vec<Mapping> {
    mappings.retain(|m| m.policy != "first-touch");
    let baseline = Mapping {
        policy: "first-touch".into(),
        nodes: selected.first_touch(),
    };
    mappings.insert(0, baseline);
    mappings
}
