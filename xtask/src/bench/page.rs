//! The page `docs/performance/latest.md`: a section for each bench, replaced when the bench runs again. Pure: text in, text out.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::machine::State;

/// Note of the page where the machine was not quiet.
pub const LOADED: &str = "loaded: no conclusion";

const HEAD: &str = "\
# Latest run of each bench

Written by `cargo xtask bench [FILTER]`, which replaces the sections of the benches that it runs; do not edit. Each section tells
its own commit and machine. \"Others\" is the share of processor time that other programs used: in the second before the bench,
while it ran, in the second after it. \"Steal\" is the share that the hypervisor gave to other machines.
";

/// Facts that are the same for all benches of a run.
#[derive(Clone)]
pub struct Facts {
    pub date: String,
    pub commit: String,
    /// Whether the tree differed from the commit.
    pub changed: bool,
    /// Processor, cores, memory, kernel.
    pub machine: String,
    /// Names and versions of the peers found.
    pub peers: Vec<String>,
}

/// One bench of a run.
pub struct Section {
    pub name: String,
    pub command: String,
    pub peer: String,
    pub facts: Facts,
    /// The machine before the bench, meanwhile and afterwards.
    pub states: [State; 3],
    /// How it ended, if it failed.
    pub failure: Option<String>,
    pub output: String,
}

impl Section {
    /// Why the numbers are no result: none where they are one.
    pub fn doubts(&self) -> Vec<String> {
        let loaded = self.states.iter().any(|s| !s.is_quiet()).then(|| LOADED.to_string());
        self.failure.iter().map(|status| format!("failed: {status}")).chain(loaded).collect()
    }

    /// The section, without its heading.
    fn text(&self) -> String {
        let Facts { date, commit, changed, machine, peers } = &self.facts;
        let changed = if *changed { " with changes" } else { "" };
        let peers = if peers.is_empty() { "none".into() } else { peers.join(", ") };
        let [before, during, after] = &self.states;
        let mut text = format!(
            "\n- `{}`; beside: {}\n- {date}, commit {commit}{changed}\n- {machine}\n- peers found: {peers}\n\
             - before: {before}\n- meanwhile: {during}\n- after: {after}\n\n",
            self.command, self.peer
        );
        for doubt in self.doubts() {
            let _ = write!(text, "**{doubt}**\n\n");
        }
        // Longer than any fence in the output.
        let mut fence = "```".to_string();
        while self.output.contains(&fence) {
            fence.push('`');
        }
        let _ = writeln!(text, "{fence}text\n{}\n{fence}", self.output.trim_matches('\n'));
        text
    }
}

/// The page with one section new and the others as they were, in the given order. Sections that are not in `order` are dropped.
pub fn page(old: &str, fresh: &Section, order: &[&str]) -> String {
    let mut sections = sections(old);
    sections.insert(fresh.name.clone(), fresh.text());
    let mut text = HEAD.to_string();
    for name in order {
        if let Some(section) = sections.get(*name) {
            let _ = write!(text, "\n## {name}\n{section}");
        }
    }
    text
}

/// Text under each heading of a page; `##` inside a fence does not count.
fn sections(page: &str) -> BTreeMap<String, String> {
    let mut found: Vec<(String, String)> = vec![];
    let mut fence: Option<String> = None;
    for line in page.lines() {
        match &fence {
            Some(open) if line == open => fence = None,
            None if line.starts_with("```") => fence = Some(line.chars().take_while(|c| *c == '`').collect()),
            None if line.starts_with("## ") => {
                found.push((line[3..].to_string(), String::new()));
                continue;
            }
            _ => {}
        }
        if let Some((_, text)) = found.last_mut() {
            let _ = writeln!(text, "{line}");
        }
    }
    // The empty line before the next heading is the heading's.
    found.into_iter().map(|(name, text)| (name, format!("{}\n", text.trim_end()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: [&str; 3] = ["boxings", "gpt", "ops"];

    fn section(name: &str, output: &str, busy: u64) -> Section {
        let stat = |busy: u64| format!("cpu  {busy} 0 0 {} 0 0 0 0", 100 - busy);
        let state = State::between(&stat(0), &stat(0), 0, "0.25 ").expect("a state");
        let after = State::between("cpu  0 0 0 0 0 0 0 0", &stat(busy), 0, "1.5 ").expect("a state");
        Section {
            name: name.into(),
            command: format!("cargo bench --bench {name}"),
            peer: "no peer".into(),
            facts: Facts {
                date: "2026-11-22 20:00 UTC".into(),
                commit: "0123456789ab".into(),
                changed: busy > 5,
                machine: "a processor, 2 cores, 24 GiB, Linux 6".into(),
                peers: vec!["PyTorch 2".into(), "JAX 1".into()],
            },
            states: [state, state, after],
            failure: None,
            output: output.into(),
        }
    }

    #[test]
    fn a_section_tells_command_commit_machine_and_output() {
        let text = page("", &section("ops", "add 1.0\n", 1), &ORDER);
        let expected = "\n## ops\n
- `cargo bench --bench ops`; beside: no peer
- 2026-11-22 20:00 UTC, commit 0123456789ab
- a processor, 2 cores, 24 GiB, Linux 6
- peers found: PyTorch 2, JAX 1
- before: others 0.0 %, steal 0.0 %, load 0.25
- meanwhile: others 0.0 %, steal 0.0 %, load 0.25
- after: others 1.0 %, steal 0.0 %, load 1.50

```text
add 1.0
```
";
        assert_eq!(text, format!("{HEAD}{expected}"));
    }

    #[test]
    fn doubts_stand_before_the_numbers() {
        let mut loaded = section("ops", "add 1.0\n", 60);
        loaded.failure = Some("exit status: 3".into());
        let text = page("", &loaded, &ORDER);
        assert!(text.contains("commit 0123456789ab with changes\n"), "{text}");
        let doubts = "**failed: exit status: 3**\n\n**loaded: no conclusion**\n\n```text\nadd 1.0\n```\n";
        assert!(text.ends_with(doubts), "{text}");
    }

    #[test]
    fn a_run_replaces_its_own_section_and_keeps_the_others() {
        let odd = "## no heading\n```text\n## none either\n```\n\n\n| a |";
        let both = page(&page("", &section("ops", odd, 0), &ORDER), &section("boxings", "first", 0), &ORDER);
        let (boxings, ops) = (both.find("\n## boxings\n"), both.find("\n## ops\n"));
        assert!(boxings.is_some() && boxings < ops, "{both}");
        let again = page(&both, &section("boxings", "second", 0), &ORDER);
        assert_eq!(again, both.replace("first", "second"));
        assert!(again.contains("````text\n## no heading\n"), "{again}");
    }

    #[test]
    fn sections_of_benches_that_are_gone_are_dropped() {
        let old = page("", &section("gone", "x", 0), &["gone"]);
        let new = page(&old, &section("gpt", "y", 0), &ORDER);
        assert_eq!(new, page("", &section("gpt", "y", 0), &ORDER));
    }
}
