//! Properties of the documents of any profile: they are sums over the histogram in which each page counts exactly once.

mod sample;

use nodewise_page::{Documents, SessionDocuments};
use nodewise_profile::*;
use proptest::prelude::*;
use sample::{Made, Packed, Sample, json, level, machine};
use std::collections::BTreeMap;
use std::sync::Arc;

const POLICIES: &str = "first-touch,interleave,locality,random";

/// Rows whose objects interleave page by page if `interleaved` is set.
fn rows(interleaved: bool) -> impl Strategy<Value = Vec<Access>> {
    let row = (0u32..5, 0u32..9, 0u64..2500, 1u32..40, 0u64..50, 0u64..50);
    let row = row.prop_map(move |(slice, thread, page, len, reads, writes)| Access {
        slice: SliceId(slice),
        thread: ThreadId(thread),
        object: ObjectId(if interleaved {
            page as u32 % 3
        } else {
            page as u32 / 500
        }),
        page: PageNumber(page + (page / 500) * 1000),
        len: if interleaved {
            1
        } else {
            len.min(500 - page as u32 % 500)
        },
        reads,
        writes,
        lines: reads,
        region: RegionId(0),
    });
    proptest::collection::vec(row, 1..150)
}

fn made(rows: Vec<Access>, nodes: u32) -> Made {
    Sample::new(machine(nodes), rows).made(POLICIES)
}

