//! The sources of a checkout, parsed: crates, files, the module tree, and what a path names.
//!
//! Code for tests is left out: modules and items under `#[cfg(test)]`.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use syn::{Item, UseTree};

/// A crate of the workspace.
pub struct Crate {
    /// Folder below the root, without a slash at the end; empty for the root package.
    pub folder: String,
    /// Name in paths of Rust code.
    pub ident: String,
    /// Root modules: that of the library, or those of binaries where there is no library.
    pub roots: Vec<usize>,
}

/// A source file.
pub struct File {
    /// Path below the root of the checkout, with `/`.
    pub path: String,
    /// Index of its crate.
    pub krate: usize,
    pub ast: syn::File,
    pub lines: usize,
}

/// Meaning of a name of a module.
#[derive(Clone)]
enum Name {
    Module(usize),
    Item,
    /// The path of a `use` declaration.
    Use(Vec<String>),
    /// A macro that the module with this index defines and exports from the crate's root.
    Macro(usize),
}

/// A module: a file's own or an inline one.
pub struct Module {
    pub file: usize,
    parent: Option<usize>,
    names: BTreeMap<String, Vec<Name>>,
    globs: Vec<Vec<String>>,
}

/// The `use` declarations and globs that are being followed: module and text.
type Busy = BTreeSet<(usize, String)>;

/// Item or module that a path has led to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    Module(usize),
    /// An item of a module, and how many segments of the path stand after it: a variant, an associated function.
    Item {
        module: usize,
        name: String,
        rest: usize,
    },
}

/// The parsed sources of a checkout.
pub struct Source {
    pub root: PathBuf,
    pub crates: Vec<Crate>,
    pub files: Vec<File>,
    pub modules: Vec<Module>,
}

/// The modules that a call of a macro such as `families!` declares: `mod name` and then `;` or `:`, which a file has.
fn modules_in(tokens: TokenStream) -> Vec<Item> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let named = tokens.windows(3).filter_map(|w| match w {
        [TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Punct(end)]
            if word == "mod" && matches!(end.as_char(), ';' | ':') =>
        {
            syn::parse_str(&format!("mod {name};")).ok()
        }
        _ => None,
    });
    named.collect()
}

impl Source {
    /// Parses every crate that the workspace at `root` names.
    ///
    /// # Errors
    /// A file cannot be read or is not Rust.
    pub fn read(root: &Path) -> Result<Source, Box<dyn Error>> {
        let mut source = Source { root: root.to_path_buf(), crates: vec![], files: vec![], modules: vec![] };
        for folder in members(root)? {
            let manifest = fs::read_to_string(root.join(&folder).join("Cargo.toml"))?;
            let krate = source.crates.len();
            source.crates.push(Crate { folder: folder.clone(), ident: ident(&manifest), roots: vec![] });
            let src = root.join(&folder).join("src");
            let tops = match src.join("lib.rs") {
                lib if lib.exists() => vec![lib],
                _ => vec![src.join("main.rs")],
            };
            for top in tops.iter().filter(|p| p.exists()) {
                let module = source.add_file(krate, top, None)?;
                source.crates[krate].roots.push(module);
            }
        }
        Ok(source)
    }

