//! Pages dealt by shares, exact to one page in each hundred.

use nodewise_machine::NodeId;

/// Pages of a round: shares are rounded to hundredths.
const ROUND: u32 = 100;

/// The node of each page of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deal {
    round: Vec<NodeId>,
}

impl Deal {
    /// Spreads each node's pages evenly over the round, which is as short as the shares in hundredths allow. `shares` add
    /// up to 1.
    #[must_use]
    pub fn new(shares: &[f64]) -> Self {
        let weights = lowest_terms(&hundredths(shares));
        let length: u32 = weights.iter().sum();
        let mut dealt = vec![0u32; weights.len()];
        let due = |slot: u32, node: usize, dealt: &[u32]| {
            i64::from(weights[node]) * i64::from(slot + 1) - i64::from(dealt[node]) * i64::from(length)
        };
        let mut next = |slot: u32| {
            let most = (0..weights.len())
                .rev()
                .max_by_key(|n| due(slot, *n, &dealt))
                .unwrap_or(0);
            dealt[most] += 1;
            NodeId(most as u32)
        };
        Self {
            round: (0..length).map(&mut next).collect(),
        }
    }

    /// Rounds of a hundred in which shares that differ by a hundredth differ in one page: the hundred places are in one order,
    /// evenly spread (steps of the golden section), and each node has a part of that order. What is dealt already hardly
    /// moves when it is dealt anew. `shares` add up to 1.
    #[must_use]
    pub fn steady(shares: &[f64]) -> Self {
        /// Of a hundred, coprime to it.
        const GOLDEN: u32 = 61;
        let weights = hundredths(shares);
        let node_of = |place: u32| {
            let ends = weights.iter().scan(0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            });
            NodeId(ends.take_while(|end| *end <= place).count() as u32)
        };
        Self {
            round: (0..ROUND).map(|page| node_of(page * GOLDEN % ROUND)).collect(),
        }
    }

    /// The nodes that get pages.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.round.iter().copied()
    }

    /// The node of the page with this number.
    #[must_use]
    pub fn node(&self, number: u64) -> NodeId {
        self.round[(number % self.round.len() as u64) as usize]
    }
}

/// The same proportions in the smallest whole numbers; all 0 stays so.
#[must_use]
pub fn lowest_terms(weights: &[u32]) -> Vec<u32> {
    let divisor = weights.iter().copied().fold(0, greatest_common_divisor).max(1);
    weights.iter().map(|weight| weight / divisor).collect()
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

/// Shares in hundredths that add up to 100: those with the largest remainders are rounded up.
fn hundredths(shares: &[f64]) -> Vec<u32> {
    let exact: Vec<f64> = shares.iter().map(|s| s * f64::from(ROUND)).collect();
    let mut weights: Vec<u32> = exact.iter().map(|e| (e + 1e-6).floor() as u32).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|a, b| {
        let rest = |i: usize| exact[i] - f64::from(weights[i]);
        rest(*b).total_cmp(&rest(*a))
    });
    let left = ROUND.saturating_sub(weights.iter().sum());
    for node in order.iter().cycle().take(left as usize) {
        weights[*node] += 1;
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pages(deal: &Deal, nodes: usize) -> Vec<u32> {
        let mut pages = vec![0; nodes];
        (0..100).for_each(|page| pages[deal.node(page).index()] += 1);
        pages
    }

    proptest! {
        #[test]
        fn a_steady_deal_has_its_shares_and_changes_as_little_as_they_do(share in 0u32..100, nodes in 2usize..5) {
            let dealt = |share: u32| {
                let far = f64::from(share) / 100.0;
                let near = (1.0 - far) / (nodes - 1) as f64;
                let mut shares = vec![near; nodes - 1];
                shares.push(far);
                Deal::steady(&shares)
            };
            let (deal, next) = (dealt(share), dealt(share + 1));
            prop_assert_eq!(pages(&deal, nodes)[nodes - 1], share);
            let changed = (0..100).filter(|page| deal.node(*page) != next.node(*page)).count();
            prop_assert!(changed < nodes, "{} pages", changed);
            let runs = (0..100).filter(|page| deal.node(*page).index() == nodes - 1);
            let gaps = runs.collect::<Vec<u64>>();
            let longest = gaps.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
            prop_assert!(share == 0 || longest <= 3 * 100 / u64::from(share) + 1, "{} apart", longest);
        }
    }
}
