//! Chains: functions of which later ones read what earlier ones gave, all for one element. What fusion makes of several elementwise ops.
//!
//! A chain has the bits of its functions computed one after the other: each value is rounded to the dtype that it would be stored in
//! ([`Link::dtype`]), and all are computed in one arithmetic. In the text `x0 * x1 as bf16; tanh(t0); t1 + t0`, `t0` is what the first function
//! gives, and the last one is the result.

use super::parse::Names;
use super::{BinaryOp, Class, Expr};
use crate::{Builtin, DType, KernelError, Result};
use std::fmt;

/// More functions than a chain may have: what is done for each of them may look at all.
const MOST_LINKS: usize = 1024;

/// A function of a [`Chain`].
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The value, over the inputs of the chain and, numbered after these, what earlier functions give.
    pub expr: Expr,
    /// The dtype whose element later functions read; `None` where they take the value as the arithmetic has it.
    pub dtype: Option<DType>,
}

/// Functions of one element, in order. The last one is the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    inputs: usize,
    links: Vec<Link>,
}

impl Chain {
    /// A chain over that many inputs.
    ///
    /// # Errors
    /// Without functions or with more than 1,024, where one uses its own output or a value that is not there before, or takes a number that
    /// is not known yet.
    pub fn new(inputs: usize, links: Vec<Link>) -> Result<Chain> {
        if links.is_empty() || links.len() > MOST_LINKS {
            let n = links.len();
            return Err(KernelError::new(format!("a chain has 1 to {MOST_LINKS} functions, not {n}")));
        }
        for (k, link) in links.iter().enumerate() {
            let ahead = |e: &Expr| matches!(e, Expr::Input(i) if *i >= inputs + k);
            if link.expr.any(&ahead) || link.expr.uses_output() || !link.expr.scalars_used().is_empty() {
                return Err(KernelError::new(format!("function {k} of a chain, '{}', has no value there", link.expr)));
            }
        }
        Ok(Chain { inputs, links })
    }

    /// The chain of one expression, which may take numbers of the call.
    pub(crate) fn of(expr: Expr, inputs: usize) -> Chain {
        Chain { inputs, links: vec![Link { expr, dtype: None }] }
    }

    /// Reads a chain over that many inputs: expressions separated by semicolons, over `x0`, `x1`, … and the results `t0`, `t1`, … of those before;
    /// `as bf16` behind one rounds its value.
    ///
    /// ```
    /// use oflow_kernels::expr::Chain;
    /// let chain = Chain::parse("x0 * x1 as bf16; tanh(t0); t1 + t0", 2).unwrap();
    /// assert_eq!(chain.links().len(), 3);
    /// assert_eq!(chain.to_string(), "x0 * x1 as bf16; tanh(t0); t1 + t0");
    /// ```
    ///
    /// # Errors
    /// What cannot be read, and as [`Chain::new`].
    pub fn parse(text: &str, inputs: usize) -> Result<Chain> {
        let mut links = vec![];
        for (k, part) in text.split(';').take(MOST_LINKS + 1).enumerate() {
            let (expr, dtype) = match part.rsplit_once(" as ") {
                Some((expr, dtype)) => (expr, Some(dtype.trim().parse::<DType>()?)),
                None => (part, None),
            };
            let number = |name: &str, mark: char, count: usize| {
                let n: usize = name.strip_prefix(mark)?.parse().ok()?;
                (n < count).then_some(n)
            };
            let find = |name: &str| {
                let link = || number(name, 't', k).map(|n| inputs + n);
                number(name, 'x', inputs).or_else(link).map(Expr::Input)
            };
            let known = || format!("{inputs} inputs x0 …, {k} results t0 …");
            links.push(Link { expr: Expr::parse_names(expr, &Names { find: &find, known: &known })?, dtype });
        }
        Chain::new(inputs, links)
    }

