//! What can be measured, and with which options: quantities ([`ByteSize`], [`BitRate`], [`Nanos`]), the [`Spec`] of a measurement, and a
//! row for each option. Plain values only: nothing here opens a socket, reads a file or a clock.

mod capture;
mod end_options;
mod engine;
mod error;
mod given;
mod mix;
mod observe;
mod option_error;
mod pattern;
mod payload;
mod program;
mod reader;
mod row;
mod setting;
mod sizes;
mod spec;
mod stack_rule;
mod table;
mod test_kind;
pub mod transport;
pub mod units;
mod unknown;
pub mod values;
mod wording;

pub use capture::CaptureSpec;
pub use end_options::{Ecn, EndOptions};
pub use engine::{Engine, ReceiveBy, SendBy};
pub use error::{ImpossibleSpec, ValueError, any};
pub use given::TestOptions;
pub use mix::{Mix, MixError, MixStep, SizeCount};
pub use observe::Observe;
pub use option_error::OptionError;
pub use pattern::Pattern;
pub use payload::{Payload, PayloadKind};
pub use program::Program;
pub use row::{Column, Needs, OptionRow, Range, SpecValue, Topic, ValuePlace, WithPrograms};
pub use setting::{
    CellSettings, Change, HostSettings, JournalEntry, LINK_SETTING, Reverted, RunSettings, Setting, SettingNow,
};
pub use sizes::NetpipeSizes;
pub use spec::{Direction, Family, Io, Role, Spec, Stop, Strategy};
pub use stack_rule::StackRule;
pub use table::{end_rows, is_key, row, rows, rows_of, split, uncarried};
pub use test_kind::TestKind;
pub use transport::{Framing, IpProtocol, NamedTransport, TransportFacts, TransportName};
pub use units::{BitRate, ByteSize, Nanos, Ratio};
pub use unknown::{closest, unknown};
pub use wording::alternatives;
