//! The picture as text.

use std::ops::Range;

use super::grid::{Grid, Holders};

/// Rows of cells that are drawn at most.
const MOST_ROWS: usize = 64;
/// Lines of a cell at most.
const MOST_LINES: usize = 4;

/// Draws all slices within `width` characters; None where there are too many cells.
pub(super) fn draw(grid: &Grid, width: usize) -> Option<String> {
    let [rows, columns] = &grid.parts;
    if rows.len() * grid.slices.len() > MOST_ROWS {
        return None;
    }
    // Characters left of the first cell.
    let numbers = rows.iter().map(|r| r.end.to_string().len()).max().unwrap_or(1);
    let margin = 2 + if grid.shown[0].is_some() { numbers + 1 } else { 0 };
    // Behind the last column stands the number at which it ends.
    let end = if grid.shown[1].is_some() { columns.last().map_or(1, |c| c.end.to_string().len()) } else { 1 };
    let room = width.saturating_sub(margin + columns.len() + end);
    // Labels in one line, if they fit, else in several.
    let least = |whole: bool| -> Option<Vec<usize>> {
        let of_column = |c: usize| {
            let text = |row: &Vec<Holders>| row[c].text();
            let longest = |text: String| match whole {
                true => text.chars().count(),
                false => text.split(' ').map(|word| word.chars().count()).max().unwrap_or(0),
            };
            let label = grid.slices.iter().flat_map(|s| &s.cells).map(text).map(longest).max().unwrap_or(0);
            (label + 2).max(columns[c].start.to_string().len() + 1).max(5)
        };
        let least: Vec<usize> = (0..columns.len()).map(of_column).collect();
        (least.iter().sum::<usize>() <= room).then_some(least)
    };
    let widths = widths(&grid.lengths(1), &least(true).or_else(|| least(false))?, room);

    let mut text = String::new();
    for slice in &grid.slices {
        let title = grid.title(slice);
        text += &if title.is_empty() { "\n".to_string() } else { format!("\n  {title}\n") };
        if let Some(d) = grid.shown[1] {
            text += &format!("{:margin$}{}\n{:margin$}{}\n", "", grid.name(d), "", ends(columns, &widths));
        }
        let border: String = widths.iter().map(|w| format!("+{}", "-".repeat(*w))).collect::<String>() + "+";
        let edge = |number: Option<usize>| match (grid.shown[0], number) {
            (Some(_), Some(n)) => format!("  {n:>numbers$} {border}\n"),
            _ => format!("{:margin$}{border}\n", ""),
        };
        for (part, row) in rows.iter().zip(&slice.cells) {
            text += &edge(Some(part.start));
            let cells: Vec<Vec<String>> = row.iter().zip(&widths).map(|(c, w)| c.lines(w - 2, MOST_LINES)).collect();
            for line in 0..cells.iter().map(Vec::len).max().unwrap_or(1) {
                text += &format!("{:margin$}|", "");
                for (cell, w) in cells.iter().zip(&widths) {
                    text += &format!("{:^w$}|", cell.get(line).map_or("", String::as_str));
                }
                text.push('\n');
            }
        }
        text += &edge(rows.last().map(|r| r.end));
        if let Some(d) = grid.shown[0] {
            text += &format!("  {}\n", grid.name(d));
        }
    }
    Some(text)
}

/// Widths of columns as their sizes are, of 48 characters in all or as few more as the labels need.
fn widths(lengths: &[usize], least: &[usize], room: usize) -> Vec<usize> {
    let total: usize = lengths.iter().sum();
    let wanted = |len: &usize| (48.min(room) as f64 * *len as f64 / total.max(1) as f64).round() as usize;
    let widths: Vec<usize> = lengths.iter().zip(least).map(|(c, least)| wanted(c).max(*least)).collect();
    if widths.iter().sum::<usize>() <= room { widths } else { least.to_vec() }
}

/// The numbers at which columns begin, and the last one ends.
fn ends(columns: &[Range<usize>], widths: &[usize]) -> String {
    let mut line: String = columns.iter().zip(widths).map(|(c, w)| format!("{:<1$}", c.start, w + 1)).collect();
    line += &columns.last().map_or(String::new(), |c| c.end.to_string());
    line
}
