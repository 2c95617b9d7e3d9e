//! The rules for docs.

use super::{Fault, Rule};
use crate::source::{Source, attrs_of, of_tests};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Visibility};

/// Pronouns that no doc begins with.
const PRONOUNS: &[&str] =
    &["it", "its", "they", "their", "he", "what", "whatever", "who", "whoever", "whose", "which", "them"];

/// Words that are pronouns where no noun follows: "This is", "Those of", but not "This rank's part".
const POINTING: &[&str] = &["this", "that", "these", "those", "such"];

/// Words that follow a pointing word where it is a pronoun.
const NOT_NOUNS: &[&str] = &[
    "is", "are", "was", "were", "has", "have", "does", "do", "can", "may", "must", "will", "of", "in", "for", "at",
    "on", "by", "to", "from", "with", "without", "that", "which", "who", "whose", "where", "there", "as", "not",
    "makes", "holds", "gives", "means", "given", "after", "before", "behind", "a", "an", "the", "one", "it",
];

/// The faults of every doc outside of tests.
pub fn faults(source: &Source) -> Vec<Fault> {
    let mut all = vec![];
    for file in &source.files {
        let mut docs = Docs { path: &file.path, found: vec![] };
        docs.doc(&file.ast.attrs, false, 1);
        docs.visit_file(&file.ast);
        all.append(&mut docs.found);
    }
    all
}

struct Docs<'a> {
    path: &'a str,
    found: Vec<Fault>,
}

impl Docs<'_> {
    fn doc(&mut self, attrs: &[Attribute], public: bool, line: usize) {
        let text: Vec<String> = attrs.iter().filter_map(doc_of).collect();
        if text.is_empty() || attrs.iter().any(hidden) {
            return;
        }
        let text = text.join("\n");
        let line = attrs.iter().find(|a| doc_of(a).is_some()).map_or(line, |a| a.span().start().line);
        let first = text.trim().split("\n\n").next().unwrap_or_default().replace('\n', " ");
        let mut report =
            |rule| self.found.push(Fault { path: self.path.into(), line, rule, text: first.trim().into() });
        if public && words(&text).len() < 3 {
            report(Rule::ShortDoc);
        }
        if begins_with_pronoun(&first) {
            report(Rule::Pronoun);
        }
    }
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '\''));
    words.filter(|w| !w.is_empty()).map(str::to_lowercase).collect()
}

fn begins_with_pronoun(text: &str) -> bool {
    // A name of code is not a word of the sentence.
    let text = text.trim_start();
    if !text.starts_with(char::is_uppercase) {
        return false;
    }
    let words = words(text);
    let word = |n: usize| words.get(n).map_or("", String::as_str);
    match word(0) {
        w if PRONOUNS.contains(&w) => true,
        w if POINTING.contains(&w) => words.len() == 1 || NOT_NOUNS.contains(&word(1)),
        "the" => matches!(word(1), "one" | "ones") && (words.len() == 2 || NOT_NOUNS.contains(&word(2))),
        "one" => matches!(word(1), "that" | "which" | "whose"),
        _ => false,
    }
}

fn doc_of(attr: &Attribute) -> Option<String> {
    match &attr.meta {
        syn::Meta::NameValue(v) if v.path.is_ident("doc") => match &v.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(s), .. }) => Some(s.value().trim().to_string()),
            _ => None,
        },
        _ => None,
    }
}

fn hidden(attr: &Attribute) -> bool {
    matches!(&attr.meta, syn::Meta::List(l) if l.path.is_ident("doc") && l.tokens.to_string().contains("hidden"))
}

fn public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

impl<'ast> Visit<'ast> for Docs<'_> {
    fn visit_item(&mut self, i: &'ast syn::Item) {
        if of_tests(attrs_of(i)) {
            return;
        }
        let vis = match i {
            syn::Item::Const(i) => Some(&i.vis),
            syn::Item::Enum(i) => Some(&i.vis),
            syn::Item::Fn(i) => Some(&i.vis),
            syn::Item::Mod(i) => Some(&i.vis),
            syn::Item::Static(i) => Some(&i.vis),
            syn::Item::Struct(i) => Some(&i.vis),
            syn::Item::Trait(i) => Some(&i.vis),
            syn::Item::Type(i) => Some(&i.vis),
            syn::Item::Union(i) => Some(&i.vis),
            _ => None,
        };
        self.doc(attrs_of(i), vis.is_some_and(public), i.span().start().line);
        if let syn::Item::Enum(e) = i {
            for v in &e.variants {
                self.doc(&v.attrs, public(&e.vis), v.span().start().line);
            }
        }
        if let syn::Item::Trait(t) = i {
            for item in &t.items {
                if let syn::TraitItem::Fn(f) = item {
                    self.doc(&f.attrs, public(&t.vis), f.span().start().line);
                }
            }
        }
        visit::visit_item(self, i);
    }

    fn visit_field(&mut self, f: &'ast syn::Field) {
        self.doc(&f.attrs, public(&f.vis), f.span().start().line);
    }

    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        if !of_tests(&f.attrs) {
            self.doc(&f.attrs, public(&f.vis), f.span().start().line);
        }
    }

    fn visit_impl_item_const(&mut self, c: &'ast syn::ImplItemConst) {
        self.doc(&c.attrs, public(&c.vis), c.span().start().line);
    }
}

#[cfg(test)]
mod tests {
    use super::begins_with_pronoun;

    #[test]
    fn a_pointing_word_with_its_noun_is_not_a_pronoun() {
        for text in
            ["It is there.", "Those of `make`.", "What it costs.", "That of the call.", "The one after it.", "This."]
        {
            assert!(begins_with_pronoun(text), "{text}");
        }
        for text in ["This rank's part.", "Those ranks only.", "`it` names it.", "Whether it is there.", "The onset."] {
            assert!(!begins_with_pronoun(text), "{text}");
        }
    }
}
