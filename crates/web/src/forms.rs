//! The options of the commands that the page may start, and what becomes of a filled form.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use crate::App;

/// A command that the page may start.
#[derive(Debug, Clone, Serialize)]
pub struct Form {
    /// Its name.
    pub command: String,
    /// What it measures, in a word or two.
    pub title: String,
    /// What it does, in a line.
    pub about: String,
    /// What stands without a name, if it takes something: a host, hosts, or a plan.
    pub subject: Option<Field>,
    /// Whether that is a list of hosts.
    pub has_hosts: bool,
    /// Its options.
    pub fields: Vec<Field>,
}

/// An option.
#[derive(Debug, Clone, Serialize)]
pub struct Field {
    /// Its long name, without dashes.
    pub name: String,
    /// What it is called on the page.
    pub label: String,
    /// Whether it is among those that are asked for most.
    pub first: bool,
    /// Whether its value is the options of another test, in one text.
    pub nested: bool,
    /// What it is, in a sentence or two.
    pub help: String,
    /// The name of its value; `None` for one without a value.
    pub value: Option<String>,
    /// Whether it may stand without its value.
    pub optional: bool,
    /// Its values, if they are known.
    pub choices: Vec<String>,
    /// What it is when it is not given.
    pub default: Option<String>,
    /// The least and the greatest value that it takes, as they are written; either may be open.
    pub range: [Option<String>; 2],
    /// Whether its value is one whole number.
    pub number: bool,
    /// The heading that it stands under; `None` without one.
    pub heading: Option<String>,
}

/// A filled form.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Filled {
    command: String,
    #[serde(default)]
    subject: String,
    /// Names and values; a null value is an option without one.
    #[serde(default)]
    options: Vec<(String, Option<String>)>,
}

/// Why a filled form does not give a command line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FormError {
    /// A command without a form.
    #[error("the page cannot start `thru {command}`")]
    UnknownCommand { command: String },
    /// An argument that starts with a dash, or an argument of a command that has none.
    #[error("`thru {command}` takes no argument '{subject}'")]
    Subject { command: String, subject: String },
    /// An option that the form does not have.
    #[error("`thru {command}` has no option '{name}' here")]
    UnknownOption { command: String, name: String },
    /// A value of an option without one.
    #[error("'{name}' takes no value")]
    TakesNoValue { name: String },
    /// An option without its value.
    #[error("'{name}' needs a value")]
    NeedsValue { name: String },
    /// Options of another test that are no long options.
    #[error("--{name}: '{word}' is no option that the page offers: write options in full, such as --flows 4")]
    Nested { name: String, word: String },
    /// A value that is none of the option's.
    #[error("{name}: '{value}' is not one of {}", choices.join(", "))]
    Choice { name: String, value: String, choices: Vec<String> },
}

pub(crate) async fn all(State(app): State<Arc<App>>) -> Response {
    Json(&app.options.forms).into_response()
}

/// The words of the command line. Only what the form offers is passed on, each value as one word with its option, so that no value
/// becomes an option.
pub(crate) fn words(forms: &[Form], filled: &Filled) -> Result<Vec<String>, FormError> {
    let form = form(forms, &filled.command)?;
    let subjects: Vec<&str> = filled.subject.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let is_wrong =
        subjects.iter().any(|word| word.starts_with('-')) || (form.subject.is_none() && !subjects.is_empty());
    if is_wrong {
        return Err(FormError::Subject { command: filled.command.clone(), subject: filled.subject.trim().to_owned() });
    }
    // Only a list of hosts is several words.
    let subjects = if form.has_hosts {
        subjects
    } else {
        Some(filled.subject.trim()).filter(|one| !one.is_empty()).into_iter().collect()
    };
    let mut words = vec![filled.command.clone()];
    words.extend(subjects.into_iter().map(str::to_owned));
    let pattern = filled.options.iter().find(|(name, _)| name == "pattern").and_then(|(_, value)| value.as_deref());
    for (option, value) in &filled.options {
        words.push(word(forms, form, option, value.as_deref(), pattern)?);
    }
    Ok(words)
}

fn form<'a>(forms: &'a [Form], command: &str) -> Result<&'a Form, FormError> {
    let form = forms.iter().find(|form| form.command == command);
    form.ok_or_else(|| FormError::UnknownCommand { command: command.to_owned() })
}

