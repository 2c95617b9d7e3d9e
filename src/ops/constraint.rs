//! Types that an input of an op accepts, as data: a set of element types and a set of numbers of dims.
//!
//! ```text
//! float            a class of element types
//! f32|f64|bool     element types and classes
//! float[2]         with two dims
//! any[1..=3]       with one to three dims
//! num[2..]         with two dims or more
//! [0|2]            real numbers and bool, with no dims or two
//! ```

use crate::error::{Error, Result};
use oflow_kernels::{DType, DTypeKind};
use smallvec::{SmallVec, smallvec};
use std::fmt;

/// A class of element types, by the word that names it in declarations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DTypeClass {
    /// Real numbers and bool: what an input accepts that names no class.
    Real,
    /// Real numbers, bool and complex numbers.
    Number,
    /// Complex numbers: c64 and c128.
    Complex,
    /// Every built-in dtype, the 8-bit floats too: for casts.
    Builtin,
    /// Every dtype, registered ones too: for ops that move elements and look at none, and for ops of registered dtypes.
    Any,
    /// f16, bf16, f32, f64.
    Float,
    /// Integers (not bool).
    Int,
    /// Integers and floats.
    Num,
    /// The element type bool alone.
    Bool,
}

impl DTypeClass {
    const ALL: [DTypeClass; 9] = [
        DTypeClass::Real,
        DTypeClass::Number,
        DTypeClass::Complex,
        DTypeClass::Builtin,
        DTypeClass::Any,
        DTypeClass::Float,
        DTypeClass::Int,
        DTypeClass::Num,
        DTypeClass::Bool,
    ];

    /// Whether the class has that dtype.
    pub fn contains(self, d: DType) -> bool {
        match self {
            DTypeClass::Real => d.is_real(),
            DTypeClass::Number => d.is_real() || d.is_complex(),
            DTypeClass::Complex => d.is_complex(),
            DTypeClass::Builtin => d.is_builtin(),
            DTypeClass::Any => true,
            DTypeClass::Float => d.is_float(),
            DTypeClass::Int => d.kind() == DTypeKind::Int,
            DTypeClass::Num => matches!(d.kind(), DTypeKind::Int | DTypeKind::Float),
            DTypeClass::Bool => d == DType::Bool,
        }
    }
    /// The word used in declarations.
    pub fn name(self) -> &'static str {
        match self {
            DTypeClass::Real => "real",
            DTypeClass::Number => "number",
            DTypeClass::Complex => "complex",
            DTypeClass::Builtin => "built-in",
            DTypeClass::Any => "any",
            DTypeClass::Float => "float",
            DTypeClass::Int => "int",
            DTypeClass::Num => "num",
            DTypeClass::Bool => "bool",
        }
    }
}

/// A member of a [`DTypeSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Class(DTypeClass),
    One(DType),
}

/// The element types that an input accepts: classes and single types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DTypeSet(SmallVec<[Member; 1]>);

impl From<DTypeClass> for DTypeSet {
    fn from(class: DTypeClass) -> DTypeSet {
        DTypeSet(smallvec![Member::Class(class)])
    }
}

impl DTypeSet {
    /// Reads `float`, `f32|f64` or `float|bool`. A registered dtype is known by its name once it is registered.
    ///
    /// # Errors
    /// A word is neither a class nor an element type.
    pub fn parse(text: &str) -> Result<DTypeSet> {
        let member = |word: &str| {
            let word = word.trim();
            let class = DTypeClass::ALL.into_iter().find(|c| c.name() == word).map(Member::Class);
            class.or_else(|| word.parse().ok().map(Member::One)).ok_or_else(|| {
                let classes: Vec<&str> = DTypeClass::ALL.iter().map(|c| c.name()).collect();
                Error::parse(format!("unknown dtype class '{word}'"))
                    .help(format!("write an element type, or a class: {}", classes.join(", ")))
            })
        };
        Ok(DTypeSet(text.split('|').map(member).collect::<Result<_>>()?))
    }

    /// Whether the set has that element type.
    pub fn contains(&self, d: DType) -> bool {
        self.0.iter().any(|m| match m {
            Member::Class(c) => c.contains(d),
            Member::One(one) => *one == d,
        })
    }

    /// The class, where the set is one class.
    pub fn class(&self) -> Option<DTypeClass> {
        match self.0.as_slice() {
            [Member::Class(c)] => Some(*c),
            _ => None,
        }
    }
}

