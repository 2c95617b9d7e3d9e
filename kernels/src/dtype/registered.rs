//! Dtypes that programs register: a name, the built-in dtype that an element is stored as, and parameters.
//!
//! The registry only grows. Readers take no lock: an entry never moves and is written once. The lock is held to add one.

use super::{Builtin, DType, STORAGE_BITS};
use crate::{KernelError, Result, Scalar};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The declaration of a dtype that oflow does not know: quantised integers of another kind, packed integers.
///
/// Its elements have the size of the built-in dtype that they are stored as. Tensors of it are made from bytes, moved, sliced,
/// sharded, boxed between S and B, saved and printed; ops that compute with elements refuse it, and it is never P. The program
/// gives it arithmetic by ops of its own.
///
/// Name and parameters are the identity: registering both again gives the same dtype, other parameters give another dtype of
/// the same family. All dtypes of a family have the same storage and the same parameters by name and kind; the
/// [`decoder`](Registered::to_f64) of the first registration stays. Every rank registers the families that it uses, in any order.
///
/// ```
/// use oflow_kernels::{Builtin, DType, Registered};
/// let q = DType::register(Registered::new("qint8", Builtin::I8).parameter("scale", 0.5).parameter("zero", 3))?;
/// assert_eq!(q.to_string(), "qint8(scale=0.5, zero=3)");
/// assert_eq!("qint8(scale=0.5, zero=3)".parse::<DType>()?, q);
/// assert_eq!((q.size(), q.storage()), (1, Builtin::I8));
/// assert_eq!(q.parameter("scale").map(|s| s.to_f64()), Some(0.5));
/// # Ok::<(), oflow_kernels::KernelError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Registered {
    name: String,
    storage: Builtin,
    parameters: Vec<(String, Scalar)>,
    to_f64: Option<ToF64>,
}

/// Returns the number that an element stands for: from the dtype, for its parameters, and the stored element.
type ToF64 = fn(DType, Scalar) -> f64;

impl Registered {
    /// A dtype of that name whose elements are stored as elements of `storage`.
    pub fn new(name: impl Into<String>, storage: Builtin) -> Registered {
        Registered { name: name.into(), storage, parameters: vec![], to_f64: None }
    }
    /// Adds a parameter. The order counts: it is that of the text.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<Scalar>) -> Registered {
        self.parameters.push((name.into(), value.into()));
        self
    }
    /// Gives the number that a stored element stands for. It is used to print and read values. Without it the stored numbers
    /// are printed.
    #[must_use]
    pub fn to_f64(mut self, f: ToF64) -> Registered {
        self.to_f64 = Some(f);
        self
    }

    /// `name(parameter=value, …)`, without brackets where there is no parameter.
    fn text(&self) -> String {
        let mut text = self.name.clone();
        for (i, (name, value)) in self.parameters.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{name}={value}", if i == 0 { "(" } else { ", " });
        }
        if !self.parameters.is_empty() {
            text.push(')');
        }
        text
    }

    fn check(&self) -> Result<()> {
        let refused = |why: String| Err(KernelError::new(format!("dtype '{}' cannot be registered: {why}", self.name)));
        let identifier = |s: &str| {
            s.starts_with(|c: char| c.is_ascii_lowercase())
                && s.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        if let Some(bad) =
            std::iter::once(&self.name).chain(self.parameters.iter().map(|p| &p.0)).find(|n| !identifier(n))
        {
            return refused(format!(
                "'{bad}' is not a name of lower-case letters, digits and '_' that starts with a letter"
            ));
        }
        if DType::BUILTIN.iter().any(|d| d.name() == self.name) {
            return refused("it is built in".into());
        }
        if self.storage == Builtin::Bool {
            return refused("elements cannot be stored as bool, which is 0 or 1; give an integer or a float".into());
        }
        super::quantised::check(&self.name, &self.parameters)?;
        for (i, (name, value)) in self.parameters.iter().enumerate() {
            if self.parameters[..i].iter().any(|p| p.0 == *name) {
                return refused(format!("it has two parameters '{name}'"));
            }
            if !value.to_f64().is_finite() {
                return refused(format!("parameter '{name}' is {value}"));
            }
        }
        Ok(())
    }

    /// Whether both can be dtypes of one family.
    fn same_family(&self, other: &Registered) -> bool {
        let kinds = |r: &Registered| r.parameters.iter().map(|p| (p.0.clone(), p.1.kind())).collect::<Vec<_>>();
        self.storage == other.storage && kinds(self) == kinds(other)
    }
}

/// A registered dtype.
pub(super) struct Entry {
    declared: Registered,
    text: String,
    fingerprint: u64,
}

impl Entry {
    pub(super) fn text(&self) -> &str {
        &self.text
    }
    pub(super) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

/// FNV-1a of a text, with a bit that no built-in dtype has.
fn fingerprint_of(text: &str) -> u64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    hash | 1 << 63
}

/// Entries of a chunk of the table.
const CHUNK: usize = 256;
/// Dtypes that one process can register.
const MOST: usize = CHUNK * CHUNK;

type Chunk = Box<[OnceLock<Entry>]>;
/// The entries by number, in chunks that are made when the first of their entries is.
static TABLE: [OnceLock<Chunk>; CHUNK] = [const { OnceLock::new() }; CHUNK];

fn slot(number: usize) -> &'static OnceLock<Entry> {
    &TABLE[number / CHUNK].get_or_init(|| (0..CHUNK).map(|_| OnceLock::new()).collect())[number % CHUNK]
}

