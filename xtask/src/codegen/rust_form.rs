//! The form of one function in Rust: what users call, its options, and what reads its arguments from a call by name.

use oflow::functional::{FnBody, FnDef, FnParam, FnReturn, ParamKind};
use oflow::kernels::Scalar;
use oflow::ops::{AttrKind, AttrValue, DTypeClass, Op, ShapeRule, find};
use std::error::Error;

type Made<T> = Result<T, Box<dyn Error>>;

/// A function or method of Rust: one function of the table, or two that differ in one parameter, a tensor or a number.
pub struct Form<'a> {
    defs: Vec<&'a FnDef>,
    name: &'a str,
    method: bool,
    code: Option<&'static str>,
    /// The parameter that is a tensor or a number.
    operand: Option<usize>,
}

/// Kind of method that is made of a function.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Plain,
    KeepDim,
    WithOptions,
}

/// The forms of all functions, in the order of the table.
pub fn forms(table: &[FnDef]) -> Made<Vec<Form<'_>>> {
    let mut forms: Vec<Form<'_>> = vec![];
    for def in table {
        let Some(rust) = &def.rust else { continue };
        match forms.iter_mut().find(|f| f.name == rust.name && f.method == rust.method) {
            None => forms.push(Form {
                defs: vec![def],
                name: &rust.name,
                method: rust.method,
                code: rust.code,
                operand: None,
            }),
            Some(form) => form.add(def)?,
        }
    }
    for form in &forms {
        form.check()?;
    }
    Ok(forms)
}

impl<'a> Form<'a> {
    fn add(&mut self, def: &'a FnDef) -> Made<()> {
        let first = &self.defs[0].sig;
        let number = |p: &FnParam| p.kind == ParamKind::Attr(AttrKind::Scalar);
        let pairs = || first.params.iter().zip(&def.sig.params);
        let at = pairs().position(|(a, b)| a.kind == ParamKind::Tensor && number(b));
        let same_but = pairs().enumerate().all(|(i, (a, b))| Some(i) == at || a.kind == b.kind);
        if self.defs.len() != 1 || at.is_none() || !same_but || first.params.len() != def.sig.params.len() {
            return Err(
                format!("{} and {first} are of one name, but no tensor and number of each other", def.sig).into()
            );
        }
        self.operand = at;
        self.defs.push(def);
        Ok(())
    }

    fn check(&self) -> Made<()> {
        for p in self.params() {
            rust_type(p)
                .or_else(|| option_type(p))
                .ok_or_else(|| format!("{}: no type of Rust for '{p}'", self.name))?;
        }
        for p in self.options_of() {
            option_type(p).ok_or_else(|| format!("{}: no field for '{p}'", self.name))?;
            option_default(p).ok_or_else(|| format!("{}: '{p}' has no default", self.name))?;
        }
        Ok(())
    }

