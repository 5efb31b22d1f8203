//! Terminal output of `simulate --move-threads`.

use super::Online;
use crate::compare::nodes::{faster, list};
use crate::compare::table::{Row, significant};
use nodewise_machine::NodeId;
use nodewise_report::{and_more, percent, plural, table};
use nodewise_simulation::Spread;
use nodewise_simulation::online::RunOutcome;

/// Largest number of final placements that are shown.
const MAX_ENDS_SHOWN: usize = 5;

pub fn write(done: &Online) -> String {
    let mut out = format!(
        "{}: {}\n{} at least {} s long on the mean of {}; {} from random nodes, a decision every {} s.\n\n",
        done.machine.name,
        done.machine.title,
        plural(done.programs.len(), "program"),
        done.starts.least_s,
        plural(done.placements.len(), "static placement"),
        plural(done.from.len(), "run"),
        done.starts.period_s,
    );
    for at in 0..done.programs.len() {
        let mean = Spread::of(&Online::seconds(&done.fixed, at)).mean;
        let first = format!(
            "{} ({})",
            done.programs[at].program,
            done.programs[at].threads.count()
        );
        let titles = [
            &first,
            "seconds",
            "deviation",
            "mean",
            "best",
            "worst",
            "threads moved",
            "GB moved",
            "moving",
        ];
        let rows = [
            ("static", &done.fixed),
            (done.policy.as_str(), &done.pages),
            ("and threads", &done.threads),
        ];
        let all = rows.iter().map(|(name, outcomes)| row(name, outcomes, at, mean));
        let header: Row = titles.iter().map(ToString::to_string).collect();
        out += &table("lrrrrrrrr", std::iter::once(header).chain(all));
        out.push('\n');
    }
    out + &ends(done)
        + "Mean, best and worst are compared with the mean static placement. GB and seconds of moving are means over runs.\n\
           Estimates: threads are moved by the decision code of `balance --move-threads`, in simulated time.\n"
}

fn row(name: &str, outcomes: &[RunOutcome], at: usize, mean: f64) -> Row {
    let spread = Spread::of(&Online::seconds(outcomes, at));
    let average = |f: &dyn Fn(&nodewise_simulation::online::ProgramOutcome) -> f64| {
        outcomes.iter().map(|o| f(&o.programs[at])).sum::<f64>() / outcomes.len() as f64
    };
    vec![
        name.to_owned(),
        significant(spread.mean),
        percent(spread.deviation / spread.mean),
        faster(mean, spread.mean),
        faster(mean, spread.least.1),
        faster(mean, spread.most.1),
        format!("{:.1}", average(&|p| p.threads_moved as f64)),
        format!("{:.3}", average(&|p| (p.dynamic_bytes + p.full_bytes) * 1e-9)),
        format!("{:.3} s", average(&|p| p.moving_s)),
    ]
}

/// The final nodes of the programs, the most frequent first.
fn ends(done: &Online) -> String {
    let mut found: Vec<(usize, String)> = Vec::new();
    for outcome in &done.threads {
        let on = |nodes: &Vec<u32>| list(&nodes.iter().copied().map(NodeId).collect::<Vec<_>>());
        let each: Vec<String> = outcome.programs.iter().map(|p| on(&p.nodes)).collect();
        let text = each.join(" | ");
        match found.iter_mut().find(|f| f.1 == text) {
            Some(known) => known.0 += 1,
            None => found.push((1, text)),
        }
    }
    found.sort_by_key(|f| std::cmp::Reverse(f.0));
    let shown: Vec<String> = found
        .iter()
        .take(MAX_ENDS_SHOWN)
        .map(|(n, text)| format!("{text} ({n})"))
        .collect();
    let more = and_more(found.len() - shown.len(), "placement", "--json");
    format!("Threads end on: {}{more}\n", shown.join(", "))
}
