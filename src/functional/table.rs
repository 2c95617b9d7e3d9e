//! The table of functions: signature text, overloads in order, and what runs. Docs, call by name, the generated code and later
//! Python read it.
//!
//! A function that is one op stands in the declaration of that op; one that calls several is a row of `functions!` beside its code.

use super::definition::{FnBody, FnCode, FnDef, RustForm};
use super::rows::{Does, Row};
use super::{
    algebra, argument_forms, arrange, attend, by_place, channels, choose, class_losses, complex, conv, count, create,
    ctc, derived, differences, distinct, drops, einsum, factory_forms, forms, gates, gather, generated, gradient, grid,
    histograms, image, index, inplace, layout, losses, nn, pieces, pools, products, pytorch, quantize, random,
    recurrent, reduce, select, shape, signal, sort, special, statistics, values, views,
};
use crate::error::{Error, Result};
use crate::intern::FixedHasher;
use crate::ops::{self, FnReturn, FnSig, LibraryId, Op, ParamKind, hidden_overload};
use std::borrow::Cow;
use std::hash::Hasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, RwLock};

impl FnDef {
    /// A function of the table. Code that reads the arguments of a call by name is generated.
    fn of_row(row: &Row) -> Result<FnDef> {
        let sig = FnSig::parse(row.text)?;
        let (rust, body) = match row.does {
            Does::ByName(code) => (None, FnBody::Code(Arc::new(code))),
            Does::Value(code) => (None, FnBody::Value(Arc::new(code))),
            Does::Body { path, function } => {
                let method = function.is_empty() && sig.params.first().is_some_and(|p| p.kind == ParamKind::Tensor);
                let name = if function.is_empty() { sig.name.clone() } else { function.to_string() };
                let read = generated::BY_NAME.iter().flat_map(|all| all.iter()).find(|(text, _)| *text == row.text);
                let code: FnCode = match read {
                    Some((_, code)) => Arc::new(code),
                    None => Arc::new(|_| Err(Error::registry("its code is not made yet: run `cargo xtask codegen`"))),
                };
                (Some(RustForm { name, method, code: Some(path) }), FnBody::Code(code))
            }
        };
        let doc = row.doc.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n");
        Ok(FnDef { rust, subject: Cow::Borrowed(row.subject), ..FnDef::of(sig, body).doc(&doc) })
    }
}

struct Table {
    defs: Vec<FnDef>,
}

/// How many functions the program has registered.
static ADDED: AtomicU64 = AtomicU64::new(0);

impl Table {
    /// Adds a function, or an overload behind those of its name.
    fn add(&mut self, def: FnDef) -> Result<()> {
        let same = self.defs.iter().filter(|d| d.sig.name == def.sig.name);
        if let Some(first) = same.into_iter().find(|d| d.sig.hides(&def.sig)) {
            return Err(hidden_overload(&def.sig, &first.sig));
        }
        self.defs.push(def);
        Ok(())
    }
}

