//! Weights of the kernel's weighted interleaving, one for each node, for all processes that interleave so; Linux 6.9.

use crate::Host;
use crate::held_setting::{HeldSetting, Separate, Setting, parse};
use std::ffi::CStr;
use std::io;
use std::path::{Path, PathBuf};

const FOLDER: &str = "kernel/mm/mempolicy/weighted_interleave";
/// Whether the kernel computes the weights from bandwidths that the firmware reports; Linux 6.16. Writing a weight turns it
/// off. In Linux 6.18 a macro of the kernel's language has changed its name.
const AUTOMATIC: [&str; 2] = ["auto", "__auto_type"];
/// Of the note about the weights that are put back.
const NAME: &CStr = c"nodewise-weight";

/// The weights of the nodes that the kernel knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Each node with its weight, 1 to 255, by ascending number.
    pub nodes: Vec<(u32, u32)>,
    /// Whether the kernel computes them, and the file's name; `None` where it cannot.
    automatic: Option<(&'static str, bool)>,
    /// Whether one of our processes set them, and puts others back when it ends.
    pub temporary: bool,
}

impl Weights {
    /// The weight of a node, if the kernel knows the node.
    #[must_use]
    pub fn of(&self, node: u32) -> Option<u32> {
        self.nodes
            .iter()
            .find(|(n, _)| *n == node)
            .map(|(_, weight)| *weight)
    }

    /// Whether this process may change them: root, where sysfs is not mounted read-only.
    #[must_use]
    pub fn writable(&self, host: &Host) -> bool {
        let open = |(node, _): &(u32, u32)| {
            let file = host.sys().join(FOLDER).join(format!("node{node}"));
            std::fs::File::options().write(true).open(file).is_ok()
        };
        self.nodes.first().is_some_and(open)
    }

    fn values(&self) -> Vec<u32> {
        let weights = self.nodes.iter().map(|(_, weight)| *weight);
        weights
            .chain(self.automatic.map(|(_, on)| u32::from(on)))
            .collect()
    }
}

impl Host {
    /// The kernel's current weights.
    ///
    /// # Errors
    /// `NotFound`: the kernel has no weighted interleaving.
    pub fn interleave_weights(&self) -> io::Result<Weights> {
        let folder = self.sys().join(FOLDER);
        // The note may be root's alone; it is empty as long as no setting is held.
        let note = self.run().join(&*NAME.to_string_lossy());
        let held = || note.metadata().is_ok_and(|note| note.len() > 0);
        let before = held();
        let mut nodes = Vec::new();
        let mut automatic = None;
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let value = parse(&std::fs::read(entry.path())?);
            if let Some(switch) = AUTOMATIC.into_iter().find(|switch| name == *switch) {
                automatic = Some((switch, value != 0));
            } else if let Some(node) = name.strip_prefix("node").and_then(|n| n.parse().ok()) {
                nodes.push((node, value));
            }
        }
        nodes.sort_unstable();
        Ok(Weights {
            nodes,
            automatic,
            temporary: before || held(),
        })
    }
}

/// Gives these nodes these weights until what this returns is dropped or this process ends; other nodes keep theirs. What
/// others change meanwhile stays.
///
/// # Errors
/// They cannot be read or written (they are root's), the kernel refuses one, another of our processes has them
/// (`WouldBlock`), or the kernel computes them and could not be told to do so again.
pub fn hold(host: &Host, wanted: &[(u32, u32)]) -> io::Result<HeldSetting> {
    let known = host.interleave_weights()?;
    let folder = host.sys().join(FOLDER);
    let mut files: Vec<PathBuf> = known
        .nodes
        .iter()
        .map(|(n, _)| folder.join(format!("node{n}")))
        .collect();
    let switch = known.automatic.map(|(name, _)| folder.join(name));
    files.extend(switch.clone());
    let setting = Setting {
        what: "interleave weights",
        name: NAME,
        files,
        // The switch comes last: whoever turns it on again has the kernel compute the weights.
        writes: |values| values.iter().copied().enumerate().collect(),
        meanwhile: None,
        separate: Separate::AllBut(switch.iter().len()),
    };
    let with_wanted = |now: &[u32]| {
        let mut values = now.to_vec();
        for (node, weight) in wanted {
            let at = known.nodes.iter().position(|(n, _)| n == node);
            let missing = || {
                io::Error::new(
                    io::ErrorKind::NotFound,
                    format!("the kernel has no weight of node {node}"),
                )
            };
            values[at.ok_or_else(missing)?] = *weight;
        }
        if let (Some(switch), Some(on)) = (&switch, values.get_mut(known.nodes.len())) {
            if *on != 0 {
                turn_on(switch)?;
            }
            *on = 0;
        }
        Ok(values)
    };
    let now = || Ok(host.interleave_weights()?.values());
    HeldSetting::take(&host.run(), setting, now, with_wanted)
}