    fn params(&self) -> &'a [FnParam] {
        &self.defs[0].sig.params
    }
    /// Heading of the lists.
    pub fn subject(&self) -> &'a str {
        &self.defs[0].subject
    }
    /// A method of `Tensor`.
    pub fn is_method(&self) -> bool {
        self.method
    }
    fn in_place(&self) -> bool {
        self.method && self.name.ends_with('_')
    }
    fn target(&self) -> Option<usize> {
        self.params().iter().position(|p| p.kind == ParamKind::Target)
    }
    /// The dtype that the target states.
    fn dtype_of_target(&self) -> Option<usize> {
        self.params().iter().position(|p| self.of_target(p) && p.name == "dtype")
    }
    /// Whether the target of a new tensor carries a parameter: its dtype, the generator of its numbers.
    fn of_target(&self, p: &FnParam) -> bool {
        self.target().is_some() && p.keyword_only && (p.name == "dtype" || p.kind == ParamKind::Generator)
    }
    fn options_of(&self) -> impl Iterator<Item = &'a FnParam> {
        self.params().iter().filter(|p| p.keyword_only && p.name != "keepdim" && !self.of_target(p))
    }
    /// Whether it declares options of its own.
    fn has_options(&self) -> bool {
        self.options_of().next().is_some() && !self.in_place()
    }
    fn variants(&self) -> Vec<Variant> {
        let mut all = vec![Variant::Plain];
        all.extend(self.params().iter().any(|p| p.name == "keepdim").then_some(Variant::KeepDim));
        all.extend(self.options_of().next().map(|_| Variant::WithOptions));
        all
    }
    fn name_of(&self, variant: Variant) -> String {
        match variant {
            Variant::Plain => self.name.to_string(),
            Variant::KeepDim => format!("{}_keepdim", self.name),
            Variant::WithOptions if self.in_place() => format!("{}with_", self.name),
            Variant::WithOptions => format!("{}_with", self.name),
        }
    }
    /// A form in place has the options of the function.
    fn options_name(&self) -> String {
        let words = self.name.split('_').filter(|w| !w.is_empty()).map(|w| w[..1].to_uppercase() + &w[1..]);
        format!("{}Options", words.collect::<String>())
    }
    fn path_of(&self, variant: Variant) -> String {
        let name = self.name_of(variant);
        if self.method { format!("Tensor::{name}") } else { format!("functional::{name}") }
    }

    /// Names that the module of the functions exports.
    pub fn exported(&self) -> Vec<&'a str> {
        let mut names: Vec<String> = vec![];
        if !self.method {
            names.extend(self.variants().into_iter().map(|v| self.name_of(v)));
        }
        names.extend(self.has_options().then(|| self.options_name()));
        // They live as long as the program, which ends soon.
        names.into_iter().map(|n| &*n.leak()).collect()
    }
    /// Links of the landing page.
    pub fn links(&self) -> Vec<String> {
        self.variants().into_iter().map(|v| format!("[`{}`]({})", self.name_of(v), self.path_of(v))).collect()
    }

    /// The options, if the function has parameters that are given by name only.
    pub fn options(&self) -> String {
        if !self.has_options() {
            return String::new();
        }
        let (name, with) = (self.options_name(), self.path_of(Variant::WithOptions));
        let (mut fields, mut defaults) = (String::new(), String::new());
        for p in self.options_of() {
            let (ty, default) = (option_type(p).unwrap_or_default(), option_default(p).unwrap_or_default());
            let shown = if p.optional { "Not given".to_string() } else { format!("`{default}`") };
            fields += &format!("    /// `{p}`. {shown} by default.\n    pub {}: {ty},\n", p.name);
            defaults += &format!("            {}: {default},\n", p.name);
        }
        let usual = |p| matches!(option_default(p).as_deref(), Some("None" | "false" | "0" | "vec![]"));
        let (derived, written) = match self.options_of().all(usual) {
            true => (", Default", String::new()),
            false => (
                "",
                format!(
                    "impl Default for {name} {{\n    fn default() -> {name} {{\n        {name} {{\n{defaults}        }}\n    }}\n}}\n\n"
                ),
            ),
        };
        format!(
            "/// Options of [`{with}`](crate::{with}).\n#[derive(Clone, Debug{derived})]\npub struct {name} {{\n\
             {fields}}}\n\n{written}"
        )
    }

    /// A call of the function `name` with its options as they are by default, if it is this one and has any.
    pub fn options_example(&self, name: &str) -> Option<String> {
        if self.name != name || !self.has_options() {
            return None;
        }
        let fields: Vec<String> =
            self.options_of().map(|p| format!("{}: {}", p.name, option_default(p).unwrap_or_default())).collect();
        let (with, options) = (self.path_of(Variant::WithOptions), self.options_name());
        Some(format!("{with}(.., &{options} {{ {} }})", fields.join(", ")))
    }

    /// Code of the method that users call.
    pub fn code(&self, indent: usize) -> String {
        let lines: String = self.variants().into_iter().map(|v| self.docs(v) + &self.body(v) + "\n").collect();
        let pad = "    ".repeat(indent);
        lines.lines().map(|l| if l.is_empty() { "\n".into() } else { format!("{pad}{l}\n") }).collect()
    }

    fn docs(&self, variant: Variant) -> String {
        let doc = match variant {
            Variant::Plain => self.plain_docs(),
            Variant::KeepDim => {
                format!("[`{0}`](crate::{0}) with the reduced dims kept, with size 1.", self.path_of(Variant::Plain))
            }
            Variant::WithOptions => format!("[`{0}`](crate::{0}) with its options.", self.path_of(Variant::Plain)),
        };
        doc.lines().map(|l| if l.is_empty() { "///\n".into() } else { format!("/// {l}\n") }).collect()
    }

    fn plain_docs(&self) -> String {
        let doc = &self.defs[0].doc;
        let (summary, rest) = doc.split_once("\n\n").unwrap_or((doc, ""));
        let texts: Vec<String> = self.defs.iter().map(|d| d.sig.to_string()).collect();
        let mut all = format!("{summary}\n\n```text\n{}\n```", texts.join("\n"));
        if !rest.is_empty() {
            all += &format!("\n\n{rest}");
        }
        let refused = self.refused();
        if !all.contains("# Errors") && !refused.is_empty() {
            all += &format!("\n\n# Errors\nIf {}.", refused.join(", or "));
        }
        all
    }

    /// Sentences on what the declaration of the op refuses, as far as it is data.
    fn refused(&self) -> Vec<String> {
        let Some(op) = op_of(self.defs[0]) else { return vec![] };
        let mut all = vec![];
        for input in &op.sig.inputs {
            let wanted = match input.dtypes.class() {
                Some(DTypeClass::Real | DTypeClass::Number | DTypeClass::Builtin | DTypeClass::Any) => continue,
                Some(DTypeClass::Float) => "float".to_string(),
                Some(DTypeClass::Complex) => "complex".to_string(),
                Some(DTypeClass::Int) => "integer".to_string(),
                Some(DTypeClass::Bool) => "bool".to_string(),
                Some(DTypeClass::Num) => "number".to_string(),
                None => input.dtypes.to_string().replace('|', " or "),
            };
            all.push(format!("`{}` is not a tensor of {wanted}", input.name));
        }
        if matches!(op.shape, ShapeRule::Broadcast) && (op.sig.inputs.len() > 1 || self.operand.is_some()) {
            all.push("the shapes do not broadcast".into());
        }
        if self.in_place() {
            all.push("the result has another shape or dtype".into());
        }
        all
    }

    fn body(&self, variant: Variant) -> String {
        let mut args: Vec<String> = vec![];
        let mut generics: Vec<&str> = vec![];
        for (i, p) in self.params().iter().enumerate() {
            if i == 0 && self.method {
                args.push("&self".into());
                continue;
            }
            if p.keyword_only || p.name == "keepdim" {
                continue;
            }
            let ty = if self.operand == Some(i) {
                generics.push("'a");
                "impl Into<RightOperand<'a>>"
            } else {
                rust_type(p).unwrap_or_default()
            };
            // Two lists may be of tensors and of references to them.
            let second = generics.contains(&"T: Borrow<Tensor>");
            let ty = if second { ty.replace("[T]", "[U]") } else { ty.to_string() };
            if p.kind == ParamKind::TensorTuple {
                generics.push(if second { "U: Borrow<Tensor>" } else { "T: Borrow<Tensor>" });
            }
            args.push(format!("{}: {ty}", p.name));
        }
        if variant == Variant::WithOptions {
            args.push(format!("options: &crate::functional::{}", self.options_name()));
        }
        let generics = if generics.is_empty() { String::new() } else { format!("<{}>", generics.join(", ")) };
        let returns = match &self.defs[0].sig.returns {
            _ if self.in_place() => "&Tensor",
            FnReturn::Void => "()",
            FnReturn::Tensor => "Tensor",
            FnReturn::TensorTuple | FnReturn::Named(_) => "Vec<Tensor>",
            // Functions that give no tensor are written by hand.
            FnReturn::Value(_) => "AttrValue",
        };
        let mut head =
            format!("pub fn {}{generics}({}) -> Result<{returns}> {{", self.name_of(variant), args.join(", "));
        if head.len() > 112 {
            head = format!(
                "pub fn {}{generics}(\n    {},\n) -> Result<{returns}> {{",
                self.name_of(variant),
                args.join(",\n    ")
            );
        }
        format!("#[track_caller]\n{head}\n{}}}\n", self.statements(variant))
    }

    fn statements(&self, variant: Variant) -> String {
        let mut lines: Vec<String> = vec![];
        for p in self.params() {
            match p.kind {
                ParamKind::TensorTuple if self.code.is_some() => lines.push(format!(
                    "let {0}: SmallVec<[&Tensor; 8]> = {0}.as_ref().iter().map(|t| t.borrow()).collect();",
                    p.name
                )),
                ParamKind::TensorTuple => lines.push(format!(
                    "let {0}: SmallVec<[Option<&Tensor>; 4]> = {0}.as_ref().iter().map(|t| Some(t.borrow())).collect();",
                    p.name
                )),
                ParamKind::Target => lines.push(format!("let {0} = {0}.into_target();", p.name)),
                _ => {}
            }
        }
        // Functions of several ops draw their numbers themselves.
        let generator = self.params().iter().find(|p| p.kind == ParamKind::Generator && self.code.is_none());
        if let Some(p) = generator {
            lines.push("let site = CallSite::here();".into());
            let numbers = match (self.target(), variant) {
                (Some(at), _) => format!("{}.drawn()", self.params()[at].name),
                (None, Variant::WithOptions) => format!("super::super::draw::drawn(options.{}.as_ref())", p.name),
                _ => "super::super::draw::drawn(None)".into(),
            };
            lines.push(format!("let [seed, ordinal] = {numbers}.map_err(|e| e.at(site))?;"));
        }
        let ok = if self.in_place() { "?;\nOk(self)" } else { "" };
        match (self.operand, self.code) {
            (Some(at), _) => {
                lines.push("let site = CallSite::here();".into());
                let p = &self.params()[at];
                lines.push(format!("let {0} = {0}.into();\nmatch {0}.operand() {{", p.name));
                for (def, kind) in self.defs.iter().zip(["Tensor", "Scalar"]) {
                    let name = &def.sig.params[at].name;
                    lines.push(format!("    Operand::{kind}({name}) => {},", self.call_op(def, variant, true, "site")));
                }
                lines.push(if self.in_place() { format!("}}{ok}") } else { "}".into() });
            }
            (None, Some(path)) => {
                let path = path.strip_prefix("oflow::functional::").unwrap_or(path);
                let mut args: Vec<String> =
                    (0..self.params().len()).filter_map(|i| self.plain_value(i, variant)).collect();
                args.push("CallSite::here()".into());
                lines.push(format!("super::super::{path}({}){ok}", args.join(", ")));
            }
            (None, None) => {
                let random = self.params().iter().any(|p| p.kind == ParamKind::Generator);
                let site = if random { "site" } else { "CallSite::here()" };
                lines.push(format!("{}{ok}", self.call_op(self.defs[0], variant, false, site)));
            }
        }
        lines.join("\n").lines().map(|l| format!("    {l}\n")).collect()
    }

    /// A parameter as the code of a function takes it; none for what another parameter carries.
    fn plain_value(&self, i: usize, variant: Variant) -> Option<String> {
        let p = &self.params()[i];
        if self.of_target(p) {
            return None;
        }
        let name = &p.name;
        Some(match p.kind {
            _ if i == 0 && self.method => "self".into(),
            _ if name == "keepdim" => (variant == Variant::KeepDim).to_string(),
            _ if p.keyword_only => self.option_value(p, variant),
            ParamKind::TensorTuple | ParamKind::Target => format!("&{name}"),
            ParamKind::Attr(AttrKind::Int) if !p.optional => format!("{name}.int()"),
            ParamKind::Attr(AttrKind::Scalar) if !p.optional => format!("{name}.into()"),
            ParamKind::Attr(AttrKind::Ints) => format!("&{name}.ints()"),
            ParamKind::Attr(AttrKind::Shape | AttrKind::Floats) => format!("{name}.as_ref()"),
            _ => name.clone(),
        })
    }

    fn option_value(&self, p: &FnParam, variant: Variant) -> String {
        match (variant, p.kind) {
            (Variant::WithOptions, ParamKind::Tensor | ParamKind::Generator) => format!("options.{}.as_ref()", p.name),
            (Variant::WithOptions, ParamKind::Attr(AttrKind::Ints | AttrKind::Floats)) => {
                format!("&options.{}", p.name)
            }
            (Variant::WithOptions, _) => format!("options.{}", p.name),
            (_, ParamKind::Attr(AttrKind::Ints | AttrKind::Floats)) => {
                option_default(p).unwrap_or_default().replace("vec!", "&")
            }
            _ => option_default(p).unwrap_or_default(),
        }
    }

    /// The call of an op.
    fn call_op(&self, def: &FnDef, variant: Variant, number: bool, site: &str) -> String {
        let Some(op) = op_of(def) else { return String::new() };
        let mut inputs: Vec<String> = vec![];
        let mut list = None;
        for (i, p) in def.sig.params.iter().enumerate() {
            match p.kind {
                ParamKind::Tensor if i == 0 && self.method => inputs.push("Some(self)".into()),
                ParamKind::Tensor if p.optional => inputs.push(p.name.clone()),
                ParamKind::Tensor => inputs.push(format!("Some({})", p.name)),
                ParamKind::TensorTuple => list = Some(format!("&{}", p.name)),
                _ => {}
            }
        }
        let inputs = list.unwrap_or_else(|| format!("&[{}]", inputs.join(", ")));
        let value = |name: &str, default: &Option<AttrValue>, runtime: bool| -> String {
            let random = def.sig.params.iter().any(|p| p.kind == ParamKind::Generator);
            if random && (name == "seed" || name == "ordinal") {
                return name.to_string();
            }
            let Some((i, p)) = def.sig.params.iter().enumerate().find(|(_, p)| p.name == name) else {
                return constant(default.as_ref().unwrap_or(&AttrValue::Absent));
            };
            // In an arm of a match the number is one already.
            if number && self.operand == Some(i) {
                return name.to_string();
            }
            if self.dtype_of_target() == Some(i) {
                let target = &self.params()[self.target().unwrap_or_default()].name;
                let usual = p.default.as_ref().map_or_else(String::new, dtype_of);
                return format!("{target}.dtype_or({usual}).into()");
            }
            match p.kind {
                _ if name == "keepdim" => format!("{}.into()", variant == Variant::KeepDim),
                ParamKind::Attr(AttrKind::Scalar)
                    if p.keyword_only && !p.optional && runtime && variant == Variant::WithOptions =>
                {
                    format!("options.{name}")
                }
                _ if p.keyword_only && variant == Variant::WithOptions => format!("options.{name}.into()"),
                _ if p.keyword_only => constant(p.default.as_ref().unwrap_or(&AttrValue::Absent)),
                ParamKind::Attr(AttrKind::Int) => format!("{name}.int().into()"),
                ParamKind::Attr(AttrKind::Ints) if !runtime => format!("AttrValue::Ints({name}.ints())"),
                ParamKind::Attr(AttrKind::Shape) => format!("AttrValue::from({name}.as_ref())"),
                _ => format!("{name}.into()"),
            }
        };
        let attrs: Vec<String> = op.sig.attrs.iter().map(|a| value(&a.name, &a.default, false)).collect();
        let numbers: Vec<String> = op.sig.runtime.iter().map(|a| value(&a.name, &a.default, true)).collect();
        let (attrs, numbers) =
            (format!("smallvec![{}]", attrs.join(", ")), format!("smallvec![{}]", numbers.join(", ")));
        let called = format!("op!({:?})", op.name());
        if let Some(target) = self.target() {
            let target = &self.params()[target].name;
            return format!("super::super::create({called}, {attrs}, {numbers}, {target}.target(), {site})");
        }
        if self.in_place() {
            return format!("write_over({called}, {inputs}, {attrs}, {numbers}, {site})");
        }
        match def.sig.returns {
            FnReturn::Tensor if op.sig.outputs.len() == 1 => {
                format!("invoke1({called}, {inputs}, {attrs}, {numbers}, {site})")
            }
            FnReturn::Tensor => format!("Ok(invoke({called}, {inputs}, {attrs}, {numbers}, {site})?.swap_remove(0))"),
            FnReturn::Void => format!("invoke({called}, {inputs}, {attrs}, {numbers}, {site}).map(drop)"),
            _ => format!("Ok(invoke({called}, {inputs}, {attrs}, {numbers}, {site})?.into_vec())"),
        }
    }
}