/// Functions that are not one op, by subject.
const ROWS: &[&[Row]] = &[
    create::FUNCTIONS,
    create::RANGES,
    create::LIKE,
    shape::FUNCTIONS,
    views::FUNCTIONS,
    views::BY_NAME,
    arrange::FUNCTIONS,
    pieces::FUNCTIONS,
    image::PADDING,
    image::BY_NAME,
    reduce::FUNCTIONS,
    statistics::FUNCTIONS,
    statistics::UNBIASED,
    histograms::FUNCTIONS,
    histograms::BY_NAME,
    differences::FUNCTIONS,
    gradient::FUNCTIONS,
    differences::PAIRS,
    differences::QUESTIONS,
    special::FUNCTIONS,
    select::FUNCTIONS,
    gather::FUNCTIONS,
    by_place::FUNCTIONS,
    by_place::BY_NAME,
    gather::BY_NAME,
    choose::FUNCTIONS,
    sort::FUNCTIONS,
    count::FUNCTIONS,
    distinct::BY_NAME,
    random::FUNCTIONS,
    random::LIKE,
    random::BY_NAME,
    drops::FUNCTIONS,
    signal::FUNCTIONS,
    signal::SYMMETRIC,
    index::BY_NAME,
    nn::PRODUCTS,
    complex::FUNCTIONS,
    complex::VALUES,
    quantize::FUNCTIONS,
    quantize::BY_NAME,
    quantize::VALUES,
    algebra::FUNCTIONS,
    algebra::BY_NAME,
    products::FUNCTIONS,
    products::BY_NAME,
    einsum::FUNCTIONS,
    nn::NETWORKS,
    channels::FUNCTIONS,
    gates::FUNCTIONS,
    conv::CONVOLUTIONS,
    conv::POOLING,
    conv::BY_NAME,
    pools::FUNCTIONS,
    image::FUNCTIONS,
    grid::FUNCTIONS,
    attend::FUNCTIONS,
    recurrent::FUNCTIONS,
    losses::FUNCTIONS,
    class_losses::FUNCTIONS,
    ctc::FUNCTIONS,
    inplace::FUNCTIONS,
    inplace::BY_NAME,
    random::IN_PLACE,
    layout::FUNCTIONS,
    layout::BY_NAME,
    forms::BY_NAME,
    values::VALUES,
    values::DTYPES,
];

/// Overloads of functions that are an op, beside the op's own.
const OVERLOADS: &[&[Row]] = &[
    argument_forms::BY_NAME,
    special::NUMBERS,
    argument_forms::CHOICE,
    argument_forms::SHAPES,
    factory_forms::BY_NAME,
    factory_forms::REDUCED,
    factory_forms::LIKE,
];

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(|| {
    let mut table = Table { defs: vec![] };
    let of = |rows: &[&[Row]]| rows.iter().flat_map(|rows| rows.iter()).map(FnDef::of_row).collect::<Result<Vec<_>>>();
    let filled = of(ROWS).and_then(|rows| {
        // A row stands for the op of its name, which gives its own function only where no row does.
        let named = |name: &str| derived::is_other_name(name) || rows.iter().any(|row| row.sig.name == name);
        let has_row = |op: &Op| op.functions.is_empty() && named(op.name());
        for op in ops::shown().into_iter().filter(|op| op.is_builtin() && !has_row(op)) {
            of_op(op)?.into_iter().try_for_each(|def| table.add(def))?;
        }
        rows.into_iter().chain(of(OVERLOADS)?).try_for_each(|def| table.add(def))?;
        derived::derived(&table.defs).into_iter().try_for_each(|def| table.add(def))
    });
    // The built-in table is checked by the first test that runs.
    if let Err(e) = filled {
        unreachable!("function table: {e}");
    }
    RwLock::new(table)
});

/// The functions that are an op, and their forms in place.
fn of_op(op: &Op) -> Result<Vec<FnDef>> {
    let mut defs = vec![];
    for sig in op.function_signatures()? {
        let on_tensor = sig.params.first().is_some_and(|p| p.kind == ParamKind::Tensor);
        // A number stands first where operators of Rust serve.
        let has_form = op.is_builtin() && !op.traits.by_name_only && (on_tensor || !takes_tensor(&sig));
        let rust = |name: &str| match name {
            _ if !has_form => None,
            // A word of Rust's own.
            "where" => Some(RustForm { name: "where_".into(), method: false, code: None }),
            name => Some(RustForm { name: name.into(), method: on_tensor, code: None }),
        };
        if op.has_in_place_form() && on_tensor {
            let sig = FnSig { name: format!("{}_", sig.name), returns: FnReturn::Tensor, ..sig.clone() };
            let doc = format!(
                "`{}` in place: the result is written over the first argument.",
                sig.name.trim_end_matches('_')
            );
            let form = rust(&sig.name);
            let def = FnDef::of(sig, FnBody::InPlace(op.name().to_string())).doc(&doc);
            defs.push(FnDef { subject: Cow::Borrowed("In place"), rust: form, ..def });
        }
        let form = rust(&sig.name);
        let def = FnDef::of(sig, FnBody::Op(op.name().to_string())).doc(&op.doc);
        defs.push(FnDef { subject: op.subject.clone(), rust: form, ..def });
    }
    Ok(defs)
}

