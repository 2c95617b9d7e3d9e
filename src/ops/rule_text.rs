//! Rules of an op as text, for declarations that are not written in Rust: dtypes, gradients, traits.

use super::def::{DTypeRule, OpDef, OpTraits};
use super::grad::{Grad, GradArg, GradWire};
use super::signature::{OpSignature, split_outside};
use crate::error::{Error, Result};
use oflow_kernels::DType;

impl DTypeRule {
    /// Reads `promote`, `promote float`, `attribute` (the `dtype` attribute), the name of an input (`like x`), or one element type per
    /// output (`f32, i64`).
    ///
    /// # Errors
    /// The text is none of these.
    pub fn parse(text: &str, sig: &OpSignature) -> Result<DTypeRule> {
        let bad = |why: String| {
            Error::parse(format!("dtype rule '{text}' of op {}: {why}", sig.name)).help(
                "write `promote`, `promote float`, `promote int`, `attribute`, `like x` for an input x, or an element type for each output",
            )
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["promote"] => return Ok(DTypeRule::Promote),
            ["promote", "float"] => return Ok(DTypeRule::PromoteFloat),
            ["promote", "int"] => return Ok(DTypeRule::PromoteInt),
            ["attribute"] => match sig.attr("dtype") {
                Some(_) => return Ok(DTypeRule::Attr),
                None => return Err(bad("it has no attribute `dtype`".into())),
            },
            ["like", name] => match sig.input(name) {
                Some(i) => return Ok(DTypeRule::Input(i)),
                None => return Err(bad(format!("it has no input '{name}'"))),
            },
            _ => {}
        }
        let one = |word: &str| word.parse::<DType>().map_err(|_| bad(format!("'{word}' is not an element type")));
        let all: Vec<DType> = split_outside(text, ',').map(one).collect::<Result<_>>()?;
        match all.len() == sig.outputs.len() {
            true => Ok(DTypeRule::Fixed(all)),
            false => Err(bad(format!("it has {} outputs", sig.outputs.len()))),
        }
    }
}

impl Grad {
    /// Reads a gradient from lines such as
    ///
    /// ```text
    /// x, w = mine.scale_rows_grad(grad y, x, w; eps)
    /// ```
    ///
    /// The outputs of that op are the gradients of the inputs x and w (`_` for an output that is none). In the parentheses stand its
    /// inputs: `grad y` is the gradient of the output y, a name an input or an output of the forward call (`out y` where an input has
    /// the name too). After the semicolon stand the attributes that it takes from the forward call. The one line `none` says that
    /// there is no gradient.
    ///
    /// ```
    /// use oflow::ops::{Grad, OpDef};
    /// let op = OpDef::new("scale(x: float, w: float; eps: float = 0.1) -> y")?;
    /// let grad = Grad::parse("x, w = mine.scale_grad(grad y, x, w; eps)", &op.sig)?;
    /// assert!(matches!(grad, Grad::Wiring(wires) if wires.len() == 2));
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// A line is none of these, or names what the op does not have.
    pub fn parse(text: &str, sig: &OpSignature) -> Result<Grad> {
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        if lines == ["none"] {
            return Ok(Grad::None);
        }
        let mut wires: Vec<GradWire> = vec![];
        for line in lines {
            let bad = |why: String| {
                Error::parse(format!("gradient '{line}' of op {}: {why}", sig.name))
                    .help("write it as in `x, w = mine.op_grad(grad y, x, w; eps)`, or `none`")
            };
            wire(line, sig, &mut wires).map_err(bad)?;
        }
        match wires.is_empty() {
            true => Err(Error::parse(format!("the gradient of op {} is an empty text", sig.name)).help("write `none`")),
            false => Ok(Grad::Wiring(wires)),
        }
    }
}

