//! `oflow ckpt`: lists, verifies and converts checkpoints.

use clap::{Arg, ArgAction, ArgMatches, Command};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use oflow::checkpoint::{Checkpoint, CheckpointEntry, ConvertOptions, MANIFEST, being_removed, convert, latest, list};
use serde_json::json;

use crate::{Failed, cli};

const SOURCE: &str = "A checkpoint, or a folder of them (the latest); a .safetensors file, or a folder with \
                      model.safetensors or model.safetensors.index.json";

const VERIFY_HELP: &str = "Exit code 0 if all are whole, 1 if any is damaged. Safetensors files have no checksums: of \
                           them the headers and lengths are checked.";

/// Adds the subcommands.
pub fn arguments(command: Command) -> Command {
    let path = |name: &'static str, title: &'static str, help: &'static str| {
        Arg::new(name).required(true).value_name(title).value_parser(clap::value_parser!(PathBuf)).help(help)
    };
    let json = || Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON");
    command
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("ls")
                .about("List the checkpoints of a folder, or the tensors of one")
                .arg(path("dir", "DIR", "Folder of a CheckpointManager, a checkpoint, or safetensors files"))
                .arg(json()),
        )
        .subcommand(
            Command::new("verify")
                .about("Read every byte and compare it with its checksum")
                .arg(path("dir", "DIR", "Folder of a CheckpointManager (all its checkpoints), one checkpoint, or safetensors files"))
                .after_help(VERIFY_HELP),
        )
        .subcommand(
            Command::new("convert")
                .about("Convert to and from safetensors files in the layout of Hugging Face")
                .arg(path("src", "SRC", SOURCE))
                .arg(path("dst", "DST", "NAME.safetensors for one file; otherwise a folder that does not exist yet"))
                .arg(
                    Arg::new("section")
                        .long("section")
                        .default_value("model")
                        .value_name("NAME")
                        .help("Section of the checkpoint; its prefix is removed from each name, or added"),
                )
                .arg(
                    Arg::new("all")
                        .long("all")
                        .action(ArgAction::SetTrue)
                        .conflicts_with("section")
                        .help("Convert all tensors, with unchanged names"),
                )
                .arg(
                    Arg::new("shard-size")
                        .long("shard-size")
                        .default_value("5G")
                        .value_parser(cli::memory)
                        .value_name("SIZE")
                        .help("Largest size of a file, for a destination that is a folder"),
                )
                .after_help(
                    "Examples:
  oflow ckpt convert checkpoints model.safetensors          the model of the latest checkpoint as one file
  oflow ckpt convert checkpoints/step-000100 gpt            as files of at most 5 GiB with an index
  oflow ckpt convert gpt start/step-000000                  files to a checkpoint that can be resumed",
                ),
        )
        .after_help(
            "A checkpoint is a folder with a manifest.json. A folder without one is an incomplete checkpoint, which is never loaded.
See `oflow ckpt COMMAND --help`.",
        )
}

/// Runs the command.
pub fn run(matches: &ArgMatches) -> Result<u8, Failed> {
    let path = |m: &ArgMatches, name: &str| m.get_one::<PathBuf>(name).cloned().unwrap_or_default();
    match matches.subcommand() {
        Some(("ls", m)) => ls(&path(m, "dir"), m.get_flag("json")),
        Some(("verify", m)) => verify(&path(m, "dir")),
        Some(("convert", m)) => {
            let section =
                if m.get_flag("all") { "" } else { m.get_one::<String>("section").map_or("", String::as_str) };
            let shard_bytes = m.get_one::<u64>("shard-size").copied().unwrap_or(5 << 30);
            let options = ConvertOptions { section: section.into(), shard_bytes };
            let done = convert(&path(m, "src"), &path(m, "dst"), &options).map_err(refused)?;
            let files = done.files.len();
            println!(
                "{} tensors, {}, in {files} file{}",
                done.tensors,
                size(done.bytes),
                if files == 1 { "" } else { "s" }
            );
            Ok(0)
        }
        _ => Err(Failed::new("no such subcommand")),
    }
}

fn refused(e: oflow::Error) -> Failed {
    Failed::with_code(1, e.to_string())
}

/// The checkpoints of a folder, if it is one of a manager.
fn of_folder(dir: &Path) -> Result<Vec<CheckpointEntry>, Failed> {
    if !dir.is_dir() || dir.join(MANIFEST).exists() {
        return Ok(vec![]);
    }
    loop {
        let all = list(dir).map_err(refused)?;
        // Where a job replaces the only one while the folder is read, the list may have neither.
        if !all.is_empty() || !matches!(latest(dir), Ok(Some(_))) {
            return Ok(all);
        }
    }
}

fn ls(dir: &Path, as_json: bool) -> Result<u8, Failed> {
    let all = of_folder(dir)?;
    if all.is_empty() {
        return ls_one(dir, as_json);
    }
    // The list is what helps where `latest` is damaged.
    let (newest, problem) = match latest(dir) {
        Ok(found) => (found.map(|f| f.path), None),
        Err(e) => (None, Some(refused(e))),
    };
    let mut rows = vec![];
    for f in &all {
        let opened = Checkpoint::open(&f.path);
        let is_latest = Some(&f.path) == newest.as_ref();
        if as_json {
            let (problem, c) = (opened.as_ref().err().map(|e| e.message().to_string()), opened.as_ref().ok());
            rows.push(json!({
                "step": f.step, "path": f.path, "latest": is_latest, "problem": problem, "world": c.map(Checkpoint::world),
                "tensors": c.map(|c| c.tensors().len()), "bytes": c.map(bytes),
            }));
            continue;
        }
        let what = match &opened {
            Ok(c) => format!(
                "{:>10}  {:>5} tensors  {:>4} ranks  {:>9} ago",
                size(bytes(c)),
                c.tensors().len(),
                c.world(),
                age(f)
            ),
            Err(e) => format!("cannot be used: {}", e.message()),
        };
        println!(
            "{}  {what}{}",
            f.path.file_name().unwrap_or_default().display(),
            if is_latest { "  latest" } else { "" }
        );
    }
    if as_json {
        println!("{:#}", json!(rows));
    }
    problem.map_or(Ok(0), Err)
}

