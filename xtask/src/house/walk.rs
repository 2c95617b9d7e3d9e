//! Walks: which files a reader goes through to follow one value.
//!
//! A *walk* is the sequence of the project's functions that are entered when one call is followed. It starts in one function
//! with one followed parameter. The body is read in source order; a call whose receiver or an argument is the followed value enters
//! the called function, whose parameter is followed there. Each function is entered once. Going back to the caller is not
//! counted: the sequence is that of entries.
//!
//! What is computed from the followed value is followed too: its fields, the results of calls that are given it and of methods
//! on it, what is lent mutably to such a call, the closures that use it, and a struct that has it in a field (a *holder*, as `Run { call, .. }`). A holder is
//! followed as a whole, and of its fields the one with the value.
//!
//! A function is found by its path (the file's own items, its `use` declarations, the module tree), a method by the type of
//! its receiver where that is known, else by its name where only one function of the room has it. A call through a variable
//! or a field enters the functions named in the tables (`const`, `static`) that the body names, in their order.
//!
//! Left out are functions outside of the rooms, `#[cold]` ones unless they are asked for, and what stands in error paths: arguments of `Err`, closures
//! given to `map_err` and `ok_or_else`, and the macros that make text.
//!
//! Consecutive functions of one file are one *stay*. A stay in a file that has been left is a *return*: returns = stays − files.

mod lent;
mod names;

use super::functions::{Function, Functions, Ty, TypeId, ident_of, params_of};
use crate::source::Source;
use lent::lent;
use names::{FOR_ERRORS, HANDS_ON, OF_STD, TEXT};
use std::collections::{BTreeMap, BTreeSet};
use syn::{Expr, Pat, Stmt};

/// How a value is followed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Followed {
    No,
    /// A struct that has the value in a field.
    Holder,
    /// The value, or a field of it.
    Value,
}

#[derive(Clone, Debug)]
struct Val {
    how: Followed,
    ty: Ty,
}

impl Val {
    fn other(ty: Ty) -> Val {
        Val { how: Followed::No, ty }
    }

    fn followed(&self) -> bool {
        self.how != Followed::No
    }
}

/// Local names and what they hold.
type Env = BTreeMap<String, Val>;

/// Consecutive entries of one file.
#[derive(Debug)]
pub struct Stay {
    pub file: usize,
    pub functions: Vec<String>,
}

/// A walk that is done.
pub struct Walk {
    pub stays: Vec<Stay>,
    /// Calls that are given the value and whose function was not found, as `file: name`.
    pub open: BTreeSet<String>,
}

impl Walk {
    /// Number of distinct files.
    pub fn files(&self) -> usize {
        self.stays.iter().map(|s| s.file).collect::<BTreeSet<_>>().len()
    }

    /// Stays in a file that has been left.
    pub fn returns(&self) -> usize {
        self.stays.len() - self.files()
    }
}

/// Functions that a walk enters.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Folders whose files are entered.
    pub rooms: &'a [&'a str],
    /// Names of functions that are not entered: branches that the followed call does not take.
    pub skips: &'a [&'a str],
    /// Whether `#[cold]` functions are entered.
    pub cold: bool,
}

struct Walker<'a> {
    source: &'a Source,
    functions: &'a Functions<'a>,
    limits: Limits<'a>,
    /// The type of the followed parameter.
    root: Option<TypeId>,
    entered: Vec<usize>,
    seen: BTreeSet<usize>,
    open: BTreeSet<String>,
    /// The function whose body is being read.
    at: usize,
    closures: BTreeMap<String, &'a syn::ExprClosure>,
}

