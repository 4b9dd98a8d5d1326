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
    /// What it does, in a line.
    pub about: String,
    /// What stands without a name, if it takes something: a host, or a plan.
    pub subject: Option<Field>,
    /// Its options.
    pub fields: Vec<Field>,
}

/// An option.
#[derive(Debug, Clone, Serialize)]
pub struct Field {
    /// Its long name, without dashes.
    pub name: String,
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
    /// The heading that it stands under; `None` for the first ones.
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
    let command = || filled.command.clone();
    let form = forms.iter().find(|form| form.command == filled.command);
    let form = form.ok_or_else(|| FormError::UnknownCommand { command: command() })?;
    let subject = filled.subject.trim();
    if subject.starts_with('-') || (form.subject.is_none() && !subject.is_empty()) {
        return Err(FormError::Subject { command: command(), subject: subject.to_owned() });
    }
    let mut words = vec![command()];
    words.extend((!subject.is_empty()).then(|| subject.to_owned()));
    for (option, value) in &filled.options {
        let name = || option.clone();
        let field = form.fields.iter().find(|field| field.name == *option);
        let field = field.ok_or_else(|| FormError::UnknownOption { command: command(), name: name() })?;
        words.push(match value {
            Some(_) if field.value.is_none() => return Err(FormError::TakesNoValue { name: name() }),
            Some(value) if !field.choices.is_empty() && !field.choices.contains(value) => {
                return Err(FormError::Choice { name: name(), value: value.clone(), choices: field.choices.clone() });
            }
            Some(value) => format!("--{option}={value}"),
            None if field.value.is_some() && !field.optional => return Err(FormError::NeedsValue { name: name() }),
            None => format!("--{option}"),
        });
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, value: Option<&str>, optional: bool) -> Field {
        let value = value.map(str::to_owned);
        Field {
            name: name.into(),
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
        let fields =
            vec![field("time", Some("TIME"), false), field("both", None, false), field("probe", Some("N"), true)];
        let form = |command: &str, subject| Form {
            command: command.into(),
            about: String::new(),
            subject,
            fields: fields.clone(),
        };
        let forms = [form("stream", Some(field("host", Some("HOST"), false))), form("bare", None)];
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
}
