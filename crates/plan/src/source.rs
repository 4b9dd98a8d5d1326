//! A TOML file whose values know their position, so that an error can point at it.

use crate::Mistake;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use text::{Said, say};

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, ValueDeserializer};

use options::values::Value;
use options::{closest, unknown};

/// The text of a file and the values of its variables.
#[derive(Debug)]
pub struct TomlSource {
    name: String,
    /// The kind of file, such as `a plan`.
    kind: &'static str,
    text: String,
    vars: BTreeMap<String, String>,
    /// Variables that have a value with another flag, with that remedy.
    remedies: BTreeMap<String, &'static str>,
}

/// A table of it.
#[derive(Debug, Clone)]
pub struct Table<'a> {
    source: &'a TomlSource,
    /// Its name as in the file, empty for the whole file.
    path: String,
    span: Range<usize>,
    table: &'a DeTable<'a>,
}

/// A value with its position.
#[derive(Debug, Clone)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its key.
    pub key: String,
    /// Its position, bytes from the start.
    pub span: Range<usize>,
}

impl TomlSource {
    /// A file's text.
    pub fn new(name: &str, kind: &'static str, text: String, vars: BTreeMap<String, String>) -> Self {
        Self { name: name.to_owned(), kind, text, vars, remedies: BTreeMap::new() }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The values of the variables.
    pub fn vars(&self) -> &BTreeMap<String, String> {
        &self.vars
    }

    /// Sets variables that have no value yet to the defaults of the file.
    pub fn default_vars(&mut self, defaults: BTreeMap<String, String>) {
        for (name, value) in defaults {
            self.vars.entry(name).or_insert(value);
        }
    }

    /// Names variables that have a value if the user follows `remedy`.
    pub fn offer_remedy(&mut self, names: impl IntoIterator<Item = String>, remedy: &'static str) {
        self.remedies.extend(names.into_iter().map(|name| (name, remedy)));
    }

    /// An error at a position: `FILE:LINE:COLUMN: KEY: what`.
    pub fn wrong(&self, span: &Range<usize>, key: &str, what: impl Said) -> Mistake {
        let before = self.text.get(..span.start).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
        Mistake::in_plan(say!("{}:{line}:{column}: {key}{}", self.name, what.say()))
    }

    /// The values in `[vars]`. They cannot contain variables.
    pub fn own_vars(&self) -> Result<BTreeMap<String, String>, Mistake> {
        self.values(&["vars"])
    }

    /// The values in the table with this path. They can contain only variables that have a value.
    pub fn values(&self, path: &[&str]) -> Result<BTreeMap<String, String>, Mistake> {
        let parsed = self.parse()?;
        let mut table = Table::whole(self, &parsed);
        for name in path {
            let Some(inner) = table.table(name)? else { return Ok(BTreeMap::new()) };
            table = inner;
        }
        Ok(table.flat()?.into_iter().map(|(name, at)| (name, at.value)).collect())
    }

    /// The whole file as a table.
    pub fn parse(&self) -> Result<Spanned<DeTable<'_>>, Mistake> {
        DeTable::parse(&self.text).map_err(|error| {
            let what = error.message().lines().collect::<Vec<_>>().join(" ");
            self.wrong(&error.span().unwrap_or(0..0), "", what)
        })
    }

    /// Replaces `${name}` with the value of the variable.
    fn fill(&self, text: &str, span: &Range<usize>, key: &str) -> Result<String, Mistake> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else {
                return Err(self.wrong(span, key, "${ has no closing }"));
            };
            let Some(value) = self.vars.get(name) else {
                let known = self.vars.keys().map(String::as_str).collect::<Vec<_>>();
                let near = closest(name, &known).map(|near| format!("; did you mean ${{{near}}}?"));
                let hint = self.remedies.get(name).map(|remedy| format!(", or {remedy}")).or(near).unwrap_or_default();
                return Err(self.wrong(
                    span,
                    key,
                    format!("${{{name}}} has no value: add --var {name}=VALUE, or {name} = \"...\" to [vars]{hint}"),
                ));
            };
            filled += before;
            filled += value;
            rest = behind;
        }
        Ok(filled + rest)
    }
}

