//! The home node of each page over time, shown as a colour, with moves marked: ARS's "page show" (Tao et al., 3.3) for
//! a whole run. One SVG file for light and dark colour schemes, with tooltips.

use crate::markup::Text;
use crate::plural;
use nodewise_analysis::Histogram;
use nodewise_machine::NodeId;
use nodewise_profile::{Migration, ObjectId, Profile};
use nodewise_simulation::SliceShare;
use std::fmt::Write;

/// The input of the picture.
#[derive(Clone, Copy, Debug)]
pub struct PageShow<'a> {
    /// The policy, as written.
    pub policy: &'a str,
    /// A line of text below the policy.
    pub summary: &'a str,
    /// The profile, for the names of objects.
    pub profile: &'a Profile,
    /// The histogram whose pages are drawn.
    pub histogram: &'a Histogram,
    /// Home node of each page before any moves.
    pub start: &'a [NodeId],
    /// Number of nodes of the machine.
    pub nodes: usize,
    /// The slices of the run, ascending.
    pub slices: &'a [SliceShare],
    /// The moves, each at the end of a slice, ascending by slice.
    pub migrations: &'a [Migration],
}

/// Colours of Okabe and Ito, which can be distinguished with any kind of colour vision. On machines with more nodes
/// than colours, several nodes share one; tooltips give the node's number.
const STYLE: &str = "text{font:12px system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#171b21}\
.title{font-size:17px;font-weight:600}.small{font-size:11px;fill:#59636f}.end{text-anchor:end}.middle{text-anchor:middle}\
.ground{fill:#f5f6f8}.paper{fill:#e3e6ea}.n0{fill:#0072b2}.n1{fill:#e69f00}.n2{fill:#009e73}.n3{fill:#cc79a7}\
.n4{fill:#56b4e9}.n5{fill:#d55e00}.n6{fill:#f0e442}.n7{fill:#7a7f87}.move{fill:#171b21}.line{fill:none;stroke:#171b21;\
stroke-width:1.5}.axis{stroke:#8a95a2;fill:none}.border{stroke:#f5f6f8;stroke-width:1.5}\
@media(prefers-color-scheme:dark){text{fill:#e7ebf0}.small{fill:#9aa5b2}.ground{fill:#0e1217}.paper{fill:#1f262f}\
.line{stroke:#e7ebf0}.axis{stroke:#6b7785}.border{stroke:#0e1217}}";

const COLOURS: usize = 8;
const LEFT: f64 = 132.0;
const TOP: f64 = 92.0;
const WIDTH: f64 = 660.0;
const HEIGHT: f64 = 384.0;
/// Height of the curve of local accesses, SVG units.
const CURVE: f64 = 64.0;
const ROWS: usize = 256;
const COLUMNS: usize = 220;
const OBJECTS: usize = 10;

/// The picture of a run, a complete SVG document. It shows arrays; if there are many, those with most pages. In long
/// runs and large arrays several slices or pages share a cell, which shows the most frequent home node.
#[must_use]
pub fn page_show(show: &PageShow<'_>) -> String {
    let rows = Rows::of(show);
    let grid = Grid::of(show, &rows);
    let height = TOP + HEIGHT + CURVE + 76.0;
    let width = LEFT + WIDTH + 24.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" aria-label=\"Homes of pages through time under {policy}\">\
         <style>{STYLE}</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"title\" x=\"24\" y=\"32\">{policy}</text><text class=\"small\" x=\"24\" y=\"52\">{summary}</text>\n",
        policy = Text(show.policy),
        summary = Text(show.summary),
    );
    legend(&mut svg, show.nodes);
    grid.draw(&mut svg, show, &rows);
    labels(&mut svg, show, &rows);
    curve(&mut svg, show);
    svg.push_str("</svg>\n");
    svg
}

