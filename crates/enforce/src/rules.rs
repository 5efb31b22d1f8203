//! Matches the rules of a placement with the actual binary.

use crate::sites::{self, ResolvedRange, Sites};
use crate::table::{ANY, TableModule, TableRule, TableVariable};
use crate::{EnforceError, Target};
use nodewise_placement::{Named, Placement, Rule, Selector};
use nodewise_profile::ObjectKind;
use nodewise_symbols::Module;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a rule matches in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFound {
    /// Description of the objects that the rule is for.
    pub object: String,
    /// The distribution, in the notation of maps.
    pub distribution: String,
    /// Code locations or variables of the binary to which the rule applies.
    pub places: Vec<String>,
    /// Whether, for want of line tables, the object is identified by function names and the order of calls only.
    pub by_order: bool,
    /// Number of pages of the recorded object.
    pub pages: u64,
    /// Whether it names code or variables of the program; else memory of any.
    pub of_code: bool,
    /// Why the rule does not apply, if so.
    pub missing: Option<String>,
}

/// Resolved rules, from which the table is made.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    /// Result for each rule of the placement.
    pub found: Vec<RuleFound>,
    pub rules: Vec<TableRule>,
    /// For each rule of the table, the index of its rule in the placement.
    pub origin: Vec<usize>,
    pub variables: Vec<TableVariable>,
    pub sites: Sites,
    pub modules: Vec<TableModule>,
}

/// Resolves every rule in the program and its libraries.
pub(crate) fn resolve(placement: &Placement, target: &Target) -> Result<Resolved, EnforceError> {
    let paths: Vec<&Path> = std::iter::once(target.path.as_path())
        .chain(target.libraries.iter().map(AsRef::as_ref))
        .collect();
    let modules: Vec<Module> = paths.iter().filter_map(|p| Module::open(p).ok()).collect();
    let identity = |m: &Module| {
        let meta = m
            .path()
            .metadata()
            .map_err(|e| EnforceError::io("read", m.path(), &e))?;
        Ok(TableModule {
            device: meta.dev(),
            inode: meta.ino(),
            sourced: m.has_lines(),
        })
    };
    let mut resolved = Resolved {
        modules: modules.iter().map(identity).collect::<Result<_, _>>()?,
        ..Resolved::default()
    };
    let texts = site_texts(placement);
    resolved.sites = Sites::resolve(&texts, &modules);
    resolved.count_objects(placement, &texts);
    for (index, rule) in placement.rules.iter().enumerate() {
        let resolution = resolved.resolution(rule, &texts, &placement.program, &modules);
        resolved.add(index, rule, resolution);
    }
    Ok(resolved)
}

/// Resolves rules of the command line, which name no code, for every program.
pub(crate) fn resolve_places(rules: &[Rule]) -> Resolved {
    let mut resolved = Resolved::default();
    for (index, rule) in rules.iter().enumerate() {
        let resolution = resolved.resolution(rule, &[], "", &[]);
        resolved.add(index, rule, resolution);
    }
    resolved
}

/// The distinct sites of rules for heap objects and mappings, in the order in which a program reaches them.
fn site_texts(placement: &Placement) -> Vec<String> {
    let sited = placement
        .rules
        .iter()
        .filter(|r| matches!(r.object.kind, ObjectKind::Heap | ObjectKind::Mapping));
    let mut texts: Vec<String> = sited.filter_map(|r| r.object.site.clone()).collect();
    texts.sort_by_cached_key(|t| (sites::order(t), t.clone()));
    texts.dedup();
    texts
}

/// Where a rule applies in the binary.
enum Resolution {
    Site(u32, Vec<String>),
    /// The pattern of memory that has a name.
    Named(String, Vec<String>),
    Variables(Vec<(u32, u64, u64)>, Vec<String>),
    Missing(String),
}

impl Resolved {
    fn resolution(&self, rule: &Rule, texts: &[String], program: &str, modules: &[Module]) -> Resolution {
        let Selector { kind, site, name, .. } = &rule.object;
        match (kind, site, name) {
            (ObjectKind::Heap | ObjectKind::Mapping, Some(site), _) => self.site(site, texts, modules),
            (ObjectKind::Heap, None, None) => {
                Resolution::Site(ANY, vec!["any allocation of 64 KiB or more".into()])
            }
            (ObjectKind::Heap, None, Some(_)) => {
                Resolution::Missing("a heap object is found by its site, and the rule has none".into())
            }
            (ObjectKind::Mapping, None, None) => {
                Resolution::Site(ANY, vec!["any private mapping of 64 KiB or more".into()])
            }
            (ObjectKind::Static, _, Some(name)) => variables(name, program, modules),
            (ObjectKind::File, _, Some(name)) => named(name),
            _ => Resolution::Missing(format!("{} memory stays with the default", kind.name())),
        }
    }

