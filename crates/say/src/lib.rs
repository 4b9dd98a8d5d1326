//! The macros that write a sentence: [`say!`] and `#[derive(Said)]`. Crate `text` has the types, and re-exports both.
//!
//! A template is written as for `format!`, with two additions:
//!
//! - What stands in backticks is to be typed. If it starts with two dashes it is an option of `thru`, which each reader spells in its own
//!   way: `` `--flows {n}` `` is a flag on a terminal and a key in a plan. Everything else is shown as it is.
//! - `{x}` inserts what `x` says if it is `Said`, such as a rate or another text; otherwise what it displays. Every other format is that
//!   of `format!`.

mod derive;
mod expand;
mod template;

use proc_macro::TokenStream;
use syn::parse_macro_input;

/// A `Text` of a template and its arguments, as `format!` takes them.
#[proc_macro]
pub fn say(input: TokenStream) -> TokenStream {
    let call = parse_macro_input!(input as expand::Call);
    call.expand().unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Implements `Said` by the templates of `#[error("…")]`, which `thiserror` reads too. A field that is a text is inserted as
/// `{}` with `field.plain()`: `thiserror` displays its characters, and `Said` keeps its spans.
#[proc_macro_derive(Said, attributes(error))]
pub fn said(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as syn::DeriveInput);
    derive::said(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
