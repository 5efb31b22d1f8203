//! MAI's page orders for arrays: cyclic, skew and prime.

use super::decide::by_object;
use super::{Policy, Request};
use crate::rules::{Dealt, Order, is_prime};
use crate::{Context, Distribution, Mapping, PagePolicy, PolicyError};
use nodewise_machine::{Machine, NodeId};

/// The pages of each array in turn over all nodes, from the array's first page on (`mai_cyclic`; Ribeiro and Méhaut
/// 3.1). [`super::Interleave`] uses virtual page numbers instead, and includes stacks.
#[derive(Clone, Copy, Debug)]
pub struct Cyclic;

/// The pages of each array in turn over all nodes, each round one node further on: round r of N pages
/// starts at node r mod N (`mai_skew_mapp`; Ribeiro and Méhaut 2.1 and 3.1, after Iyer, Wang, Bhuyan).
#[derive(Clone, Copy, Debug)]
pub struct Skew;

/// The pages of each array in turn over a prime number of virtual nodes; those of virtual nodes beyond the real ones
/// are dealt over the real ones in turn (`mai_prime_mapp`; ibid.).
#[derive(Clone, Copy, Debug)]
pub struct Prime {
    /// Virtual nodes: a prime, at least as many as nodes.
    pub prime: u32,
}

pub(super) fn prime(request: &Request<'_>) -> Result<Policy, PolicyError> {
    let nodes = request.machine.node_count() as u32;
    let prime = match request.parameter {
        None => least_prime_above(nodes),
        Some(text) => text
            .parse()
            .ok()
            .filter(|p| is_prime(*p) && *p >= nodes)
            .ok_or_else(|| {
                PolicyError(format!(
                    "policy `{}`: {} has {nodes} nodes; write a prime from there on, such as prime:{}",
                    request.text,
                    request.machine.name,
                    least_prime_above(nodes)
                ))
            })?,
    };
    Ok(Box::new(Prime { prime }))
}

/// The smallest prime above `nodes`: with as many virtual nodes as nodes the order would be cyclic.
fn least_prime_above(nodes: u32) -> u32 {
    (nodes + 1..).find(|p| is_prime(*p)).unwrap_or(2)
}

fn dealt(order: Order, machine: &Machine) -> Distribution {
    let nodes: Vec<NodeId> = machine.node_ids().collect();
    Distribution::Dealt(Dealt {
        order,
        nodes,
        block: 1,
    })
}

impl PagePolicy for Cyclic {
    fn name(&self) -> String {
        "cyclic".into()
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        by_object(self, context, &dealt(Order::Cyclic, context.machine))
    }
}

impl PagePolicy for Skew {
    fn name(&self) -> String {
        "skew".into()
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        by_object(self, context, &dealt(Order::Skew, context.machine))
    }
}

impl PagePolicy for Prime {
    fn name(&self) -> String {
        format!("prime:{}", self.prime)
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        by_object(self, context, &dealt(Order::Prime(self.prime), context.machine))
    }
}
