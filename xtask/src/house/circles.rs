//! Circles of imports: files that need each other.
//!
//! A file has an *arrow* to another of its crate where it names an item that the other defines: in a `use` declaration, or in
//! a path that begins with `crate`, `super` or `self`. The path is followed through the module tree, `use` declarations,
//! re-exports and globs to the definition, so that an import from a room's `mod.rs` is an arrow to the file behind it. A
//! re-export (`pub use`) makes no arrow: the room hands the name on without needing it. Methods are called without being named
//! and make none either. A *circle* is a strongly connected component of two or more files.
//!
//! `use super::cache;` names a module, not an item. Whether `cache::look` is then an arrow is what [`Through`] says: without
//! such arrows ([`Through::Names`]) a circle can be cut by importing the module in place of its items, so both are counted.

use crate::source::{Named, Source, attrs_of, leaves, of_tests};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// Paths that make arrows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Through {
    /// Imported items, and paths that begin with `crate`, `super` or `self`.
    Names,
    /// Those, and paths that begin with an imported module.
    Modules,
}

/// Files that need each other.
pub struct Circle {
    /// Room of the files: a folder of `src`, or a crate; "a, b" where the circle goes through several.
    pub room: String,
    /// Indices of the files.
    pub files: Vec<usize>,
    /// Arrows between the files, each with the names that it stands for.
    pub arrows: BTreeMap<(usize, usize), BTreeSet<String>>,
}

/// Paths in the code of one module.
struct Paths {
    found: Vec<Vec<String>>,
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, i: &'ast syn::Item) {
        // Inline modules are visited on their own, with their own names.
        if of_tests(attrs_of(i)) || matches!(i, syn::Item::Mod(_)) {
            return;
        }
        visit::visit_item(self, i);
    }

    fn visit_item_use(&mut self, u: &'ast syn::ItemUse) {
        if !matches!(u.vis, syn::Visibility::Inherited) {
            return;
        }
        let mut found = vec![];
        leaves(&u.tree, &mut vec![], &mut found);
        self.found.extend(found.into_iter().filter(|(_, name)| name.is_some()).map(|(path, _)| path));
    }

    fn visit_impl_item(&mut self, i: &'ast syn::ImplItem) {
        let attrs = match i {
            syn::ImplItem::Fn(f) => &f.attrs,
            syn::ImplItem::Const(c) => &c.attrs,
            _ => return visit::visit_impl_item(self, i),
        };
        if !of_tests(attrs) {
            visit::visit_impl_item(self, i);
        }
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_path(&mut self, p: &'ast syn::Path) {
        self.found.push(p.segments.iter().map(|s| s.ident.to_string()).collect());
        visit::visit_path(self, p);
    }

    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        self.visit_path(&m.path);
        paths_of_tokens(m.tokens.clone(), &mut self.found);
    }
}

/// The paths in the text of a macro's call or definition.
fn paths_of_tokens(tokens: proc_macro2::TokenStream, found: &mut Vec<Vec<String>>) {
    use proc_macro2::TokenTree;
    let (mut path, mut colons) = (vec![], 0);
    for token in tokens {
        match token {
            TokenTree::Ident(i) => {
                if colons != 2 {
                    found.extend((!path.is_empty()).then(|| std::mem::take(&mut path)));
                    path.clear();
                }
                path.push(i.to_string());
                colons = 0;
            }
            TokenTree::Punct(p) if p.as_char() == ':' && colons < 2 && !path.is_empty() => colons += 1,
            other => {
                found.extend((!path.is_empty()).then(|| std::mem::take(&mut path)));
                colons = 0;
                if let TokenTree::Group(g) = other {
                    paths_of_tokens(g.stream(), found);
                }
            }
        }
    }
    found.extend((!path.is_empty()).then_some(path));
}

/// The arrows between files of one crate.
fn arrows(source: &Source, through: Through) -> BTreeMap<(usize, usize), BTreeSet<String>> {
    let mut arrows: BTreeMap<(usize, usize), BTreeSet<String>> = BTreeMap::new();
    for (module, items) in source.items() {
        let mut paths = Paths { found: vec![] };
        items.iter().for_each(|i| paths.visit_item(i));
        let from = source.modules[module].file;
        for path in paths.found {
            let absolute = matches!(path[0].as_str(), "crate" | "super" | "self");
            if !(absolute || through == Through::Modules && source.imports(module, &path[0])) {
                continue;
            }
            let Some(Named::Item { module: to, name, .. }) = source.resolve(module, &path) else { continue };
            let to = source.modules[to].file;
            if to != from && source.files[to].krate == source.files[from].krate {
                arrows.entry((from, to)).or_default().insert(name);
            }
        }
    }
    arrows
}

/// The circles of every crate, the largest first.
pub fn circles(source: &Source, through: Through) -> Vec<Circle> {
    let arrows = arrows(source, through);
    let mut next = vec![vec![]; source.files.len()];
    arrows.keys().for_each(|(from, to)| next[*from].push(*to));
    let mut found: Vec<Circle> = components(&next)
        .into_iter()
        .filter(|files| files.len() > 1)
        .map(|mut files| {
            files.sort_by_key(|f| &source.files[*f].path);
            let rooms: BTreeSet<String> = files.iter().map(|f| source.room(*f)).collect();
            let inside = |(a, b): &(usize, usize)| files.contains(a) && files.contains(b);
            let arrows = arrows.iter().filter(|(ends, _)| inside(ends)).map(|(ends, n)| (*ends, n.clone())).collect();
            Circle { room: rooms.into_iter().collect::<Vec<_>>().join(", "), files, arrows }
        })
        .collect();
    found.sort_by(|a, b| b.files.len().cmp(&a.files.len()).then_with(|| a.room.cmp(&b.room)));
    found
}

/// Strongly connected components, by Tarjan's algorithm with a stack of its own.
fn components(next: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let (mut index, mut low) = (vec![NEW; next.len()], vec![0; next.len()]);
    let (mut on_stack, mut stack, mut found) = (vec![false; next.len()], vec![], vec![]);
    let mut count = 0;
    for start in 0..next.len() {
        if index[start] != NEW {
            continue;
        }
        let mut work = vec![(start, 0)];
        while let Some((at, child)) = work.pop() {
            if child == 0 {
                (index[at], low[at]) = (count, count);
                count += 1;
                stack.push(at);
                on_stack[at] = true;
            } else {
                low[at] = low[at].min(low[next[at][child - 1]]);
            }
            let open = (child..next[at].len()).find(|c| {
                let to = next[at][*c];
                if index[to] != NEW && on_stack[to] {
                    low[at] = low[at].min(index[to]);
                }
                index[to] == NEW
            });
            match open {
                Some(c) => work.extend([(at, c + 1), (next[at][c], 0)]),
                None if low[at] == index[at] => {
                    let from = stack.iter().rposition(|f| *f == at).unwrap_or(0);
                    let files = stack.split_off(from);
                    files.iter().for_each(|f| on_stack[*f] = false);
                    found.push(files);
                }
                None => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::components;

    #[test]
    fn components_are_those_of_a_known_graph() {
        // 0 -> 1 -> 2 -> 0 is a circle, 3 <-> 4 another that the first leads to; 5 is alone.
        let next = vec![vec![1], vec![2, 3], vec![0], vec![4], vec![3], vec![0]];
        let mut found = components(&next);
        found.iter_mut().for_each(|f| f.sort_unstable());
        found.sort();
        assert_eq!(found, [vec![0, 1, 2], vec![3, 4], vec![5]]);
    }
}