impl TomlSource {
    /// Replaces the variables in all strings of a value.
    fn fill_all(&self, value: &mut Spanned<DeValue<'_>>, key: &str) -> Result<(), Mistake> {
        let span = value.span();
        match value.get_mut() {
            DeValue::String(text) => *text = self.fill(text, &span, key)?.into(),
            DeValue::Array(list) => list.iter_mut().try_for_each(|value| self.fill_all(value, key))?,
            DeValue::Table(table) => table.iter_mut().try_for_each(|(_, value)| self.fill_all(value, key))?,
            _ => {}
        }
        Ok(())
    }
}

impl<'a> Table<'a> {
    /// The folder of the file, to which the files that it names are relative. Empty if the name has no folder.
    pub fn folder(&self) -> &'a Path {
        Path::new(&self.source.name).parent().unwrap_or(Path::new(""))
    }

    /// The table of a whole file.
    pub fn whole(source: &'a TomlSource, parsed: &'a Spanned<DeTable<'a>>) -> Self {
        Self { source, path: String::new(), span: 0..0, table: parsed.get_ref() }
    }

    /// An error about the table itself.
    pub fn wrong(&self, what: impl Said) -> Mistake {
        self.source.wrong(&self.span, &self.path, what)
    }

    /// An error about a value.
    pub fn wrong_at<T>(&self, at: &Located<T>, what: impl Said) -> Mistake {
        self.source.wrong(&at.span, &at.key, what)
    }

    fn named(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Refuses keys other than `known`.
    pub fn known(&self, known: &[&str]) -> Result<(), Mistake> {
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let what = unknown(name, known, if self.path.is_empty() { self.source.kind } else { &self.path });
                return Err(self.source.wrong(&key.span(), &self.named(name), what));
            }
        }
        Ok(())
    }

    /// Whether the table has a key.
    pub fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// The keys.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.table.keys().map(|key| key.get_ref().as_ref())
    }

    /// Whether the value of a key is a list.
    pub fn is_list(&self, key: &str) -> bool {
        self.table.get(key).is_some_and(|value| matches!(value.get_ref(), DeValue::Array(_)))
    }

    /// A string, number or boolean, as text.
    pub fn text(&self, key: &str) -> Result<Option<Located<String>>, Mistake> {
        self.table.get(key).map(|value| self.scalar(key, value)).transpose()
    }

    /// A value, parsed like that of a flag.
    pub fn value<T>(&self, key: &str, read: impl Value<T>) -> Result<Option<T>, Mistake> {
        let Some(at) = self.text(key)? else { return Ok(None) };
        read(&at.value).map(Some).map_err(|what| self.wrong_at(&at, what))
    }

    /// One of a few names.
    pub fn choice<T: Copy>(&self, key: &str, names: &[(&'static str, T)]) -> Result<Option<T>, Mistake> {
        let Some(at) = self.text(key)? else { return Ok(None) };
        match names.iter().find(|(name, _)| *name == at.value) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
                Err(self.wrong_at(&at, format!("'{}' is not one of {}", at.value, names.join(", "))))
            }
        }
    }

    /// `true` or `false`; absent is false.
    pub fn switch(&self, key: &str) -> Result<bool, Mistake> {
        Ok(self.choice(key, &[("true", true), ("false", false)])?.unwrap_or(false))
    }

    /// A list of strings; a single string is a list of one.
    pub fn texts(&self, key: &str) -> Result<Vec<Located<String>>, Mistake> {
        let Some(value) = self.table.get(key) else { return Ok(Vec::new()) };
        match value.get_ref() {
            DeValue::Array(list) => list.iter().map(|value| self.scalar(key, value)).collect(),
            _ => Ok(vec![self.scalar(key, value)?]),
        }
    }

    /// A table within this one.
    pub fn table(&self, key: &str) -> Result<Option<Self>, Mistake> {
        let Some((name, value)) = self.table.get_key_value(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Table(_) => Ok(Some(self.inner(value, self.named(key)))),
            _ => Err(self.source.wrong(&name.span(), &self.named(key), format!("this is a table: write [{key}]"))),
        }
    }

    /// Tables in double brackets.
    pub fn tables(&self, key: &str) -> Result<Vec<Self>, Mistake> {
        let Some((name, value)) = self.table.get_key_value(key) else { return Ok(Vec::new()) };
        let wrong =
            || self.source.wrong(&name.span(), &self.named(key), format!("this is a list of tables: write [[{key}]]"));
        let DeValue::Array(list) = value.get_ref() else { return Err(wrong()) };
        let one = |(at, value): (usize, &'a Spanned<DeValue<'a>>)| match value.get_ref() {
            DeValue::Table(_) => Ok(self.inner(value, format!("{}[{}]", self.named(key), at + 1))),
            _ => Err(wrong()),
        };
        list.iter().enumerate().map(one).collect()
    }

    /// Every value of this table and the tables in it, with its key relative to this table, joined by dots. Keys may contain variables.
    pub fn flat(&self) -> Result<Vec<(String, Located<String>)>, Mistake> {
        let mut all = Vec::new();
        for (key, value) in self.table {
            let name = self.source.fill(key.get_ref(), &key.span(), &self.named(key.get_ref()))?;
            match value.get_ref() {
                DeValue::Table(_) => {
                    let inner = self.inner(value, self.named(&name));
                    all.extend(inner.flat()?.into_iter().map(|(key, at)| (format!("{name}.{key}"), at)));
                }
                _ => all.push((name.clone(), Located { span: key.span(), ..self.scalar(&name, value)? })),
            }
        }
        Ok(all)
    }

    /// Deserializes this table without the keys `except`, with the keys of `over` in place of its own.
    pub fn read<T: DeserializeOwned>(&self, except: &[&str], over: Option<&Self>) -> Result<T, Mistake> {
        let mut merged = DeTable::new();
        let own = self.table.iter().filter(|(key, _)| !except.contains(&key.get_ref().as_ref()));
        for (table, (key, value)) in own
            .map(|own| (self, own))
            .chain(over.into_iter().flat_map(|over| over.table.iter().map(move |own| (over, own))))
        {
            let mut value = value.clone();
            table.source.fill_all(&mut value, &table.named(key.get_ref()))?;
            merged.remove(key);
            merged.insert(key.clone(), value);
        }
        let key_at = |span: &Range<usize>| {
            let tables = [over, Some(self)];
            tables.into_iter().flatten().find_map(|table| {
                let holds = |(key, value): &(&Spanned<_>, &Spanned<DeValue<'_>>)| {
                    key.span() == *span || (value.span().start <= span.start && span.end <= value.span().end)
                };
                let (key, _): (&Spanned<DeString<'_>>, _) = table.table.iter().find(holds)?;
                Some(table.named(key.get_ref()))
            })
        };
        let whole = Spanned::new(self.span.clone(), DeValue::Table(merged));
        T::deserialize(ValueDeserializer::from(whole)).map_err(|error| {
            let span = error.span().unwrap_or_else(|| self.span.clone());
            let key = key_at(&span).unwrap_or_else(|| self.path.clone());
            self.source.wrong(&span, &key, error.message())
        })
    }

    fn inner(&self, value: &'a Spanned<DeValue<'a>>, path: String) -> Self {
        static EMPTY: std::sync::LazyLock<DeTable<'static>> = std::sync::LazyLock::new(DeTable::new);
        let table = value.get_ref().as_table().unwrap_or(&EMPTY);
        Self { source: self.source, path, span: value.span(), table }
    }

    fn scalar(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Located<String>, Mistake> {
        let (span, key) = (value.span(), self.named(key));
        let value = match value.get_ref() {
            DeValue::String(text) => self.source.fill(text, &span, &key)?,
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
            DeValue::Float(number) => number.as_str().to_owned(),
            DeValue::Boolean(switch) => switch.to_string(),
            _ => {
                return Err(self.source.wrong(
                    &span,
                    &key,
                    "write a string in quotes, a decimal number, true or false",
                ));
            }
        };
        Ok(Located { value, key, span })
    }
}