/// Whether a parameter is a tensor; a list of them does not count.
fn takes_tensor(sig: &FnSig) -> bool {
    sig.params.iter().any(|p| p.kind == ParamKind::Tensor)
}

/// Returns the overloads of a name, in order: those of the table, else the op of that name, else a function that an op of another
/// crate declares. Those are called by the names that [`find`](ops::find) takes.
///
/// # Errors
/// There is no function and no op of that name, or several domains declare it.
pub fn overloads(name: &str) -> Result<Vec<FnDef>> {
    let t = TABLE.read().unwrap_or_else(|e| e.into_inner());
    let found: Vec<FnDef> = t.defs.iter().filter(|d| d.sig.name == name).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let of_libraries = of_libraries(&t.defs, name)?;
    let found = declared_elsewhere(name)?;
    match (of_libraries.first(), found.first()) {
        (Some(a), Some(b)) => return Err(several_domains(name, &a.sig.name, &b.sig.name)),
        (Some(_), None) => return Ok(of_libraries),
        (None, Some(_)) => return Ok(found),
        (None, None) => {}
    }
    if let Some(op) = ops::lookup(name)? {
        return Ok(vec![FnDef::of_op(op)]);
    }
    let ops = ops::shown();
    let names = t.defs.iter().map(|d| d.sig.name.as_str()).chain(ops.iter().map(|o| o.name()));
    let e = Error::registry(format!("unknown function '{name}'"));
    Err(match pytorch::instead(name) {
        Some(other) => e.help(other),
        None => match ops::nearest(name, names) {
            Some(n) => e.help(format!("did you mean '{n}'?")),
            None => e.help("`oflow ops` lists the ops"),
        },
    })
}

fn several_domains(name: &str, one: &str, other: &str) -> Error {
    Error::registry(format!("'{name}' is the name of functions of several domains"))
        .help(format!("write the domain too: '{one}' or '{other}'"))
}

/// The functions of libraries of that name: by `domain::name`, or by the bare name where one library has it.
fn of_libraries(defs: &[FnDef], name: &str) -> Result<Vec<FnDef>> {
    let full = name.replace("::", ".");
    let named = |d: &&FnDef| {
        let bare = d.sig.name.rsplit_once('.').map(|(_, bare)| bare);
        d.library.is_some() && (d.sig.name == full || bare == Some(full.as_str()))
    };
    let found: Vec<FnDef> = defs.iter().filter(named).cloned().collect();
    match found.iter().find(|d| d.sig.name != found[0].sig.name) {
        Some(other) => Err(several_domains(name, &found[0].sig.name, &other.sig.name)),
        None => Ok(found),
    }
}

