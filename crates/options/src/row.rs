//! A row of the table of options: all that is known of an option.

use text::{Text, say};

use crate::{EndOptions, Program, Spec, TestKind, TestOptions, TransportFacts, ValueError};

/// An option of a measurement. Flags, the keys of plans and groups, the form of the page, columns, the tables of the manual and what is
/// refused all follow from its row.
#[derive(Debug, Clone, Copy)]
pub struct OptionRow {
    /// Its name: the long flag and the key.
    pub key: &'static str,
    /// The short flag.
    pub short: Option<char>,
    /// Another long flag, which help does not list.
    pub alias: Option<&'static str>,
    /// What its value is called; `None` for a switch.
    pub value: Option<&'static str>,
    /// The value of a flag without one. The flag then takes a value after `=` only.
    pub implied: Option<&'static str>,
    /// The value that help gives as the default; what a test does without the option.
    pub default: Option<&'static str>,
    /// The values that it takes, each with a line of help; empty if they are not a list.
    pub choices: &'static [(&'static str, &'static str)],
    /// The range of its values.
    pub range: fn() -> Option<Range>,
    /// The heading that help has it under.
    pub topic: Topic,
    /// Its help.
    pub help: &'static str,
    /// What the manual adds to the help.
    pub note: &'static str,
    /// Help for single tests, in place of that. One without help is not listed.
    pub help_of: &'static [(TestKind, &'static str)],
    /// The tests that have it.
    pub tests: &'static [TestKind],
    /// Whether `thru advise` takes it too, as an option that the search leaves alone.
    pub fixes_search: bool,
    /// Whether it may be given several times.
    pub repeats: bool,
    /// Whether its value is the path of a file; that of a plan is relative to the plan.
    pub is_file: bool,
    /// Whether a single value is that of the near end: names of interfaces and ports rarely agree between two hosts.
    pub is_local: bool,
    /// The transports on which it has an effect.
    pub needs: Needs,
    /// Whether it must be set on a listening socket before the handshake, so that the far end cannot use the agent's port.
    pub own_listener: bool,
    /// What happens to it with another program at the far end.
    pub with_programs: WithPrograms,
    /// The columns of tables of results that have its value.
    pub columns: &'static [Column],
    /// Where its value is.
    pub place: ValuePlace,
}

/// A column of tables of results.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name, which ends in the unit of its numbers unless these are counts or sizes of blocks in bytes.
    pub name: &'static str,
    /// What a spec has there.
    pub value: fn(&Spec) -> Option<SpecValue>,
}

/// The value of an option in a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpecValue {
    /// A count, or a number of bytes or nanoseconds.
    Count(u64),
    /// Whether it is so.
    Flag(bool),
    /// A name.
    Name(String),
}

/// The range of a value, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The least value.
    pub least: String,
    /// The greatest value, if there is one.
    pub most: Option<String>,
}

/// Where the value of an option is.
#[derive(Debug, Clone, Copy)]
pub enum ValuePlace {
    /// The test has it.
    Test {
        /// Parses it.
        set: fn(&mut TestOptions, &str) -> Result<(), ValueError>,
        /// Whether it was given.
        is_given: fn(&TestOptions) -> bool,
    },
    /// Each end has its own.
    End {
        /// Parses it, or removes it.
        set: fn(&mut EndOptions, Option<&str>) -> Result<(), ValueError>,
        /// Whether an end has one.
        is_set: fn(&EndOptions) -> bool,
    },
}

/// The heading that help has an option under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// What is sent: under no heading.
    Load,
    /// Hosts and addresses.
    Hosts,
    /// How bytes are moved.
    Calls,
    /// The stop rule.
    Precision,
    /// The hosts' counters.
    Activity,
    /// TestOptions of sockets and threads.
    Sockets,
    /// Settings of the hosts.
    Settings,
    /// Packet captures.
    Capture,
}