/// The op that a function is.
fn op_of(def: &FnDef) -> Option<&'static Op> {
    match &def.body {
        FnBody::Op(name) | FnBody::InPlace(name) => find(name).ok(),
        FnBody::Code(_) | FnBody::Value(_) => None,
    }
}

/// Code that reads the arguments of a call by name, as a row of the list; none where the function is an op or written by
/// hand.
pub fn adapter(def: &FnDef) -> Option<String> {
    let path = def.rust.as_ref()?.code?;
    let path = path.strip_prefix("oflow::functional::").unwrap_or(path);
    let params = &def.sig.params;
    let has_target = params.iter().any(|p| p.kind == ParamKind::Target);
    let dtype = params.iter().position(|p| has_target && p.name == "dtype");
    let generator = params.iter().position(|p| has_target && p.kind == ParamKind::Generator);
    let mut args: Vec<String> = vec![];
    for (i, p) in params.iter().enumerate().filter(|(i, _)| Some(*i) != dtype && Some(*i) != generator) {
        let read = |how: &str| if p.optional { format!("b.{how}({i}).ok()") } else { format!("b.{how}({i})?") };
        args.push(match p.kind {
            ParamKind::Tensor if p.optional => format!("b.tensor({i})"),
            ParamKind::Tensor => format!("b.given({i})?"),
            ParamKind::TensorTuple => format!("&b.tensors({i})?.iter().collect::<Vec<_>>()"),
            ParamKind::Target => match generator {
                Some(g) => format!("&b.drawing_target_of({i}, {dtype:?}, {g})?"),
                None => format!("&b.target_of({i}, {dtype:?})?"),
            },
            ParamKind::Generator => format!("b.generator({i})"),
            ParamKind::Attr(AttrKind::Int) => read("int"),
            ParamKind::Attr(AttrKind::Float) => read("float"),
            ParamKind::Attr(AttrKind::Bool) => read("bool"),
            ParamKind::Attr(AttrKind::Scalar) => read("scalar"),
            ParamKind::Attr(AttrKind::Str) => read("text"),
            ParamKind::Attr(AttrKind::Ints) => read("ints"),
            ParamKind::Attr(AttrKind::Floats) => read("floats"),
            ParamKind::Attr(AttrKind::Shape) => format!("&b.shape({i})?"),
            ParamKind::Attr(AttrKind::DType) if p.optional => format!("b.dtype({i})"),
            ParamKind::Attr(AttrKind::DType) => format!("b.given_dtype({i})?"),
            ParamKind::Attr(AttrKind::Device) => read("device"),
            _ => return None,
        });
    }
    args.push("b.site".into());
    let call = format!("super::super::{path}({})", args.join(", "));
    let in_place = def.rust.as_ref().is_some_and(|r| r.method && r.name.ends_with('_'));
    let code = match &def.sig.returns {
        _ if in_place => format!("{{\n        {call}?;\n        Ok(vec![b.given(0)?.clone()])\n    }}"),
        FnReturn::Void => format!("{{\n        {call}?;\n        Ok(vec![])\n    }}"),
        FnReturn::Tensor => format!("Ok(vec![{call}?])"),
        _ => call,
    };
    Some(format!("    ({:?}, |b| {code}),\n", def.sig.to_string()))
}

