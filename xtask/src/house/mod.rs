//! `cargo xtask house`: measures how easily the sources are read.
//!
//! *Walks* ([`walk`]): how often a reader changes the file to follow one call. *Circles* ([`circles`]): files that need each
//! other, with ceilings ([`ceilings`]) that a test holds. *Counts* ([`counts`]). `--root` names another checkout, so that before and after are measured by one program.

mod ceilings;
mod circles;
mod counts;
mod functions;
mod walk;

use crate::source::Source;
use circles::{Circle, Through};
use functions::Functions;
use serde_json::{Value, json};
use std::error::Error;
use std::path::PathBuf;
use walk::Limits;

/// A call that is followed.
struct Start {
    name: &'static str,
    /// File, function and parameter.
    at: (&'static str, &'static str, &'static str),
    /// Functions of files below these folders are entered.
    rooms: &'static [&'static str],
    /// Functions of branches that this call does not take, by their names before and after they moved.
    skips: &'static [&'static str],
}

/// Where the walks begin. A function that moves is one line here.
const WALKS: &[Start] = &[
    Start {
        name: "matmul",
        at: ("src/interpreter/stages.rs", "run_op", "call"),
        rooms: &["src/interpreter/"],
        // Views, writes in place, shapes that depend on values, halos.
        skips: &[
            "local_view",
            "window",
            "windows",
            "halo",
            "prepare",
            "prepare_written",
            "bind_written",
            "assign",
            "agree",
            "settle",
            "exchange_length",
            "rebalance",
        ],
    },
    Start {
        name: "every branch of a call",
        at: ("src/interpreter/stages.rs", "run_op", "call"),
        rooms: &["src/interpreter/"],
        skips: &[],
    },
    Start {
        name: "boxing",
        at: ("src/interpreter/layout/to_global.rs", "to_global", "call"),
        rooms: &["src/interpreter/"],
        skips: &[],
    },
    Start {
        name: "python",
        at: ("python/src/call.rs", "call", "given"),
        // The binder stands in the library.
        rooms: &["python/src/", "src/functional/bind/"],
        skips: &[],
    },
];

/// Runs the command with the arguments after `house`.
///
/// # Errors
/// The arguments are not understood, or the sources cannot be read.
pub fn run(args: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut root = crate::root().canonicalize()?;
    let (mut json, mut stays, mut cold, mut words) = (false, false, false, vec![]);
    let (mut rooms, mut skips): (Vec<&str>, Vec<&str>) = (vec![], vec![]);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value after it"));
        match *arg {
            "--json" => json = true,
            "--stays" => stays = true,
            "--cold" => cold = true,
            "--root" => root = PathBuf::from(value()?).canonicalize()?,
            "--room" => rooms.extend(value()?.split(',')),
            "--skip" => skips.extend(value()?.split(',')),
            flag if flag.starts_with('-') => {
                let all = "--json, --stays, --cold, --root DIR, --room DIR,DIR and --skip NAME,NAME";
                return Err(format!("house takes {all}, not {flag}").into());
            }
            word => words.push(word),
        }
    }
    let source = Source::read(&root)?;
    match words.as_slice() {
        [] if json => {
            println!("{}", serde_json::to_string_pretty(&as_json(&source))?);
            Ok(())
        }
        [] => {
            print(&source);
            Ok(())
        }
        ["ceilings"] => Ok(ceilings::check(&source)?),
        ["walk", start] => one_walk(&source, start, (&rooms, &skips, cold), stays),
        _ => Err("house takes nothing, `ceilings`, or `walk FILE:FUNCTION:PARAMETER`".into()),
    }
}

