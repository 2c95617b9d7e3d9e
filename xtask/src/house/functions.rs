//! The functions and types of a checkout, as far as a walk needs them.

use crate::source::{Named, Source, attrs_of, of_tests};
use std::collections::BTreeMap;
use syn::{GenericArgument, Pat, PathArguments, ReturnType, Type};

/// A type of the workspace: the module that defines it, and its name.
pub type TypeId = (usize, String);

/// Type of a value, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Ty {
    /// Nothing, as of a closure's parameter.
    #[default]
    Unknown,
    /// A type of the workspace, also behind a reference, a box or an `Arc`.
    Is(TypeId),
    /// An option, a result or a list of a type of the workspace.
    Of(TypeId),
    /// A type from elsewhere: no method of the workspace is meant.
    Foreign,
}

impl Ty {
    /// The type of an option, a result or a list of `inner`.
    fn list(inner: Ty) -> Ty {
        match inner {
            Ty::Is(id) | Ty::Of(id) => Ty::Of(id),
            _ => Ty::Foreign,
        }
    }

    /// The type of what is in an option, a result or a list.
    pub fn inner(self) -> Ty {
        match self {
            Ty::Of(id) => Ty::Is(id),
            other => other,
        }
    }
}

/// A function with a body.
pub struct Function<'a> {
    pub file: usize,
    pub module: usize,
    pub name: String,
    /// The type of its `impl`, or the trait that gives the body.
    pub owner: Option<TypeId>,
    pub sig: &'a syn::Signature,
    pub body: &'a syn::Block,
    /// `#[cold]`: the path of an error or of a first call.
    pub cold: bool,
}

/// Every function, type and table of functions.
pub struct Functions<'a> {
    pub all: Vec<Function<'a>>,
    /// Functions outside of an `impl`, by module and name.
    free: BTreeMap<TypeId, usize>,
    /// Methods by type and name.
    methods: BTreeMap<(TypeId, String), usize>,
    /// Every function by its name alone.
    by_name: BTreeMap<String, Vec<usize>>,
    /// Fields by type: name, type, module where it is written.
    fields: BTreeMap<TypeId, Vec<(String, &'a Type, usize)>>,
    /// Values of `const` and `static` items.
    pub tables: BTreeMap<TypeId, &'a syn::Expr>,
    /// Other names of types, with the module where they are written.
    aliases: BTreeMap<TypeId, &'a Type>,
}

