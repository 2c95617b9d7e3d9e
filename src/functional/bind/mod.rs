//! The argument binder: which value of a call is the argument of which parameter, for every language that calls functions.
//!
//! [`bind`] matches the values of one call to the parameters of one signature; [`first_fit`] chooses among overloads. Both are
//! the same for calls by name in Rust, for Python and for `oflow run`: each is a [`Language`], which says what its values are
//! and how they become arguments. Faults are a [`Misfit`], whose words are in one table.
//!
//! The order in a call: values by position are counted; each keyword finds its parameter; a required parameter without a value
//! is a fault; only then are values converted, in the order of the parameters. What is left out gets its default.
//!
//! [`Arg`] is an argument as functions take it, [`Bound`] the arguments of one call with their typed reads.

mod arg;
mod bound;

pub use arg::Arg;
pub use bound::Bound;

use crate::ops::{FnParam, FnSig};
use smallvec::SmallVec;
use std::borrow::Cow;

/// The values of one call: those by position first, then those by keyword.
#[derive(Clone, Copy)]
pub struct Given<'a, V> {
    values: &'a [V],
    keywords: &'a [&'a str],
}

impl<'a, V: Copy> Given<'a, V> {
    /// The values of a call; the last of them have these keywords.
    ///
    /// # Panics
    /// There are more keywords than values.
    pub fn new(values: &'a [V], keywords: &'a [&'a str]) -> Given<'a, V> {
        assert!(keywords.len() <= values.len(), "{} keywords for {} values", keywords.len(), values.len());
        Given { values, keywords }
    }
    /// Number of values by position.
    pub fn positional(&self) -> usize {
        self.values.len() - self.keywords.len()
    }
    /// The values with their keywords; those by position have none.
    pub fn values(&self) -> impl Iterator<Item = (Option<&'a str>, V)> {
        let (keywords, positional) = (self.keywords, self.positional());
        self.values.iter().enumerate().map(move |(i, v)| (i.checked_sub(positional).map(|k| keywords[k]), *v))
    }
    /// The call as text: `relu(f32[2], inplace=true)`.
    pub fn text(&self, function: &str, describe: impl Fn(V) -> String) -> String {
        let one = |(keyword, v): (Option<&str>, V)| match keyword {
            Some(keyword) => format!("{keyword}={}", describe(v)),
            None => describe(v),
        };
        format!("{function}({})", self.values().map(one).collect::<Vec<_>>().join(", "))
    }
}

/// Parameters that a call may give by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByPosition {
    /// How many parameters, the first ones.
    pub count: usize,
    /// Whether the last of them takes all further values as a list: `x.reshape(2, 3)`.
    pub spreads: bool,
}

impl ByPosition {
    /// All parameters of a signature before `*`.
    pub fn of(sig: &FnSig) -> ByPosition {
        ByPosition { count: sig.params.iter().take_while(|p| !p.keyword_only).count(), spreads: false }
    }
}

/// Why a value is not the argument of a parameter.
#[derive(Debug)]
pub enum Unfit<E> {
    /// The value has another type: another overload may take it.
    Type,
    /// The same, in words of its own.
    Text(String),
    /// An error that ends the call: no other overload is tried.
    Raise(E),
}

impl<E> Unfit<E> {
    /// The other one, where this is a type without words.
    #[must_use]
    pub fn or_type(self, other: Unfit<E>) -> Unfit<E> {
        if let Unfit::Type = self { other } else { self }
    }
}

impl<E> From<E> for Unfit<E> {
    fn from(e: E) -> Unfit<E> {
        Unfit::Raise(e)
    }
}

/// A language that calls functions: its values, how they become arguments, and its words.
pub trait Language {
    /// A value as the language has it.
    type Value: Copy;
    /// A converted argument.
    type Taken;
    /// An error that ends a call at once, whatever other overloads take.
    type Error;
    /// The words for a misfit.
    const WORDS: Words;

