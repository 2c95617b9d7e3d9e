//! Sums of products after Einstein: letters name dims, and what the result does not name is summed.

use super::{invoke1, nn, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::AttrValue;
use crate::tensor::Tensor;
use oflow_kernels::DType;
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Products";
    /// The sum of products that `equation` describes: for each tensor the letters of its dims, after `->` those of the result. Letters that
    /// the result lacks are summed over; a letter twice in one tensor takes its diagonal; `...` stands for leading dims that
    /// broadcast. Without `->` the result has the letters that occur once, in alphabetical order. Products of integers keep their dtype;
    /// where letters of one tensor alone are summed over, integers and bools give i64, as `sum` does.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let a = from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2], Device::Cpu)?;
    /// assert_eq!(einsum("ij,kj->ik", [&a, &a])?.to_vec::<f32>()?, [5.0, 11.0, 11.0, 25.0]);
    /// assert_eq!(einsum("ii", [&a])?.to_vec::<f32>()?, [5.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the equation does not describe the tensors, or a letter stands for two sizes.
    "einsum(String equation, TensorTuple xs) -> Tensor" = einsum as fn einsum;
}

/// Numbers of the dims that `...` stands for lie behind those of all letters.
const ELLIPSIS: u32 = 0x11_0000;

/// The letters of one tensor or of the result.
struct Term {
    before: Vec<u32>,
    dots: bool,
    after: Vec<u32>,
}

impl Term {
    fn parse(text: &str) -> Result<Term> {
        let letters = |t: &str| -> Result<Vec<u32>> {
            let letter = |c: char| match c.is_ascii_alphabetic() {
                true => Ok(c as u32),
                false => Err(Error::argument(format!("'{c}' is not a letter"))),
            };
            t.chars().filter(|c| !c.is_whitespace()).map(letter).collect()
        };
        Ok(match text.split_once("...") {
            None => Term { before: letters(text)?, dots: false, after: vec![] },
            Some((before, after)) => Term { before: letters(before)?, dots: true, after: letters(after)? },
        })
    }
    /// A label for each of `rank` dims; the dims of `...` are counted from the last.
    fn labels(&self, rank: usize) -> Result<Vec<u32>> {
        let named = self.before.len() + self.after.len();
        let extra = match rank.checked_sub(named) {
            Some(n) if n == 0 || self.dots => n,
            _ => return Err(Error::shape(format!("{named} letters name {rank} dims"))),
        };
        let dots = (0..extra as u32).rev().map(|i| ELLIPSIS + i);
        Ok(self.before.iter().copied().chain(dots).chain(self.after.iter().copied()).collect())
    }
}

pub(super) fn einsum(equation: &str, xs: &[&Tensor], site: CallSite) -> Result<Tensor> {
    let refused = |e: Error| {
        e.in_call(|| format!("einsum({equation:?}, {})", xs.iter().map(|x| x.short()).collect::<Vec<_>>().join(", ")))
            .at(site)
    };
    let (inputs, output) = match equation.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (equation, None),
    };
    let terms: Vec<Term> = inputs.split(',').map(Term::parse).collect::<Result<_>>().map_err(refused)?;
    if terms.len() != xs.len() {
        return Err(refused(Error::argument(format!(
            "the equation describes {} tensors, not {}",
            terms.len(),
            xs.len()
        ))));
    }
    let labelled = terms.iter().zip(xs).map(|(t, x)| Ok(((*x).clone(), t.labels(x.ndim())?)));
    let operands: Vec<(Tensor, Vec<u32>)> = labelled.collect::<Result<_>>().map_err(refused)?;
    let all = || operands.iter().flat_map(|(_, labels)| labels.iter().copied());
    let dots = all().filter(|l| *l >= ELLIPSIS).max().map_or(0, |l| (l - ELLIPSIS + 1) as usize);
    let out = match output {
        Some(text) => {
            let term = Term::parse(text).map_err(refused)?;
            let extra = if term.dots { dots } else { 0 };
            term.labels(term.before.len() + term.after.len() + extra).map_err(refused)?
        }
        None => {
            let mut once: Vec<u32> = all().filter(|l| *l < ELLIPSIS && all().filter(|m| m == l).count() == 1).collect();
            once.sort_unstable();
            (0..dots as u32).rev().map(|i| ELLIPSIS + i).chain(once).collect()
        }
    };
    let name = |l: u32| char::from_u32(l).unwrap_or('…');
    for (i, l) in out.iter().enumerate() {
        if out[..i].contains(l) {
            return Err(refused(Error::argument(format!("the result names '{}' twice", name(*l)))));
        }
        if !all().any(|m| m == *l) {
            return Err(refused(Error::argument(format!("no tensor has the letter '{}' of the result", name(*l)))));
        }
    }
    for l in all() {
        let sizes = operands.iter().flat_map(|(x, labels)| {
            labels.iter().enumerate().filter(move |(_, m)| **m == l).map(|(d, _)| x.shape()[d])
        });
        let mut wide = sizes.filter(|n| *n != 1);
        if let Some(first) = wide.next()
            && let Some(other) = wide.find(|n| *n != first)
        {
            return Err(refused(Error::shape(format!("'{}' stands for {first} and for {other}", name(l)))));
        }
    }
    contract(&operands, &out, site)
}

