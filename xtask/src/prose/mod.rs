//! `cargo xtask prose`: rules for docs, messages and examples that a program can check.
//!
//! 1. The doc of a public item has three words or more.
//! 2. No doc begins with a pronoun: nothing stands before it that it could mean.
//! 3. No message says "is no X" or "there are no X": the plain form says what was given and what is allowed.
//! 4. An example is short and has no options for tests (`examples.rs`).
//!
//! Code for tests and generated code are left out. What breaks a rule for a reason stands in [`EXCEPTIONS`].

mod docs;
mod examples;
mod messages;

use crate::source::Source;
use std::error::Error;
use std::path::PathBuf;

/// A place that breaks a rule.
#[derive(Debug)]
pub struct Fault {
    pub path: String,
    pub line: usize,
    pub rule: Rule,
    pub text: String,
}

/// A rule that docs or messages keep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// The doc of a public item has fewer than three words.
    ShortDoc,
    /// A doc begins with a pronoun.
    Pronoun,
    /// A message says "is no" or "are no".
    IsNo,
    /// An example has too many lines.
    LongExample,
    /// An example has an option that only tests and benches need.
    HarnessOption,
}

/// Places that may break a rule: the beginning of the path, the text or a part of it ("" for any), and the reason.
pub const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// Folders whose code is generated from texts that are checked where they stand.
const GENERATED: &[&str] = &["src/functional/generated/", "proto/src/gen/"];

/// Every place of a checkout that breaks a rule and is not excepted; and exceptions that meet nothing.
///
/// # Errors
/// A source file cannot be read.
pub fn faults(source: &Source) -> Result<(Vec<Fault>, Vec<String>), Box<dyn Error>> {
    let mut found = docs::faults(source);
    found.extend(messages::faults(source)?);
    found.retain(|f| !GENERATED.iter().any(|g| f.path.starts_with(g)) && !f.path.contains("/../"));
    let mut used = vec![false; EXCEPTIONS.len()];
    found.retain(|f| {
        let except = |(path, text, _): &(&str, &str, &str)| f.path.starts_with(path) && f.text.contains(text);
        let which = EXCEPTIONS.iter().position(except);
        which.inspect(|n| used[*n] = true).is_none()
    });
    found.sort_by(|a, b| (&a.path, a.line, a.rule).cmp(&(&b.path, b.line, b.rule)));
    let unused =
        EXCEPTIONS.iter().zip(used).filter(|(_, used)| !used).map(|((path, text, _), _)| format!("{path}: {text}"));
    Ok((found, unused.collect()))
}

/// Number of public items with a doc under three words, without exceptions.
pub fn short_docs(source: &Source) -> usize {
    docs::faults(source).iter().filter(|f| f.rule == Rule::ShortDoc).count()
}

/// Runs the command with the arguments after `prose`.
///
/// # Errors
/// The arguments are not understood, a file cannot be read, or a rule is broken.
pub fn run(args: &[&str]) -> Result<(), Box<dyn Error>> {
    let root = match args {
        [] => crate::root().canonicalize()?,
        ["--root", root] => PathBuf::from(root).canonicalize()?,
        _ => return Err("prose takes nothing but --root DIR".into()),
    };
    let (mut found, unused) = faults(&Source::read(&root)?)?;
    found.extend(examples::faults(&root)?);
    for f in &found {
        println!("{}:{}: {}: {}", f.path, f.line, says(f.rule), f.text);
    }
    unused.iter().for_each(|e| println!("this exception meets nothing: {e}"));
    let of = |rule| found.iter().filter(|f| f.rule == rule).count();
    println!(
        "{} docs under three words, {} docs that begin with a pronoun, {} messages with \"is no\", {} long examples, {} options \
         for tests in examples; {} exceptions",
        of(Rule::ShortDoc),
        of(Rule::Pronoun),
        of(Rule::IsNo),
        of(Rule::LongExample),
        of(Rule::HarnessOption),
        EXCEPTIONS.len()
    );
    if found.is_empty() && unused.is_empty() { Ok(()) } else { Err("the rules of prose are broken".into()) }
}

fn says(rule: Rule) -> &'static str {
    match rule {
        Rule::ShortDoc => "say what, in which unit and when",
        Rule::Pronoun => "begin with the thing that is meant",
        Rule::IsNo => "say what was given and what is allowed",
        Rule::LongExample => "move what is not the subject to a module",
        Rule::HarnessOption => "let tests and benches read what the program prints",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_and_messages_keep_the_rules() {
        let source = Source::read(&crate::root()).unwrap();
        let (found, unused) = faults(&source).unwrap();
        let text: Vec<String> =
            found.iter().map(|f| format!("{}:{}: {}: {}", f.path, f.line, says(f.rule), f.text)).collect();
        assert!(found.is_empty(), "{}", text.join("\n"));
        assert!(unused.is_empty(), "exceptions that meet nothing: {}", unused.join(", "));
        assert!(EXCEPTIONS.len() < 30);
    }
}
