//! Ceilings of the circles. They can only fall: a test fails where a room has more circles or a larger one than its row says,
//! and also where it has fewer, so that the row is lowered with the circle that was cut.

use super::circles::{Circle, Through, circles};
use crate::source::Source;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A room's circles: how many, and the files of the largest.
type Size = (usize, usize);

/// Room, circles by names, circles through modules too ([`Through`]). A room without a row has none.
pub const CEILINGS: &[(&str, Size, Size)] = &[
    ("backend", (0, 0), (1, 4)),
    ("base", (0, 0), (1, 2)),
    ("boxing", (1, 2), (1, 5)),
    ("checkpoint", (1, 2), (1, 2)),
    ("comm", (2, 2), (3, 3)),
    ("context", (2, 2), (2, 2)),
    ("control", (3, 3), (3, 4)),
    ("data", (1, 2), (1, 2)),
    ("emulator/driver", (1, 3), (2, 4)),
    ("examples/custom_op", (0, 0), (1, 2)),
    ("fft", (1, 3), (1, 3)),
    ("files", (1, 2), (1, 2)),
    ("flight", (1, 2), (1, 2)),
    ("functional", (1, 4), (1, 4)),
    ("interpreter", (0, 0), (1, 3)),
    ("kernels", (5, 2), (8, 5)),
    ("launcher", (3, 3), (5, 4)),
    ("libraries", (0, 0), (3, 2)),
    ("memory", (1, 3), (1, 3)),
    ("nn", (1, 2), (1, 3)),
    ("op-abi", (1, 4), (1, 4)),
    ("ops", (2, 14), (2, 14)),
    ("optim", (1, 3), (1, 3)),
    ("plan", (1, 2), (1, 2)),
    ("tensor", (1, 2), (1, 2)),
    ("testing", (2, 2), (2, 2)),
    ("xtask", (1, 2), (1, 3)),
];

/// Compares the circles of a checkout with the ceilings. The text says each difference and ends with the table as it would be
/// true.
///
/// # Errors
/// A room differs from its row.
pub fn check(source: &Source) -> Result<(), String> {
    let (named, all) = (sizes(&circles(source, Through::Names)), sizes(&circles(source, Through::Modules)));
    let mut rooms: Vec<&str> = named.keys().chain(all.keys()).map(String::as_str).collect();
    rooms.extend(CEILINGS.iter().map(|(room, ..)| *room));
    rooms.sort_unstable();
    rooms.dedup();
    let (mut wrong, mut table) = (String::new(), String::new());
    for room in rooms {
        let row = CEILINGS.iter().find(|(r, ..)| *r == room);
        let size_in = |sizes: &BTreeMap<String, Size>| sizes.get(room).copied().unwrap_or_default();
        let (names, modules) = (size_in(&named), size_in(&all));
        let ceilings = row.map_or(((0, 0), (0, 0)), |(_, names, modules)| (*names, *modules));
        for (kind, is, ceiling) in [("by names", names, ceilings.0), ("through modules", modules, ceilings.1)] {
            if is == ceiling {
                continue;
            }
            let more = is.0 > ceiling.0 || is.1 > ceiling.1;
            let what = if more {
                "cut what has come: `cargo xtask house` lists the arrows"
            } else {
                "lower the row, so that it stays"
            };
            _ = writeln!(
                wrong,
                "{room}: {} circles {kind}, the largest of {} files; the ceiling is {} of {}: {what}",
                is.0, is.1, ceiling.0, ceiling.1
            );
        }
        if names != (0, 0) || modules != (0, 0) {
            _ = writeln!(table, "    ({room:?}, {names:?}, {modules:?}),");
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{wrong}the rows as they are:\n{table}")) }
}

fn sizes(circles: &[Circle]) -> BTreeMap<String, Size> {
    let mut sizes = BTreeMap::<String, Size>::new();
    for c in circles {
        let size = sizes.entry(c.room.clone()).or_default();
        *size = (size.0 + 1, size.1.max(c.files.len()));
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_stay_under_their_ceilings() {
        let source = Source::read(&crate::root()).unwrap();
        if let Err(wrong) = check(&source) {
            panic!("{wrong}");
        }
    }
}