/// Sums products of tensors whose dims have labels, from left to right, to a tensor with the labels `out`.
pub(super) fn contract(operands: &[(Tensor, Vec<u32>)], out: &[u32], site: CallSite) -> Result<Tensor> {
    let inner = inner_calls();
    let mut rest: Vec<(Tensor, Vec<u32>)> =
        operands.iter().map(|(x, labels)| single(x, labels, site)).collect::<Result<_>>()?;
    rest.reverse();
    let Some((mut x, mut labels)) = rest.pop() else {
        return Err(Error::argument("no tensor to multiply").in_call(|| "einsum()".into()).at(site));
    };
    while let Some((y, others)) = rest.pop() {
        let needed = |l: u32| out.contains(&l) || rest.iter().any(|(_, more)| more.contains(&l));
        (x, labels) = pair((&x, &labels), (&y, &others), &needed, site)?;
    }
    // What is left over is summed.
    let summed: Vec<i64> = (0..labels.len()).filter(|d| !out.contains(&labels[*d])).map(|d| d as i64).collect();
    if !summed.is_empty() {
        x = sum(&x, &summed, site)?;
        labels.retain(|l| out.contains(l));
    }
    // A letter of the result may stand for sizes of 1 only, which were dropped.
    let present: Vec<u32> = out.iter().copied().filter(|l| labels.contains(l)).collect();
    let order: Vec<i64> = present.iter().filter_map(|l| labels.iter().position(|m| m == l)).map(|d| d as i64).collect();
    let mut sizes = order.iter().map(|d| x.shape()[*d as usize]);
    let shape: Vec<usize> =
        out.iter().map(|l| if labels.contains(l) { sizes.next().unwrap_or(1) } else { 1 }).collect();
    let moved = if order.is_sorted() { x } else { permute(&x, &order, site)? };
    drop(inner);
    // A result is never its argument, nor a view of it.
    if moved.shape() == shape.as_slice() && operands.len() > 1 {
        return Ok(moved.into_result());
    }
    if operands.len() > 1 || !summed.is_empty() {
        return Ok(moved.reshape_at(&shape, site)?.into_result());
    }
    let _scope = site.scope();
    moved.reshape_at(&shape, site)?.copy()
}

fn permute(x: &Tensor, order: &[i64], site: CallSite) -> Result<Tensor> {
    invoke1(op!("permute"), &[Some(x)], smallvec![AttrValue::from(order)], smallvec![], site)
}

fn sum(x: &Tensor, dims: &[i64], site: CallSite) -> Result<Tensor> {
    invoke1(op!("sum"), &[Some(x)], smallvec![AttrValue::from(dims), false.into()], smallvec![], site)
}

