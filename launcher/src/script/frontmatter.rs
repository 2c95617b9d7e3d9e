//! The frontmatter of a script: lines between `---` at its top with further dependencies.
//!
//! Stable rustc does not support it, so the script is compiled from a copy in which these lines are blank. Line numbers do not
//! change.

/// The frontmatter of a script.
#[derive(Debug, PartialEq, Eq)]
pub struct Frontmatter {
    /// Lines that belong under `[dependencies]`.
    pub entries: String,
    /// Whole `[dependencies.name]` tables.
    pub tables: String,
    /// The script with blank lines in place of the frontmatter.
    pub source: String,
}

/// Finds the frontmatter of a script, if it has one: after an optional `#!` line and blank lines.
///
/// # Errors
/// If the frontmatter is malformed. The message has the line.
pub fn parse(source: &str) -> Result<Option<Frontmatter>, String> {
    let lines: Vec<&str> = source.split_inclusive('\n').collect();
    let shebang = lines.first().is_some_and(|l| l.starts_with("#!") && !l.starts_with("#!["));
    let Some(open) = (usize::from(shebang)..lines.len()).find(|i| !lines[*i].trim().is_empty()) else {
        return Ok(None);
    };
    if !matches!(lines[open].trim_end(), "---" | "---cargo" | "--- cargo") {
        return Ok(None);
    }
    let Some(length) = lines[open + 1..].iter().position(|l| l.trim_end() == "---") else {
        return Err(format!("line {}: the frontmatter that begins here has no closing ---", open + 1));
    };
    let close = open + 1 + length;
    let (mut entries, mut tables) = (String::new(), String::new());
    let mut into: Option<&mut String> = None;
    for (i, line) in lines.iter().enumerate().take(close).skip(open + 1) {
        let text = line.trim();
        let wrong = |what: &str| Err(format!("line {}: {what}", i + 1));
        if text.starts_with('[') && text != "[dependencies]" {
            if !text.starts_with("[dependencies.") {
                return wrong("only [dependencies] may stand in a script's frontmatter");
            }
            tables.push_str(line);
            into = Some(&mut tables);
        } else if text == "[dependencies]" {
            into = Some(&mut entries);
        } else if let Some(into) = &mut into {
            into.push_str(line);
        } else if !text.is_empty() && !text.starts_with('#') {
            return wrong("a dependency must stand under [dependencies]");
        }
        let dense: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        if dense.starts_with("oflow=") || dense.starts_with("oflow.") || dense == "[dependencies.oflow]" {
            return wrong("oflow is always there and cannot be given");
        }
        if let Some(at) = dense.find("path=\"")
            && !dense[at..].starts_with("path=\"/")
        {
            return wrong("the path of a dependency must be absolute here");
        }
    }
    let source =
        lines.iter().enumerate().map(|(i, line)| if (open..=close).contains(&i) { "\n" } else { *line }).collect();
    Ok(Some(Frontmatter { entries, tables, source }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_without_one_are_left_alone() {
        for source in ["", "\n\n", "fn main() {}\n", "#![allow(dead_code)]\nfn main() {}", "// ---\n---\n"] {
            assert_eq!(parse(source), Ok(None), "{source:?}");
        }
    }

    #[test]
    fn the_lines_are_blanked_and_keep_their_number() {
        let source = "#!/usr/bin/env oflaunch\n---\n# more\n[dependencies]\nrand = \"0.9\"\n[dependencies.serde]\nversion = \"1\"\n---\nfn main() {}\n";
        let found = parse(source).unwrap().unwrap();
        assert_eq!(found.entries, "rand = \"0.9\"\n");
        assert_eq!(found.tables, "[dependencies.serde]\nversion = \"1\"\n");
        assert_eq!(found.source, "#!/usr/bin/env oflaunch\n\n\n\n\n\n\n\nfn main() {}\n");
        assert_eq!(found.source.lines().count(), source.lines().count());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (source, error) in [
            ("---\nfn main() {}", "line 1: the frontmatter that begins here has no closing ---"),
            ("---\nrand = \"1\"\n---\n", "line 2: a dependency must stand under [dependencies]"),
            ("---\n[package]\n---\n", "line 2: only [dependencies] may stand in a script's frontmatter"),
            ("---\n[dependencies]\noflow = \"1\"\n---\n", "line 3: oflow is always there and cannot be given"),
            (
                "---\n[dependencies]\na = { path = \"../a\" }\n---\n",
                "line 3: the path of a dependency must be absolute here",
            ),
        ] {
            assert_eq!(parse(source), Err(error.to_string()));
        }
    }
}
