//! `{}` of a tensor: the values of a local tensor in PyTorch's format (precision 4, lines of 80 columns, the first and last three of
//! each dim above 1,000 elements), then its metadata. Elements of a registered dtype are printed as the numbers that its declaration
//! gives, else as they are stored. A global tensor prints metadata only, because printing never
//! communicates (I14).

use super::inner::{Body, Tensor};
use super::local::LocalTensor;
use crate::context::current;
use crate::error::{Error, Result};
use oflow_kernels::Scalar;
use std::fmt::{self, Write};

/// Above that many elements only the edges are shown.
const THRESHOLD: usize = 1000;
/// Elements shown at either end of a dim.
const EDGE: usize = 3;
/// Columns of a line.
const WIDTH: usize = 80;
const PREFIX: &str = "tensor(";

impl Tensor {
    /// Returns the values that `{}` shows: of a local tensor whose values can be read. Nothing is communicated.
    ///
    /// ```
    /// let x = oflow::functional::from_vec(vec![1.0f32, 2.5], [2], oflow::placement::Device::Cpu)?;
    /// assert_eq!(x.values_text().as_deref(), Some("[1.0000, 2.5000]"));
    /// # Ok::<(), oflow::Error>(())
    /// ```
    pub fn values_text(&self) -> Option<String> {
        match self.body() {
            Body::Local(local) => Some(Values::read(local).ok()?.text(0)),
            _ => None,
        }
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meta = format!("{self:?}");
        let Body::Local(local) = self.body() else { return f.write_str(&meta) };
        // What cannot be read (a failed device, a dtype without numbers) is still described.
        let Ok(values) = Values::read(local) else { return f.write_str(&meta) };
        let text = values.text(PREFIX.len());
        let last = text.rsplit('\n').next().map_or(0, |l| l.chars().count());
        let last = if text.contains('\n') { last } else { last + PREFIX.len() };
        let gap = match last + meta.len() + 3 > WIDTH {
            true => format!("\n{:1$}", "", PREFIX.len()),
            false => " ".to_string(),
        };
        write!(f, "{PREFIX}{text},{gap}{meta})")
    }
}

/// The positions of a dim that are shown; none stands for "...".
fn shown(size: usize, summarize: bool) -> impl Iterator<Item = Option<usize>> {
    let cut = summarize && size > 2 * EDGE;
    let (head, tail) = if cut { (EDGE, size - EDGE) } else { (size, size) };
    (0..head).map(Some).chain(cut.then_some(None)).chain((tail..size).map(Some))
}

/// The values of a tensor that are shown, row-major.
struct Values<'a> {
    dims: &'a [usize],
    summarize: bool,
    values: Vec<Scalar>,
}

impl<'a> Values<'a> {
    fn read(local: &'a LocalTensor) -> Result<Values<'a>> {
        let (dims, len) = (local.dims(), local.ty.ty.len());
        let mut all = Values { dims, summarize: len > THRESHOLD, values: vec![] };
        if len > 0 {
            let (ctx, dtype) = (current(), local.dtype());
            let vm = &ctx.device(local.ty.device)?.vm;
            let mut bytes = [0; 16];
            let bytes =
                bytes.get_mut(..dtype.size()).ok_or_else(|| Error::dtype(format!("{dtype} cannot be printed")))?;
            let mut read = |at: isize| {
                vm.read(&local.storage, at as usize * dtype.size(), bytes)?;
                dtype
                    .storage()
                    .decode(bytes)
                    .map(|x| dtype.number(x).unwrap_or(x))
                    .ok_or_else(|| Error::dtype(format!("{dtype} cannot be printed")))
            };
            all.visit(local, 0, local.offset as isize, &mut read)?;
        }
        Ok(all)
    }

    /// Reads what is shown of the dims from `dim` on, where the element at their start is number `at` of the storage.
    fn visit(
        &mut self,
        local: &LocalTensor,
        dim: usize,
        at: isize,
        read: &mut impl FnMut(isize) -> Result<Scalar>,
    ) -> Result<()> {
        let Some(size) = self.dims.get(dim) else {
            self.values.push(read(at)?);
            return Ok(());
        };
        for i in shown(*size, self.summarize).flatten() {
            self.visit(local, dim + 1, at + i as isize * local.strides[dim], read)?;
        }
        Ok(())
    }

    /// All values, `indent` columns from the left.
    fn text(&self, indent: usize) -> String {
        if self.dims.contains(&0) {
            return "[]".into();
        }
        let style = Style::of(&self.values);
        self.nested(self.dims, indent, &mut self.values.iter().map(|v| style.text(*v)), style.width)
    }

    /// The text of those dims, `indent` columns from the left, of the next values.
    fn nested(&self, dims: &[usize], indent: usize, values: &mut impl Iterator<Item = String>, width: usize) -> String {
        let Some((size, rest)) = dims.split_first() else { return values.next().unwrap_or_default() };
        let parts: Vec<String> = shown(*size, self.summarize)
            .map(|i| match (i, rest.is_empty()) {
                (Some(_), _) => self.nested(rest, indent + 1, values, width),
                (None, true) => " ...".into(),
                (None, false) => "...".into(),
            })
            .collect();
        let inner = match rest.len() {
            0 => {
                let per_line = (WIDTH.saturating_sub(indent) / (width + 2)).max(1);
                let lines: Vec<String> = parts.chunks(per_line).map(|l| l.join(", ")).collect();
                lines.join(&format!(",\n{:1$}", "", indent + 1))
            }
            below => parts.join(&format!(",{}{:2$}", "\n".repeat(below), "", indent + 1)),
        };
        format!("[{inner}]")
    }
}

/// How floats are written: all alike.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// `3.`
    Whole,
    /// `3.5000`
    Fixed,
    /// `3.5000e+05`
    Scientific,
}