/// The functions of that name that ops of other crates declare: by `domain.name`, or by the bare name where one domain has it.
fn declared_elsewhere(name: &str) -> Result<Vec<FnDef>> {
    let name = name.replace("::", ".");
    let (domain, bare) = name.rsplit_once('.').map_or((None, name.as_str()), |(domain, bare)| (Some(domain), bare));
    // A form in place has the name of the function and `_`.
    let base = bare.strip_suffix('_').unwrap_or(bare);
    let declares = |op: &&Op| {
        let names = |n: &str| n == bare || (n == base && op.has_in_place_form());
        let text = |text: &Cow<'static, str>| names(text.split('(').next().unwrap_or_default().trim());
        let own = op.functions.is_empty() && bare != base && op.sig.name == base && op.has_in_place_form();
        !op.is_builtin() && domain.is_none_or(|d| d == op.domain) && (op.functions.iter().any(text) || own)
    };
    let ops: Vec<&Op> = ops::shown().into_iter().filter(declares).collect();
    if let Some(other) = ops.iter().find(|op| op.domain != ops[0].domain) {
        return Err(Error::registry(format!("'{bare}' is the name of functions of several domains"))
            .help(format!("write the domain too: '{}.{bare}' or '{}.{bare}'", ops[0].domain, other.domain)));
    }
    let mut found = vec![];
    for op in ops {
        found.extend(of_op(op)?.into_iter().filter(|def| def.sig.name == format!("{}.{bare}", op.domain)));
    }
    Ok(found)
}

/// All functions, those of ops that other crates have registered included.
pub fn functions() -> Vec<FnDef> {
    let shown = |d: &&FnDef| !d.hidden;
    let mut all: Vec<FnDef> =
        TABLE.read().unwrap_or_else(|e| e.into_inner()).defs.iter().filter(shown).cloned().collect();
    for op in ops::shown().into_iter().filter(|op| !op.is_builtin()) {
        // The texts of an op were read when it was registered.
        all.extend(of_op(op).unwrap_or_default());
    }
    all
}

/// Adds a function, or an overload behind those of its name.
///
/// ```
/// use oflow::functional::{FnBody, FnDef, call, register_function};
/// use oflow::prelude::*;
/// let double = |b: &oflow::functional::Bound| Ok(vec![b.given(0)?.mul(2.0)?]);
/// register_function(FnDef::new("double(Tensor x) -> Tensor", FnBody::Code(std::sync::Arc::new(double)))?)?;
/// let y = call("double", &[ones([2], Device::Cpu)?.into()], &[])?;
/// assert_eq!(y[0].to_vec::<f32>()?, [2.0, 2.0]);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// If an earlier overload of the name takes all calls that this one takes.
pub fn register_function(def: FnDef) -> Result<()> {
    TABLE.write().unwrap_or_else(|e| e.into_inner()).add(def)?;
    ADDED.fetch_add(1, Ordering::Release);
    Ok(())
}

/// Puts functions of a library in the place of those of another build of it, and does what belongs to it: all of it, or nothing
/// changes. `taken`: names that functions of ops have.
///
/// # Errors
/// A name is taken, or an overload would not be reached; otherwise those of `and`.
pub(crate) fn exchange_functions<R>(
    old: Option<&Arc<LibraryId>>,
    new: Vec<FnDef>,
    taken: &[String],
    and: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let mut table = TABLE.write().unwrap_or_else(|e| e.into_inner());
    let stays = |d: &&FnDef| d.library.is_none() || d.library.as_ref() != old;
    let mut changed = Table { defs: table.defs.iter().filter(stays).cloned().collect() };
    let there = |name: &str| {
        Error::registry(format!("there is a function '{name}' already"))
            .help("choose another name: a function is replaced by a changed build of its library only")
    };
    for def in new {
        let name = &def.sig.name;
        if changed.defs.iter().any(|d| d.sig.name == *name && d.library != def.library) {
            return Err(there(name));
        }
        changed.add(def)?;
    }
    let mut of_libraries = changed.defs.iter().filter(|d| d.library.is_some());
    if let Some(def) = of_libraries.find(|d| taken.contains(&d.sig.name)) {
        return Err(there(&def.sig.name));
    }
    let done = and()?;
    let mut h = FixedHasher::default();
    for d in changed.defs.iter() {
        if let Some(library) = &d.library {
            let text = format!("{} {}", d.sig, library.hash);
            h.write(text.as_bytes());
            h.write_usize(text.len());
        }
    }
    ops::note_functions(h.finish());
    *table = changed;
    ADDED.fetch_add(1, Ordering::Release);
    Ok(done)
}

/// Returns a number that grows when a function or an op is registered: overloads that were read before may be out of date.
pub fn functions_generation() -> u64 {
    ops::generation() + ADDED.load(Ordering::Acquire)
}
