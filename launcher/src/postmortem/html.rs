//! The page as HTML: one file without external resources.

use super::Story;
use oflow::text::escape;

const HEAD: &str = "<!doctype html>
<meta charset=\"utf-8\">
<title>oflow postmortem</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 80rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 1.6rem }
pre, td { font: 13px/1.5 ui-monospace, monospace } pre { background: #f4f4f4; padding: .6rem; white-space: pre-wrap }
table { border-collapse: collapse } td { padding: 0 .8rem 0 0; vertical-align: top }
td:first-child { text-align: right; color: #777 } .bad { color: #b00020 }
</style>
<h1>oflow postmortem</h1>
";

/// Returns the page as HTML.
pub fn page(story: &Story) -> String {
    let mut out = String::from(HEAD);
    for (title, lines) in story.sections() {
        out += &format!("<h2>{}</h2>\n<pre>{}</pre>\n", escape(&title), escape(&lines.join("\n")));
    }
    let begin = story.timeline.first().map_or(0.0, |m| m.time);
    out += "<h2>Timeline</h2>\n<table>\n";
    for m in &story.timeline {
        let who = m.rank.map_or("oflaunch".to_string(), |r| format!("rank {r}"));
        let bad = m.rank.is_none() || m.text.ends_with("never out of it");
        let class = if bad { " class=\"bad\"" } else { "" };
        out += &format!("<tr><td>{:.3} s<td>{who}<td{class}>{}\n", m.time - begin, escape(&m.text));
    }
    out + "</table>\n"
}

#[cfg(test)]
mod tests {
    use super::super::story::tests::flights;
    use super::*;

    #[test]
    fn is_one_page_in_which_nothing_of_the_program_is_markup() {
        let mut flights = flights();
        if let Some(f) = flights.get_mut(&0) {
            f.ops[1].file = "<script>&".into();
        }
        let page = page(&Story::of(flights, &[], 1));
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</table>\n"));
        assert!(page.contains("&lt;script&gt;&amp;") && !page.contains("<script>"), "{page}");
        assert!(page.contains("<td class=\"bad\">comes to all_reduce"), "{page}");
    }
}