/// As in a declaration: `f32|f64`.
impl fmt::Display for DTypeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, m) in self.0.iter().enumerate() {
            f.write_str(if i > 0 { "|" } else { "" })?;
            match m {
                Member::Class(c) => f.write_str(c.name())?,
                Member::One(d) => write!(f, "{d}")?,
            }
        }
        Ok(())
    }
}

/// The numbers of dims that an input accepts; every number where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankSet(SmallVec<[(usize, usize); 1]>);

impl RankSet {
    /// Reads what stands between the brackets: `2`, `1..=3`, `2..`, `0|2`.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(text: &str) -> Result<RankSet> {
        let bad = || {
            Error::parse(format!("'[{text}]' is not a set of numbers of dims"))
                .help("write [2] for two dims, [1..=3] for one to three, [2..] for two or more, [0|2] for none or two")
        };
        let number = |t: &str| t.trim().parse::<usize>().map_err(|_| bad());
        let part = |t: &str| {
            let range = match t.split_once("..") {
                None => number(t).map(|n| (n, n)),
                Some((from, to)) => match to.trim() {
                    "" => number(from).map(|n| (n, usize::MAX)),
                    to => Ok((number(from)?, number(to.strip_prefix('=').ok_or_else(bad)?)?)),
                },
            }?;
            if range.0 > range.1 { Err(bad()) } else { Ok(range) }
        };
        Ok(RankSet(text.split('|').map(part).collect::<Result<_>>()?))
    }

    /// Whether a tensor of that many dims is accepted.
    pub fn contains(&self, rank: usize) -> bool {
        self.0.is_empty() || self.0.iter().any(|(from, to)| (*from..=*to).contains(&rank))
    }

    /// Whether every number is accepted.
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// In words: `2 dims`, `1 to 3 dims`, `2 dims or more`, `0 or 2 dims`.
    pub fn words(&self) -> String {
        let many = |n: usize| if n == 1 { "1 dim".to_string() } else { format!("{n} dims") };
        let part = |(from, to): &(usize, usize)| match (*from, *to) {
            (a, usize::MAX) => format!("{} or more", many(a)),
            (a, b) if a == b => many(a),
            (a, b) => format!("{a} to {b} dims"),
        };
        if self.0.len() > 1 && self.0.iter().all(|(a, b)| a == b) {
            let all: Vec<String> = self.0.iter().map(|(n, _)| n.to_string()).collect();
            return format!("{} dims", all.join(" or "));
        }
        self.0.iter().map(part).collect::<Vec<_>>().join(" or ")
    }
}

/// As in a declaration: `[1..=3]`; nothing where every number is accepted.
impl fmt::Display for RankSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        let part = |(from, to): &(usize, usize)| match (*from, *to) {
            (a, usize::MAX) => format!("{a}.."),
            (a, b) if a == b => a.to_string(),
            (a, b) => format!("{a}..={b}"),
        };
        write!(f, "[{}]", self.0.iter().map(part).collect::<Vec<_>>().join("|"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_as_they_are_written() {
        for t in ["float", "f32|f64", "float|bool", "any", "built-in", "number", "f32|complex"] {
            assert_eq!(DTypeSet::parse(t).unwrap().to_string(), t);
        }
        let set = DTypeSet::parse("f32|int").unwrap();
        let has: Vec<bool> = [DType::F32, DType::F64, DType::I64, DType::Bool].map(|d| set.contains(d)).to_vec();
        assert_eq!(has, [true, false, true, false]);
        assert!(DTypeSet::parse("f32|imaginary").is_err());
        for (t, words) in [
            ("2", "2 dims"),
            ("1..=3", "1 to 3 dims"),
            ("1..", "1 dim or more"),
            ("0|2", "0 or 2 dims"),
            ("1", "1 dim"),
        ] {
            let set = RankSet::parse(t).unwrap();
            assert_eq!((set.to_string(), set.words().as_str()), (format!("[{t}]"), words));
        }
        let has: Vec<bool> = (0..5).map(|n| RankSet::parse("0|2..=3").unwrap().contains(n)).collect();
        assert_eq!(has, [true, false, true, true, false]);
        for bad in ["", "a", "1..3", "3..=1", "2|", "..2"] {
            assert!(RankSet::parse(bad).is_err(), "{bad}");
        }
    }
}