fn any_rows() -> impl Strategy<Value = Vec<Access>> {
    any::<bool>().prop_flat_map(rows)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cells_sum_to_those_of_the_level_above_and_all_accesses_are_in_each_level(rows in any_rows(), nodes in 1u32..5) {
        let made = made(rows, nodes);
        let total = made.report.totals.accesses as f64;
        let mut finer: Option<Vec<f64>> = None;
        for l in 0..=made.view.coarsest() {
            let accesses = level(&made.view, "tile", l, "accesses");
            prop_assert_eq!(accesses.iter().sum::<f64>(), total);
            if let Some(finer) = finer {
                let pairs: Vec<f64> = finer.chunks(2).map(|p| p.iter().sum()).collect();
                prop_assert_eq!(&accesses, &pairs);
            }
            let by_thread = level(&made.view, "detail", l, "accesses");
            prop_assert_eq!(by_thread.iter().sum::<f64>(), total);
            finer = Some(accesses);
        }
        let film = Packed::of(&made.view, "film");
        let (width, seen) = (film.facts["width"].as_u64().unwrap() as usize, film.column("accesses"));
        let pages = level(&made.view, "tile", 0, "accesses");
        for column in 0..width {
            let positions = column * pages.len() / width..(column + 1) * pages.len() / width;
            let steps: f64 = seen.iter().skip(column).step_by(width).sum();
            prop_assert_eq!(steps, pages[positions].iter().sum::<f64>());
        }
    }

    #[test]
    fn homes_of_single_pages_are_the_mappings_and_each_page_is_in_one_cell(rows in any_rows(), nodes in 1u32..5) {
        let made = made(rows, nodes);
        let strip = json(&made.view, "strip.json");
        // The page at each position follows from the runs and from the tiles' pages.
        let offsets = level(&made.view, "tile", 0, "page");
        let mut positions = Vec::new();
        for run in strip["objects"].as_array().unwrap() {
            let address = u64::from_str_radix(&run["address"].as_str().unwrap()[2..], 16).unwrap();
            let first = run["first"].as_u64().unwrap() as usize;
            for offset in &offsets[first..first + run["pages"].as_u64().unwrap() as usize] {
                positions.push(PageNumber(address / BASE_PAGE_SIZE + *offset as u64));
            }
        }
        let mut sorted = positions.clone();
        sorted.sort_unstable();
        prop_assert_eq!(&sorted, &made.histogram.pages);
        let index: BTreeMap<PageNumber, usize> =
            made.histogram.pages.iter().enumerate().map(|(i, p)| (*p, i)).collect();
        for (k, mapping) in made.mappings.iter().enumerate() {
            let homes = level(&made.view, "tile", 0, &format!("home_{k}"));
            let expected: Vec<f64> = positions.iter().map(|p| f64::from(mapping.nodes[index[p]].0)).collect();
            prop_assert_eq!(homes, expected);
            let local = level(&made.view, "tile", made.view.coarsest(), &format!("local_{k}"));
            let accesses = level(&made.view, "tile", made.view.coarsest(), "accesses");
            let sum: f64 = local.iter().zip(&accesses).map(|(l, a)| l / 255.0 * a).sum();
            let share = sum / accesses.iter().sum::<f64>().max(1.0);
            let expected = made.report.policies[k].local_fraction;
            prop_assert!(accesses.iter().sum::<f64>() == 0.0 || (share - expected).abs() < 0.5 / 255.0 + 1e-6);
        }
    }

    #[test]
    fn traffic_and_threads_hold_all_accesses_too(rows in any_rows(), nodes in 1u32..5) {
        let made = made(rows, nodes);
        let total = made.report.totals.accesses;
        let sum = |matrix: &serde_json::Value| -> u64 {
            matrix.as_array().unwrap().iter().flat_map(|r| r.as_array().unwrap()).map(|n| n.as_u64().unwrap()).sum()
        };
        let machine = json(&made.view, "machine.json");
        prop_assert_eq!(machine["places"].as_array().unwrap().len(), nodes as usize);
        for (policy, report) in machine["policies"].as_array().unwrap().iter().zip(&made.report.policies) {
            prop_assert_eq!(policy["policy"].as_str().unwrap(), &report.policy);
            prop_assert_eq!(sum(&policy["accesses"]), total);
            let local: u64 = (0..nodes as usize).map(|n| policy["accesses"][n][n].as_u64().unwrap()).sum();
            let share = if total == 0 { 1.0 } else { local as f64 / total as f64 };
            prop_assert!((share - report.local_fraction).abs() < 1e-9);
        }
        let threads = json(&made.view, "threads.json");
        let groups = threads["groups"].as_array().unwrap().len();
        for key in ["before", "after"] {
            prop_assert_eq!(sum(&threads[key]["accesses"]), total);
            prop_assert_eq!(threads[key]["nodes"].as_array().unwrap().len(), groups);
            let clusters = threads[key]["clusters"].as_array().unwrap();
            let mut members: Vec<u64> =
                clusters.iter().flat_map(|c| c.as_array().unwrap()).map(|g| g.as_u64().unwrap()).collect();
            members.sort_unstable();
            prop_assert_eq!(members, (0..groups as u64).collect::<Vec<_>>());
        }
        for (a, b) in (0..groups).flat_map(|a| (0..groups).map(move |b| (a, b))) {
            prop_assert_eq!(&threads["sharing"][a][b], &threads["sharing"][b][a]);
        }
    }

    #[test]
    fn a_name_that_is_none_has_no_document(names in proptest::collection::vec("(p|tile|detail|film|0|1|9|00|-1|\\+1|4294967296|99999999999999999999|%2e|\\.\\.|session.json|é|.){1,2}", 0..6)) {
        let made = made(vec![Access { len: 9, reads: 1, ..Access::default() }], 2);
        let documents = SessionDocuments::new(vec![Arc::new(made.view)], false, 0, None);
        let name = names.join("/");
        let known = ["session.json", "p/0/film", "p/0/tile/0/0", "p/0/detail/0/0"];
        prop_assert_eq!(documents.document(&name).is_some(), known.contains(&name.as_str()), "{}", name);
    }
}

#[test]
fn the_report_is_that_of_json() {
    let made = made(
        vec![Access {
            len: 70,
            reads: 3,
            writes: 1,
            ..Access::default()
        }],
        4,
    );
    let expected: serde_json::Value =
        serde_json::from_str(&nodewise_report::json::write(&made.report)).unwrap();
    assert_eq!(json(&made.view, "report.json"), expected);
}

#[test]
fn profiles_of_nothing_one_page_and_one_thread_have_all_documents() {
    let page = Access {
        len: 1,
        reads: 1,
        ..Access::default()
    };
    for (rows, pages) in [
        (vec![], 0),
        (vec![page], 1),
        (vec![Access { len: 1000, ..page }], 1000),
    ] {
        for nodes in [1, 2, 128] {
            let view = made(rows.clone(), nodes).view;
            for name in ["report.json", "machine.json", "threads.json", "strip.json"] {
                let text = view.document(name).unwrap().into_owned();
                assert!(!String::from_utf8(text).unwrap().contains("NaN"), "{name}");
            }
            let tile = Packed::of(&view, &format!("tile/{}/0", view.coarsest()));
            assert_eq!(json(&view, "strip.json")["pages"], pages);
            assert_eq!(tile.column("accesses").iter().sum::<f64>(), f64::from(pages));
            assert_eq!(
                tile.column("nodes").len(),
                nodes as usize * tile.column("dominant").len()
            );
            assert_eq!(
                Packed::of(&view, "film").column("accesses").iter().sum::<f64>(),
                f64::from(pages)
            );
        }
    }
}

