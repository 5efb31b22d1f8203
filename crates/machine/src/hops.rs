//! Bandwidth of multi-hop routes: on some machines less than that of the narrowest link.

// Why: docs/decisions/machines.md

use crate::{Link, MachineError};
use std::collections::BTreeSet;

/// The bandwidth of two consecutive links of these classes, as a share of the narrower link's. Measured, not derived:
/// in Lepers et al., Table 1, it is 0.64 for a 16-bit link followed by an 8-bit one.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct HopRule {
    /// Class of the first link.
    pub from: String,
    /// Class of the next link.
    pub to: String,
    /// Share of the narrower link's bandwidth; above 0, at most 1.
    pub factor: f64,
}

/// MB/s that a flow alone gets over these links: the minimum over all links, and over all consecutive pairs by their
/// rules. Infinite without links.
pub(crate) fn way_bandwidth(way: &[&Link], rules: &[HopRule]) -> f64 {
    let links = way.iter().map(|l| l.bandwidth);
    let hops = way.windows(2).map(|w| {
        let rule = rules.iter().find(|r| r.covers(w[0], w[1]));
        w[0].bandwidth.min(w[1].bandwidth) * rule.map_or(1.0, |r| r.factor)
    });
    links.chain(hops).fold(f64::INFINITY, f64::min)
}

impl HopRule {
    fn covers(&self, link: &Link, next: &Link) -> bool {
        link.class.as_ref() == Some(&self.from) && next.class.as_ref() == Some(&self.to)
    }
}

/// Checks that each rule names classes that links have, that no two rules are for the same pair of classes, and that
/// factors are in range.
pub(crate) fn check(rules: &[HopRule], links: &[Link]) -> Result<(), MachineError> {
    let classes: BTreeSet<&str> = links.iter().filter_map(|l| l.class.as_deref()).collect();
    for (index, rule) in rules.iter().enumerate() {
        let wrong = |what: String| Err(MachineError::invalid(format!("hop_rules[{index}]: {what}")));
        if let Some(class) = [&rule.from, &rule.to]
            .into_iter()
            .find(|c| !classes.contains(c.as_str()))
        {
            let known: Vec<&str> = classes.iter().copied().collect();
            let known = if known.is_empty() {
                "none has a class".to_owned()
            } else {
                format!("there are: {}", known.join(", "))
            };
            return wrong(format!("no link is of class {class:?}; {known}"));
        }
        if !(rule.factor > 0.0 && rule.factor <= 1.0) {
            return wrong(format!(
                "factor is {}; it must be above 0 and at most 1",
                rule.factor
            ));
        }
        if rules[..index]
            .iter()
            .any(|r| (&r.from, &r.to) == (&rule.from, &rule.to))
        {
            return wrong(format!("{:?} then {:?} is given twice", rule.from, rule.to));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeId;

    fn link(class: &str, bandwidth: f64) -> Link {
        Link {
            from: NodeId(0),
            to: NodeId(1),
            bandwidth,
            class: Some(class.to_owned()),
        }
    }

    #[test]
    fn two_links_in_a_row_carry_a_share_of_the_narrower_in_the_order_of_the_rule() {
        let rules = [HopRule {
            from: "wide".to_owned(),
            to: "narrow".to_owned(),
            factor: 0.5,
        }];
        let (wide, narrow) = (link("wide", 10.0), link("narrow", 6.0));
        assert_eq!(way_bandwidth(&[&wide, &narrow], &rules), 3.0);
        assert_eq!(way_bandwidth(&[&narrow, &wide], &rules), 6.0);
        assert_eq!(
            way_bandwidth(&[&narrow, &wide, &narrow], &rules),
            3.0,
            "the second and third links"
        );
        assert_eq!(way_bandwidth(&[&wide, &link("least", 2.0)], &rules), 2.0);
        assert_eq!(way_bandwidth(&[], &rules), f64::INFINITY);
    }
}