/// Follows the parameter of a function of a file, within limits.
///
/// # Errors
/// The file has no such function, or the function no such parameter.
pub fn walk(
    source: &Source,
    functions: &Functions<'_>,
    start: (&str, &str, &str),
    limits: Limits<'_>,
) -> Result<Walk, String> {
    let (file, name, param) = start;
    let here = |f: &Function<'_>| source.files[f.file].path == file && f.name == name;
    let found = functions.all.iter().position(here).ok_or_else(|| format!("{file} has no function {name}"))?;
    let mut walker = Walker {
        source,
        functions,
        limits,
        root: None,
        entered: vec![],
        seen: BTreeSet::new(),
        open: BTreeSet::new(),
        at: found,
        closures: BTreeMap::new(),
    };
    let names: Vec<String> = params_of(&functions.all[found]).into_iter().map(|(n, _)| n).collect();
    let Some(n) = names.iter().position(|n| n == param) else {
        return Err(format!("{file}: {name} has no parameter {param}, only {}", names.join(", ")));
    };
    if let Ty::Is(id) = walker.param_types(found)[n].clone() {
        walker.root = Some(id);
    }
    let args: Vec<Val> = (0..names.len())
        .map(|i| Val { how: if i == n { Followed::Value } else { Followed::No }, ty: Ty::Unknown })
        .collect();
    walker.enter(found, &args);
    let mut stays: Vec<Stay> = vec![];
    for f in &walker.entered {
        let f = &functions.all[*f];
        match stays.last_mut() {
            Some(s) if s.file == f.file => s.functions.push(f.name.clone()),
            _ => stays.push(Stay { file: f.file, functions: vec![f.name.clone()] }),
        }
    }
    Ok(Walk { stays, open: walker.open })
}

impl<'a> Walker<'a> {
    fn param_types(&self, index: usize) -> Vec<Ty> {
        let f = &self.functions.all[index];
        let of = |t: Option<&syn::Type>| match (t, &f.owner) {
            (None, Some(owner)) => Ty::Is(owner.clone()),
            (None, None) => Ty::Unknown,
            (Some(t), owner) => self.functions.type_of(self.source, f.module, owner.as_ref(), t),
        };
        params_of(f).into_iter().map(|(_, t)| of(t)).collect()
    }

    /// Enters a function with what it is given, unless it has been entered, is cold or stands outside of the room.
    fn enter(&mut self, index: usize, args: &[Val]) {
        let f = &self.functions.all[index];
        let Limits { skips, cold, .. } = self.limits;
        let left_out = (f.cold && !cold) || skips.contains(&f.name.as_str());
        if left_out || !self.is_inside(f) || !self.seen.insert(index) {
            return;
        }
        self.entered.push(index);
        let mut env = Env::new();
        let types = self.param_types(index);
        for (((name, _), ty), arg) in params_of(f).into_iter().zip(types).zip(args) {
            let ty = if ty == Ty::Unknown { arg.ty.clone() } else { ty };
            env.insert(name, Val { how: arg.how, ty });
        }
        let (back, closures) = (std::mem::replace(&mut self.at, index), std::mem::take(&mut self.closures));
        self.block(f.body, &mut env);
        (self.at, self.closures) = (back, closures);
    }

    fn module(&self) -> usize {
        self.functions.all[self.at].module
    }

    fn block(&mut self, block: &'a syn::Block, env: &mut Env) -> Val {
        let mut last = Val::other(Ty::Foreign);
        for stmt in &block.stmts {
            match stmt {
                Stmt::Local(l) => {
                    let Some(init) = &l.init else { continue };
                    if let (Expr::Closure(c), Some(name)) = (&*init.expr, ident_of(&l.pat)) {
                        // Read where it is called or given on.
                        let how = if self.uses(c, env) { Followed::Holder } else { Followed::No };
                        env.insert(name.clone(), Val { how, ty: Ty::Foreign });
                        self.closures.insert(name, c);
                        continue;
                    }
                    let mut val = self.expr(&init.expr, env);
                    if let Pat::Type(t) = &l.pat {
                        let owner = self.functions.all[self.at].owner.clone();
                        val.ty = self.functions.type_of(self.source, self.module(), owner.as_ref(), &t.ty);
                    }
                    self.bind(&l.pat, &val, env);
                    if let Some((_, otherwise)) = &init.diverge {
                        self.expr(otherwise, env);
                    }
                }
                Stmt::Expr(e, semi) => {
                    last = self.expr(e, env);
                    if semi.is_some() {
                        last = Val::other(Ty::Foreign);
                    }
                }
                Stmt::Macro(m) => _ = self.mac(&m.mac, env),
                Stmt::Item(_) => {}
            }
        }
        last
    }