/// The rows of the picture: pages in ascending order, several in one row if there are many.
struct Rows {
    /// Indices of pages in the histogram, ascending.
    pages: Vec<u32>,
    per_row: usize,
    /// The objects shown, in the order of their pages, each with its number of pages.
    objects: Vec<(ObjectId, usize)>,
}

impl Rows {
    fn of(show: &PageShow<'_>) -> Self {
        let PageShow {
            profile, histogram, ..
        } = show;
        let array = |id: &ObjectId| profile.object(*id).is_some_and(|o| o.kind.is_mappable());
        let any = histogram.objects.iter().any(array);
        let mut sizes = std::collections::BTreeMap::<ObjectId, usize>::new();
        for object in histogram.objects.iter().filter(|o| !any || array(o)) {
            *sizes.entry(*object).or_default() += 1;
        }
        let mut largest: Vec<_> = sizes.into_iter().collect();
        largest.sort_by_key(|(id, pages)| (std::cmp::Reverse(*pages), *id));
        largest.truncate(OBJECTS);
        let shown = |page: &usize| largest.iter().any(|(id, _)| *id == histogram.objects[*page]);
        let pages: Vec<u32> = (0..histogram.len()).filter(shown).map(|p| p as u32).collect();
        let runs = pages.chunk_by(|a, b| histogram.objects[*a as usize] == histogram.objects[*b as usize]);
        let objects = runs
            .map(|run| (histogram.objects[run[0] as usize], run.len()))
            .collect();
        Self {
            per_row: pages.len().div_ceil(ROWS).max(1),
            pages,
            objects,
        }
    }

    fn count(&self) -> usize {
        self.pages.len().div_ceil(self.per_row)
    }

    fn height(&self) -> f64 {
        HEIGHT / self.count().max(1) as f64
    }

    /// Row of a page of the histogram.
    fn row(&self, page: u32) -> Option<usize> {
        self.pages.binary_search(&page).ok().map(|i| i / self.per_row)
    }
}

/// The content of each cell.
struct Grid {
    /// The node of each cell, `[column][row]`.
    homes: Vec<Vec<u16>>,
    /// Pages that move at the end of a column, `[column][row]`.
    moves: Vec<Vec<u32>>,
}

impl Grid {
    fn of(show: &PageShow<'_>, rows: &Rows) -> Self {
        let per_column = show.slices.len().div_ceil(COLUMNS).max(1);
        let mut homes: Vec<u16> = show.start.iter().map(|n| n.0 as u16).collect();
        let mut left = show.migrations.iter().peekable();
        let mut grid = Self {
            homes: Vec::new(),
            moves: Vec::new(),
        };
        for slices in show.slices.chunks(per_column) {
            grid.homes.push(commonest(&homes, rows, show.nodes));
            let last = slices[slices.len() - 1].slice;
            let mut moves = vec![0; rows.count()];
            while let Some(m) = left.next_if(|m| m.slice <= last) {
                for page in pages_of(show.histogram, m) {
                    homes[page] = m.to;
                    if let Some(row) = rows.row(page as u32) {
                        moves[row] += 1;
                    }
                }
            }
            grid.moves.push(moves);
        }
        grid
    }

    fn draw(&self, svg: &mut String, show: &PageShow<'_>, rows: &Rows) {
        let (columns, height) = (self.homes.len().max(1), rows.height());
        let column = WIDTH / columns as f64;
        let _ = writeln!(
            svg,
            "<rect class=\"paper\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/><g shape-rendering=\"crispEdges\">"
        );
        for node in 0..show.nodes {
            let mut path = String::new();
            for row in 0..rows.count() {
                let at = |c: usize| usize::from(self.homes[c][row]) == node;
                let mut c = 0;
                while c < self.homes.len() {
                    let end = (c..self.homes.len())
                        .find(|e| !at(*e))
                        .unwrap_or(self.homes.len());
                    if end > c {
                        let (x, y) = (LEFT + c as f64 * column, TOP + row as f64 * height);
                        let wide = (end - c) as f64 * column;
                        let _ = write!(path, "M{x:.1} {y:.2}h{wide:.1}v{height:.2}h-{wide:.1}z");
                    }
                    c = end.max(c + 1);
                }
            }
            if !path.is_empty() {
                let _ = writeln!(
                    svg,
                    "<path class=\"n{}\" d=\"{path}\"><title>node {node}</title></path>",
                    node % COLOURS
                );
            }
        }
        svg.push_str("</g>\n");
        self.marks(svg, column, height);
    }

