//! The page in a real browser: what it shows is what `--json` says, and nothing in it can run but
//! its own script. Skipped only where there is no chromium.

mod sample;

use nodewise_report::{Report, html, json};
use std::path::Path;
use std::process::Command;

/// The document after scripts have run; `None` without a browser.
fn rendered(report: &Report, name: &str) -> Option<String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let page = folder.join("report.html");
    std::fs::write(&page, html::write(report)).unwrap();
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .arg(format!("--user-data-dir={}", folder.join("browser").display()))
        .args(["--virtual-time-budget=3000", "--dump-dom"])
        .arg(format!("file://{}", page.display()))
        .output();
    match output {
        Ok(output) => Some(String::from_utf8(output.stdout).unwrap()),
        Err(_) => {
            eprintln!("skipped: no chromium");
            None
        }
    }
}

/// `(pointer, value, text)` of every figure in the document.
fn figures(dom: &str) -> Vec<(&str, f64, &str)> {
    dom.split("<data data-pointer=\"")
        .skip(1)
        .map(|rest| {
            let (pointer, rest) = rest.split_once("\" value=\"").unwrap();
            let (value, rest) = rest.split_once("\">").unwrap();
            (
                pointer,
                value.parse().unwrap(),
                rest.split_once("</data>").unwrap().0,
            )
        })
        .collect()
}

#[test]
fn every_figure_on_the_page_is_the_one_in_the_json() {
    for (name, report) in [
        ("figures", sample::report()),
        ("figures-moved", sample::balanced()),
        ("figures-sampled", sample::sampled()),
    ] {
        figures_agree(name, &report);
    }
}

fn figures_agree(name: &str, report: &Report) {
    let Some(dom) = rendered(report, name) else {
        return;
    };
    let json: serde_json::Value = serde_json::from_str(&json::write(report)).unwrap();
    let figures = figures(&dom);
    assert!(figures.len() > 100, "only {} figures", figures.len());
    for (pointer, value, text) in figures {
        let expected = json.pointer(pointer).and_then(serde_json::Value::as_f64);
        let expected = expected.unwrap_or_else(|| panic!("no {pointer} in the JSON"));
        // The JSON reader may be off by the last bit.
        assert!(
            (expected - value).abs() <= 1e-12 * value.abs(),
            "{pointer}: {value} is not {expected}"
        );
        assert!(!text.is_empty(), "{pointer}");
    }
    for policy in &report.policies {
        assert!(dom.contains(&format!("<code>{}</code>", policy.policy)));
    }
}

#[test]
fn the_script_passes_the_content_policy_and_draws_every_object() {
    let report = sample::report();
    let Some(dom) = rendered(&report, "drawn") else {
        return;
    };
    let heats = report.objects.iter().filter(|o| o.heat.is_some()).count();
    assert!(heats > 0);
    assert_eq!(dom.matches("data-drawn=\"first-touch\"").count(), heats);
}

#[test]
fn hostile_names_stay_text() {
    let evil = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">{{title}}";
    let mut report = sample::balanced();
    let moves = report.moves.as_mut().unwrap();
    moves.by[0].by = evil.into();
    moves.held_back[0].cause = evil.into();
    moves.objects.iter_mut().for_each(|o| o.name = evil.into());
    for journey in &mut moves.journeys {
        journey.object = evil.into();
        journey.stays.iter_mut().for_each(|s| s.by = Some(evil.into()));
    }
    for migration in &mut report.migrations {
        migration.by = evil.into();
        migration.object = evil.into();
    }
    report.program.command = vec![evil.into()];
    report.verdict.sentence = format!("`{evil}` and {evil}");
    report.machine.title = evil.into();
    report.policies[1].policy = evil.into();
    for object in &mut report.objects {
        object.name = evil.into();
        object.site = evil.into();
        object.blame = evil.into();
        object.snippet = Some(evil.into());
    }
    let page = html::write(&report);
    assert!(!page.contains("<img") && page.matches("<script").count() == 2);
    let Some(dom) = rendered(&report, "hostile") else {
        return;
    };
    let title = dom
        .split_once("<title>")
        .unwrap()
        .1
        .split_once("</title>")
        .unwrap()
        .0;
    assert!(title.ends_with("nodewise report"), "{title}");
    assert!(
        dom.matches("data-drawn").count() > 0,
        "the page's own script still runs"
    );
}

#[test]
fn the_page_asks_nothing_of_the_network() {
    let page = html::write(&sample::report());
    for trace in ["http:", "https:", " src=", " href=", "@import", "url("] {
        assert!(!page.contains(trace), "{trace}");
    }
}

#[test]
fn the_page_stays_small_however_many_objects_and_slices() {
    let mut report = sample::report();
    report.objects = (0..10_000).map(|i| report.objects[i % 3].clone()).collect();
    report.objects.iter_mut().skip(8).for_each(|o| o.heat = None);
    report.slices = vec![report.slices[0]; 100_000];
    assert!(html::write(&report).len() < 2 << 20);
}