    fn add_file(&mut self, krate: usize, path: &Path, parent: Option<usize>) -> Result<usize, Box<dyn Error>> {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let ast = syn::parse_file(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        let rel = path.strip_prefix(&self.root)?.components().map(|c| c.as_os_str().to_string_lossy());
        let rel = rel.collect::<Vec<_>>().join("/");
        let file = self.files.len();
        let items = ast.items.clone();
        self.files.push(File { path: rel, krate, ast, lines: text.lines().count() });
        let module = self.add_module(file, parent);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let dir = path.parent().unwrap_or(Path::new(""));
        let is_root = parent.is_none() || stem == "mod";
        let below = if is_root { dir.to_path_buf() } else { dir.join(stem) };
        self.add_items(krate, module, &items, dir, &below)?;
        Ok(module)
    }

    fn add_module(&mut self, file: usize, parent: Option<usize>) -> usize {
        self.modules.push(Module { file, parent, names: BTreeMap::new(), globs: vec![] });
        self.modules.len() - 1
    }

    fn add_items(
        &mut self,
        krate: usize,
        module: usize,
        items: &[Item],
        dir: &Path,
        below: &Path,
    ) -> Result<(), Box<dyn Error>> {
        for item in items.iter().filter(|i| !of_tests(attrs_of(i))) {
            match item {
                Item::Mod(m) => {
                    let name = m.ident.to_string();
                    let inner = match &m.content {
                        Some((_, items)) => {
                            let inner = self.add_module(self.modules[module].file, Some(module));
                            self.add_items(krate, inner, items, dir, &below.join(&name))?;
                            inner
                        }
                        None => {
                            let path = match path_attr(&m.attrs) {
                                Some(path) => dir.join(path),
                                None => {
                                    let flat = below.join(format!("{name}.rs"));
                                    if flat.exists() { flat } else { below.join(&name).join("mod.rs") }
                                }
                            };
                            self.add_file(krate, &path, Some(module))?
                        }
                    };
                    self.name(module, name, Name::Module(inner));
                }
                Item::Use(u) => {
                    let mut found = vec![];
                    leaves(&u.tree, &mut vec![], &mut found);
                    for (path, name) in found {
                        match name {
                            Some(name) => self.name(module, name, Name::Use(path)),
                            None => self.modules[module].globs.push(path),
                        }
                    }
                }
                Item::Macro(m) => {
                    let Some(name) = &m.ident else {
                        self.add_items(krate, module, &modules_in(m.mac.tokens.clone()), dir, below)?;
                        continue;
                    };
                    self.name(module, name.to_string(), Name::Item);
                    let root = self.root_of(module);
                    if root != module && m.attrs.iter().any(|a| a.path().is_ident("macro_export")) {
                        self.name(root, name.to_string(), Name::Macro(module));
                    }
                }
                other => {
                    if let Some(name) = item_name(other) {
                        self.name(module, name, Name::Item);
                    }
                }
            }
        }
        Ok(())
    }

    fn name(&mut self, module: usize, name: String, is: Name) {
        self.modules[module].names.entry(name).or_default().push(is);
    }

    /// Follows `path`, written in `module`, to what it names.
    pub fn resolve(&self, module: usize, path: &[String]) -> Option<Named> {
        self.written_in(module, path, &mut BTreeSet::new())
    }

    fn written_in(&self, module: usize, path: &[String], busy: &mut Busy) -> Option<Named> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" | "$crate" => self.below(self.root_of(module), rest, busy),
            "self" | "super" => self.below(module, path, busy),
            _ => self.below(module, path, busy).or_else(|| {
                let krate = self.crates.iter().find(|c| c.ident == *first)?;
                self.below(*krate.roots.first()?, rest, busy)
            }),
        }
    }

    /// The root module of the crate of `module`.
    fn root_of(&self, mut module: usize) -> usize {
        while let Some(parent) = self.modules[module].parent {
            module = parent;
        }
        module
    }

    /// Follows `path` among the names of `module`. `busy` has the `use` declarations and globs that are being followed, so
    /// that `use a::a` of another crate and globs of each other come to an end.
    fn below(&self, module: usize, path: &[String], busy: &mut Busy) -> Option<Named> {
        let Some((first, rest)) = path.split_first() else { return Some(Named::Module(module)) };
        match first.as_str() {
            "super" => return self.below(self.modules[module].parent?, rest, busy),
            "self" => return self.below(module, rest, busy),
            _ => {}
        }
        let names = self.modules[module].names.get(first).map_or(&[][..], Vec::as_slice);
        // Where a module and an item have one name, the path that goes on means the module.
        let mut order: Vec<&Name> = names.iter().collect();
        order.sort_by_key(|n| match n {
            Name::Module(_) => rest.is_empty(),
            _ => !rest.is_empty(),
        });
        for name in order {
            let found = match name {
                Name::Module(m) => self.below(*m, rest, busy),
                Name::Item => Some(Named::Item { module, name: first.clone(), rest: rest.len() }),
                Name::Macro(m) => Some(Named::Item { module: *m, name: first.clone(), rest: rest.len() }),
                Name::Use(to) => {
                    let key = (module, to.join("::"));
                    if !busy.insert(key.clone()) {
                        continue;
                    }
                    let whole: Vec<String> = to.iter().chain(rest).cloned().collect();
                    let found = self.written_in(module, &whole, busy);
                    busy.remove(&key);
                    found
                }
            };
            if found.is_some() {
                return found;
            }
        }
        for glob in &self.modules[module].globs {
            let key = (module, format!("{}::*", glob.join("::")));
            if !busy.insert(key.clone()) {
                continue;
            }
            let found = match self.written_in(module, glob, busy) {
                Some(Named::Module(from)) => self.below(from, path, busy),
                _ => None,
            };
            busy.remove(&key);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Each module that belongs to a file, with its items: the file's own and the inline ones.
    pub fn items(&self) -> Vec<(usize, &[Item])> {
        let mut all = vec![];
        for krate in &self.crates {
            for root in &krate.roots {
                let file = self.modules[*root].file;
                self.items_of(*root, &self.files[file].ast.items, &mut all);
            }
        }
        all
    }

    fn items_of<'a>(&'a self, module: usize, items: &'a [Item], all: &mut Vec<(usize, &'a [Item])>) {
        all.push((module, items));
        for item in items.iter().filter(|i| !of_tests(attrs_of(i))) {
            let Item::Mod(m) = item else { continue };
            let inner = self.modules[module].names.get(&m.ident.to_string());
            let inner = inner.into_iter().flatten().find_map(|n| match n {
                Name::Module(inner) if self.modules[*inner].parent == Some(module) => Some(*inner),
                _ => None,
            });
            let Some(inner) = inner else { continue };
            match &m.content {
                Some((_, items)) => self.items_of(inner, items, all),
                None => self.items_of(inner, &self.files[self.modules[inner].file].ast.items, all),
            }
        }
    }

    /// Whether a `use` declaration of the module gives this name.
    pub fn imports(&self, module: usize, name: &str) -> bool {
        self.modules[module].names.get(name).into_iter().flatten().any(|n| matches!(n, Name::Use(_)))
    }

    /// The room of a file: the folder or file directly below the library's `src`; elsewhere the crate.
    pub fn room(&self, file: usize) -> String {
        let file = &self.files[file];
        let krate = &self.crates[file.krate];
        match file.path.strip_prefix("src/").filter(|_| krate.folder.is_empty()) {
            Some(below) => below.split(['/', '.']).next().unwrap_or_default().to_string(),
            None => krate.folder.clone(),
        }
    }
}