/// Form and width of all numbers of a tensor, by PyTorch's rule.
struct Style {
    form: Form,
    width: usize,
}

impl Style {
    fn of(values: &[Scalar]) -> Style {
        let parts = values.iter().flat_map(|v| match v {
            Scalar::Float(x) => [Some(*x), None],
            Scalar::Complex(re, im) => [Some(*re), Some(*im)],
            _ => [None, None],
        });
        let counted: Vec<f64> = parts.flatten().filter(|x| x.is_finite() && *x != 0.0).collect();
        let floats = || counted.iter().copied();
        let (least, most) = floats().fold((f64::INFINITY, 0.0f64), |(a, b), x| (a.min(x.abs()), b.max(x.abs())));
        let form = match most {
            0.0 => Form::Whole,
            m if m / least > 1000.0 || m > 1e8 || least < 1e-4 => Form::Scientific,
            _ if floats().all(|x| x == x.ceil()) => Form::Whole,
            _ => Form::Fixed,
        };
        let style = Style { form, width: 0 };
        let counted = values.iter().filter(|v| !matches!(v, Scalar::Float(x) if !x.is_finite() || *x == 0.0));
        let width = counted.map(|v| style.text(*v).len()).max().unwrap_or(1);
        Style { form, width }
    }

    fn text(&self, v: Scalar) -> String {
        let mut s = String::new();
        // Writing to a string cannot fail.
        let _ = match (v, self.form) {
            (Scalar::Bool(b), _) => write!(s, "{}", if b { "True" } else { "False" }),
            (Scalar::Int(i), _) => write!(s, "{i}"),
            (Scalar::Complex(re, im), _) => {
                let sign = if im.is_sign_negative() && !im.is_nan() { '-' } else { '+' };
                let part = |x| Style { form: self.form, width: 0 }.text(Scalar::Float(x));
                write!(s, "{}{sign}{}j", part(re), part(im.abs()))
            }
            (Scalar::Float(x), _) if x.is_nan() => write!(s, "nan"),
            (Scalar::Float(x), _) if x.is_infinite() => write!(s, "{}", if x > 0.0 { "inf" } else { "-inf" }),
            (Scalar::Float(x), Form::Whole) => write!(s, "{x:.0}."),
            (Scalar::Float(x), Form::Fixed) => write!(s, "{x:.4}"),
            (Scalar::Float(x), Form::Scientific) => {
                let t = format!("{x:.4e}");
                let (m, e) = t.split_once('e').unwrap_or((&t, "0"));
                let (sign, e) = e.strip_prefix('-').map_or(('+', e), |e| ('-', e));
                write!(s, "{m}e{sign}{e:0>2}")
            }
        };
        format!("{s:>0$}", self.width)
    }
}