    /// Draws a dot in each row whose pages move.
    fn marks(&self, svg: &mut String, column: f64, height: f64) {
        let radius = (height.min(column) * 0.32).clamp(0.7, 2.2);
        let mut path = String::new();
        for (c, moves) in self.moves.iter().enumerate() {
            for row in (0..moves.len()).filter(|r| moves[*r] > 0) {
                let x = LEFT + (c + 1) as f64 * column - radius;
                let y = TOP + (row as f64 + 0.5) * height;
                let _ = write!(
                    path,
                    "M{x:.1} {y:.1}a{radius:.1} {radius:.1} 0 1 0 {:.1} 0a{radius:.1} {radius:.1} 0 1 0 -{:.1} 0",
                    2.0 * radius,
                    2.0 * radius
                );
            }
        }
        if !path.is_empty() {
            let _ = writeln!(
                svg,
                "<path class=\"move\" d=\"{path}\"><title>pages move</title></path>"
            );
        }
    }
}

/// Indices of the pages of a migration.
fn pages_of<'a>(histogram: &'a Histogram, migration: &Migration) -> impl Iterator<Item = usize> + 'a {
    let first = migration.page.align_down(histogram.shift);
    let end = migration.page.offset(u64::from(migration.len));
    let from = histogram.pages.partition_point(|p| *p < first);
    (from..histogram.len()).take_while(move |i| histogram.pages[*i] < end)
}

/// The most frequent home node of each row's pages; the lowest node if several are equally frequent.
fn commonest(homes: &[u16], rows: &Rows, nodes: usize) -> Vec<u16> {
    let mut counts = vec![0u32; nodes];
    let of = |pages: &[u32]| {
        counts.fill(0);
        pages
            .iter()
            .for_each(|p| counts[usize::from(homes[*p as usize])] += 1);
        let most = counts.iter().copied().max().unwrap_or(0);
        counts.iter().position(|c| *c == most).unwrap_or(0) as u16
    };
    rows.pages.chunks(rows.per_row).map(of).collect()
}

fn legend(svg: &mut String, nodes: usize) {
    for node in 0..nodes.min(COLOURS) {
        let x = LEFT + node as f64 * 70.0;
        let _ = write!(
            svg,
            "<rect class=\"n{node}\" x=\"{x}\" y=\"66\" width=\"12\" height=\"12\"/><text class=\"small\" x=\"{}\" y=\"76\">node {node}</text>",
            x + 17.0
        );
    }
    let x = LEFT + nodes.min(COLOURS) as f64 * 70.0;
    let _ = writeln!(
        svg,
        "<circle class=\"move\" cx=\"{}\" cy=\"72\" r=\"2.5\"/><text class=\"small\" x=\"{}\" y=\"76\">pages move</text>",
        x + 6.0,
        x + 17.0
    );
}

fn labels(svg: &mut String, show: &PageShow<'_>, rows: &Rows) {
    let page = HEIGHT / rows.pages.len().max(1) as f64;
    let mut y = TOP;
    let mut below = f64::NEG_INFINITY;
    for (object, pages) in &rows.objects {
        let tall = *pages as f64 * page;
        let name = show.profile.object(*object).map_or("", |o| o.name.as_str());
        let name: String = name.chars().take(16).collect();
        let middle = y + 0.5 * tall;
        if middle - below >= 26.0 || !below.is_finite() {
            let _ = writeln!(
                svg,
                "<text class=\"end\" x=\"{x}\" y=\"{middle:.1}\">{}</text><text class=\"small end\" x=\"{x}\" y=\"{:.1}\">{}</text>",
                Text(&name),
                middle + 14.0,
                plural(*pages, "page"),
                x = LEFT - 8.0,
            );
            below = middle;
        }
        y += tall;
        if y < TOP + HEIGHT - 0.5 {
            let _ = writeln!(svg, "<path class=\"border\" d=\"M{LEFT} {y:.1}h{WIDTH}\"/>");
        }
    }
}