/// The type of a plain argument.
fn rust_type(p: &FnParam) -> Option<&'static str> {
    use AttrKind as A;
    Some(match (p.kind, p.optional) {
        (ParamKind::Tensor, false) => "&Tensor",
        (ParamKind::Tensor, true) => "Option<&Tensor>",
        (ParamKind::Generator, true) => "Option<&Generator>",
        (ParamKind::TensorTuple, false) => "impl AsRef<[T]>",
        (ParamKind::Target, false) => "impl IntoTarget",
        (ParamKind::Attr(A::Int), false) => "impl IntLike",
        (ParamKind::Attr(A::Scalar), false) => "impl Into<Scalar>",
        (ParamKind::Attr(A::Ints), false) => "impl IntList",
        (ParamKind::Attr(A::Floats), false) => "impl AsRef<[f64]>",
        (ParamKind::Attr(A::Shape), false) => "impl AsRef<[usize]>",
        (ParamKind::Attr(A::Str), false) => "&str",
        (ParamKind::Attr(A::Placement), false) => "&Placement",
        (ParamKind::Attr(A::NdSbp), false) => "&NdSbp",
        _ => return option_type(p),
    })
}

/// The type of a field of options.
fn option_type(p: &FnParam) -> Option<&'static str> {
    use AttrKind as A;
    Some(match (p.kind, p.optional) {
        (ParamKind::Generator, true) => "Option<Generator>",
        (ParamKind::Tensor, true) => "Option<Tensor>",
        (ParamKind::Attr(A::Str), false) => "&'static str",
        (ParamKind::Attr(A::Ints), false) => "Vec<i64>",
        (ParamKind::Attr(A::Floats), false) => "Vec<f64>",
        (ParamKind::Attr(A::Int), false) => "i64",
        (ParamKind::Attr(A::Int), true) => "Option<i64>",
        (ParamKind::Attr(A::Float), false) => "f64",
        (ParamKind::Attr(A::Float), true) => "Option<f64>",
        (ParamKind::Attr(A::Bool), false) => "bool",
        (ParamKind::Attr(A::Bool), true) => "Option<bool>",
        (ParamKind::Attr(A::Scalar), false) => "Scalar",
        (ParamKind::Attr(A::Scalar), true) => "Option<Scalar>",
        (ParamKind::Attr(A::DType), false) => "DType",
        (ParamKind::Attr(A::DType), true) => "Option<DType>",
        (ParamKind::Attr(A::Device), false) => "Device",
        _ => return None,
    })
}

