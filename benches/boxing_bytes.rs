//! Bytes that cross between ranks for the conversions of `peers/boxing_rows.txt`, beside OneFlow's.
//!
//! ```text
//! cargo bench --bench boxing_bytes                 ours alone
//! cargo bench --bench boxing_bytes -- RESULTS      beside what peers/boxing_oneflow.py counted
//! ```
//!
//! Ours are counted at the transport of simulated ranks and must be those of the plan. Each is a line of a markdown table.

use oflow::boxing::{Layout, plan};
use oflow::placement::{Device, Placement};
use oflow::prelude::*;
use std::collections::BTreeMap;

struct Row {
    text: String,
    ranks: usize,
    shape: Vec<usize>,
    src: Layout,
    dst: Layout,
}

/// `[0,1]` is a line of ranks, `[[0,1],[2,3]]` a plane.
fn placement(text: &str) -> Result<Placement> {
    let malformed = || Error::argument(format!("{text} is not a mesh"));
    let rows: Vec<Vec<usize>> = text
        .trim_start_matches("[[")
        .trim_end_matches("]]")
        .split("],[")
        .map(|row| row.trim_matches(['[', ']']).split(',').map(|r| r.parse().map_err(|_| malformed())).collect())
        .collect::<Result<_>>()?;
    let dims = if text.starts_with("[[") { vec![rows.len(), rows[0].len()] } else { vec![rows[0].len()] };
    Placement::new(Device::Cpu, &rows.concat(), &dims)
}

fn layout(text: &str) -> Result<Layout> {
    let (sbp, ranks) = text.split_once(" on ").ok_or_else(|| Error::argument(format!("{text} is not a layout")))?;
    Ok(Layout::new(&placement(ranks)?, format!("[{sbp}]").parse::<NdSbp>()?))
}

fn rows() -> Result<Vec<Row>> {
    let lines = include_str!("peers/boxing_rows.txt").lines().filter(|l| !l.starts_with('#') && !l.is_empty());
    lines
        .map(|line| {
            let parts: Vec<&str> = line.split('|').map(str::trim).collect();
            let [ranks, shape, src, dst] = parts[..] else {
                return Err(Error::argument(format!("{line} has not four parts")));
            };
            let number = |n: &str| n.parse::<usize>().map_err(|_| Error::argument(format!("{n} is not a number")));
            Ok(Row {
                text: parts.join(" | "),
                ranks: number(ranks)?,
                shape: shape.split('x').map(number).collect::<Result<_>>()?,
                src: layout(src)?,
                dst: layout(dst)?,
            })
        })
        .collect()
}

/// Bytes counted at the transport.
fn counted(row: &Row) -> Result<u64> {
    let sent = oflow::run_ranks(row.ranks, |world| {
        let x = zeros(row.shape.clone(), (&row.src.placement, row.src.sbp.clone()))?;
        let comm = world.ctx().comm()?;
        let before = comm.traffic().bytes_sent;
        x.to_global((&row.dst.placement, row.dst.sbp.clone()))?;
        Ok(comm.traffic().bytes_sent - before)
    })?;
    Ok(sent.iter().sum())
}

/// What the peer's script has written, by row.
fn peers(file: &str) -> Result<BTreeMap<String, serde_json::Value>> {
    let text = std::fs::read_to_string(file).map_err(|e| Error::argument(format!("cannot read {file}: {e}")))?;
    let read = |line: &str| -> Option<(String, serde_json::Value)> {
        let value: serde_json::Value = serde_json::from_str(line).ok()?;
        Some((value["row"].as_str()?.to_string(), value))
    };
    Ok(text.lines().filter_map(read).collect())
}

/// MiB, and a few KiB as such.
fn mib(bytes: u64) -> String {
    let kib = bytes as f64 / 1024.0;
    if (1..16 << 10).contains(&bytes) { format!("{kib:.1} KiB") } else { format!("{:.2}", kib / 1024.0) }
}

fn main() -> Result<()> {
    // `cargo bench` passes flags of its own.
    let peers = match std::env::args().skip(1).find(|a| !a.starts_with("--")) {
        Some(file) => peers(&file)?,
        None => BTreeMap::new(),
    };
    println!(
        "| ranks | shape | from | to | oflow, MiB | OneFlow, MiB | OneFlow / oflow |\n|---|---|---|---|---|---|---|"
    );
    for row in rows()? {
        let plan = plan(&row.shape, DType::F32, &row.src, &row.dst)?;
        let ours = counted(&row)?;
        assert_eq!(ours, plan.bytes_sent(), "the transport and the plan disagree: {plan}");
        let (theirs, ratio) = match peers.get(&row.text) {
            None => ("–".into(), "–".into()),
            Some(v) => match v["bytes"].as_u64() {
                None => (format!("refused: {}", v["error"].as_str().unwrap_or("?")), "–".into()),
                Some(bytes) => {
                    let wrong = if v["right"] == true { "" } else { ", wrong value" };
                    let ratio = match (bytes, ours) {
                        (0, 0) => "both none".to_string(),
                        (_, 0) => "∞".to_string(),
                        _ => {
                            let ratio = bytes as f64 / ours as f64;
                            if ratio < 100.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
                        }
                    };
                    (format!("{}{wrong}", mib(bytes)), ratio)
                }
            },
        };
        println!("| {} | {} | {theirs} | {ratio} |", row.text, mib(ours));
    }
    Ok(())
}