/// Draws the share of local accesses of each slice.
fn curve(svg: &mut String, show: &PageShow<'_>) {
    let (top, wide) = (TOP + HEIGHT + 14.0, WIDTH / show.slices.len().max(1) as f64);
    let mut path = String::new();
    for (i, slice) in show.slices.iter().enumerate() {
        let (x, y) = (
            LEFT + i as f64 * wide,
            top + (1.0 - slice.local_fraction()) * CURVE,
        );
        let verb = if i == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{verb}{x:.1} {y:.1}h{wide:.2}");
    }
    let bottom = top + CURVE;
    let _ = writeln!(
        svg,
        "<path class=\"axis\" d=\"M{LEFT} {top}v{CURVE}h{WIDTH}\"/><path class=\"line\" d=\"{path}\"/>\
         <text class=\"small end\" x=\"{x}\" y=\"{:.1}\">100 %</text><text class=\"small end\" x=\"{x}\" y=\"{bottom:.1}\">0</text>\
         <text class=\"small end\" x=\"{x}\" y=\"{:.1}\">local accesses</text>",
        top + 9.0,
        top + 0.5 * CURVE + 4.0,
        x = LEFT - 8.0,
    );
    let _ = writeln!(
        svg,
        "<text class=\"small\" x=\"{LEFT}\" y=\"{y:.1}\">slice 0</text><text class=\"small end\" x=\"{:.1}\" y=\"{y:.1}\">slice {}</text>\
         <text class=\"small middle\" x=\"{:.1}\" y=\"{y:.1}\">time</text>",
        LEFT + WIDTH,
        show.slices.last().map_or(0, |s| s.slice.0),
        LEFT + WIDTH / 2.0,
        y = bottom + 18.0,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_profile::{Object, ObjectKind, PageNumber, SliceId};

    #[test]
    fn a_moved_page_changes_its_colour_where_it_moves() {
        let objects = vec![Object {
            kind: ObjectKind::Heap,
            name: "<grid>".into(),
            ..Object::default()
        }];
        let profile = Profile {
            objects,
            ..Profile::default()
        };
        let histogram = Histogram {
            pages: [7, 8].map(PageNumber).to_vec(),
            objects: vec![ObjectId(0); 2],
            offsets: vec![0; 3],
            ..Histogram::default()
        };
        let slice = |s| SliceShare {
            slice: SliceId(s),
            accesses: 4,
            local: 2,
            migrations: 0,
        };
        let moved = Migration {
            slice: SliceId(1),
            page: PageNumber(8),
            len: 1,
            to: 1,
            ..Migration::default()
        };
        let show = PageShow {
            policy: "balance:out-u",
            summary: "a & b",
            profile: &profile,
            histogram: &histogram,
            start: &[NodeId(0), NodeId(0)],
            nodes: 2,
            slices: &[0, 1, 2].map(slice),
            migrations: std::slice::from_ref(&moved),
        };
        let rows = Rows::of(&show);
        let grid = Grid::of(&show, &rows);
        assert_eq!(grid.homes, [[0, 0], [0, 0], [0, 1]]);
        assert_eq!(grid.moves, [[0, 0], [0, 1], [0, 0]]);
        let svg = page_show(&show);
        assert!(
            svg.contains("&lt;grid&gt;")
                && svg.contains("a &amp; b")
                && svg.contains("<title>node 1</title>")
        );
    }
}