    /// Gives the names of a pattern the value; of a holder nothing is known of the parts.
    fn bind(&self, pat: &Pat, val: &Val, env: &mut Env) {
        let part = || match val.how {
            Followed::Value => Val { how: Followed::Value, ty: val.ty.clone().inner() },
            _ => Val::other(Ty::Unknown),
        };
        match pat {
            Pat::Ident(i) => _ = env.insert(i.ident.to_string(), val.clone()),
            Pat::Type(t) => self.bind(&t.pat, val, env),
            Pat::Reference(r) => self.bind(&r.pat, val, env),
            Pat::Paren(p) => self.bind(&p.pat, val, env),
            Pat::TupleStruct(t) => {
                let some = t.path.segments.last().is_some_and(|s| s.ident == "Some" || s.ident == "Ok");
                let val = if some { Val { how: val.how, ty: val.ty.clone().inner() } } else { part() };
                t.elems.iter().for_each(|p| self.bind(p, &val, env));
            }
            Pat::Tuple(t) => t.elems.iter().for_each(|p| self.bind(p, &Val { ty: Ty::Unknown, ..part() }, env)),
            Pat::Slice(t) => t.elems.iter().for_each(|p| self.bind(p, &part(), env)),
            Pat::Struct(s) => {
                for f in &s.fields {
                    let ty = match (&val.ty, &f.member) {
                        (Ty::Is(id), syn::Member::Named(n)) => self.functions.field(self.source, id, &n.to_string()),
                        _ => Ty::Unknown,
                    };
                    self.bind(&f.pat, &Val { ty, ..part() }, env);
                }
            }
            Pat::Or(o) => o.cases.iter().for_each(|p| self.bind(p, val, env)),
            _ => {}
        }
    }