/// The value of a field that is not given.
fn option_default(p: &FnParam) -> Option<String> {
    Some(match (&p.default, p.optional) {
        (None, true) => "None".into(),
        (Some(AttrValue::Int(n)), _) => n.to_string(),
        (Some(AttrValue::Float(x)), _) => format!("{x:?}"),
        (Some(AttrValue::Bool(b)), _) => b.to_string(),
        (Some(AttrValue::Str(text)), _) => format!("{text:?}"),
        (Some(AttrValue::Scalar(s)), _) => scalar_of(*s),
        (Some(AttrValue::Ints(v)), _) => format!("vec!{:?}", v.as_slice()),
        (Some(AttrValue::Floats(v)), _) => format!("vec!{:?}", v.as_slice()),
        (Some(v @ AttrValue::DType(_)), _) => dtype_of(v),
        _ => return None,
    })
}

fn scalar_of(s: Scalar) -> String {
    match s {
        Scalar::Int(n) => format!("Scalar::Int({n})"),
        Scalar::Float(x) => format!("Scalar::Float({x:?})"),
        Scalar::Bool(b) => format!("Scalar::Bool({b})"),
        Scalar::Complex(re, im) => format!("Scalar::Complex({re:?}, {im:?})"),
    }
}

fn dtype_of(v: &AttrValue) -> String {
    format!("DType::{}", v.to_string().to_uppercase()).replace("DType::BOOL", "DType::Bool")
}

/// A value that a call always has.
fn constant(v: &AttrValue) -> String {
    match v {
        AttrValue::Int(n) => format!("{n}i64.into()").replace("-1i64", "(-1i64)"),
        AttrValue::Float(x) => format!("({x:?}).into()").replace("(-", "(-"),
        AttrValue::Bool(b) => format!("{b}.into()"),
        AttrValue::Scalar(s) => scalar_of(*s),
        AttrValue::Str(text) => format!("{text:?}.into()"),
        AttrValue::Ints(v) => format!("AttrValue::Ints(smallvec!{:?})", v.as_slice()),
        v @ AttrValue::DType(_) => format!("{}.into()", dtype_of(v)),
        _ => "AttrValue::Absent".into(),
    }
}
