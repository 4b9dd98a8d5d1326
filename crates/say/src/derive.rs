//! `#[derive(Said)]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, Data, DeriveInput, Fields, Ident};

use crate::expand::Call;

/// The implementation of `text::Said` for an error of `thiserror`.
pub(crate) fn said(input: &DeriveInput) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let body = match &input.data {
        Data::Struct(data) => arm(&quote! { Self }, &data.fields, &input.attrs, name)?,
        Data::Enum(data) => {
            let arms = data.variants.iter().map(|variant| {
                let ident = &variant.ident;
                arm(&quote! { Self::#ident }, &variant.fields, &variant.attrs, ident)
            });
            let arms = arms.collect::<syn::Result<Vec<_>>>()?;
            quote! { #(#arms)* }
        }
        Data::Union(_) => return Err(syn::Error::new_spanned(name, "a union says nothing")),
    };
    Ok(quote! {
        impl #impl_generics ::text::Said for #name #type_generics #where_clause {
            #[allow(unused_variables)]
            fn say(&self) -> ::text::Text {
                match self { #body }
            }
        }
    })
}

/// The arm of a `match` for a variant, or for a struct.
fn arm(path: &TokenStream, fields: &Fields, attributes: &[Attribute], name: &Ident) -> syn::Result<TokenStream> {
    let attribute = attributes.iter().find(|attribute| attribute.path().is_ident("error"));
    let attribute = attribute.ok_or_else(|| syn::Error::new_spanned(name, "needs #[error(\"…\")]"))?;
    let (pattern, first) = match fields {
        Fields::Named(fields) => {
            let names: Vec<_> = fields.named.iter().filter_map(|field| field.ident.clone()).collect();
            (quote! { #path { #(#names),* } }, names.first().cloned())
        }
        Fields::Unnamed(fields) => {
            let names: Vec<_> = (0..fields.unnamed.len()).map(|index| format_ident!("_{index}")).collect();
            (quote! { #path(#(#names),*) }, names.first().cloned())
        }
        Fields::Unit => (path.clone(), None),
    };
    if attribute.parse_args::<Ident>().is_ok_and(|word| word == "transparent") {
        let first = first.ok_or_else(|| syn::Error::new_spanned(name, "nothing to be transparent for"))?;
        return Ok(quote! { #pattern => ::text::Said::say(#first), });
    }
    let text = attribute.parse_args::<Call>()?.of_fields().expand()?;
    Ok(quote! { #pattern => #text, })
}
