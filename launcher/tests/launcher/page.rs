//! The tables of `docs/running.md` are what the programs say of themselves. `UPDATE_EXPECT=1` writes them anew.

#[path = "../../../tests/common/page.rs"]
mod tables;

use oflaunch::{EXIT_CODES, cli, events::EVENTS};
use oflow::control::{FailureKind, STARTERS, SetBy, VARIABLES};
use tables::compare;

/// A cell: a bar would end it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn table(head: &str, rows: impl Iterator<Item = Vec<String>>) -> String {
    let columns = head.matches(" | ").count() + 1;
    let mut text = format!("| {head} |\n|{}\n", "---|".repeat(columns));
    for row in rows {
        assert_eq!(row.len(), columns);
        text += &format!("| {} |\n", row.iter().map(|c| cell(c)).collect::<Vec<_>>().join(" | "));
    }
    text
}

fn options() -> String {
    let command = cli::command();
    let rows = command.get_arguments().filter(|a| a.get_long().is_some()).map(|a| {
        let short = a.get_short().map_or(String::new(), |s| format!("`-{s}`, "));
        let long = a.get_long().unwrap();
        let takes = a.get_action().takes_values();
        let value = a.get_value_names().filter(|_| takes).map_or(String::new(), |v| match a.is_require_equals_set() {
            true => format!("[={}]", v[0]),
            false => format!(" {}", v[0]),
        });
        let mut help = a.get_help().unwrap().to_string();
        let possible = a.get_possible_values();
        if takes && !possible.is_empty() {
            let names: Vec<String> = possible
                .iter()
                .map(|p| match p.get_help() {
                    Some(help) => format!("`{}` ({})", p.get_name(), help.to_string().trim_end_matches('.')),
                    None => format!("`{}`", p.get_name()),
                })
                .collect();
            help += &format!(": {}", names.join(", "));
        }
        if let Some(default) = a.get_default_values().first().filter(|_| takes) {
            help += &format!(" [default: {}]", default.to_string_lossy());
        }
        vec![format!("{short}`--{long}{value}`"), help]
    });
    table("option | meaning", rows)
}

fn variables() -> String {
    let rows = VARIABLES.iter().map(|v| {
        let who = match v.set_by {
            SetBy::Launcher => "oflaunch",
            SetBy::Either => "oflaunch, or you",
            SetBy::User => "you",
        };
        vec![format!("`{}`", v.name), who.to_string(), v.meaning.to_string()]
    });
    table("variable | set by | meaning", rows)
}

fn starters() -> String {
    let rows = STARTERS.iter().map(|s| {
        let names = [s.rank, s.world[0], s.local_rank, s.local_world].map(|n| format!("`{n}`"));
        vec![s.name.to_string(), s.command.to_string(), names.join(", "), s.consecutive.to_string()]
    });
    table("launcher | called as | known by | if the ranks of a host are not consecutive", rows)
}

#[test]
fn the_tables_of_the_page_are_what_the_programs_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/running.md");
    let pairs = |rows: &[(&str, &str)], tick: bool| {
        let name = |n: &str| if tick { format!("`{n}`") } else { n.to_string() };
        rows.iter().map(|(n, m)| vec![name(n), m.to_string()]).collect::<Vec<_>>().into_iter()
    };
    let tables = [
        ("options", options()),
        ("codes", table("code | meaning", pairs(EXIT_CODES, false))),
        ("variables", variables()),
        ("starters", starters()),
        ("events", table("event | it tells", pairs(EVENTS, true))),
    ];
    let page = compare(path, &tables);
    for kind in FailureKind::ALL {
        assert!(page.contains(&format!("`{kind}`")), "docs/running.md does not name the kind {kind}");
    }
}
