//! The code of a template.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Expr, Ident, LitStr, Token};

use crate::template::{Piece, Value, parse};

/// A template with its arguments.
pub(crate) struct Call {
    template: LitStr,
    /// The arguments by position, in their order.
    positional: Vec<Expr>,
    /// The others by their names.
    named: Vec<(Ident, Expr)>,
    /// Whether `{0}` is a field of a tuple.
    of_fields: bool,
}

impl Parse for Call {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut call = Self { template: input.parse()?, positional: Vec::new(), named: Vec::new(), of_fields: false };
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            if input.peek(Ident) && input.peek2(Token![=]) && !input.peek2(Token![==]) {
                let name = input.parse()?;
                input.parse::<Token![=]>()?;
                call.named.push((name, input.parse()?));
            } else {
                call.positional.push(input.parse()?);
            }
        }
        Ok(call)
    }
}

/// The variable of the text, which no variable of the caller can be mistaken for.
fn text() -> Ident {
    Ident::new("text", Span::mixed_site())
}

impl Call {
    /// An expression of type `text::Text`.
    pub(crate) fn expand(&self) -> syn::Result<TokenStream> {
        let pieces = parse(&self.template.value()).map_err(|what| self.error(what))?;
        let mut arguments =
            Arguments { call: self, next: 0, used: vec![false; self.positional.len()], named: Vec::new() };
        let parts = pieces.iter().map(|piece| arguments.part(piece)).collect::<syn::Result<Vec<_>>>()?;
        arguments.check_all_used()?;
        let text = text();
        Ok(quote! {{
            let mut #text = ::text::Text::default();
            #(#parts)*
            #text
        }})
    }

    /// The same where `{0}` is the first field of a tuple, which the derived code calls `_0`, and where `x.plain()` is the text `x`, whose
    /// characters `thiserror` needs.
    pub(crate) fn of_fields(mut self) -> Self {
        let named = self.named.iter_mut().map(|(_, expr)| expr);
        self.positional.iter_mut().chain(named).for_each(|expr| {
            if let Expr::MethodCall(call) = expr
                && call.method == "plain"
                && call.args.is_empty()
            {
                *expr = (*call.receiver).clone();
            }
        });
        Self { of_fields: true, ..self }
    }

    fn error(&self, what: &str) -> syn::Error {
        syn::Error::new(self.template.span(), what)
    }
}

/// The arguments while a template uses them.
struct Arguments<'a> {
    call: &'a Call,
    /// The index of the next argument for `{}`.
    next: usize,
    /// Whether each positional argument has been used.
    used: Vec<bool>,
    /// The names that have been used.
    named: Vec<String>,
}

impl Arguments<'_> {
    /// A statement that adds the piece to the text.
    fn part(&mut self, piece: &Piece) -> syn::Result<TokenStream> {
        let text = text();
        match piece {
            Piece::Words(words) => Ok(quote! { #text.push(::text::Span::Words(#words.into())); }),
            Piece::Value(value) => self.value(value),
            Piece::Code(pieces) => self.code(pieces),
        }
    }

    fn value(&mut self, value: &Value) -> syn::Result<TokenStream> {
        let text = text();
        let expr = self.expr(&value.name)?;
        Ok(match value.format.as_str() {
            "" => quote! {{
                #[allow(unused_imports)]
                use ::text::{ByDisplay as _, BySaying as _};
                (&::text::Inserted(&#expr)).insert(&mut #text);
            }},
            format => {
                let format = format!("{{:{format}}}");
                quote! { #text.push(::text::Span::Words(::std::format!(#format, #expr).into())); }
            }
        })
    }

    fn code(&mut self, pieces: &[Piece]) -> syn::Result<TokenStream> {
        let text = text();
        let mut template = String::new();
        let mut values = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Words(words) => template.push_str(&words.replace('{', "{{").replace('}', "}}")),
                Piece::Value(value) => {
                    values.push(self.expr(&value.name)?);
                    template.push_str(&if value.format.is_empty() {
                        "{}".to_owned()
                    } else {
                        format!("{{:{}}}", value.format)
                    });
                }
                Piece::Code(_) => return Err(self.call.error("code within code")),
            }
        }
        let Some(option) = template.strip_prefix("--") else {
            return Ok(quote! { #text.push(::text::Span::Code(::std::format!(#template, #(#values),*))); });
        };
        Ok(quote! { #text.push(::text::Span::option(&::std::format!(#option, #(#values),*))); })
    }

    /// The argument of a placeholder.
    fn expr(&mut self, name: &str) -> syn::Result<TokenStream> {
        let index = match name {
            "" => {
                self.next += 1;
                Some(self.next - 1)
            }
            name => name.parse::<usize>().ok(),
        };
        if let Some(index) = index.filter(|_| self.call.of_fields && !name.is_empty()) {
            let field = format_ident!("_{index}");
            return Ok(quote! { #field });
        }
        if let Some(index) = index {
            let expr = self.call.positional.get(index);
            let expr = expr.ok_or_else(|| self.call.error("fewer arguments than placeholders"))?;
            self.used[index] = true;
            return Ok(quote! { (#expr) });
        }
        self.named.push(name.to_owned());
        if let Some((_, expr)) = self.call.named.iter().find(|(own, _)| own == name) {
            return Ok(quote! { (#expr) });
        }
        let ident =
            syn::parse_str::<Ident>(name).map_err(|_| self.call.error("a placeholder is a name, a number or empty"))?;
        let ident = Ident::new(&ident.to_string(), self.call.template.span());
        Ok(quote! { #ident })
    }

    fn check_all_used(&self) -> syn::Result<()> {
        let positional = self.used.iter().position(|used| !used).map(|index| &self.call.positional[index]);
        let named = || self.call.named.iter().find(|(name, _)| !self.named.iter().any(|used| name == used));
        match positional.or_else(|| named().map(|(_, expr)| expr)) {
            Some(expr) => Err(syn::Error::new_spanned(expr, "the template does not use this argument")),
            None => Ok(()),
        }
    }
}