impl Topic {
    /// The heading.
    #[must_use]
    pub const fn heading(self) -> Option<&'static str> {
        match self {
            Self::Load => None,
            Self::Hosts => Some("Hosts and addresses"),
            Self::Calls => Some("System calls, threads and processes"),
            Self::Precision => Some("Precision and duration"),
            Self::Activity => Some("Host activity"),
            Self::Sockets => Some("Socket options (one value for both ends, or LOCAL,REMOTE)"),
            Self::Settings => Some("Host settings"),
            Self::Capture => Some("Packet capture"),
        }
    }
}

/// The transports on which an option has an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// All, or those that the engine knows.
    Any,
    /// Those over the kernel's TCP.
    Tcp,
    /// Those with a congestion control to choose.
    CongestionControl,
    /// Those with a datagram for each block.
    Datagrams,
}

impl Needs {
    /// Whether a transport is one of them.
    #[must_use]
    pub const fn are_met(self, facts: &TransportFacts) -> bool {
        match self {
            Self::Any => true,
            Self::Tcp => facts.is_over_tcp(),
            Self::CongestionControl => facts.has_congestion_control(),
            Self::Datagrams => facts.has_datagrams(),
        }
    }
}

/// What happens to an option with another program at the far end.
#[derive(Debug, Clone, Copy)]
pub enum WithPrograms {
    /// This end alone carries it out.
    NearEnd,
    /// Each program's own code checks its value.
    OwnCheck,
    /// The far end has a part in it, which the servers of these programs carry out; all others refuse it.
    FarEnd {
        /// Whether a spec asks the far end for it.
        asks: fn(&Spec) -> bool,
        /// The programs.
        carried_by: &'static [Program],
    },
    /// The same for an option of the ends: asked for if the far end has it.
    AtFarEnd(&'static [Program]),
}

impl OptionRow {
    /// What most rows have in common. Other programs refuse a measurement with a row that does not say what becomes of it.
    pub(crate) const BASE: Self = Self {
        key: "",
        short: None,
        alias: None,
        value: None,
        implied: None,
        default: None,
        choices: &[],
        range: || None,
        topic: Topic::Load,
        help: "",
        note: "",
        help_of: &[],
        tests: &TestKind::ALL,
        fixes_search: false,
        repeats: false,
        is_file: false,
        is_local: false,
        needs: Needs::Any,
        own_listener: false,
        with_programs: WithPrograms::FarEnd { asks: |_| true, carried_by: &[] },
        columns: &[],
        place: ValuePlace::Test { set: |_, _| Ok(()), is_given: |_| false },
    };

    /// Whether a test has it.
    #[must_use]
    pub fn is_of(&self, test: TestKind) -> bool {
        self.tests.contains(&test)
    }

    /// Whether it takes a value for each end.
    #[must_use]
    pub const fn is_per_end(&self) -> bool {
        matches!(self.place, ValuePlace::End { .. })
    }

    /// Its help for a test.
    #[must_use]
    pub fn help_for(&self, test: TestKind) -> &'static str {
        self.help_of.iter().find(|(of, _)| *of == test).map_or(self.help, |(_, help)| help)
    }

    /// Whether an end has it, of an option that each end has.
    #[must_use]
    pub fn is_set(&self, end: &EndOptions) -> bool {
        matches!(self.place, ValuePlace::End { is_set, .. } if is_set(end))
    }

    /// Whether it was given.
    #[must_use]
    pub fn is_given(&self, options: &TestOptions) -> bool {
        match self.place {
            ValuePlace::Test { is_given, .. } => is_given(options),
            ValuePlace::End { is_set, .. } => is_set(&options.near) || is_set(&options.far),
        }
    }

    /// What a spec asks the far end for that the server of `program` does not carry out, in words.
    pub(crate) fn uncarried(&self, spec: &Spec, program: Program) -> Option<Text> {
        match (self.with_programs, self.place) {
            (WithPrograms::FarEnd { asks, carried_by }, _) if !carried_by.contains(&program) && asks(spec) => {
                Some(say!("`--{}`", self.key))
            }
            (WithPrograms::AtFarEnd(carried_by), ValuePlace::End { is_set, .. })
                if !carried_by.contains(&program) && is_set(&spec.far) =>
            {
                Some(say!("`--{}` at the far end", self.key))
            }
            _ => None,
        }
    }
}
