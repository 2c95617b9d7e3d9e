//! The structs that kernels of GPUs take as an argument are declared twice: in `kernels/src/cuda` (`#[repr(C)]`) and in the CUDA source.
//! This test compares them member by member. Two declarations with the same sequence of numbers and pointers have one layout.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use syn::{Attribute, Expr, Fields, Item, ItemStruct, Lit, Meta, Type};

/// Sizes of generic parameters in the comparison: of `template <int N>` and of `const N: usize`.
const SAMPLES: [(&str, usize); 4] = [("N", 3), ("K", 2), ("LIMIT", 5), ("FIRST", 6)];

/// A pointer is compared as the number that an address is.
const POINTER: &str = "u64";

type Sizes = BTreeMap<String, usize>;

fn folder(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels").join(of)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Sums of names and numbers, as lengths of arrays are.
fn length(text: &str, sizes: &Sizes) -> Result<usize, String> {
    let term = |t: &str| {
        let t = t.trim();
        t.parse().ok().or_else(|| sizes.get(t).copied()).ok_or_else(|| format!("the length '{t}' is not known"))
    };
    text.split('+').map(term).sum()
}

/// The docs of an item as one line.
fn doc(attributes: &[Attribute]) -> String {
    let line = |a: &Attribute| match &a.meta {
        Meta::NameValue(m) if m.path.is_ident("doc") => match &m.value {
            Expr::Lit(l) => match &l.lit {
                Lit::Str(s) => Some(s.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    attributes.iter().filter_map(line).collect::<Vec<_>>().join(" ").trim().to_string()
}

fn is_c(s: &ItemStruct) -> bool {
    s.attrs.iter().any(|a| a.path().is_ident("repr") && matches!(&a.meta, Meta::List(l) if l.tokens.to_string() == "C"))
}

/// Structs and lengths of the files of Rust.
#[derive(Default)]
struct Rust {
    structs: BTreeMap<String, Vec<(String, ItemStruct)>>,
    sizes: Sizes,
}

impl Rust {
    /// Adds the numbers and pointers of a type to `to`. Structs of the same file come first.
    fn flatten(&self, of: &Type, file: &str, sizes: &Sizes, to: &mut Vec<String>) -> Result<(), String> {
        match of {
            Type::Ptr(_) => to.push(POINTER.into()),
            Type::Array(a) => {
                let text = &a.len;
                let count = length(&quoted(text), sizes)?;
                (0..count).try_for_each(|_| self.flatten(&a.elem, file, sizes, to))?;
            }
            Type::Path(p) => {
                let name = p.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
                let all = self.structs.get(&name).map(Vec::as_slice).unwrap_or_default();
                match all.iter().find(|(at, _)| at == file).or(all.first()) {
                    Some((at, s)) => self.members(s, at, to)?,
                    None => to.push(number(&name)?),
                }
            }
            _ => return Err("a member is neither a number, nor a pointer, nor an array".into()),
        }
        Ok(())
    }
    fn members(&self, s: &ItemStruct, file: &str, to: &mut Vec<String>) -> Result<(), String> {
        match &s.fields {
            Fields::Unit => Ok(()),
            fields => fields.iter().try_for_each(|f| self.flatten(&f.ty, file, &self.sizes, to)),
        }
    }
}

fn quoted(of: &Expr) -> String {
    match of {
        Expr::Lit(l) => match &l.lit {
            Lit::Int(i) => i.base10_digits().to_string(),
            _ => String::new(),
        },
        Expr::Path(p) => p.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default(),
        _ => String::new(),
    }
}

/// A type of numbers by one name in both languages; `A` and `T` are the type of a kernel's arithmetic.
fn number(name: &str) -> Result<String, String> {
    match name {
        "i32" | "i64" | "u32" | "u64" | "f32" | "f64" => Ok(name.into()),
        "AtomicU32" => Ok("u32".into()),
        "A" | "T" => Ok("arithmetic".into()),
        other => Err(format!("'{other}' is not a type of numbers")),
    }
}

/// The body of `struct NAME` in a source, without comments.
fn body(text: &str, name: &str) -> Option<String> {
    let start = text.find(&format!("struct {name} {{"))?;
    let (_, after) = text[start..].split_once('{')?;
    let (body, _) = after.split_once("};").or_else(|| after.split_once("}"))?;
    Some(body.lines().map(|l| l.split("//").next().unwrap_or(l)).collect::<Vec<_>>().join(" "))
}

/// Adds the numbers and pointers of a struct of CUDA to `to`. `texts` are the source and the headers.
fn of_cuda(texts: &[String], name: &str, sizes: &Sizes, to: &mut Vec<String>) -> Result<(), String> {
    let body = texts.iter().find_map(|t| body(t, name)).ok_or_else(|| format!("no CUDA source declares '{name}'"))?;
    for member in body.split(';').map(str::trim).filter(|m| !m.is_empty()) {
        let member = member.trim_start_matches("const ");
        let (kind, names) = member.split_once(' ').ok_or_else(|| format!("'{member}' is not a member"))?;
        for declared in names.split(',') {
            let mut parts = declared.split('[');
            let first = parts.next().unwrap_or_default();
            let pointer = kind.ends_with('*') || first.contains('*');
            let count = parts.try_fold(1, |all, part| {
                Ok::<_, String>(all * length(part.trim_end().trim_end_matches(']'), sizes)?)
            })?;
            for _ in 0..count {
                match kind {
                    _ if pointer => to.push(POINTER.into()),
                    k if k.starts_with("of_") => of_cuda(texts, k, sizes, to)?,
                    k => to.push(number(k)?),
                }
            }
        }
    }
    Ok(())
}

/// `#define NAME 8` of a source.
fn defined(text: &str) -> Sizes {
    let line = |l: &str| {
        let mut words = l.strip_prefix("#define ")?.split_whitespace();
        Some((words.next()?.to_string(), words.next()?.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

fn sources(of: &str, ending: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = fs::read_dir(folder(of))
        .expect("the folder is there")
        .map(|e| e.expect("it can be read").path())
        .filter(|p| p.extension().is_some_and(|e| e == ending))
        .map(|p| (p.file_stem().unwrap_or_default().to_string_lossy().into_owned(), read(&p)))
        .collect();
    all.sort();
    all
}

#[test]
fn structs_of_launches_are_alike_in_rust_and_in_cuda() {
    let samples: Sizes = SAMPLES.iter().map(|(name, n)| ((*name).to_string(), *n)).collect();
    let mut rust = Rust { sizes: samples.clone(), ..Rust::default() };
    for (file, text) in sources("src/cuda", "rs") {
        for item in syn::parse_file(&text).unwrap_or_else(|e| panic!("{file}: {e}")).items {
            match item {
                Item::Struct(s) if is_c(&s) => {
                    rust.structs.entry(s.ident.to_string()).or_default().push((file.clone(), s))
                }
                Item::Const(c) => {
                    if let Ok(n) = quoted(&c.expr).parse() {
                        rust.sizes.insert(c.ident.to_string(), n);
                    }
                }
                _ => {}
            }
        }
    }
    let headers: Vec<String> = sources("cuda", "cuh").into_iter().map(|(_, text)| text).collect();
    let programs: BTreeMap<String, String> = sources("cuda", "cu").into_iter().collect();
    let (mut compared, mut faults) = (0, vec![]);
    for (name, (file, s)) in rust.structs.iter().flat_map(|(name, all)| all.iter().map(move |s| (name, s))) {
        // "`of_shape` of the prelude.", "`of_attention` of attention_plain.cu."
        let said = doc(&s.attrs);
        let Some(other) = said.strip_prefix('`').and_then(|t| t.split('`').next()) else {
            faults.push(format!("{file}.rs: the doc of {name} does not begin with the `name` of its struct in CUDA"));
            continue;
        };
        // Of a library: no kernel takes it.
        if other.starts_with("cudnn") {
            continue;
        }
        let program =
            programs.iter().find(|(p, _)| said.contains(&format!("{p}.cu"))).or_else(|| programs.get_key_value(file));
        let texts: Vec<String> = program.map(|(_, t)| t.clone()).into_iter().chain(headers.iter().cloned()).collect();
        let mut sizes = samples.clone();
        texts.iter().for_each(|t| sizes.extend(defined(t)));
        let (mut here, mut there) = (vec![], vec![]);
        let both = rust.members(s, file, &mut here).and_then(|()| of_cuda(&texts, other, &sizes, &mut there));
        match both {
            Err(e) => faults.push(format!("{file}.rs: {name}, {other}: {e}")),
            Ok(()) if here != there => {
                let at = here.iter().zip(&there).take_while(|(a, b)| a == b).count();
                faults.push(format!(
                    "{file}.rs: {name} has {} members, {other} {}; number {at} is {:?} here and {:?} there",
                    here.len(),
                    there.len(),
                    here.get(at),
                    there.get(at)
                ));
            }
            Ok(()) => compared += 1,
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(compared >= 15, "only {compared} structs were compared");
}
