//! The machine as a graph, with the load of each policy.

use crate::traffic::Matrix;
use nodewise_machine::Machine;
use nodewise_report::places;
use nodewise_simulation::Prediction;
use serde::Serialize;

#[derive(Serialize)]
struct Graph {
    places: Vec<Place>,
    links: Vec<Link>,
    policies: Vec<Policy>,
}

#[derive(Serialize)]
struct Place {
    x: f64,
    y: f64,
}

#[derive(Serialize)]
struct Link {
    from: u32,
    to: u32,
    bandwidth: f64,
}

#[derive(Serialize)]
struct Policy {
    policy: String,
    accesses: Matrix,
    links: Vec<Use>,
    controllers: Vec<Use>,
}

#[derive(Serialize)]
struct Use {
    bytes: f64,
    utilization: f64,
}

/// `machine.json`. If accesses are samples (`counted` is false), their bytes are unknown.
#[must_use]
pub fn document(
    machine: &Machine,
    predictions: &[Prediction],
    matrices: Vec<Matrix>,
    counted: bool,
) -> Vec<u8> {
    let place = |(x, y)| Place { x, y };
    let link = |l: &nodewise_machine::Link| Link {
        from: l.from.0,
        to: l.to.0,
        bandwidth: l.bandwidth,
    };
    let policies = predictions.iter().zip(matrices);
    let graph = Graph {
        places: places(machine).into_iter().map(place).collect(),
        links: machine.links.iter().map(link).collect(),
        policies: policies
            .map(|(p, accesses)| policy(p, accesses, counted))
            .collect(),
    };
    serde_json::to_vec(&graph).expect("plain structs serialize")
}

fn policy(prediction: &Prediction, accesses: Matrix, counted: bool) -> Policy {
    let of = |bytes: f64, utilization: f64| Use { bytes, utilization };
    let (links, controllers) = match counted {
        true => (prediction.links.as_slice(), prediction.controllers.as_slice()),
        false => Default::default(),
    };
    Policy {
        policy: prediction.policy.clone(),
        accesses,
        links: links.iter().map(|l| of(l.bytes, l.utilization)).collect(),
        controllers: controllers.iter().map(|c| of(c.bytes, c.utilization)).collect(),
    }
}