    /// Name of a parameter in the language.
    fn name<'p>(&self, p: &'p FnParam) -> Cow<'p, str> {
        Cow::Borrowed(&p.name)
    }
    /// Position of the parameter that a keyword names.
    fn named(&self, sig: &FnSig, keyword: &str) -> Option<usize> {
        sig.params.iter().position(|p| p.name == keyword)
    }
    /// Whether the value stands for an argument that is not given.
    fn is_absent(&self, p: &FnParam, value: Self::Value) -> bool;
    /// A value as the argument of the parameter; or several by position as its list, where [`ByPosition::spreads`].
    ///
    /// # Errors
    /// They are none.
    fn convert(&mut self, p: &FnParam, passed: &[Self::Value]) -> Result<Self::Taken, Unfit<Self::Error>>;
    /// Takes a keyword that names no parameter; whether it is one of the language.
    ///
    /// # Errors
    /// It is, and the value does not fit.
    fn other_keyword(&mut self, _keyword: &str, _value: Self::Value) -> Result<bool, Unfit<Self::Error>> {
        Ok(false)
    }
    /// Whether the language itself gives the parameter at position `i` where a call does not.
    fn supplies(&self, _i: usize, _p: &FnParam) -> bool {
        false
    }
    /// Argument of the parameter at position `i`, which the call does not give.
    ///
    /// # Errors
    /// The language supplies it, and what the call gives for that does not fit.
    fn left_out(&mut self, i: usize, p: &FnParam) -> Result<Option<Self::Taken>, Unfit<Self::Error>>;
    /// The type that a parameter has, in the language's words.
    fn type_of(&self, p: &FnParam) -> String;
    /// Text of a value in messages, in the language's words.
    fn describe(&self, value: Self::Value) -> String;
}

/// Words for misfits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// Of oflow itself.
    Plain,
    /// Of Python's own `TypeError`, and of PyTorch.
    Python,
}

/// Why a call does not fit a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// More values by position than the signature takes.
    TooMany {
        /// How many it takes.
        takes: usize,
    },
    /// No parameter has the name of the keyword.
    Unknown {
        /// Position among the keywords.
        keyword: usize,
    },
    /// The keyword names a parameter that has a value already.
    Twice {
        /// Position among the keywords.
        keyword: usize,
        /// Whether the other value is one by position.
        by_position: bool,
    },
    /// A required parameter has no value.
    Missing {
        /// Position of the parameter.
        param: usize,
    },
    /// A value is of another type than its parameter.
    Type {
        /// Position of the parameter.
        param: usize,
        /// Position among all values.
        value: usize,
    },
    /// A fault with words of its own.
    Text(String),
}

impl Misfit {
    /// The misfit of a call in the words of its language.
    pub fn text<L: Language>(&self, language: &L, sig: &FnSig, given: &Given<'_, L::Value>) -> String {
        let name = |param: usize| language.name(&sig.params[param]);
        match (L::WORDS, self) {
            (_, Misfit::Text(text)) => text.clone(),
            (Words::Plain, Misfit::TooMany { takes }) => {
                format!("takes {takes} positional arguments, {} given", given.positional())
            }
            (Words::Python, Misfit::TooMany { takes }) => {
                let s = if *takes == 1 { "" } else { "s" };
                format!("takes {takes} positional argument{s} but {} were given", given.positional())
            }
            (Words::Plain, Misfit::Unknown { keyword }) => format!("has no parameter '{}'", given.keywords[*keyword]),
            (Words::Python, Misfit::Unknown { keyword }) => {
                format!("got an unexpected keyword argument '{}'", given.keywords[*keyword])
            }
            (Words::Plain, Misfit::Twice { keyword, by_position }) => {
                let how = if *by_position { ": by its place and by its name" } else { "" };
                format!("'{}' is given twice{how}", given.keywords[*keyword])
            }
            (Words::Python, Misfit::Twice { keyword, .. }) => {
                format!("got multiple values for argument '{}'", given.keywords[*keyword])
            }
            (Words::Plain, Misfit::Missing { param }) => format!("'{}' is missing", name(*param)),
            (Words::Python, Misfit::Missing { param }) => format!("missing a required argument: '{}'", name(*param)),
            (words, Misfit::Type { param, value }) => {
                let (name, p) = (name(*param), &sig.params[*param]);
                let (wanted, found) = (language.type_of(p), language.describe(given.values[*value]));
                match words {
                    Words::Plain => format!("'{name}' must be {wanted}, not {found}"),
                    Words::Python if *value < given.positional() => {
                        format!("argument '{name}' (position {}) must be {wanted}, not {found}", value + 1)
                    }
                    Words::Python => format!("argument '{name}' must be {wanted}, not {found}"),
                }
            }
        }
    }
}

/// Failure of a binding.
#[derive(Debug)]
pub enum Refused<E> {
    /// This signature does not take the call; another may.
    Misfit(Misfit),
    /// An error that ends the call.
    Raised(E),
}