    /// Counts for each site the objects that have rules: without line tables, that number of calls of a function may be
    /// this site.
    fn count_objects(&mut self, placement: &Placement, texts: &[String]) {
        for (text, site) in texts.iter().zip(&mut self.sites.sites) {
            let of_site = placement
                .rules
                .iter()
                .filter(|r| r.object.site.as_ref() == Some(text));
            if let Some(site) = site {
                site.objects = of_site
                    .filter_map(|r| r.object.sequence)
                    .max()
                    .map_or(0, |s| s.saturating_add(1));
            }
        }
    }

    fn site(&self, site: &str, texts: &[String], modules: &[Module]) -> Resolution {
        let index = texts.iter().position(|t| t == site);
        let Some((index, resolved)) = index.and_then(|i| Some((i, self.sites.sites[i].as_ref()?))) else {
            let program = modules
                .first()
                .map(|m| m.file_name().into_owned())
                .unwrap_or_default();
            return Resolution::Missing(format!("no such code in {program} or its libraries"));
        };
        let before = self.sites.sites[..index].iter().flatten().count();
        let starts = |r: &&ResolvedRange| match resolved.by_name {
            true => r.frames.last() == resolved.frames.last(),
            false => r.frames.first() == resolved.frames.first(),
        };
        let place = |r: &ResolvedRange| {
            format!(
                "{}+{:#x}..{:#x}",
                modules[r.module as usize].file_name(),
                r.start,
                r.end
            )
        };
        let places = self.sites.ranges.iter().filter(starts).map(place).collect();
        Resolution::Site(before as u32, places)
    }

    fn add(&mut self, index: usize, rule: &Rule, resolution: Resolution) {
        let mut found = RuleFound {
            object: describe(&rule.object),
            distribution: rule.distribution.to_string(),
            places: Vec::new(),
            by_order: false,
            pages: rule.pages,
            of_code: rule.object.kind != ObjectKind::File,
            missing: None,
        };
        let number = self.rules.len() as u32;
        let mut name = None;
        let site = match resolution {
            Resolution::Missing(why) => {
                found.missing = Some(why);
                self.found.push(found);
                return;
            }
            Resolution::Site(site, places) => {
                found.places = places;
                let resolved = self.sites.sites.iter().flatten().nth(site as usize);
                found.by_order = resolved.is_some_and(|s| s.by_name);
                site
            }
            Resolution::Named(pattern, places) => {
                found.places = places;
                name = Some(pattern);
                ANY
            }
            Resolution::Variables(variables, places) => {
                found.places = places;
                self.variables.extend(
                    variables
                        .into_iter()
                        .map(|(module, address, bytes)| TableVariable {
                            address,
                            bytes,
                            module,
                            rule: number,
                        }),
                );
                ANY
            }
        };
        self.found.push(found);
        self.origin.push(index);
        self.rules.push(TableRule {
            kind: rule.object.kind as u32,
            site,
            thread: rule.object.thread.unwrap_or(ANY),
            sequence: rule.object.sequence.unwrap_or(ANY),
            name,
            distribution: rule.distribution.clone(),
            pages: rule.pages,
            runs: rule.runs.clone(),
            weight: rule.weight,
        });
    }
}

/// Files on a disk are placed before the program starts, memory that it makes itself when it maps it.
fn named(name: &str) -> Resolution {
    let Some(named) = Named::new(name) else {
        return Resolution::Missing("its name is no pattern".into());
    };
    Resolution::Named(
        named.pattern(),
        vec!["what processes map by this name".to_owned()],
    )
}

/// The suffix that recordings add to the name of a module's remaining static data.
const REST: &str = " (static data)";

/// Finds the variable in the first module that has it; the program comes before its libraries.
fn variables(name: &str, program: &str, modules: &[Module]) -> Resolution {
    if name.strip_suffix(REST).is_some_and(|of| of == program) {
        return Resolution::Variables(vec![(0, 0, 0)], vec!["the program's writable data".into()]);
    }
    for (index, module) in modules.iter().enumerate() {
        let named: Vec<_> = module
            .variables()
            .into_iter()
            .filter(|v| v.name == name && !v.thread_local)
            .collect();
        if named.is_empty() {
            continue;
        }
        let file = module.file_name();
        let places = named
            .iter()
            .map(|v| format!("{file}+{:#x}, {} bytes", v.address, v.size))
            .collect();
        return Resolution::Variables(
            named.iter().map(|v| (index as u32, v.address, v.size)).collect(),
            places,
        );
    }
    Resolution::Missing("no such variable".into())
}

fn describe(selector: &Selector) -> String {
    let mut text = selector.kind.name().to_owned();
    for part in [&selector.name, &selector.site].into_iter().flatten() {
        text += &format!(" `{part}`");
    }
    if let Some(thread) = selector.thread {
        text += &format!(" of thread {thread}");
    }
    if let Some(sequence) = selector.sequence {
        text += &format!(" number {sequence}");
    }
    text
}
