//! Claims the address ranges of a process without log: its mappings, and the variables of its modules.

use crate::claims::Content;
use crate::image::Image;
use crate::tables::Tables;
use nodewise_linux::maps::Area;
use nodewise_profile::SiteId;
use std::path::Path;

/// Claims every mapping by its kind. Claims that were accessed stay.
pub fn claim(image: &mut Image, tables: &mut Tables, areas: &[Area]) {
    let mut before: Option<(u64, Content)> = None;
    for (number, area) in areas.iter().enumerate() {
        let what = match &*area.name {
            "[heap]" => {
                image.brk = area.start;
                Content::Arena
            }
            "[stack]" => Content::Stack { ordinal: 0 },
            // An anonymous mapping behind a module's data holds its zero-initialised variables.
            "" => match before {
                Some((end, segment @ Content::Segment { .. })) if end == area.start => segment,
                _ => anonymous(area, number),
            },
            name if name.starts_with('[') => anonymous(area, number),
            path => file(image, tables, area, path),
        };
        image.claims.insert(area.start, area.end, what);
        before = Some((area.end, what));
    }
}

fn anonymous(area: &Area, number: usize) -> Content {
    Content::Allocation {
        site: SiteId(0),
        ordinal: 0,
        sequence: number as u32,
        origin: 0,
        bytes: area.end - area.start,
        mapped: true,
        address: area.start,
    }
}

fn file(image: &mut Image, tables: &mut Tables, area: &Area, path: &str) -> Content {
    let file = tables.library.file(path);
    let own = match tables.library.module(file) {
        Some(module) if Path::new(path).is_file() => module.address_of_file_offset(area.offset),
        _ => None,
    };
    let Some(own) = own else {
        return image.file(tables, path, (area.start, area.end));
    };
    let module = image.module(file, area.start.wrapping_sub(own), area.start, area.end);
    if area.permissions.contains('w') {
        Content::Segment { module }
    } else {
        Content::Image { module }
    }
}