impl<E> Refused<E> {
    /// The refusal of a value, which is not the argument of a parameter; both by position.
    pub fn of(unfit: Unfit<E>, param: usize, value: usize) -> Refused<E> {
        match unfit {
            Unfit::Type => Refused::Misfit(Misfit::Type { param, value }),
            Unfit::Text(text) => Refused::Misfit(Misfit::Text(text)),
            Unfit::Raise(e) => Refused::Raised(e),
        }
    }
}

/// Pairs of a parameter and the value that a keyword gives to it, by their positions.
type Named = SmallVec<[(usize, usize); 8]>;

/// The parameters that the keywords of a call name.
fn keywords<L: Language>(
    language: &mut L,
    sig: &FnSig,
    by_position: usize,
    given: &Given<'_, L::Value>,
) -> Result<Named, Refused<L::Error>> {
    let positional = given.positional();
    let mut named = Named::new();
    for (k, keyword) in given.keywords.iter().enumerate() {
        let Some(param) = language.named(sig, keyword) else {
            match language.other_keyword(keyword, given.values[positional + k]) {
                Ok(true) => continue,
                Ok(false) | Err(Unfit::Type) => return Err(Refused::Misfit(Misfit::Unknown { keyword: k })),
                Err(Unfit::Text(text)) => return Err(Refused::Misfit(Misfit::Text(text))),
                Err(Unfit::Raise(e)) => return Err(Refused::Raised(e)),
            }
        };
        if param < by_position || named.iter().any(|(p, _)| *p == param) {
            return Err(Refused::Misfit(Misfit::Twice { keyword: k, by_position: param < by_position }));
        }
        named.push((param, positional + k));
    }
    Ok(named)
}

/// Matches the values of a call to the parameters of a signature: one argument each, none where an optional one is left out.
///
/// # Errors
/// The call does not fit; or a conversion has failed for good.
pub fn bind<L: Language>(
    language: &mut L,
    sig: &FnSig,
    takes: ByPosition,
    given: &Given<'_, L::Value>,
) -> Result<Vec<Option<L::Taken>>, Refused<L::Error>> {
    let (positional, values) = (given.positional(), given.values);
    if positional > takes.count && !takes.spreads {
        return Err(Refused::Misfit(Misfit::TooMany { takes: takes.count }));
    }
    let by_position = positional.min(takes.count);
    let named = match given.keywords.is_empty() {
        true => Named::new(),
        false => keywords(language, sig, by_position, given)?,
    };
    let by_name = |i: usize| named.iter().find(|(p, _)| *p == i).map(|(_, value)| *value);
    for (i, p) in sig.params.iter().enumerate().skip(by_position) {
        if p.is_required() && by_name(i).is_none() && !language.supplies(i, p) {
            return Err(Refused::Misfit(Misfit::Missing { param: i }));
        }
    }
    let mut args = Vec::with_capacity(sig.params.len());
    for (i, p) in sig.params.iter().enumerate() {
        let passed = if positional > takes.count && i + 1 == takes.count {
            Some((i, &values[i..positional]))
        } else {
            let value = if i < by_position { Some(i) } else { by_name(i) };
            value.filter(|at| !language.is_absent(p, values[*at])).map(|at| (at, &values[at..=at]))
        };
        args.push(match passed {
            Some((at, passed)) => Some(language.convert(p, passed).map_err(|unfit| {
                let wrong = passed.iter().position(|v| language.convert(p, std::slice::from_ref(v)).is_err());
                Refused::of(unfit, i, at + wrong.unwrap_or(0))
            })?),
            None => match language.left_out(i, p).map_err(|unfit| Refused::of(unfit, i, 0))? {
                None if p.is_required() => return Err(Refused::Misfit(Misfit::Missing { param: i })),
                argument => argument,
            },
        });
    }
    Ok(args)
}

/// Why no overload takes a call: a misfit for each, in their order.
pub type Misfits = SmallVec<[Misfit; 4]>;

/// Chooses the first of several overloads that takes a call. The inner result has the overload with what `bind` made, or the
/// misfit of each overload.
///
/// # Errors
/// A conversion has failed for good.
pub fn first_fit<'d, D, T, E>(
    overloads: &'d [D],
    mut bind: impl FnMut(&'d D) -> Result<T, Refused<E>>,
) -> Result<Result<(&'d D, T), Misfits>, E> {
    let mut misfits = Misfits::new();
    for overload in overloads {
        match bind(overload) {
            Ok(bound) => return Ok(Ok((overload, bound))),
            Err(Refused::Misfit(misfit)) => misfits.push(misfit),
            Err(Refused::Raised(e)) => return Err(e),
        }
    }
    Ok(Err(misfits))
}

#[cfg(test)]
mod tests;
