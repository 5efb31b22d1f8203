//! Balance: how evenly a load is spread over nodes.

/// 1 − (max − min) / Σ, which is B_Pages of Diener et al. (equation 3) for pages per node, and B_Acc (equation 5) for
/// accesses per node. 1 if all values are equal or zero, 0 if one node has everything.
#[must_use]
pub fn balance(per_node: &[u64]) -> f64 {
    let total: u64 = per_node.iter().sum();
    match (per_node.iter().max(), per_node.iter().min()) {
        (Some(max), Some(min)) if total > 0 && per_node.len() > 1 => 1.0 - (max - min) as f64 / total as f64,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::balance;

    #[test]
    fn ends_of_the_scale() {
        for (load, expected) in [
            (&[5, 5, 5][..], 1.0),
            (&[9, 0, 0], 0.0),
            (&[3, 1], 0.5),
            (&[7], 1.0),
            (&[0, 0], 1.0),
        ] {
            assert_eq!(balance(load), expected);
        }
    }
}
