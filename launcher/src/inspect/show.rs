//! `oflow show`: which rank holds which part of a tensor, as text, as a picture or as JSON.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use oflow::kernels::{DType, Dims};
use oflow::placement::Placement;
use oflow::sbp::picture::{Grid, Look};
use oflow::sbp::{NdSbp, Sbp, check_layout, shard_box};
use serde_json::{Value, json};

use super::{bytes, refused, show};
use crate::Failed;

/// Ranks that the table lists at most.
const MOST_LISTED: usize = 32;

/// Adds the arguments.
pub fn arguments(command: Command) -> Command {
    command
        .args(super::tensor_arguments())
        .arg(
            Arg::new("sbp")
                .long("sbp")
                .required(true)
                .value_parser(super::layout)
                .value_name("SBP")
                .help("nd-SBP of the tensor, e.g. \"[S(0), B]\""),
        )
        .arg(super::mesh_argument("Mesh of the tensor, e.g. dp=2,tp=4"))
        .arg(
            Arg::new("svg")
                .long("svg")
                .value_parser(value_parser!(PathBuf))
                .value_name("FILE")
                .conflicts_with("json")
                .help("Write the picture as SVG to a file"),
        )
        .arg(
            Arg::new("width")
                .long("width")
                .value_parser(value_parser!(u16).range(20..))
                .default_value("80")
                .value_name("COLUMNS")
                .help("Characters that a line of the picture may have"),
        )
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON: the part of every rank"))
        .after_help(
            "Examples:
  oflow show --shape 6x8 --sbp \"[S(0), S(1)]\" --mesh dp=2,tp=2
  oflow show --shape 1024x4096 --dtype bf16 --sbp \"[B, S(1)]\" --mesh dp=4,tp=8 --svg weight.svg

In the picture `0, 1` are two ranks that hold copies, `0 + 1` two whose values are added. Dims are drawn that are split; a
tensor that is split along more than two dims has a picture for each part along the others.",
        )
}

/// Runs the command.
pub fn run(matches: &ArgMatches) -> Result<u8, Failed> {
    let missing = || Failed::new("an argument is missing");
    let shape = matches.get_one::<Dims>("shape").ok_or_else(missing)?;
    let dtype = *matches.get_one::<DType>("dtype").ok_or_else(missing)?;
    let mesh = matches.get_one::<Placement>("mesh").ok_or_else(missing)?;
    let sbp = matches.get_one::<NdSbp>("sbp").ok_or_else(missing)?;
    let width = usize::from(*matches.get_one::<u16>("width").ok_or_else(missing)?);
    check_layout(shape, dtype, mesh, sbp).map_err(refused)?;
    let title = format!("{dtype}{:?} {sbp} on {mesh}", shape.as_slice());
    let held = held(shape, dtype, mesh, sbp);
    if matches.get_flag("json") {
        return show(&format!("{:#}\n", to_json(&title, shape, dtype, mesh, &held)));
    }
    let grid = Grid::new(shape, mesh, sbp);
    if let Some(file) = matches.get_one::<PathBuf>("svg") {
        let picture = grid.svg(&title, Look::File).ok_or_else(|| {
            let cells: usize = grid.size().iter().product();
            let most = Grid::MOST_CELLS;
            Failed::new(format!(
                "the picture would have {cells} parts, at most {most} are drawn\n  help: --json lists the part of every rank"
            ))
        })?;
        oflow_files::make::write_where_named(file, oflow_files::Access::Readable, picture.as_bytes())
            .map_err(refused)?;
    }
    show(&to_text(&title, &grid, &held, mesh, width, (shape, dtype, sbp)))
}

/// The shard of a rank.
struct Held {
    rank: usize,
    coord: Vec<usize>,
    offset: Dims,
    size: Dims,
    bytes: u64,
}

fn held(shape: &[usize], dtype: DType, mesh: &Placement, sbp: &NdSbp) -> Vec<Held> {
    let of = |(position, rank): (usize, &usize)| {
        let part = shard_box(shape, mesh, sbp, position);
        let count: u64 = part.size.iter().map(|n| *n as u64).product();
        let bytes = count * dtype.size() as u64;
        Held { rank: *rank, coord: mesh.coord(position).to_vec(), offset: part.offset, size: part.size, bytes }
    };
    mesh.ranks().iter().enumerate().map(of).collect()
}