/// A tensor with each label once: dims of size 1 go, because they broadcast, and diagonals are taken.
fn single(x: &Tensor, labels: &[u32], site: CallSite) -> Result<(Tensor, Vec<u32>)> {
    let kept: Vec<usize> = (0..labels.len()).filter(|d| x.shape()[*d] != 1).collect();
    let mut y = x.clone();
    if kept.len() < labels.len() {
        let shape: Vec<usize> = kept.iter().map(|d| x.shape()[*d]).collect();
        y = y.reshape_at(&shape, site)?;
    }
    let mut labels: Vec<u32> = kept.iter().map(|d| labels[*d]).collect();
    while let Some((a, b)) =
        (0..labels.len()).find_map(|b| labels[..b].iter().position(|l| *l == labels[b]).map(|a| (a, b)))
    {
        let attrs = smallvec![0i64.into(), a.into(), b.into()];
        y = invoke1(op!("diagonal"), &[Some(&y)], attrs, smallvec![], site)?;
        let label = labels[a];
        labels.remove(b);
        labels.remove(a);
        labels.push(label);
    }
    Ok((y, labels))
}

/// The product of two: labels of both that are needed later are batches, those that are not are summed.
fn pair(
    (x, lx): (&Tensor, &[u32]),
    (y, ly): (&Tensor, &[u32]),
    needed: &dyn Fn(u32) -> bool,
    site: CallSite,
) -> Result<(Tensor, Vec<u32>)> {
    // What only one of both has and nothing needs is summed first.
    let lone = |labels: &[u32], other: &[u32]| -> Vec<i64> {
        (0..labels.len()).filter(|d| !other.contains(&labels[*d]) && !needed(labels[*d])).map(|d| d as i64).collect()
    };
    let reduced = |t: &Tensor, labels: &[u32], dims: &[i64]| -> Result<(Tensor, Vec<u32>)> {
        let left = (0..labels.len()).filter(|d| !dims.contains(&(*d as i64))).map(|d| labels[d]).collect();
        Ok((if dims.is_empty() { t.clone() } else { sum(t, dims, site)? }, left))
    };
    let one_dtype = x.dtype() == y.dtype();
    let (mut x, lx) = reduced(x, lx, &lone(lx, ly))?;
    let (mut y, ly) = reduced(y, ly, &lone(ly, &lx))?;
    // The sum of integers is an i64, which then meets a product with what was not summed.
    if one_dtype && x.dtype() != y.dtype() {
        (x, y) = (x.cast_at(DType::I64, site)?, y.cast_at(DType::I64, site)?);
    }
    let (x, y, lx, ly) = (&x, &y, &lx[..], &ly[..]);
    let both =
        |keep: bool| -> Vec<u32> { lx.iter().copied().filter(|l| ly.contains(l) && needed(*l) == keep).collect() };
    let (batch, inner) = (both(true), both(false));
    let own = |l: &[u32], other: &[u32]| -> Vec<u32> { l.iter().copied().filter(|l| !other.contains(l)).collect() };
    let (left, right) = (own(lx, ly), own(ly, lx));
    let size = |t: &Tensor, labels: &[u32], l: &u32| labels.iter().position(|m| m == l).map_or(1, |d| t.shape()[d]);
    let sizes = |t: &Tensor, labels: &[u32], of: &[u32]| of.iter().map(|l| size(t, labels, l)).collect::<Vec<usize>>();
    let arranged = |t: &Tensor, labels: &[u32], groups: [&[u32]; 3]| -> Result<Tensor> {
        let wanted = groups.concat();
        let order: Vec<i64> =
            wanted.iter().filter_map(|l| labels.iter().position(|m| m == l)).map(|d| d as i64).collect();
        let shape: Vec<usize> = groups.iter().map(|g| sizes(t, labels, g).iter().product()).collect();
        let t = if order.is_sorted() { t.clone() } else { permute(t, &order, site)? };
        t.reshape_at(if batch.is_empty() { &shape[1..] } else { &shape }, site)
    };
    let a = arranged(x, lx, [&batch, &left, &inner])?;
    let b = arranged(y, ly, [&batch, &inner, &right])?;
    let product = nn::matmul(&a, &b, false, false, site)?;
    let shape = [sizes(x, lx, &batch), sizes(x, lx, &left), sizes(y, ly, &right)].concat();
    let product = if product.shape() == shape.as_slice() { product } else { product.reshape_at(&shape, site)? };
    Ok((product, [batch, left, right].concat()))
}
