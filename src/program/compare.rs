//! Comparison of two programs: the first line in which they differ.

use super::text::{Marked, quoted};
use super::types::{Program, described};
use crate::error::CallSite;

/// The first difference of two programs: a line of each; `None` where one has ended.
pub struct Difference {
    /// The line of the first program.
    pub first: Option<String>,
    /// The line of the second.
    pub second: Option<String>,
    /// Line of the closure of the first program; none at its end.
    pub site: Option<CallSite>,
}

impl Program {
    /// The lines of the program, without the lines of the closure; those of a repeated section after its node. With the names of the
    /// host objects.
    fn lines(&self, hosts: &[String], found: &mut Vec<(String, CallSite)>) {
        for o in &self.outside {
            let text = format!("{} {} {}: {}", o.kind.word(), o.value, quoted(&o.name), described(self.ty(o.value)));
            found.push((text, o.site));
        }
        for node in &self.nodes {
            found.push((Marked(self, node, hosts).to_string(), node.site));
            if let Some(r) = node.repeat() {
                r.body.lines(hosts, found);
                found.push((r.body.return_line(), node.site));
            }
        }
    }

    /// Returns the first difference to another program, if there is one. The lines of the closure do not count.
    pub fn difference(&self, other: &Program) -> Option<Difference> {
        let lines = |p: &Program| {
            let mut found = vec![];
            p.lines(&p.hosts, &mut found);
            found.into_iter()
        };
        let (mut first, mut second) = (lines(self), lines(other));
        loop {
            match (first.next(), second.next()) {
                (None, None) => break,
                (Some((a, _)), Some((b, _))) if a == b => {}
                (a, b) => {
                    let (site, text) = (a.as_ref().map(|(_, site)| *site), |(text, _)| text);
                    return Some(Difference { first: a.map(text), second: b.map(text), site });
                }
            }
        }
        let end = |p: &Program| format!("{} after {:?} draws", p.return_line(), p.draws);
        let (first, second) = (end(self), end(other));
        (first != second).then_some(Difference { first: Some(first), second: Some(second), site: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_found() {
        let of = |text: &str| text.parse::<Program>().unwrap();
        let text = "input %0 \"x\": f32[4] on cpu\n%1 = oflow.relu@1(%0): f32[4] on cpu  # a.rs:3\nreturn %1";
        let program = of(text);
        assert!(program.difference(&of(&text.replace("a.rs:3", "b.rs:7"))).is_none());
        let sides = |other: &str| {
            let d = program.difference(&of(other)).unwrap();
            (d.first.unwrap_or_default(), d.second.unwrap_or_default(), d.site.is_some())
        };
        let (first, second, at) = sides(&text.replace("relu", "exp"));
        assert!(first.contains("oflow.relu@1(%0)") && second.contains("oflow.exp@1(%0)") && at);
        let (first, second, _) = sides(&text.replace("[4]", "[5]"));
        assert!(first.contains("f32[4]") && second.starts_with("input %0 \"x\": f32[5]"));
        let (first, second, _) = sides(&text.replace("\"x\"", "\"z\""));
        assert!(first.contains("\"x\"") && second.contains("\"z\""));
        let shorter = sides("input %0 \"x\": f32[4] on cpu\nreturn %0");
        assert!(shorter.0.contains("relu") && shorter.1.is_empty());
        let (first, second, at) = sides(&text.replace("return %1", "return %1, %0"));
        assert!(first.starts_with("return %1 ") && second.starts_with("return %1, %0") && !at);
    }
}