/// Turns the switch on that is on. The kernel refuses that where the firmware reports no bandwidths, and would afterwards.
fn turn_on(switch: &Path) -> io::Result<()> {
    std::fs::write(switch, "1").map_err(|e| {
        let switch = switch.display();
        let text = format!(
            "{switch} could not be turned on again ({e}; after `echo 0 > {switch}` weights can be set)"
        );
        io::Error::new(e.kind(), text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held_setting::when_free;

    /// A copy of the kernel's files.
    fn host(name: &str, files: &[(&str, &str)]) -> (PathBuf, Host) {
        let root = std::env::temp_dir().join(format!("nodewise-weights-{name}-{}", std::process::id()));
        let folder = root.join("sys").join(FOLDER);
        std::fs::create_dir_all(&folder).unwrap();
        for (file, text) in files {
            std::fs::write(folder.join(file), text).unwrap();
        }
        (root.clone(), Host::at(&root))
    }

    #[test]
    fn weights_and_switch_are_put_back() {
        for automatic in [None, Some("true\n"), Some("false\n")] {
            let files = [("node0", "4\n"), ("node2", "1\n"), ("node10", "7\n")];
            let switch = automatic.map(|text| (AUTOMATIC[1], text));
            let (root, host) = host("back", &[&files[..], switch.as_slice()].concat());
            let before = host.interleave_weights().unwrap();
            assert_eq!(before.nodes, [(0, 4), (2, 1), (10, 7)]);
            let held = hold(&host, &[(0, 3), (2, 9)]).unwrap();
            let now = host.interleave_weights().unwrap();
            assert_eq!(now.nodes, [(0, 3), (2, 9), (10, 7)]);
            assert_eq!(now.automatic, automatic.map(|_| (AUTOMATIC[1], false)));
            assert!(now.temporary && !before.temporary);
            drop(held);
            assert_eq!(host.interleave_weights().unwrap(), before);
            std::fs::remove_dir_all(root).unwrap();
        }
    }

    #[test]
    fn what_others_changed_meanwhile_stays_and_the_rest_is_put_back() {
        let files = [("node0", "4\n"), ("node1", "1\n"), (AUTOMATIC[0], "true\n")];
        let (root, host) = host("else", &files);
        let held = hold(&host, &[(0, 3), (1, 2)]).unwrap();
        std::fs::write(host.sys().join(FOLDER).join("node1"), "9\n").unwrap();
        drop(held);
        let now = host.interleave_weights().unwrap();
        assert_eq!(
            (&*now.nodes, now.automatic),
            (&[(0, 4), (1, 9)][..], Some((AUTOMATIC[0], false)))
        );
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_an_owner_that_was_killed_with_its_keeper_left_is_put_back_by_the_next() {
        let (root, host) = host("killed", &[("node0", "1\n"), ("node1", "1\n")]);
        let before = host.interleave_weights().unwrap();
        let held = hold(&host, &[(0, 3)]).unwrap();
        held.kill_keeper();
        drop(held);
        assert_eq!(host.interleave_weights().unwrap().of(0), Some(3));
        drop(when_free(|| hold(&host, &[(1, 5)])));
        assert_eq!(host.interleave_weights().unwrap(), before);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_kernel_without_weights_has_none() {
        let root = std::env::temp_dir();
        let error = hold(&Host::at(&root.join("nodewise-no-weights")), &[(0, 3)]).err();
        assert_eq!(error.map(|e| e.kind()), Some(io::ErrorKind::NotFound));
    }
}
