//! Recognises a few rules that express a mapping.

use super::apply::{apply, undecided};
use super::candidates::{Scene, candidates, simplest};
use super::samples::{Group, Piece, groups, name};
use super::{Distribution, Kept, OtherRuns, Placement, Rule, Selector, ThreadBinding};
use crate::policies::{rounds, weighted_round};
use crate::{Context, Mapping};
use nodewise_analysis::figures::{bytes, percent};
use nodewise_analysis::{Roles, measure};
use nodewise_machine::NodeId;
use nodewise_profile::{BASE_PAGE_SIZE, ObjectKind};

/// A mapping as rules, with the evidence for each one.
#[derive(Clone, Debug, PartialEq)]
pub struct Recognised {
    /// The rules that express the mapping.
    pub placement: Placement,
    /// The evidence for each rule, one line each, parallel to the placement's rules.
    pub evidence: Vec<String>,
}

impl Recognised {
    /// The map file, with the evidence as comments.
    #[must_use]
    pub fn to_toml(&self) -> String {
        self.placement.to_toml_with(&self.evidence)
    }
}

/// Largest number of objects of one site with rules of their own. With more, a map would not be readable, and the
/// site's common rule is used.
const MAX_OWN_RULES: usize = 64;

/// An object gets its own rule if the site's common rule would misplace more than this share of its accesses.
const MIN_OWN_RULE_GAIN: f64 = 0.05;

/// The rules that express a mapping: for each object the simplest distribution, with explicit runs for pages that it
/// misplaces, and one rule for all objects of a site where that suffices.
#[must_use]
pub fn recognise(context: &Context<'_>, mapping: &Mapping) -> Recognised {
    let Context {
        profile,
        histogram,
        affinity,
        machine,
    } = *context;
    let first_touch = context.first_touch();
    let threads = affinity.by_number(profile);
    let weighted = weighted_round(machine);
    let total: u64 = histogram.entries.iter().map(|e| e.accesses()).sum();
    let scene = Scene {
        threads: &threads,
        nodes: machine.node_count(),
        weighted: &weighted,
        rounds: rounds(&mapping.policy),
        mean: total.max(1) as f64 / histogram.len().max(1) as f64,
    };
    let rules = groups(context, mapping, &first_touch)
        .iter()
        .flat_map(|g| group_rules(g, &scene, total))
        .collect::<Vec<_>>();
    let (rules, evidence) = rules.into_iter().unzip();
    let mut placement = Placement {
        policy: mapping.policy.clone(),
        machine: machine.name.clone(),
        nodes: machine.node_count() as u32,
        program: profile.program().replace('\n', " "),
        threads: threads.len() as u32,
        page_size: histogram.page_size(),
        binding: ThreadBinding::of(affinity, profile),
        default: Distribution::FirstTouch,
        rules,
        kept: Kept::default(),
    };
    placement.kept = kept(context, mapping, &placement);
    Recognised { placement, evidence }
}

/// The local fractions that the rules keep on the recording itself.
fn kept(context: &Context<'_>, mapping: &Mapping, placement: &Placement) -> Kept {
    let Context {
        profile,
        histogram,
        affinity,
        machine,
    } = *context;
    // Four digits are readable and suffice in files.
    let rounded = |share: f64| (share * 1e4).round() / 1e4;
    let local = |nodes: &[NodeId]| {
        let measured = measure(profile, histogram, affinity, nodes, machine.node_count());
        rounded(measured.program.local_fraction())
    };
    let ruled = apply(placement, context).0.nodes;
    let other_runs = Roles::of(profile).map(|roles| {
        let expected = |homes, left: &[bool]| roles.expected(profile, histogram, affinity, (homes, left)).all;
        let everywhere = vec![true; histogram.len()];
        let ruled = expected(&ruled, &undecided(placement, context));
        let first = expected(&context.first_touch(), &everywhere);
        OtherRuns {
            assignment: roles.assignment,
            assumed: roles.counter.is_some(),
            by_number: rounded(ruled.by_number),
            by_data: rounded(ruled.by_data),
            first_touch: rounded(first.by_number),
        }
    });
    Kept {
        mapping_local: local(&mapping.nodes),
        rules_local: local(&ruled),
        transferable_local: local(&apply(&placement.without_runs(), context).0.nodes),
        other_runs,
    }
}