fn wire(line: &str, sig: &OpSignature, wires: &mut Vec<GradWire>) -> Result<(), String> {
    let (left, call) = line.split_once('=').ok_or("'=' is missing")?;
    let (op, rest) = call.split_once('(').ok_or("'(' is missing")?;
    let inside = rest.trim_end().strip_suffix(')').ok_or("')' is missing at the end")?;
    let (args, attrs) = inside.split_once(';').unwrap_or((inside, ""));
    let input = |name: &str| sig.input(name);
    let output = |name: &str| sig.outputs.iter().position(|o| o == name);
    let arg = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let found = match words.as_slice() {
            ["grad", o] => output(o).map(GradArg::OutGrad),
            ["out", o] => output(o).map(GradArg::Output),
            [name] => input(name).map(GradArg::Input).or_else(|| output(name).map(GradArg::Output)),
            _ => None,
        };
        found.ok_or_else(|| format!("'{text}' is neither an input, an output nor the gradient of an output"))
    };
    let args: Vec<GradArg> = split_outside(args, ',').map(arg).collect::<Result<_, _>>()?;
    let attrs: Vec<String> = split_outside(attrs, ',').map(str::to_string).collect();
    if let Some(a) = attrs.iter().find(|a| sig.attr(a).is_none() && sig.runtime_attr(a).is_none()) {
        return Err(format!("unknown attribute '{a}'"));
    }
    for (at, name) in split_outside(left, ',').enumerate().filter(|(_, n)| *n != "_") {
        let i = input(name).ok_or_else(|| format!("unknown input '{name}'"))?;
        if wires.iter().any(|w| w.input == i) {
            return Err(format!("'{name}' has two gradients"));
        }
        let (op, args, attrs) = (op.trim().to_string(), args.clone(), attrs.clone());
        wires.push(GradWire { input: i, op, output: at, args, attrs });
    }
    Ok(())
}

impl OpTraits {
    /// Sets the traits that the words name: `side_effect`, `strided`, `random`, `cpu_only`, `run_empty`, `hidden`,
    /// `by_name_only`, `stored`.
    ///
    /// # Errors
    /// A word is none of these.
    pub fn set(&mut self, words: &str) -> Result<()> {
        for word in words.split(|c: char| c == ',' || c.is_whitespace()).filter(|w| !w.is_empty()) {
            let flag = match word {
                "side_effect" => &mut self.side_effect,
                "strided" => &mut self.strided,
                "random" => &mut self.random,
                "cpu_only" => &mut self.cpu_only,
                "run_empty" => &mut self.run_empty,
                "hidden" => &mut self.hidden,
                "by_name_only" => &mut self.by_name_only,
                "stored" => &mut self.stored,
                other => {
                    return Err(Error::parse(format!("unknown trait '{other}'")).help(
                        "traits are side_effect, strided, random, cpu_only, run_empty, hidden, by_name_only, stored",
                    ));
                }
            };
            *flag = true;
        }
        Ok(())
    }
}

