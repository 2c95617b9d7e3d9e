//! Guards of modes: each ends its own mode, in whatever order they are dropped.

use oflow::context::{current, set_grad_enabled};
use oflow::graph::source_thread;
use oflow::interpreter::{modes, recompute, watch_calls};
use oflow::prelude::*;
use oflow::{CallSite, detect_anomaly, keep_layouts, name_scope};
use std::any::Any;
use std::path::Path;

/// A guard of each kind, with the text of its mode alone; the same mode twice has two texts.
type GuardKind = (&'static str, fn() -> Box<dyn Any>, &'static str);
const KINDS: &[GuardKind] = &[
    ("ModeGuard", || Box::new(no_grad()), "no_grad"),
    ("ModeGuard", || Box::new(set_grad_enabled(false)), "no_grad"),
    ("ModeGuard", || Box::new(enable_grad()), ""),
    ("ModeGuard", || Box::new(no_sync()), "no_sync"),
    ("ModeGuard", || Box::new(detect_anomaly()), "detect_anomaly"),
    ("ModeGuard", || Box::new(keep_layouts()), "keep_layouts"),
    ("AutocastGuard", || Box::new(autocast(Autocast::Bf16)), "autocast Bf16"),
    ("AutocastGuard", || Box::new(autocast(Autocast::F16)), "autocast F16"),
    ("PolicyGuard", || Box::new(boxing_policy(Policy::Deny)), "boxing_policy Deny"),
    ("PolicyGuard", || Box::new(boxing_policy(Policy::Log)), "boxing_policy Log"),
    ("PinGuard", || Box::new(pin_sbp("matmul", sbp![B]).unwrap()), "pin_sbp matmul [B]"),
    ("NameGuard", || Box::new(name_scope("a")), "name_scope a"),
    ("SiteGuard", || Box::new(CallSite::at("site", 7).scope()), ""),
    ("RecomputeGuard", || Box::new(recompute()), "saved_tensors_hooks"),
    ("WatchGuard", || Box::new(watch_calls(|_| Ok(()))), "watch_calls"),
    ("SourceGuard", || Box::new(source_thread()), "watch_calls"),
    ("EnterGuard", || Box::new(current().enter()), ""),
];

/// All orders of three.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// A guard ends its own mode and no other one, in whatever order guards are dropped; after the last the thread is as it was.
#[test]
fn every_guard_ends_its_own_mode_in_any_order() {
    let site = || (CallSite::here().file, current().is_rank());
    let (before, mut cases) = (site(), 0);
    assert!(modes().is_empty());
    for a in KINDS {
        for b in KINDS {
            for c in KINDS {
                for order in ORDERS {
                    cases += 1;
                    let made = [a, b, c];
                    let mut guards: Vec<Option<Box<dyn Any>>> = made.iter().map(|k| Some(k.1())).collect();
                    for (n, i) in order.iter().enumerate() {
                        guards[*i] = None;
                        if n == 1 {
                            // One is left. (What was made without recording, or inside a name, is not the same alone.)
                            let left = order[2];
                            let names: Vec<String> = modes();
                            let own = made[left].2;
                            let grad_off = made[..left].iter().any(|k| k.2 == "no_grad");
                            let relative = own.starts_with("name_scope") || (own == "saved_tensors_hooks" && grad_off);
                            let want = if own.is_empty() { vec![] } else { vec![own.to_string()] };
                            assert!(relative || names == want, "{:?} {order:?}: {names:?}", made.map(|k| k.2));
                        }
                    }
                    assert!(modes().is_empty(), "{:?} {order:?}: {:?}", made.map(|k| k.2), modes());
                    assert_eq!(site(), before, "{:?} {order:?}", made.map(|k| k.0));
                }
            }
        }
    }
    assert_eq!(cases, KINDS.len().pow(3) * 6);
}

/// Every guard of the library that a program may hold stands in the table above. Others are held by one function or one thing.
#[test]
fn the_table_has_every_guard() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = vec![];
    let mut folders = vec![root.join("src"), root.join("base/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                let names = text.lines().filter_map(|l| l.trim().strip_prefix("pub struct "));
                let names = names.filter_map(|l| l.split(['{', ' ', '<', '(', ';']).next());
                found.extend(names.filter(|n| n.ends_with("Guard")).map(str::to_string));
            }
        }
    }
    found.sort();
    found.dedup();
    let mut table: Vec<&str> = KINDS.iter().map(|k| k.0).collect();
    table.sort_unstable();
    table.dedup();
    assert_eq!(found, table);
}
