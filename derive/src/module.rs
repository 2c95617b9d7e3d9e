//! `#[derive(Module)]`.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Field, Fields, Ident, Type};

/// A field that is a part: its name in patterns, and the last word of its dotted name.
struct Part {
    binding: Ident,
    name: Option<String>,
}

/// A struct, or a variant of an enum: the pattern that binds its parts, and these in order.
struct Shape {
    pattern: TokenStream,
    parts: Vec<Part>,
}

fn is_skipped(field: &Field) -> syn::Result<bool> {
    let mut skipped = false;
    for attr in field.attrs.iter().filter(|a| a.path().is_ident("module")) {
        attr.parse_nested_meta(|meta| match meta.path.is_ident("skip") {
            true => {
                skipped = true;
                Ok(())
            }
            false => Err(meta.error("a field of a module may say `skip`")),
        })?;
    }
    Ok(skipped)
}

/// The parts of these fields; adds their types to `types`.
fn shape(path: &TokenStream, fields: &Fields, types: &mut Vec<Type>) -> syn::Result<Shape> {
    let (mut bound, mut parts) = (vec![], vec![]);
    for (i, field) in fields.iter().enumerate() {
        let binding = format_ident!("part_{i}", span = Span::mixed_site());
        let member = field.ident.as_ref();
        if is_skipped(field)? {
            // Those of a tuple struct are counted in its pattern.
            bound.extend(member.is_none().then(|| quote!(_)));
            continue;
        }
        bound.push(member.map_or_else(|| quote!(#binding), |member| quote!(#member: #binding)));
        types.push(field.ty.clone());
        let name = match member {
            Some(member) => Some(member.to_string().trim_start_matches("r#").to_string()),
            None => (fields.len() > 1).then(|| i.to_string()),
        };
        parts.push(Part { binding, name });
    }
    let pattern = match fields {
        Fields::Named(_) => quote!(#path { #(#bound,)* .. }),
        Fields::Unnamed(_) => quote!(#path(#(#bound),*)),
        Fields::Unit => path.clone(),
    };
    Ok(Shape { pattern, parts })
}

/// The arms of a `match` of `self` that call `method` on each part, with `behind` after the name.
fn arms(shapes: &[Shape], method: &str, behind: &TokenStream, falls: bool) -> TokenStream {
    let method = Ident::new(method, Span::call_site());
    let arms = shapes.iter().map(|Shape { pattern, parts }| {
        let calls = parts.iter().map(|Part { binding, name }| {
            let dotted = match name {
                Some(name) => quote!(&::oflow::nn::init::dotted(name, #name)),
                None => quote!(name),
            };
            let call = quote!(::oflow::nn::Part::#method(#binding, #dotted, #behind));
            if falls { quote!(#call?;) } else { quote!(#call;) }
        });
        quote!(#pattern => { #(#calls)* })
    });
    quote!(#(#arms)*)
}

/// The implementations of `oflow::nn::Part` and `oflow::nn::Module`.
pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let mut types = vec![];
    let shapes = match &input.data {
        Data::Struct(data) => vec![shape(&quote!(Self), &data.fields, &mut types)?],
        Data::Enum(data) => {
            let of = |variant: &syn::Variant, types: &mut Vec<Type>| {
                let name = &variant.ident;
                shape(&quote!(Self::#name), &variant.fields, types)
            };
            data.variants.iter().map(|variant| of(variant, &mut types)).collect::<syn::Result<Vec<_>>>()?
        }
        Data::Union(_) => return Err(Error::new_spanned(&input.ident, "a module is a struct or an enum")),
    };
    if shapes.is_empty() {
        return Err(Error::new_spanned(&input.ident, "an enum without variants has no values"));
    }
    let visits = arms(&shapes, "visit", &quote!(f), false);
    let visits_mut = arms(&shapes, "visit_mut", &quote!(f), true);
    let buffers = arms(&shapes, "visit_buffers", &quote!(f), false);
    let buffers_mut = arms(&shapes, "visit_buffers_mut", &quote!(f), true);
    let modes = shapes.iter().map(|Shape { pattern, parts }| {
        let bindings = parts.iter().map(|p| &p.binding);
        quote!(#pattern => { #(::oflow::nn::Part::set_training(#bindings, on);)* })
    });

    let name = &input.ident;
    // Types without parameters are checked where they are used, with the field's own line in the message.
    let mut generics = input.generics.clone();
    if generics.type_params().next().is_some() {
        let clause = generics.make_where_clause();
        for of in &types {
            clause.predicates.push(syn::parse_quote!(#of: ::oflow::nn::Part));
        }
    }
    let (implemented, of, clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #implemented ::oflow::nn::Part for #name #of #clause {
            fn visit<'oflow>(
                &'oflow self,
                name: &str,
                f: &mut dyn ::core::ops::FnMut(&str, &'oflow ::oflow::Tensor),
            ) {
                let _ = (name, &f);
                match self { #visits }
            }
            fn visit_mut(
                &mut self,
                name: &str,
                f: &mut dyn ::core::ops::FnMut(&str, &mut ::oflow::Tensor) -> ::oflow::Result<()>,
            ) -> ::oflow::Result<()> {
                let _ = (name, &f);
                match self { #visits_mut }
                ::core::result::Result::Ok(())
            }
            fn visit_buffers<'oflow>(
                &'oflow self,
                name: &str,
                f: &mut dyn ::core::ops::FnMut(&str, &'oflow ::oflow::nn::Buffer),
            ) {
                let _ = (name, &f);
                match self { #buffers }
            }
            fn visit_buffers_mut(
                &mut self,
                name: &str,
                f: &mut dyn ::core::ops::FnMut(&str, &mut ::oflow::nn::Buffer) -> ::oflow::Result<()>,
            ) -> ::oflow::Result<()> {
                let _ = (name, &f);
                match self { #buffers_mut }
                ::core::result::Result::Ok(())
            }
            fn set_training(&mut self, on: bool) {
                let _ = on;
                match self { #(#modes)* }
            }
        }
        #[automatically_derived]
        impl #implemented ::oflow::nn::Module for #name #of #clause {}
    })
}