impl OpDef {
    /// Output shapes by text: see [`ShapeText`](super::ShapeText).
    ///
    /// ```
    /// use oflow::ops::OpDef;
    /// let op = OpDef::new("product(a: float, b: float) -> y")?.shape_text("[m, k], [k, n] -> [m, n]")?;
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`ShapeText::parse`](super::ShapeText::parse).
    pub fn shape_text(mut self, text: &str) -> Result<OpDef> {
        self.shape = super::ShapeRule::Text(super::ShapeText::parse(text, &self.sig)?.into());
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{AttrValue, Attrs, InferCtx, TensorType};

    fn sig() -> OpSignature {
        OpSignature::parse("f(x: float, w?: float; eps: float = 0.5, n: int = 2, by: runtime float) -> (y, z)").unwrap()
    }

    #[test]
    fn gradients() {
        let Grad::Wiring(w) = Grad::parse("w, _, x = a.b(grad z, x, y; eps, by)", &sig()).unwrap() else { panic!() };
        assert_eq!((w[0].input, w[0].output, w[1].input, w[1].output), (1, 0, 0, 2));
        assert_eq!(w[0].args, [GradArg::OutGrad(1), GradArg::Input(0), GradArg::Output(0)]);
        assert_eq!(w[0].attrs, ["eps", "by"]);
        assert!(matches!(Grad::parse(" none ", &sig()), Ok(Grad::None)));
        for bad in [
            "",
            "x",
            "x = f",
            "x = f(x",
            "q = f(x)",
            "x = f(q)",
            "x = f(grad x)",
            "x = f(x; q)",
            "x = f(x)\nx = f(y)",
            "x, x = f(y)",
            "none\nx = f(x)",
        ] {
            let e = Grad::parse(bad, &sig()).unwrap_err().to_string();
            assert!(e.contains("op f"), "{bad}: {e}");
        }
    }

    #[test]
    fn dtypes_and_traits() {
        assert!(matches!(DTypeRule::parse("promote float", &sig()), Ok(DTypeRule::PromoteFloat)));
        assert!(matches!(DTypeRule::parse("promote int", &sig()), Ok(DTypeRule::PromoteInt)));
        assert!(matches!(DTypeRule::parse("like w", &sig()), Ok(DTypeRule::Input(1))));
        assert!(
            matches!(DTypeRule::parse("f32, i64", &sig()), Ok(DTypeRule::Fixed(d)) if d == [DType::F32, DType::I64])
        );
        for bad in ["", "like q", "f32", "attribute", "f32, q", "promote x"] {
            assert!(DTypeRule::parse(bad, &sig()).is_err(), "{bad}");
        }
        let mut t = OpTraits::default();
        t.set("strided, random run_empty").unwrap();
        assert!(t.strided && t.random && t.run_empty && !t.cpu_only);
        assert!(t.set("fast").is_err());
    }

    fn shapes(text: &str, decl: &str, inputs: &[Option<&[usize]>], attrs: &[i64]) -> Result<Vec<Vec<usize>>> {
        let op = OpDef::new(decl)?.shape_text(text)?;
        let inputs: Vec<Option<TensorType>> =
            inputs.iter().map(|s| s.map(|s| TensorType::new(s, DType::F32))).collect();
        let attrs: Attrs = attrs.iter().map(|a| AttrValue::Int(*a)).collect();
        let ctx = InferCtx { op: &op, inputs: &inputs, attrs: &attrs, runtime_kinds: &[] };
        Ok(op.infer(&ctx)?.iter().map(|t| t.shape.to_vec()).collect())
    }

    #[test]
    fn shapes_by_text() {
        let product = |a: &[usize], b: &[usize]| {
            shapes("[..., m, k], [..., k, n] -> [..., m, n]", "f(a, b) -> y", &[Some(a), Some(b)], &[])
        };
        assert_eq!(product(&[2, 3], &[3, 4]).unwrap(), [[2, 4]]);
        assert_eq!(product(&[5, 1, 2, 3], &[6, 3, 0]).unwrap(), [[5, 6, 2, 0]]);
        for bad in [product(&[2, 3], &[4, 3]), product(&[2], &[2, 3]), product(&[2, 1, 3], &[3, 3, 4])] {
            assert!(bad.unwrap_err().help_text().is_some());
        }
        let conv = |w: usize, step: i64| {
            let text = "[n, c, w], [o, c, k] -> [n, o, (w + 2 * pad - k) // step + 1]";
            shapes(text, "f(x, f; pad: int, step: int) -> y", &[Some(&[2, 3, w]), Some(&[8, 3, 3])], &[1, step])
        };
        assert_eq!(conv(9, 2).unwrap(), [[2, 8, 5]]);
        assert!(conv(9, 0).unwrap_err().to_string().contains("has no value"));
        let two = shapes("[n, _, 3] -> [n], []", "f(x) -> (y, z)", &[Some(&[4, 9, 3])], &[]).unwrap();
        assert_eq!(two, [vec![4], vec![]]);
        assert!(shapes("[n, _, 3] -> [n], []", "f(x) -> (y, z)", &[Some(&[4, 9, 2])], &[]).is_err());
        assert!(shapes("[n] -> [n - 5]", "f(x) -> y", &[Some(&[4])], &[]).is_err());
        assert!(shapes("[n] -> [n * 9223372036854775807]", "f(x) -> y", &[Some(&[4])], &[]).is_err());
        assert!(shapes("[n] -> [n / 3]", "f(x) -> y", &[Some(&[4])], &[]).unwrap_err().to_string().contains("1.33"));
        // A size that an attribute says, and one of an input that is absent.
        assert_eq!(shapes("[k, n] -> [n]", "f(x; k: int) -> y", &[Some(&[4, 2])], &[4]).unwrap(), [[2]]);
        assert!(shapes("[k, n] -> [n]", "f(x; k: int) -> y", &[Some(&[4, 2])], &[3]).is_err());
        assert_eq!(shapes("[n], [n] -> [n]", "f(x, w?) -> y", &[Some(&[4]), None], &[]).unwrap(), [[4]]);
        assert!(shapes("[n], [m] -> [m]", "f(x, w?) -> y", &[Some(&[4]), None], &[]).is_err());
        for bad in
            ["[n]", "[n] -> [m]", "[n], [m] -> [n]", "n -> n", "[n, ...] -> [n]", "[n] -> [..., n]", "[2x] -> [1]"]
        {
            assert!(shapes(bad, "f(x) -> y", &[Some(&[4])], &[]).is_err(), "{bad}");
        }
        assert!(OpDef::new("f(xs...) -> y").unwrap().shape_text("[n] -> [n]").is_err());
    }
}
