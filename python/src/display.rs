//! Tensors and placements as HTML, for notebooks: what `repr` says, and a picture of the layout.
//!
//! As `repr`, it communicates nothing, and it is the same on every rank for a global tensor. Notebooks are light or dark, so text has the colour
//! of the page. A style sheet would hold for the whole page, so there is none.

use crate::signature::dtype_name;
use oflow::placement::Placement;
use oflow::sbp::picture::{Grid, Look};
use oflow::text::{escape, head};

/// Characters of a layout, which many ranks and names of mesh axes make long.
const LONGEST: usize = 200;
const MONOSPACE: &str = "font-family:ui-monospace,monospace;font-size:13px;line-height:1.5";

/// HTML of a tensor that is an object of the class `class`.
pub fn tensor(class: &str, t: &oflow::Tensor) -> String {
    let sizes: Vec<String> = t.shape().iter().map(usize::to_string).collect();
    let shape = if let [one] = &sizes[..] { format!("({one},)") } else { format!("({})", sizes.join(", ")) };
    let (dtype, device) = (dtype_name(t.dtype()), t.device().to_string());
    let mut rest = vec![("shape", shape.as_str()), ("dtype", &dtype), ("device", &device)];
    if t.is_meta() {
        rest.push(("", "without data"));
    }
    if t.requires_grad() {
        rest.push(("", if t.is_leaf() { "requires grad" } else { "in graph" }));
    }
    let mut parts = vec![line(class, &rest)];
    if let Some(g) = t.global() {
        let (mesh, sbp) = (head(&g.placement.to_string(), LONGEST), head(&g.sbp.to_string(), LONGEST));
        parts.push(line("", &[("placement", &mesh), ("sbp", &sbp)]));
        parts.extend(picture(&head(&format!("{t:?}"), LONGEST), Grid::new(t.shape(), &g.placement, &g.sbp)));
    }
    if let Some(values) = t.values_text() {
        let style = "margin:4px 0;max-height:24em;overflow:auto;background:none;color:inherit;font:inherit";
        parts.push(format!("<pre style=\"{style}\">{}</pre>", escape(&values)));
    }
    page(&parts)
}

/// HTML of a placement: its mesh, with a cell for each rank.
pub fn placement(p: &Placement) -> String {
    let mesh = head(&p.to_string(), LONGEST);
    let mut parts = vec![line("placement", &[("", &mesh)])];
    parts.extend(picture(&mesh, Grid::of_mesh(p)));
    page(&parts)
}

fn page(parts: &[String]) -> String {
    format!("<div style=\"{MONOSPACE}\">\n{}\n</div>", parts.join("\n"))
}

/// A line of names, which are pale, and values.
fn line(title: &str, pairs: &[(&str, &str)]) -> String {
    let title = (!title.is_empty()).then(|| format!("<b>{}</b>", escape(title)));
    let pair = |(name, value): &(&str, &str)| match name.is_empty() {
        true => escape(value),
        false => format!("<span style=\"opacity:.7\">{}</span> {}", escape(name), escape(value)),
    };
    let all: Vec<String> = title.into_iter().chain(pairs.iter().map(pair)).collect();
    format!("<div>{}</div>", all.join(" &nbsp;"))
}

/// A picture with what its signs mean.
fn picture(title: &str, grid: Grid) -> Vec<String> {
    let grid = grid.folded();
    let drawn = if grid.size().contains(&0) { None } else { grid.svg(title, Look::Inline) };
    let notes = grid.notes().into_iter().map(|n| format!("<div style=\"opacity:.7\">{}</div>", escape(&n)));
    drawn.into_iter().chain(notes).collect()
}