impl<'a> Functions<'a> {
    pub fn of(source: &'a Source) -> Functions<'a> {
        let mut f = Functions {
            all: vec![],
            free: BTreeMap::new(),
            methods: BTreeMap::new(),
            by_name: BTreeMap::new(),
            fields: BTreeMap::new(),
            tables: BTreeMap::new(),
            aliases: BTreeMap::new(),
        };
        let items = source.items();
        // Types first: an `impl` may stand in any module.
        for (module, items) in &items {
            for item in items.iter().filter(|i| !of_tests(attrs_of(i))) {
                match item {
                    syn::Item::Struct(s) => {
                        let fields = s.fields.iter().enumerate();
                        let name = |(n, f): (usize, &'a syn::Field)| {
                            (f.ident.as_ref().map_or(n.to_string(), ToString::to_string), &f.ty, *module)
                        };
                        f.fields.insert((*module, s.ident.to_string()), fields.map(name).collect());
                    }
                    syn::Item::Type(t) => {
                        f.aliases.insert((*module, t.ident.to_string()), &t.ty);
                    }
                    syn::Item::Const(c) => {
                        f.tables.insert((*module, c.ident.to_string()), &c.expr);
                    }
                    syn::Item::Static(s) => {
                        f.tables.insert((*module, s.ident.to_string()), &s.expr);
                    }
                    _ => {}
                }
            }
        }
        for (module, items) in &items {
            for item in items.iter().filter(|i| !of_tests(attrs_of(i))) {
                f.add(source, *module, item);
            }
        }
        f
    }

    fn add(&mut self, source: &'a Source, module: usize, item: &'a syn::Item) {
        match item {
            syn::Item::Fn(i) => self.push(source, module, None, &i.sig, &i.block, &i.attrs),
            syn::Item::Impl(i) => {
                let owner = self.type_of(source, module, None, &i.self_ty);
                let owner = match owner {
                    Ty::Is(id) | Ty::Of(id) => Some(id),
                    _ => None,
                };
                for item in &i.items {
                    if let syn::ImplItem::Fn(m) = item
                        && !of_tests(&m.attrs)
                    {
                        self.push(source, module, Some(owner.clone()), &m.sig, &m.block, &m.attrs);
                    }
                }
            }
            syn::Item::Trait(t) => {
                for item in &t.items {
                    if let syn::TraitItem::Fn(m) = item
                        && let Some(body) = &m.default
                    {
                        let owner = Some((module, t.ident.to_string()));
                        self.push(source, module, Some(owner), &m.sig, body, &m.attrs);
                    }
                }
            }
            _ => {}
        }
    }

    fn push(
        &mut self,
        source: &'a Source,
        module: usize,
        owner: Option<Option<TypeId>>,
        sig: &'a syn::Signature,
        body: &'a syn::Block,
        attrs: &[syn::Attribute],
    ) {
        let (index, name) = (self.all.len(), sig.ident.to_string());
        match &owner {
            None => _ = self.free.entry((module, name.clone())).or_insert(index),
            Some(Some(id)) => _ = self.methods.entry((id.clone(), name.clone())).or_insert(index),
            Some(None) => {}
        }
        self.by_name.entry(name.clone()).or_default().push(index);
        let cold = attrs.iter().any(|a| a.path().is_ident("cold"));
        let file = source.modules[module].file;
        self.all.push(Function { file, module, name, owner: owner.flatten(), sig, body, cold });
    }

    /// The function that a path in `module` names; `owner` is the type that `Self` stands for.
    pub fn named(&self, source: &Source, module: usize, owner: Option<&TypeId>, path: &[String]) -> Option<usize> {
        if let ([first, method], Some(owner)) = (path, owner)
            && first == "Self"
        {
            return self.method(owner, method);
        }
        match source.resolve(module, path)? {
            Named::Item { module, name, rest: 0 } => self.free.get(&(module, name)).copied(),
            Named::Item { module, name, rest: 1 } => self.method(&self.unalias(source, (module, name)), path.last()?),
            _ => None,
        }
    }

    pub fn method(&self, owner: &TypeId, name: &str) -> Option<usize> {
        self.methods.get(&(owner.clone(), name.to_string())).copied()
    }

    /// Functions of this name.
    pub fn with_name(&self, name: &str) -> &[usize] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// The type of a field.
    pub fn field(&self, source: &Source, owner: &TypeId, field: &str) -> Ty {
        let found = self.fields.get(owner).and_then(|fields| fields.iter().find(|(name, ..)| name == field));
        found.map_or(Ty::Unknown, |(_, ty, module)| self.type_of(source, *module, Some(owner), ty))
    }

    /// Whether values of `owner` have a field of the type `held`.
    pub fn holds(&self, source: &Source, owner: &TypeId, held: &TypeId) -> bool {
        let fields = self.fields.get(owner).into_iter().flatten();
        fields.map(|(_, ty, module)| self.type_of(source, *module, Some(owner), ty)).any(|t| t == Ty::Is(held.clone()))
    }

    fn unalias(&self, source: &Source, id: TypeId) -> TypeId {
        match self.aliases.get(&id).map(|ty| self.type_of(source, id.0, None, ty)) {
            Some(Ty::Is(id)) => id,
            _ => id,
        }
    }

    /// Resolves a type as it is written.
    pub fn type_of(&self, source: &Source, module: usize, owner: Option<&TypeId>, ty: &Type) -> Ty {
        match ty {
            Type::Reference(r) => self.type_of(source, module, owner, &r.elem),
            Type::Paren(p) => self.type_of(source, module, owner, &p.elem),
            Type::Group(g) => self.type_of(source, module, owner, &g.elem),
            Type::Slice(s) => Ty::list(self.type_of(source, module, owner, &s.elem)),
            Type::Array(s) => Ty::list(self.type_of(source, module, owner, &s.elem)),
            Type::Path(p) => {
                let path: Vec<String> = p.path.segments.iter().map(|s| s.ident.to_string()).collect();
                if let ([only], Some(owner)) = (path.as_slice(), owner)
                    && only == "Self"
                {
                    return Ty::Is(owner.clone());
                }
                if let Some(Named::Item { module, name, rest: 0 }) = source.resolve(module, &path) {
                    return match self.aliases.get(&(module, name.clone())) {
                        Some(ty) => self.type_of(source, module, None, ty),
                        None => Ty::Is((module, name)),
                    };
                }
                let Some(last) = p.path.segments.last() else { return Ty::Foreign };
                let first = match &last.arguments {
                    PathArguments::AngleBracketed(a) => a.args.iter().find_map(|a| match a {
                        GenericArgument::Type(t) => Some(t),
                        _ => None,
                    }),
                    _ => None,
                };
                match (last.ident.to_string().as_str(), first) {
                    ("Box" | "Arc" | "Rc" | "Cow", Some(t)) => self.type_of(source, module, owner, t),
                    ("Option" | "Result" | "PyResult" | "Vec" | "SmallVec", Some(t)) => {
                        Ty::list(self.type_of(source, module, owner, t))
                    }
                    // A generic parameter: a single capital letter.
                    (name, None) if name.len() == 1 => Ty::Unknown,
                    _ => Ty::Foreign,
                }
            }
            Type::ImplTrait(_) | Type::TraitObject(_) | Type::Infer(_) => Ty::Unknown,
            _ => Ty::Foreign,
        }
    }

    /// The type of what a function returns.
    pub fn returns(&self, source: &Source, index: usize) -> Ty {
        let f = &self.all[index];
        match &f.sig.output {
            ReturnType::Default => Ty::Foreign,
            ReturnType::Type(_, ty) => self.type_of(source, f.module, f.owner.as_ref(), ty),
        }
    }
}

/// The parameters of a function: name and type; `self` has none.
pub fn params_of<'a>(f: &Function<'a>) -> Vec<(String, Option<&'a syn::Type>)> {
    f.sig
        .inputs
        .iter()
        .map(|i| match i {
            syn::FnArg::Receiver(_) => ("self".to_string(), None),
            syn::FnArg::Typed(t) => (ident_of(&t.pat).unwrap_or_default(), Some(&*t.ty)),
        })
        .collect()
}

/// The name that a pattern of one name binds.
pub fn ident_of(pat: &Pat) -> Option<String> {
    match pat {
        Pat::Ident(i) => Some(i.ident.to_string()),
        Pat::Type(t) => ident_of(&t.pat),
        Pat::Reference(r) => ident_of(&r.pat),
        _ => None,
    }
}