    /// How many inputs it has.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The functions, in order.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Whether one of the functions reads input `i`.
    pub fn uses_input(&self, i: usize) -> bool {
        i < self.inputs && self.links.iter().any(|l| l.expr.uses_input(i))
    }

    /// The numbers of the call that appear, ascending.
    pub(crate) fn scalars_used(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.links.iter().flat_map(|l| l.expr.scalars_used()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether it gives its first input.
    pub(crate) fn is_copy(&self) -> bool {
        matches!(self.links.as_slice(), [Link { expr: Expr::Input(0), dtype: None }])
    }

    /// Checks that the functions can be computed in an arithmetic, which has all numbers of the dtypes that values are rounded to.
    ///
    /// # Errors
    /// They cannot.
    pub fn check_class(&self, class: Class) -> Result<()> {
        for (k, link) in self.links.iter().enumerate() {
            link.expr.check_class(class, self.inputs + k)?;
            if let Some(d) = link.dtype
                && !d.builtin().is_some_and(|d| class.holds(d))
            {
                return Err(KernelError::new(format!("a number of {d} may be none of the arithmetic of '{self}'")));
            }
        }
        Ok(())
    }

    /// The chain as one expression; `None` where that would have more than `most` parts. Values are not rounded there.
    pub fn as_expr(&self, most: usize) -> Option<Expr> {
        let mut values: Vec<Expr> = (0..self.inputs).map(Expr::Input).collect();
        let mut sizes = vec![1; self.inputs];
        for link in &self.links {
            let size = size_with(&link.expr, &sizes);
            if size > most {
                return None;
            }
            values.push(link.expr.substitute(&values, &[], None));
            sizes.push(size);
        }
        values.pop()
    }

    /// The gradient by one input: a chain that reads the inputs and, as one more, the gradient of the result. `None` where the result does not
    /// depend on the input.
    ///
    /// ```
    /// use oflow_kernels::expr::Chain;
    /// let chain = Chain::parse("x0 * x1; exp(t0)", 2).unwrap();
    /// assert_eq!(chain.gradient(0).unwrap().to_string(), "x0 * x1; exp(t0); x2 * t1; t2 * x1");
    /// ```
    pub fn gradient(&self, input: usize) -> Option<Chain> {
        let inputs = self.inputs + 1;
        let moved: Vec<Expr> = (0..self.inputs).chain(inputs..inputs + self.links.len()).map(Expr::Input).collect();
        let mut made: Vec<Link> =
            (self.links.iter()).map(|l| Link { expr: l.expr.substitute(&moved, &[], None), dtype: l.dtype }).collect();
        let last = self.links.len() - 1;
        // Contributions to the gradient of each value, as values.
        let mut parts: Vec<Vec<Expr>> = vec![vec![]; self.inputs + self.links.len()];
        parts[self.inputs + last].push(Expr::Input(self.inputs));
        let mut add = |expr: Expr, dtype: Option<DType>| {
            made.push(Link { expr, dtype });
            Expr::Input(inputs + made.len() - 1)
        };
        for k in (0..self.links.len()).rev() {
            let link = &self.links[k];
            let Some(dy) = sum(std::mem::take(&mut parts[self.inputs + k]), &mut |e| add(e, link.dtype)) else {
                continue;
            };
            for (v, parts) in parts[..self.inputs + k].iter_mut().enumerate() {
                if v < self.inputs && v != input || !link.expr.uses_input(v) {
                    continue;
                }
                let slope = link.expr.derivative(v).substitute(&moved, &[], Some(&moved[self.inputs + k]));
                let part = match slope {
                    Expr::Const(0.0) => continue,
                    Expr::Const(1.0) => dy.clone(),
                    slope => {
                        let dtype = v.checked_sub(self.inputs).and_then(|of| self.links[of].dtype);
                        add(Expr::binary(BinaryOp::Mul, dy.clone(), slope), dtype)
                    }
                };
                parts.push(part);
            }
        }
        let result = sum(std::mem::take(&mut parts[input]), &mut |e| add(e, None))?;
        // The result is the last function, and is not rounded: it is stored.
        made.push(Link { expr: result, dtype: None });
        Some(Chain { inputs, links: made }.pruned())
    }

    /// The chain over those of its inputs that it reads, and which these are.
    pub fn over_what_it_reads(self) -> (Vec<usize>, Chain) {
        let read: Vec<usize> = (0..self.inputs).filter(|i| self.uses_input(*i)).collect();
        let place = |i: usize| read.iter().position(|r| *r == i).unwrap_or(0);
        let inputs = (0..self.inputs).map(place);
        let places: Vec<Expr> = inputs.chain(read.len()..read.len() + self.links.len()).map(Expr::Input).collect();
        let moved = |l: &Link| Link { expr: l.expr.substitute(&places, &[], None), dtype: l.dtype };
        let links = self.links.iter().map(moved).collect();
        (read.clone(), Chain { inputs: read.len(), links })
    }

    /// Without functions that lead to nothing, and without a last one that only hands on the one before.
    fn pruned(mut self) -> Chain {
        while let [.., before, last] = self.links.as_slice()
            && last.expr == Expr::Input(self.inputs + self.links.len() - 2)
            && before.dtype.is_none()
        {
            self.links.pop();
        }
        let mut needed = vec![false; self.links.len()];
        if let Some(last) = needed.last_mut() {
            *last = true;
        }
        for k in (0..self.links.len()).rev() {
            if needed[k] {
                let read = |j: usize| self.links[k].expr.uses_input(self.inputs + j);
                needed[..k].iter_mut().enumerate().for_each(|(j, needed)| *needed |= read(j));
            }
        }
        let mut values: Vec<Expr> = (0..self.inputs).map(Expr::Input).collect();
        let mut links = vec![];
        for (link, needed) in self.links.iter().zip(needed) {
            values.push(Expr::Input(self.inputs + links.len()));
            if needed {
                links.push(Link { expr: link.expr.substitute(&values, &[], None), dtype: link.dtype });
            }
        }
        Chain { inputs: self.inputs, links }
    }
}

/// The sum of values, in order, by functions that `add` makes; `None` of none.
fn sum(parts: Vec<Expr>, add: &mut dyn FnMut(Expr) -> Expr) -> Option<Expr> {
    parts.into_iter().reduce(|a, b| add(Expr::binary(BinaryOp::Add, a, b)))
}

/// How many parts an expression has whose inputs are expressions of these sizes.
fn size_with(e: &Expr, sizes: &[usize]) -> usize {
    match e {
        Expr::Input(i) => sizes.get(*i).copied().unwrap_or(1),
        e => e.children().fold(1usize, |n, c| n.saturating_add(size_with(c, sizes))),
    }
}

impl Class {
    /// Whether every number of a dtype is one of the arithmetic.
    pub fn holds(self, d: Builtin) -> bool {
        use Builtin::*;
        let small = matches!(d, Bool | U8 | I8);
        match self {
            Class::F32 => small || matches!(d, F32 | F16 | BF16 | I16 | U16),
            Class::F64 => small || matches!(d, F64 | F32 | F16 | BF16 | I16 | U16 | I32 | U32),
            Class::I64 => small || matches!(d, I16 | U16 | I32 | U32 | I64),
            Class::C64 | Class::C128 => false,
        }
    }
}

/// As [`Chain::parse`] reads it.
impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> =
            (0..self.inputs).map(|i| format!("x{i}")).chain((0..self.links.len()).map(|k| format!("t{k}"))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for (k, link) in self.links.iter().enumerate() {
            let mark = if k > 0 { "; " } else { "" };
            write!(f, "{mark}{}", link.expr.named(&names, &[]))?;
            if let Some(d) = link.dtype {
                write!(f, " as {d}")?;
            }
        }
        Ok(())
    }
}