fn ls_one(path: &Path, as_json: bool) -> Result<u8, Failed> {
    let c = Checkpoint::open(path).map_err(refused)?;
    if as_json {
        let text = serde_json::to_string_pretty(c.manifest()).map_err(|e| Failed::new(e.to_string()))?;
        println!("{text}");
        return Ok(0);
    }
    let from = if c.manifest().version == 0 {
        "safetensors".into()
    } else {
        format!("step {}, written by {} ranks", c.step(), c.world())
    };
    println!("{from}: {} tensors, {}", c.tensors().len(), size(bytes(&c)));
    let width = c.tensors().keys().map(|n| shown(n).chars().count()).max().unwrap_or(0).min(WIDEST);
    for (name, t) in c.tensors() {
        let name = shown(name);
        let pieces = t.pieces.len();
        let pieces = if pieces == 1 { String::new() } else { format!("  {pieces} pieces") };
        println!("  {name:width$}  {}{:?}  {}{pieces}", t.dtype, t.shape, t.layout);
    }
    for (name, v) in c.values() {
        let name = shown(name);
        let text = v.to_string();
        let short: String = text.chars().take(60).collect();
        println!("  {name:width$}  {short}{}", if short.len() < text.len() { " …" } else { "" });
    }
    Ok(0)
}

/// Longest name that sets the width of the column of names.
const WIDEST: usize = 100;

/// A name as a line of text: names may be any text, also one that moves a terminal's cursor.
fn shown(name: &str) -> String {
    match name.is_empty()
        || name.starts_with('"')
        || name.chars().any(|c| c.escape_debug().count() > 1 && !"\"'\\".contains(c))
    {
        true => format!("{name:?}"),
        false => name.to_string(),
    }
}

fn verify(dir: &Path) -> Result<u8, Failed> {
    let all = of_folder(dir)?;
    let paths: Vec<PathBuf> = if all.is_empty() { vec![dir.into()] } else { all.into_iter().map(|f| f.path).collect() };
    let mut code = 0;
    if paths != [dir]
        && let Err(e) = latest(dir)
    {
        eprintln!("oflow: {e}");
        code = 1;
    }
    let listed = paths != [dir];
    for path in &paths {
        match verified(path, listed) {
            Verified::Whole(text) => println!("{text}"),
            Verified::Gone => println!("{}: removed meanwhile by a job that saves", path.display()),
            Verified::Damaged(e) => {
                eprintln!("oflow: {e}");
                code = 1;
            }
        }
    }
    Ok(code)
}

/// Time-out for the removal of a checkpoint, which takes milliseconds.
const REMOVAL: Duration = Duration::from_secs(10);

/// Result of checking one checkpoint.
enum Verified {
    Whole(String),
    Gone,
    Damaged(oflow::Error),
}

/// Reads all of a checkpoint. A job that saves meanwhile removes old ones that a list has named, and writes one of the same step anew.
fn verified(path: &Path, listed: bool) -> Verified {
    let folder = || std::fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    let first = Instant::now();
    loop {
        let (began, before) = (Instant::now(), folder());
        let e = match Checkpoint::open(path).and_then(|c| c.verify().map(|()| c)) {
            Ok(c) => {
                let s = began.elapsed().as_secs_f64();
                return Verified::Whole(format!("{}: whole, {} in {s:.2} s", path.display(), size(bytes(&c))));
            }
            Err(e) => e,
        };
        // Who removes a checkpoint holds its lock for a moment before its name is gone.
        if listed && being_removed(path) && first.elapsed() < REMOVAL {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        }
        match (before, folder()) {
            (_, None) if listed => return Verified::Gone,
            (before, after) if before == after => return Verified::Damaged(e),
            // Another folder has the name now.
            _ => {}
        }
    }
}

fn bytes(c: &Checkpoint) -> u64 {
    c.tensors().values().map(|t| t.bytes()).sum()
}

fn size(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit < 4 {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{value:.1} {}", ["KiB", "MiB", "GiB", "TiB"][unit - 1]),
    }
}

/// How long ago it was written.
fn age(f: &CheckpointEntry) -> String {
    let s = SystemTime::now().duration_since(f.written).map_or(0, |d| d.as_secs());
    match s {
        0..120 => format!("{s} s"),
        120..7200 => format!("{} min", s / 60),
        7200..172_800 => format!("{} h", s / 3600),
        _ => format!("{} days", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_line() {
        let names = ["h.0.w", "", "a\nb", "\u{1b}[2J", "it's \\", "\"q", "é x"].map(shown);
        assert_eq!(names, ["h.0.w", "\"\"", "\"a\\nb\"", "\"\\u{1b}[2J\"", "it's \\", "\"\\\"q\"", "é x"]);
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!([0, 1023, 1536, 5 << 30].map(size), ["0 B", "1023 B", "1.5 KiB", "5.0 GiB"]);
    }
}