/// Name of a mesh axis, or its number.
fn axis_name(mesh: &Placement, axis: usize) -> String {
    mesh.names()[axis].clone().unwrap_or_else(|| format!("axis {axis}"))
}

fn to_json(title: &str, shape: &[usize], dtype: DType, mesh: &Placement, held: &[Held]) -> Value {
    let axes: Vec<String> = (0..mesh.axes()).map(|a| axis_name(mesh, a)).collect();
    let whole: u64 = shape.iter().map(|n| *n as u64).product::<u64>() * dtype.size() as u64;
    let ranks: Vec<Value> = held
        .iter()
        .map(|h| json!({ "rank": h.rank, "coord": h.coord, "offset": h.offset.as_slice(), "size": h.size.as_slice(), "bytes": h.bytes }))
        .collect();
    json!({ "tensor": title, "shape": shape, "axes": axes, "bytes": whole, "ranks": ranks })
}

fn to_text(
    title: &str,
    grid: &Grid,
    held: &[Held],
    mesh: &Placement,
    width: usize,
    (shape, dtype, sbp): (&[usize], DType, &NdSbp),
) -> String {
    let mut out = format!("{title}\n{}", drawn(grid, width));
    let notes = grid.notes();
    if !notes.is_empty() {
        out += &format!("\n  {}\n", notes.join("\n  "));
    }
    out += &table(held, mesh, sbp, shape.len());
    let whole: u64 = shape.iter().map(|n| *n as u64).product::<u64>() * dtype.size() as u64;
    let all: u64 = held.iter().map(|h| h.bytes).sum();
    let (least, most) = held.iter().fold((u64::MAX, 0), |(a, b), h| (a.min(h.bytes), b.max(h.bytes)));
    let each = match least == most {
        true => format!("each rank holds {}", bytes(most)),
        false => format!("a rank holds {} to {}", bytes(least), bytes(most)),
    };
    out + &format!("\n  the tensor has {}; {each}, all together {}\n", bytes(whole), bytes(all))
}

/// The picture of a layout that [`check_layout`] accepts.
pub(super) fn picture(shape: &[usize], mesh: &Placement, sbp: &NdSbp, width: usize) -> String {
    let grid = Grid::new(shape, mesh, sbp);
    drawn(&grid, width) + &grid.empty_note().map_or(String::new(), |note| format!("\n  {note}\n"))
}

fn drawn(grid: &Grid, width: usize) -> String {
    let [rows, columns] = grid.size();
    grid.text(width).unwrap_or_else(|| {
        format!(
            "\n  {rows} by {columns} parts do not fit into {width} columns: a wider --width, --svg FILE or --json of `oflow show` has them\n"
        )
    })
}

/// The part of each rank, along the dims that are split.
fn table(held: &[Held], mesh: &Placement, sbp: &NdSbp, dims: usize) -> String {
    let split: Vec<usize> = (0..dims).filter(|d| sbp.contains(&Sbp::Split(*d))).collect();
    let mut rows = vec![
        ["rank".to_string()]
            .into_iter()
            .chain((0..mesh.axes()).map(|a| axis_name(mesh, a)))
            .chain(split.iter().map(|d| format!("dim {d}")))
            .chain(["bytes".into()])
            .collect::<Vec<_>>(),
    ];
    for h in held.iter().take(MOST_LISTED) {
        let part = |d: &usize| format!("{}..{}", h.offset[*d], h.offset[*d] + h.size[*d]);
        let row = [h.rank.to_string()].into_iter().chain(h.coord.iter().map(usize::to_string));
        rows.push(row.chain(split.iter().map(part)).chain([h.bytes.to_string()]).collect());
    }
    let widths: Vec<usize> =
        (0..rows[0].len()).map(|c| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0)).collect();
    let mut out = String::from("\n");
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, w)| format!("{cell:>w$}")).collect();
        out += &format!("  {}\n", cells.join("  "));
    }
    if held.len() > MOST_LISTED {
        out += &format!("  … and {} more ranks, all with --json\n", held.len() - MOST_LISTED);
    }
    out
}