/// The rules of one site, objects with rules of their own first.
fn group_rules(group: &Group<'_>, scene: &Scene<'_>, total: u64) -> Vec<(Rule, String)> {
    let pieces: Vec<&Piece<'_>> = group.pieces.iter().collect();
    let common = common(group, &pieces, scene);
    let with_evidence = |mut rule: Rule, pieces: &[&Piece<'_>]| {
        rule.weight = weight(pieces, scene.mean);
        let evidence = evidence(&rule, pieces, scene, total);
        (rule, evidence)
    };
    if let [piece] = pieces.as_slice() {
        let rule = piece.rule(group.selector.clone(), common, scene.threads);
        return if says_nothing(&rule) {
            Vec::new()
        } else {
            vec![with_evidence(rule, &pieces)]
        };
    }
    let own = |p: &&Piece<'_>| own_rule(&group.selector, p, &common, scene);
    // A file that was mapped several times is one file.
    let own_rules = pieces.iter().filter(|_| group.selector.kind != ObjectKind::File);
    let mut rules: Vec<_> = own_rules
        .filter_map(|p| Some((own(p)?, *p)))
        .take(MAX_OWN_RULES)
        .collect();
    // An object that grew was recorded in each of its sizes, and a run cannot distinguish them: the most used size
    // comes first.
    rules.sort_by_key(|(r, _)| (r.object.thread, r.object.sequence));
    rules.dedup_by_key(|(r, _)| (r.object.thread, r.object.sequence));
    let rest: Vec<&Piece<'_>> = pieces
        .iter()
        .copied()
        .filter(|p| !rules.iter().any(|(_, q)| std::ptr::eq(*p, *q)))
        .collect();
    let mut found: Vec<_> = rules
        .into_iter()
        .map(|(rule, piece)| with_evidence(rule, &[piece]))
        .collect();
    if common != Distribution::FirstTouch && !rest.is_empty() {
        let largest = rest.iter().map(|p| p.object.pages).max().unwrap_or(1);
        let rule = Rule {
            object: group.selector.clone(),
            distribution: common,
            runs: Vec::new(),
            pages: largest,
            weight: 1.0,
        };
        found.push(with_evidence(rule, &rest));
    }
    found
}

/// Mean accesses per page of these objects, relative to the program's mean, to four digits.
fn weight(pieces: &[&Piece<'_>], mean: f64) -> f64 {
    let pages: usize = pieces.iter().map(|p| p.samples.len()).sum();
    let accesses: u64 = pieces.iter().map(|p| p.accesses).sum();
    let weight = accesses as f64 / pages.max(1) as f64 / mean;
    (weight * 1e4).round() / 1e4
}

fn says_nothing(rule: &Rule) -> bool {
    rule.distribution == Distribution::FirstTouch && rule.runs.is_empty()
}

/// The simplest distribution for all objects of a site together, among the candidates of its most accessed object.
fn common(group: &Group<'_>, pieces: &[&Piece<'_>], scene: &Scene<'_>) -> Distribution {
    const HEAVIEST: usize = 4;
    let mut tried: Vec<Distribution> = Vec::new();
    for piece in pieces.iter().take(HEAVIEST) {
        for candidate in candidates(piece, scene) {
            if !tried.contains(&candidate) {
                tried.push(candidate);
            }
        }
    }
    // If several threads allocate, "the allocator's node" is more general than "node 0".
    let allocators = group
        .pieces
        .iter()
        .any(|p| p.object.thread != group.pieces[0].object.thread);
    tried.sort_by_key(|d| complexity(d, allocators));
    simplest(pieces, tried, scene)
}

fn complexity(distribution: &Distribution, allocators: bool) -> u32 {
    match distribution {
        Distribution::FirstTouch => 0,
        Distribution::Allocator => {
            if allocators {
                1
            } else {
                3
            }
        }
        Distribution::Node(_) => 2,
        Distribution::ByThread { repeat: 1 } => 4,
        Distribution::Interleave(list) if list.windows(2).all(|w| w[0] < w[1]) => 5,
        Distribution::Dealt(_) => 6,
        Distribution::Interleave(_) => 7,
        Distribution::ByThread { .. } => 8,
        Distribution::Block(_) => 9,
    }
}

/// A rule for one of several objects of a site, if the common rule misplaces too much of it.
fn own_rule(
    selector: &Selector,
    piece: &Piece<'_>,
    common: &Distribution,
    scene: &Scene<'_>,
) -> Option<Rule> {
    let agreed = piece.agreement(common, scene.threads);
    if agreed == piece.accesses {
        return None;
    }
    let best = simplest(&[piece], candidates(piece, scene), scene);
    let gain = piece.agreement(&best, scene.threads).saturating_sub(agreed) as f64;
    let distribution = if gain > MIN_OWN_RULE_GAIN * piece.accesses as f64 {
        best
    } else {
        common.clone()
    };
    let (thread, sequence) = (Some(piece.object.thread.0), Some(piece.object.sequence));
    let name = name(piece.object);
    Some(piece.rule(
        Selector {
            name,
            thread,
            sequence,
            ..selector.clone()
        },
        distribution,
        scene.threads,
    ))
}

fn evidence(rule: &Rule, pieces: &[&Piece<'_>], scene: &Scene<'_>, total: u64) -> String {
    let accesses: u64 = pieces.iter().map(|p| p.accesses).sum();
    let agreed: u64 = pieces
        .iter()
        .map(|p| p.agreement(&rule.distribution, scene.threads))
        .sum();
    let size: u64 = pieces.iter().map(|p| p.object.pages * BASE_PAGE_SIZE).sum();
    let share = |part: u64, whole: u64| percent(part as f64 / whole.max(1) as f64);
    let mut names: Vec<&str> = pieces.iter().map(|p| p.object.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let name = match names.as_slice() {
        [""] => "unnamed".to_owned(),
        [first, .., last] if names.len() > 3 => format!("{first} … {last}"),
        few => few.join(", "),
    };
    let objects = if pieces.len() == 1 {
        String::new()
    } else {
        format!(" × {}", pieces.len())
    };
    let runs = match rule.runs.len() {
        0 => String::new(),
        1 => "; 1 run of pages is apart".into(),
        n => format!("; {n} runs of pages are apart"),
    };
    format!(
        "{name}{objects}: {}, {} of all accesses; the distribution alone puts {} of them as the policy does{runs}",
        bytes(size),
        share(accesses, total),
        share(agreed, accesses),
    )
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