/// An option with its value as one word. The options of a side without a test are those of `pattern`.
fn word(
    forms: &[Form],
    form: &Form,
    option: &str,
    value: Option<&str>,
    pattern: Option<&str>,
) -> Result<String, FormError> {
    let name = || option.to_owned();
    let field = form.fields.iter().find(|field| field.name == option);
    let field = field.ok_or_else(|| FormError::UnknownOption { command: form.command.clone(), name: name() })?;
    Ok(match value {
        Some(_) if field.value.is_none() => return Err(FormError::TakesNoValue { name: name() }),
        Some(value) if !field.choices.is_empty() && !field.choices.iter().any(|choice| choice == value) => {
            return Err(FormError::Choice { name: name(), value: value.to_owned(), choices: field.choices.clone() });
        }
        Some(value) if field.nested => format!("--{option}={}", nested(forms, option, value, pattern)?),
        Some(value) => format!("--{option}={value}"),
        None if field.value.is_some() && !field.optional => return Err(FormError::NeedsValue { name: name() }),
        None => format!("--{option}"),
    })
}

/// The options of a side of a comparison, which may begin with its test: those that the form of that test offers, and no others.
fn nested(forms: &[Form], name: &str, text: &str, pattern: Option<&str>) -> Result<String, FormError> {
    let refused = |word: &str| FormError::Nested { name: name.to_owned(), word: word.to_owned() };
    let mut words = text.split_whitespace().peekable();
    let command = words.next_if(|word| SIDES.contains(word));
    let form = form(forms, command.or(pattern).unwrap_or(SIDES[0]))?;
    let mut own: Vec<String> = command.into_iter().map(str::to_owned).collect();
    while let Some(word) = words.next() {
        let option = word.strip_prefix("--").ok_or_else(|| refused(word))?;
        let (option, value) = option.split_once('=').map_or((option, None), |(option, value)| (option, Some(value)));
        let takes = form.fields.iter().any(|field| field.name == option && field.value.is_some() && !field.optional);
        let value = value.or_else(|| words.next_if(|_| takes));
        own.push(self::word(forms, form, option, value, None)?);
    }
    Ok(own.join(" "))
}

/// The tests that a side of a comparison may be.
const SIDES: [&str; 3] = ["stream", "rr", "transfer"];

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, value: Option<&str>, optional: bool) -> Field {
        let value = value.map(str::to_owned);
        Field {
            name: name.into(),
            label: String::new(),
            first: false,
            nested: name == "a",
            help: String::new(),
            value,
            optional,
            choices: Vec::new(),
            default: None,
            range: [None, None],
            number: false,
            heading: None,
        }
    }

    fn filled(command: &str, subject: &str, options: &[(&str, Option<&str>)]) -> Result<Vec<String>, FormError> {
        let fields = ["time", "a"]
            .map(|name| field(name, Some("VALUE"), false))
            .into_iter()
            .chain([field("both", None, false), field("probe", Some("N"), true)])
            .collect::<Vec<_>>();
        let form = |command: &str, subject| Form {
            command: command.into(),
            title: String::new(),
            about: String::new(),
            subject,
            has_hosts: command == "mesh",
            fields: fields.clone(),
        };
        let host = |name: &str| Some(field(name, Some("HOST"), false));
        let forms = [form("stream", host("host")), form("mesh", host("fleet")), form("bare", None)];
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect();
        words(&forms, &Filled { command: command.into(), subject: subject.into(), options })
    }

    #[test]
    fn a_form_becomes_a_command_line_of_its_own_options_only() {
        let options = [("time", Some("3s")), ("both", None), ("probe", None), ("probe", Some("5"))];
        let words = filled("stream", " b ", &options).unwrap();
        assert_eq!(words, ["stream", "b", "--time=3s", "--both", "--probe", "--probe=5"]);
        // No word is split.
        let words = filled("stream", "", &[("time", Some("1s --json /x"))]).unwrap();
        assert_eq!(words, ["stream", "--time=1s --json /x"]);
        for refused in [
            filled("lab", "", &[]),
            filled("stream", "--json=/x", &[]),
            filled("stream", "", &[("json", Some("/x"))]),
            filled("stream", "", &[("time", None)]),
            filled("stream", "", &[("both", Some("x"))]),
            filled("bare", "b", &[]),
        ] {
            refused.unwrap_err();
        }
    }

    #[test]
    fn hosts_are_words_and_the_options_of_a_side_are_those_of_its_form() {
        assert_eq!(filled("mesh", "a, b  c", &[]).unwrap(), ["mesh", "a", "b", "c"]);
        filled("mesh", "a,--json=/x", &[]).unwrap_err();
        assert_eq!(filled("stream", "plans/my plan.toml", &[]).unwrap(), ["stream", "plans/my plan.toml"]);
        let side = |text: &str| filled("stream", "", &[("a", Some(text))]);
        assert_eq!(side("stream --time 3s --both").unwrap(), ["stream", "--a=stream --time=3s --both"]);
        assert_eq!(side("").unwrap(), ["stream", "--a="]);
        for refused in ["--json /x", "--json=/x", "-t 3s", "--time", "curve --time 3s", "--both=x", "x"] {
            side(refused).unwrap_err();
        }
    }
}