#[test]
fn of_samples_nothing_is_said_that_takes_counts() {
    let mut sample = Sample::new(
        machine(4),
        vec![Access {
            len: 9,
            reads: 9,
            ..Access::default()
        }],
    );
    sample.profile.meta.observer = Observer::Faults;
    let view = sample.made(POLICIES).view;
    assert!(json(&view, "report.json")["policies"][0]["seconds"].is_null());
    assert!(json(&view, "report.json")["slices"][0]["access_balance"].is_null());
    assert_eq!(
        json(&view, "machine.json")["policies"][0]["controllers"],
        serde_json::json!([])
    );
}

#[test]
fn a_film_of_many_slices_joins_neighbours_without_a_gap() {
    let row = |s: u32| Access {
        slice: SliceId(s),
        page: PageNumber(u64::from(s % 7) * 100),
        len: 100,
        reads: u64::from(s),
        ..Access::default()
    };
    let view = made((0..300).map(row).collect(), 2).view;
    let film = Packed::of(&view, "film");
    let times = |key: &str| -> Vec<f64> {
        let all = film.facts[key].as_array().unwrap().iter();
        all.map(|t| t.as_f64().unwrap()).collect()
    };
    let (start, end) = (times("start"), times("end"));
    assert_eq!((start.len(), film.facts["steps"].as_u64()), (128, Some(128)));
    assert_eq!((start[0], end[127]), (0.0, 300_000_000_f64 * 1e-9));
    assert_eq!(start[1..], end[..127]);
    let (accesses, width) = (
        film.column("accesses"),
        film.facts["width"].as_u64().unwrap() as usize,
    );
    assert_eq!(accesses.len(), 128 * width);
    for (step, columns) in accesses.chunks(width).enumerate() {
        let slices = (step * 300).div_ceil(128)..((step + 1) * 300).div_ceil(128);
        assert_eq!(
            columns.iter().sum::<f64>(),
            slices.map(|s| 100.0 * s as f64).sum::<f64>()
        );
    }
    let touched: Vec<bool> = film.column("dominant").iter().map(|n| *n != 255.0).collect();
    assert_eq!(touched, accesses.iter().map(|a| *a > 0.0).collect::<Vec<_>>());
}

#[test]
fn a_machine_of_known_links_says_what_each_policy_puts_on_them() {
    let rows = (0..8).map(|t| Access {
        thread: ThreadId(t),
        page: PageNumber(u64::from(t) * 100),
        len: 100,
        reads: 1_000_000,
        lines: 1000,
        ..Access::default()
    });
    let sample = Sample::new(
        nodewise_machine::Machine::named("machine-a").unwrap(),
        rows.collect(),
    );
    let machine = json(&sample.made(POLICIES).view, "machine.json");
    let length = |value: &serde_json::Value| value.as_array().unwrap().len();
    assert_eq!(length(&machine["places"]), 8);
    assert!(length(&machine["links"]) > 8);
    let near = |place: &serde_json::Value| ["x", "y"].map(|k| place[k].as_f64().unwrap().abs() <= 1.0);
    assert!(
        machine["places"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(near)
            .all(|inside| inside)
    );
    for policy in machine["policies"].as_array().unwrap() {
        assert_eq!(length(&policy["links"]), length(&machine["links"]));
        assert_eq!(length(&policy["controllers"]), 8);
    }
    let bytes = |policy: usize| -> f64 {
        let all = machine["policies"][policy]["links"].as_array().unwrap().iter();
        all.map(|l| l["bytes"].as_f64().unwrap()).sum()
    };
    assert_eq!(
        (bytes(2), bytes(1) > 0.0),
        (0.0, true),
        "what is local crosses no link"
    );
}