/// Prints one walk, with its stays where they are asked for.
fn one_walk(
    source: &Source,
    start: &str,
    (rooms, skips, cold): (&[&str], &[&str], bool),
    stays: bool,
) -> Result<(), Box<dyn Error>> {
    let parts: Vec<&str> = start.split(':').collect();
    let [file, function, param] = parts.as_slice() else {
        return Err(format!("a walk starts at FILE:FUNCTION:PARAMETER, not {start}").into());
    };
    let functions = Functions::of(source);
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let limits = Limits { rooms: if rooms.is_empty() { &[folder] } else { rooms }, skips, cold };
    let walk = walk::walk(source, &functions, (file, function, param), limits)?;
    println!("{start}: {} stays, {} files, {} returns", walk.stays.len(), walk.files(), walk.returns());
    if stays {
        for (n, stay) in walk.stays.iter().enumerate() {
            println!("{:3} {}: {}", n + 1, source.files[stay.file].path, stay.functions.join(", "));
        }
        for open in &walk.open {
            println!("    not followed: {open}");
        }
    }
    Ok(())
}

/// The walks of the table.
fn walks(source: &Source, cold: bool) -> Vec<(&'static str, Result<walk::Walk, String>)> {
    let functions = Functions::of(source);
    WALKS
        .iter()
        .map(|s| (s.name, walk::walk(source, &functions, s.at, Limits { rooms: s.rooms, skips: s.skips, cold })))
        .collect()
}

fn as_json(source: &Source) -> Value {
    let walks_of = |cold| -> Value {
        let walks = walks(source, cold).into_iter().map(|(name, walk)| {
            let value = match walk {
                Ok(w) => json!({"stays": w.stays.len(), "files": w.files(), "returns": w.returns()}),
                Err(e) => json!({ "error": e }),
            };
            (name.to_string(), value)
        });
        Value::Object(walks.collect())
    };
    let circles_of = |through| -> Value {
        let path = |f: &usize| source.files[*f].path.clone();
        let circles = circles::circles(source, through).into_iter();
        circles.map(|c| json!({"room": c.room, "files": c.files.iter().map(path).collect::<Vec<_>>()})).collect()
    };
    let c = counts::counts(source);
    json!({
        "walks": walks_of(false),
        "walks_with_cold": walks_of(true),
        "circles": circles_of(Through::Names),
        "circles_through_modules": circles_of(Through::Modules),
        "architecture_words": c.architecture_words,
        "files": c.files,
        "lines": c.lines,
        "long_files": c.long.iter().map(|(path, lines)| json!({"path": path, "lines": lines})).collect::<Vec<_>>(),
        "test_binaries": c.test_binaries,
        "short_docs": crate::prose::short_docs(source),
    })
}

fn print(source: &Source) {
    for ((name, walk), (_, cold)) in walks(source, false).into_iter().zip(walks(source, true)) {
        match (walk, cold) {
            (Ok(w), Ok(c)) => println!(
                "walk {name}: {} stays, {} files, {} returns; with cold functions {}, {}, {}",
                w.stays.len(),
                w.files(),
                w.returns(),
                c.stays.len(),
                c.files(),
                c.returns()
            ),
            (Err(e), _) | (_, Err(e)) => println!("walk {name}: {e}"),
        }
    }
    let named = circles::circles(source, Through::Names);
    let all = circles::circles(source, Through::Modules);
    let sizes = |circles: &[Circle]| {
        let largest = circles.iter().take(8).map(|c| format!("{} {}", c.room, c.files.len()));
        largest.collect::<Vec<_>>().join(", ")
    };
    println!("circles by names: {} (files of the largest: {})", named.len(), sizes(&named));
    println!("circles through modules: {} (files of the largest: {})", all.len(), sizes(&all));
    let c = counts::counts(source);
    println!("ARCHITECTURE.md: {} words", c.architecture_words);
    println!("{} files, {} lines, {} test binaries", c.files, c.lines, c.test_binaries);
    println!("public items with a doc under three words: {}", crate::prose::short_docs(source));
    println!("files over {} lines: {}", counts::LONG, c.long.len());
    c.long.iter().for_each(|(path, lines)| println!("  {path}: {lines}"));
    println!("circles by names, with the names that each arrow stands for:");
    for c in &named {
        println!("  {}: {} files", c.room, c.files.len());
        for f in &c.files {
            let arrows = c.arrows.iter().filter(|((from, _), _)| from == f);
            let to: Vec<String> = arrows
                .map(|((_, to), names)| {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    format!("{} ({})", source.files[*to].path, names.join(", "))
                })
                .collect();
            println!("    {} -> {}", source.files[*f].path, to.join("; "));
        }
    }
}