/// Folders of the workspace's crates; "" is the root package.
fn members(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let list = manifest.split("members = [").nth(1).and_then(|rest| rest.split(']').next());
    let list = list.ok_or("Cargo.toml names no members")?;
    let members = list.split('"').skip(1).step_by(2).map(|m| if m == "." { String::new() } else { m.to_string() });
    Ok(members.filter(|m| root.join(m).join("Cargo.toml").exists()).collect())
}

/// The crate's name in code: that of `[lib]`, else the package's.
fn ident(manifest: &str) -> String {
    let after = |table: &str| {
        let text = manifest.split(table).nth(1)?.split("\n[").next()?;
        let line = text.lines().find(|l| l.trim_start().starts_with("name"))?;
        line.split('"').nth(1).map(str::to_string)
    };
    after("\n[lib]").or_else(|| after("[package]")).unwrap_or_default().replace('-', "_")
}

/// Whether something is compiled for tests only.
pub fn of_tests(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|a| {
        let text = match &a.meta {
            syn::Meta::List(l) if l.path.is_ident("cfg") => l.tokens.to_string(),
            _ => return a.path().is_ident("test"),
        };
        text == "test" || text.starts_with("all (test") || text.starts_with("all(test")
    })
}

fn path_attr(attrs: &[syn::Attribute]) -> Option<String> {
    attrs.iter().find_map(|a| match &a.meta {
        syn::Meta::NameValue(v) if v.path.is_ident("path") => match &v.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(s), .. }) => Some(s.value()),
            _ => None,
        },
        _ => None,
    })
}

/// The attributes of an item.
pub fn attrs_of(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::ExternCrate(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::ForeignMod(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::TraitAlias(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Union(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

fn item_name(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(i) => i.ident.to_string(),
        Item::Enum(i) => i.ident.to_string(),
        Item::Fn(i) => i.sig.ident.to_string(),
        Item::Static(i) => i.ident.to_string(),
        Item::Struct(i) => i.ident.to_string(),
        Item::Trait(i) => i.ident.to_string(),
        Item::TraitAlias(i) => i.ident.to_string(),
        Item::Type(i) => i.ident.to_string(),
        Item::Union(i) => i.ident.to_string(),
        _ => return None,
    })
}

/// The paths of a `use` tree, each with the name that it gives; without one for a glob.
pub fn leaves(tree: &UseTree, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, Option<String>)>) {
    match tree {
        UseTree::Path(p) => {
            path.push(p.ident.to_string());
            leaves(&p.tree, path, found);
            path.pop();
        }
        UseTree::Name(n) if n.ident == "self" => found.push((path.clone(), path.last().cloned())),
        UseTree::Name(n) => {
            path.push(n.ident.to_string());
            found.push((path.clone(), Some(n.ident.to_string())));
            path.pop();
        }
        UseTree::Rename(r) => {
            path.push(r.ident.to_string());
            let path_of = if r.ident == "self" { path[..path.len() - 1].to_vec() } else { path.clone() };
            found.push((path_of, Some(r.rename.to_string())));
            path.pop();
        }
        UseTree::Glob(_) => found.push((path.clone(), None)),
        UseTree::Group(g) => g.items.iter().for_each(|t| leaves(t, path, found)),
    }
}
