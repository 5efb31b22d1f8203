//! Text output of `validate`.

use nodewise_report::{bytes, plural, table, whole_percent};
use nodewise_tune::NotScored;
use nodewise_validate::{Document, ErrorSize, Point, ProgramResult, Summary, Validation};
use std::fmt::Write;
use std::path::Path;

/// The rule by which sizes are chosen, in one line.
pub fn rule(validation: &Validation) -> String {
    let rule = &validation.rule;
    let caches = match validation.site.last_level_bytes {
        Some(caches) => format!("four times the last-level caches ({} in all)", bytes(caches)),
        None => "a size for unknown caches".to_owned(),
    };
    let overridden = if rule.overridden {
        " (here as asked for)"
    } else {
        ""
    };
    format!(
        "arrays of {} at least: {caches}, at least 64 MiB, at most half of the smallest node and a quarter of all memory; \
         iterations for {:.1} s at 2 GB/s for each of {}{overridden}",
        bytes(rule.array_bytes),
        rule.run_seconds,
        plural(validation.site.cpus, "CPU"),
    )
}

/// A table of the programs that would be run.
pub fn plan(validation: &Validation, file: &Path) -> String {
    let site = &validation.site;
    let mut out = format!(
        "{}, {}, {}\n",
        site.cpu,
        plural(site.nodes, "node"),
        plural(site.cpus, "CPU")
    );
    for line in validation.remarks().into_iter().chain([rule(validation)]) {
        let _ = writeln!(out, "{line}");
    }
    let placements: Vec<&str> = validation.placements().collect();
    let _ = writeln!(
        out,
        "placements: {}; threads bound node by node\n",
        placements.join(", ")
    );
    let header = ["program", "arguments", "arrays", "accesses"].map(str::to_owned);
    let rows = validation.jobs.iter().map(|job| {
        let program = job.program;
        [
            program.name.to_owned(),
            job.arguments().join(" "),
            bytes(job.bytes),
            program.pattern.to_owned(),
        ]
    });
    out += &table("llrl", std::iter::once(header).chain(rows));
    let _ = writeln!(out, "\nwould write {}", file.display());
    out
}

/// A table of all points, with the errors of the predictions.
pub fn text(document: &Document) -> String {
    let site = &document.site;
    let mut out = format!(
        "{}, {}, {}; predicted for {}\n\n",
        site.cpu,
        plural(site.nodes, "node"),
        plural(site.cpus, "CPU"),
        if document.machine.how == "measured" {
            "the machine as measured"
        } else {
            "the machine file"
        }
    );
    let header = [
        "program",
        "placement",
        "measured",
        "",
        "predicted",
        "",
        "error",
        "calibrated",
    ];
    let rows = document
        .programs
        .iter()
        .flat_map(|ran| ran.points.iter().map(|p| row(document, ran, p)));
    out += &table("llrlrlrr", std::iter::once(header.map(str::to_owned)).chain(rows));
    let _ = writeln!(out);
    match (&document.summary, document.not_scored) {
        (Some(summary), _) => out += &errors(summary),
        (None, Some(NotScored::OneNode)) => {
            out += "Nothing is validated: with one memory node all placements are the same.\n";
        }
        (None, Some(NotScored::Oversubscribed)) => {
            out += "Nothing is validated: fewer CPUs may be used at a time than there are.\n";
        }
        (None, None) => out += "Nothing is validated: no program had its pages where they were predicted.\n",
    }
    if document.is_virtual {
        out += "This is a virtual machine or an emulator: the figures are of no hardware, and the file says so.\n";
    }
    out
}

fn row(document: &Document, ran: &ProgramResult, point: &Point) -> [String; 8] {
    let [least, most] = point.spread;
    let [low, high] = point.predicted_range;
    // If predictions are not compared with measurements, errors would be misleading.
    let scored = document.not_scored.is_none() && point.counted;
    let error = |error: f64| format!("{:+.0} %", 100.0 * error);
    let note = if point.counted { "" } else { " (pages elsewhere)" };
    [
        ran.program.to_owned(),
        format!("{}{note}", point.placement),
        format!("{:.3} s", point.median_seconds),
        format!("{least:.3}–{most:.3}"),
        format!("{:.3} s", point.predicted_seconds),
        format!("{low:.3}–{high:.3}"),
        if scored { error(point.error) } else { String::new() },
        point
            .calibrated
            .filter(|_| scored)
            .map_or(String::new(), |c| error(c.error)),
    ]
}

fn errors(summary: &Summary) -> String {
    let mut out = String::new();
    let mut line = |what: &str, size: Option<ErrorSize>| {
        if let Some(e) = size {
            let (median, p90) = (whole_percent(e.median), whole_percent(e.p90));
            let points = plural(e.points, "point");
            let _ = writeln!(out, "{what}: median {median}, 90th percentile {p90}, of {points}");
        }
    };
    line("Error of predictions from recordings alone", Some(summary.error));
    line("The same without first-touch", summary.error_without_first);
    line("Calibrated on first-touch of each program", summary.calibrated);
    let (inside, points) = (summary.inside_range, summary.error.points);
    let _ = writeln!(out, "Measured within the predicted range: {inside} of {points}.");
    let pairs = summary.pairs;
    let _ = match pairs.of {
        0 => writeln!(out, "No two placements of a program differ by 5 %."),
        of => writeln!(
            out,
            "Of {of} pairs of placements that differ by 5 %, the faster is named in {}, the slower in {}, neither in {}.",
            pairs.right, pairs.wrong, pairs.undecided
        ),
    };
    out
}

/// A note on what the file contains, and where to send it.
pub fn sending(document: &Document, file: &Path) -> String {
    let holds = "processor model, kernel version, the machine's figures, run times and predictions, and no name of a host, a \
                 user or a folder";
    let why = match (
        document.is_virtual,
        document.not_scored.is_some(),
        document.rule.overridden,
    ) {
        (true, ..) => Some("it is of a virtual machine"),
        (_, true, _) => Some("nothing was validated"),
        (.., true) => Some("sizes were asked for"),
        _ => None,
    };
    match why {
        Some(why) => format!("wrote {}: {holds}; it is not for sending: {why}", file.display()),
        None => format!(
            "wrote {}: {holds}; please attach it to an issue of the project, \"Validation: {}\"",
            file.display(),
            document.machine.name
        ),
    }
}
