//! `#[derive(OpParams)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Field, Fields, LitStr, Type};

/// Content of `#[param(…)]`.
#[derive(Default)]
struct Said {
    default: Option<LitStr>,
    runtime: bool,
}

impl Said {
    fn of(field: &Field) -> syn::Result<Said> {
        let mut said = Said::default();
        for attr in field.attrs.iter().filter(|a| a.path().is_ident("param")) {
            attr.parse_nested_meta(|meta| {
                if meta.path.is_ident("default") {
                    said.default = Some(meta.value()?.parse::<LitStr>()?);
                    return Ok(());
                }
                if meta.path.is_ident("runtime") {
                    said.runtime = true;
                    return Ok(());
                }
                Err(meta.error("a parameter may say `default = \"…\"` and `runtime`"))
            })?;
        }
        Ok(said)
    }
}

/// The implementation of `oflow::ops::OpParams`.
pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(name, "parameters are a struct with named fields"));
    };
    let fields: Vec<&Field> = match &data.fields {
        Fields::Named(named) => named.named.iter().collect(),
        Fields::Unit => vec![],
        Fields::Unnamed(_) => {
            return Err(Error::new_spanned(name, "parameters have names: write `struct P { alpha: f64 }`"));
        }
    };
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(&input.generics, "parameters have no generics"));
    }
    let (mut described, mut read, mut values) = (vec![], vec![], vec![]);
    for field in fields {
        let Some(ident) = &field.ident else { continue };
        let ty: &Type = &field.ty;
        let said = Said::of(field)?;
        let text = ident.to_string();
        let text = text.strip_prefix("r#").unwrap_or(&text);
        let default = match &said.default {
            Some(default) => quote!(::core::option::Option::Some(#default)),
            None => quote!(::core::option::Option::None),
        };
        let runtime = said.runtime;
        described.push(quote! {
            ::oflow::ops::ParamField {
                name: #text,
                kind: <#ty as ::oflow::ops::ParamType>::KIND,
                optional: <#ty as ::oflow::ops::ParamType>::OPTIONAL,
                runtime: #runtime,
                default: #default,
            }
        });
        read.push(quote! {
            #ident: <#ty as ::oflow::ops::ParamType>::from_value(#text, get(#text)?)?
        });
        values.push(quote! {
            (#text, <#ty as ::oflow::ops::ParamType>::to_value(&self.#ident))
        });
    }
    Ok(quote! {
        impl ::oflow::ops::OpParams for #name {
            const FIELDS: &'static [::oflow::ops::ParamField] = &[#(#described),*];
            fn read(
                get: &dyn ::core::ops::Fn(&str) -> ::oflow::Result<::oflow::ops::AttrValue>,
            ) -> ::oflow::Result<Self> {
                let _ = get;
                ::core::result::Result::Ok(Self { #(#read),* })
            }
            fn values(&self) -> ::std::vec::Vec<(&'static str, ::oflow::ops::AttrValue)> {
                ::std::vec![#(#values),*]
            }
        }
    })
}