    /// Whether a closure names a followed value.
    fn uses(&self, closure: &syn::ExprClosure, env: &Env) -> bool {
        struct Names<'e>(&'e Env, bool);
        impl<'ast> syn::visit::Visit<'ast> for Names<'_> {
            fn visit_ident(&mut self, i: &'ast proc_macro2::Ident) {
                self.1 |= self.0.get(&i.to_string()).is_some_and(Val::followed);
            }
        }
        let mut names = Names(env, false);
        syn::visit::visit_expr(&mut names, &closure.body);
        names.1
    }

    /// Reads the body of a closure, whose parameters hold `given`.
    fn closure(&mut self, c: &'a syn::ExprClosure, given: &Val, env: &Env) {
        let mut env = env.clone();
        c.inputs.iter().for_each(|p| self.bind(p, given, &mut env));
        self.expr(&c.body, &mut env);
    }

    /// Reads an expression in the order of its evaluation.
    fn expr(&mut self, e: &'a Expr, env: &mut Env) -> Val {
        match e {
            Expr::Path(p) => match p.path.get_ident().and_then(|i| env.get(&i.to_string())) {
                Some(val) => val.clone(),
                None => Val::other(Ty::Unknown),
            },
            Expr::Reference(r) => self.expr(&r.expr, env),
            Expr::Paren(p) => self.expr(&p.expr, env),
            Expr::Group(p) => self.expr(&p.expr, env),
            Expr::Unary(u) => self.expr(&u.expr, env),
            Expr::Try(t) => {
                let val = self.expr(&t.expr, env);
                Val { ty: val.ty.inner(), ..val }
            }
            Expr::Field(f) => self.field(f, env),
            Expr::Index(i) => {
                self.expr(&i.index, env);
                let val = self.expr(&i.expr, env);
                Val { how: val.how, ty: val.ty.inner() }
            }
            Expr::Call(c) => self.call(c, env),
            Expr::MethodCall(m) => self.method_call(m, env),
            Expr::Struct(s) => self.literal(s, env),
            Expr::Macro(m) => self.mac(&m.mac, env),
            Expr::Closure(c) => {
                let how = if self.uses(c, env) { Followed::Holder } else { Followed::No };
                Val { how, ty: Ty::Foreign }
            }
            Expr::Block(b) => self.block(&b.block, env),
            Expr::Unsafe(b) => self.block(&b.block, env),
            Expr::If(i) => {
                self.expr(&i.cond, env);
                let val = self.block(&i.then_branch, env);
                match &i.else_branch {
                    Some((_, e)) => {
                        let other = self.expr(e, env);
                        if other.how > val.how { other } else { val }
                    }
                    None => val,
                }
            }
            Expr::Let(l) => {
                let val = self.expr(&l.expr, env);
                self.bind(&l.pat, &val, env);
                Val::other(Ty::Foreign)
            }
            Expr::Match(m) => {
                let val = self.expr(&m.expr, env);
                let mut last = Val::other(Ty::Unknown);
                for arm in &m.arms {
                    match (&arm.pat, &*m.expr) {
                        (Pat::Tuple(t), Expr::Tuple(of)) => {
                            for (p, e) in t.elems.iter().zip(&of.elems) {
                                let val = self.quiet(e, env);
                                self.bind(p, &val, env);
                            }
                        }
                        _ => self.bind(&arm.pat, &val, env),
                    }
                    if let Some((_, guard)) = &arm.guard {
                        self.expr(guard, env);
                    }
                    let val = self.expr(&arm.body, env);
                    if val.how > last.how || last.ty == Ty::Unknown {
                        last = val;
                    }
                }
                last
            }
            Expr::ForLoop(f) => {
                let val = self.expr(&f.expr, env);
                self.bind(&f.pat, &Val { ty: val.ty.inner(), ..val }, env);
                self.block(&f.body, env);
                Val::other(Ty::Foreign)
            }
            Expr::While(w) => {
                self.expr(&w.cond, env);
                self.block(&w.body, env)
            }
            Expr::Loop(l) => self.block(&l.body, env),
            Expr::Return(r) => r.expr.as_ref().map_or(Val::other(Ty::Foreign), |e| self.expr(e, env)),
            Expr::Break(b) => b.expr.as_ref().map_or(Val::other(Ty::Foreign), |e| self.expr(e, env)),
            Expr::Tuple(t) => self.all(t.elems.iter(), env),
            Expr::Array(a) => self.all(a.elems.iter(), env),
            Expr::Binary(b) => {
                self.expr(&b.left, env);
                self.expr(&b.right, env);
                Val::other(Ty::Foreign)
            }
            Expr::Assign(a) => {
                let val = self.expr(&a.right, env);
                if let Expr::Path(p) = &*a.left
                    && let Some(name) = p.path.get_ident()
                {
                    env.insert(name.to_string(), val);
                }
                Val::other(Ty::Foreign)
            }
            Expr::Cast(c) => self.expr(&c.expr, env),
            Expr::Range(r) => {
                r.start.iter().chain(&r.end).for_each(|e| _ = self.expr(e, env));
                Val::other(Ty::Foreign)
            }
            Expr::Await(a) => self.expr(&a.base, env),
            _ => Val::other(Ty::Unknown),
        }
    }

    /// Value of an expression, without entering what it calls: the expression has been read before.
    fn quiet(&mut self, e: &'a Expr, env: &mut Env) -> Val {
        match e {
            Expr::Path(_) | Expr::Field(_) | Expr::Reference(_) => self.expr(e, env),
            _ => Val::other(Ty::Unknown),
        }
    }

    fn all(&mut self, parts: impl Iterator<Item = &'a Expr>, env: &mut Env) -> Val {
        let how = parts.map(|e| self.expr(e, env).how).max().unwrap_or(Followed::No);
        Val { how, ty: Ty::Foreign }
    }

    fn field(&mut self, f: &'a syn::ExprField, env: &mut Env) -> Val {
        let base = self.expr(&f.base, env);
        let ty = match (&base.ty, &f.member) {
            (Ty::Is(id), syn::Member::Named(n)) => self.functions.field(self.source, id, &n.to_string()),
            (Ty::Is(id), syn::Member::Unnamed(n)) => self.functions.field(self.source, id, &n.index.to_string()),
            _ => Ty::Unknown,
        };
        let how = match (base.how, &ty) {
            (Followed::Holder, Ty::Is(id) | Ty::Of(id)) if Some(id) == self.root.as_ref() => Followed::Value,
            (Followed::Holder, _) => Followed::No,
            (how, _) => how,
        };
        Val { how, ty }
    }

    fn literal(&mut self, s: &'a syn::ExprStruct, env: &mut Env) -> Val {
        let parts: Vec<&Expr> = s.fields.iter().map(|f| &f.expr).chain(s.rest.as_deref()).collect();
        let given = self.all(parts.into_iter(), env).followed();
        let owner = self.functions.all[self.at].owner.clone();
        let path = syn::TypePath { qself: None, path: s.path.clone() };
        let ty = self.functions.type_of(self.source, self.module(), owner.as_ref(), &syn::Type::Path(path));
        let how = match &ty {
            _ if !given => Followed::No,
            Ty::Is(id) if Some(id) == self.root.as_ref() => Followed::Value,
            _ => Followed::Holder,
        };
        Val { how, ty }
    }

    /// Arguments of a macro that looks like a call, as `smallvec![f(call)]`.
    fn mac(&mut self, m: &syn::Macro, env: &mut Env) -> Val {
        use syn::parse::Parser;
        let name = m.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        if TEXT.contains(&name.as_str()) {
            return Val::other(Ty::Foreign);
        }
        let list = syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated;
        let Ok(parts) = list.parse2(m.tokens.clone()) else { return Val::other(Ty::Foreign) };
        // Kept for the life of the program, like the rest of the sources.
        let parts: &'static Vec<Expr> = Box::leak(Box::new(parts.into_iter().collect()));
        self.all(parts.iter(), env)
    }

    /// Reads the closures among arguments, those given by name too.
    fn closures(&mut self, args: &[&'a Expr], given: &Val, env: &mut Env) {
        for arg in args {
            match arg {
                Expr::Closure(c) => self.closure(c, given, env),
                Expr::Reference(r) => self.closures(&[&r.expr], given, env),
                Expr::Path(p) => {
                    let name = p.path.get_ident().map(ToString::to_string).unwrap_or_default();
                    if let Some(c) = self.closures.remove(&name) {
                        self.closure(c, given, env);
                    }
                }
                _ => {}
            }
        }
    }

    fn call(&mut self, c: &'a syn::ExprCall, env: &mut Env) -> Val {
        let args: Vec<&Expr> = c.args.iter().collect();
        let Expr::Path(p) = &*c.func else {
            let func = self.expr(&c.func, env);
            let vals: Vec<Val> = args.iter().map(|a| self.expr(a, env)).collect();
            return self.indirect(&func, &args, &vals, env);
        };
        let path: Vec<String> = p.path.segments.iter().map(|s| s.ident.to_string()).collect();
        if path.len() == 1 && path[0] == "Err" {
            return Val::other(Ty::Foreign);
        }
        let vals: Vec<Val> = args.iter().map(|a| self.expr(a, env)).collect();
        if path.len() == 1 && (path[0] == "Ok" || path[0] == "Some" || path[0] == "Box") {
            return vals.into_iter().next().unwrap_or(Val::other(Ty::Foreign));
        }
        if path.len() == 1
            && let Some(func) = env.get(&path[0]).cloned()
        {
            if let Some(closure) = self.closures.remove(&path[0]) {
                self.closure(closure, &Val::other(Ty::Unknown), env);
                return Val::other(Ty::Unknown);
            }
            return self.indirect(&func, &args, &vals, env);
        }
        let owner = self.functions.all[self.at].owner.clone();
        let found = self.functions.named(self.source, self.module(), owner.as_ref(), &path);
        self.go(found, path.last().map_or("", String::as_str), &args, vals, env)
    }

    fn method_call(&mut self, m: &'a syn::ExprMethodCall, env: &mut Env) -> Val {
        let name = m.method.to_string();
        let receiver = self.expr(&m.receiver, env);
        let args: Vec<&Expr> = m.args.iter().collect();
        if FOR_ERRORS.contains(&name.as_str()) {
            return receiver;
        }
        let mut vals = vec![receiver.clone()];
        vals.extend(args.iter().map(|a| self.expr(a, env)));
        let found = match &receiver.ty {
            Ty::Is(id) => self.functions.method(id, &name),
            Ty::Unknown if vals.iter().any(Val::followed) => self.only(&name),
            _ => None,
        };
        if found.is_none() && matches!(receiver.ty, Ty::Of(_) | Ty::Unknown | Ty::Foreign) {
            // An adapter of std: its closures get what the receiver holds.
            let inner = match receiver.how {
                Followed::Value => Val { how: Followed::Value, ty: receiver.ty.clone().inner() },
                _ => Val::other(receiver.ty.clone().inner()),
            };
            self.closures(&args, &inner, env);
            let ty = if HANDS_ON.contains(&name.as_str()) { receiver.ty } else { Ty::Unknown };
            return Val { how: receiver.how, ty };
        }
        self.go(found, &name, &args, vals, env)
    }

    /// Whether a function stands in one of the rooms.
    fn is_inside(&self, f: &Function<'_>) -> bool {
        self.limits.rooms.iter().any(|room| self.source.files[f.file].path.starts_with(room))
    }

    /// The one method of the rooms with this name, unless std has methods of this name too.
    fn only(&self, name: &str) -> Option<usize> {
        if HANDS_ON.contains(&name) || OF_STD.contains(&name) {
            return None;
        }
        let inside = |f: &&usize| {
            let f = &self.functions.all[**f];
            self.is_inside(f) && f.sig.receiver().is_some()
        };
        let mut found = self.functions.with_name(name).iter().filter(inside);
        match (found.next(), found.next()) {
            (Some(only), None) => Some(*only),
            _ => None,
        }
    }

    /// Enters a function that was found, if it is given the value; then reads the closures that it was given.
    fn go(&mut self, found: Option<usize>, name: &str, args: &[&'a Expr], vals: Vec<Val>, env: &mut Env) -> Val {
        let given = vals.iter().any(Val::followed);
        let Some(found) = found else {
            if given && !name.starts_with(char::is_uppercase) {
                self.open.insert(format!("{}: {name}", self.source.files[self.functions.all[self.at].file].path));
            }
            self.closures(args, &Val::other(Ty::Unknown), env);
            return Val::other(Ty::Unknown);
        };
        if given {
            lent(args).iter().for_each(|name| _ = env.get_mut(name).map(|val| val.how = Followed::Value));
            self.enter(found, &vals);
        }
        self.closures(args, &Val::other(Ty::Unknown), env);
        let ty = self.functions.returns(self.source, found);
        let how = match (&ty, &self.root) {
            (Ty::Is(id) | Ty::Of(id), Some(root)) if given && id == root => Followed::Value,
            (Ty::Is(id) | Ty::Of(id), Some(root)) if given && self.functions.holds(self.source, id, root) => {
                Followed::Holder
            }
            _ if given => Followed::Value,
            _ => Followed::No,
        };
        Val { how, ty }
    }

    /// A call through a variable or a field: the functions of the tables that the body names are entered.
    fn indirect(&mut self, func: &Val, args: &[&'a Expr], vals: &[Val], env: &mut Env) -> Val {
        self.closures(args, &Val::other(Ty::Unknown), env);
        if vals.iter().any(Val::followed) && !func.followed() {
            struct Tables(Vec<Vec<String>>);
            impl<'ast> syn::visit::Visit<'ast> for Tables {
                fn visit_path(&mut self, p: &'ast syn::Path) {
                    self.0.push(p.segments.iter().map(|s| s.ident.to_string()).collect());
                    syn::visit::visit_path(self, p);
                }
            }
            let mut named = Tables(vec![]);
            syn::visit::visit_block(&mut named, self.functions.all[self.at].body);
            let module = self.module();
            for path in named.0 {
                let Some(crate::source::Named::Item { module, name, rest: 0 }) = self.source.resolve(module, &path)
                else {
                    continue;
                };
                let Some(table) = self.functions.tables.get(&(module, name)) else { continue };
                let mut inside = Tables(vec![]);
                syn::visit::visit_expr(&mut inside, table);
                for path in inside.0 {
                    if let Some(f) = self.functions.named(self.source, module, None, &path) {
                        self.enter(f, vals);
                    }
                }
            }
        }
        Val::other(Ty::Unknown)
    }
}

#[cfg(test)]
mod tests;