/// Names that are looked up to register or parse a dtype.
struct Names {
    /// Every registered dtype by its text.
    texts: BTreeMap<String, DType>,
    /// The first dtype of each family by its name.
    families: BTreeMap<String, DType>,
    fingerprints: BTreeMap<u64, DType>,
}
static NAMES: Mutex<Names> =
    Mutex::new(Names { texts: BTreeMap::new(), families: BTreeMap::new(), fingerprints: BTreeMap::new() });

fn names() -> MutexGuard<'static, Names> {
    // Nothing panics between two changes.
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if names.families.is_empty() {
        for declared in super::quantised::first() {
            // They are legal, and the first of their names.
            let _ = add(&mut names, declared);
        }
    }
    names
}

/// Adds a dtype whose declaration is legal, or finds it.
fn add(names: &mut Names, declared: Registered) -> Result<DType> {
    let text = declared.text();
    if let Some(first) = names.families.get(&declared.name) {
        let first = &entry(*first).declared;
        if !first.same_family(&declared) {
            return Err(KernelError::new(format!(
                "dtype {text} stored as {} was registered as {} stored as {}: a family has one storage and the same \
                 parameters, by name and kind",
                declared.storage,
                first.text(),
                first.storage
            )));
        }
    }
    if let Some(known) = names.texts.get(&text) {
        return Ok(*known);
    }
    let number = names.texts.len();
    if number == MOST {
        return Err(KernelError::new(format!(
            "{MOST} dtypes are registered, no more can be: keep parameters that change all the time in tensors"
        )));
    }
    let fingerprint = fingerprint_of(&text);
    if let Some(other) = names.fingerprints.get(&fingerprint) {
        return Err(KernelError::new(format!("{text} has the fingerprint of {other}: choose another name")));
    }
    let dtype = DType(((Builtin::ALL.len() + number) as u32) << STORAGE_BITS | declared.storage as u32);
    let family = declared.name.clone();
    let decoder = names.families.get(&family).map_or(declared.to_f64, |d| entry(*d).declared.to_f64);
    let declared = Registered { to_f64: decoder, ..declared };
    slot(number).get_or_init(|| Entry { declared, text: text.clone(), fingerprint });
    names.fingerprints.insert(fingerprint, dtype);
    names.families.entry(family).or_insert(dtype);
    names.texts.insert(text, dtype);
    Ok(dtype)
}

/// The registered dtype with that fingerprint.
pub(super) fn of_fingerprint(fingerprint: u64) -> Option<DType> {
    names().fingerprints.get(&fingerprint).copied()
}

/// The entry of a registered dtype.
pub(super) fn entry(dtype: DType) -> &'static Entry {
    let number = dtype.index() - Builtin::ALL.len();
    slot(number).get().expect("`register` writes the entry before it returns the dtype")
}

impl DType {
    /// Registers a dtype, or returns the one that has this name and these parameters already.
    ///
    /// # Errors
    /// When the declaration is not legal; when its family is registered with another storage or other parameters; when the
    /// process has registered 65,536 dtypes.
    pub fn register(declared: Registered) -> Result<DType> {
        declared.check()?;
        add(&mut names(), declared)
    }

    /// The name without parameters: `qint8` of `qint8(scale=0.5, zero=3)`.
    pub fn family(self) -> &'static str {
        match self.builtin() {
            Some(b) => b.name(),
            None => &entry(self).declared.name,
        }
    }

    /// The parameters of a registered dtype, in declared order.
    pub fn parameters(self) -> &'static [(String, Scalar)] {
        match self.builtin() {
            Some(_) => &[],
            None => &entry(self).declared.parameters,
        }
    }

    /// The parameter of that name.
    pub fn parameter(self, name: &str) -> Option<Scalar> {
        self.parameters().iter().find(|p| p.0 == name).map(|p| p.1)
    }

    /// The number that a stored element stands for: of a built-in dtype itself, of a registered one what its declaration says;
    /// none where that says nothing.
    pub fn number(self, stored: Scalar) -> Option<Scalar> {
        match self.builtin() {
            Some(_) => Some(stored),
            None => entry(self).declared.to_f64.map(|f| Scalar::Float(f(self, stored))),
        }
    }
}

/// The registered dtype with that text. A text that names a registered family with its parameters registers the dtype: a
/// checkpoint or another rank may have parameters that this process has not met.
pub(super) fn parse(text: &str) -> Result<DType> {
    let unknown = || {
        let names = names();
        let known: Vec<&str> =
            DType::BUILTIN.iter().map(|d| d.name()).chain(names.families.keys().map(|n| &**n)).collect();
        KernelError::new(format!(
            "unknown dtype '{text}'; known: {}; a program adds others with `DType::register`",
            known.join(", ")
        ))
    };
    let (family, inside) = match text.split_once('(') {
        None => (text, ""),
        Some((family, rest)) => (family, rest.strip_suffix(')').ok_or_else(unknown)?),
    };
    let first = names().families.get(family).copied();
    let first = first.ok_or_else(unknown)?;
    let mut declared = Registered { parameters: vec![], ..entry(first).declared.clone() };
    for part in inside.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let (name, value) = part.split_once('=').ok_or_else(unknown)?;
        let value = match value {
            "true" => Some(Scalar::Bool(true)),
            "false" => Some(Scalar::Bool(false)),
            v => v.parse().map(Scalar::Int).or_else(|_| v.parse().map(Scalar::Float)).ok(),
        };
        declared = declared.parameter(name, value.ok_or_else(unknown)?);
    }
    DType::register(declared)
}
