//! The data that Throughline's crates exchange: what to measure ([`Spec`], [`Stopping`]), the counts ([`EndTally`],
//! [`Trial`]), the results ([`Outcome`], [`Finding`]), the figures to draw ([`Figure`]) and the stream of [`Event`]s. Plain
//! values only: nothing here opens a socket, reads a clock or starts a thread.
//!
//! Conventions: integer nanoseconds (`_ns`), bytes (`_bytes`, or a field of [`Spec`] whose description says bytes), decimal
//! bits per second (`_bps`). A key without a unit is a count or a name. `near` is the end that runs the command (or the
//! `--from` host), `far` is HOST.

pub mod advice;
pub mod anatomy;
pub mod capture;
mod check;
pub mod claim;
pub mod comparison;
pub mod device;
pub mod estimate;
pub mod event;
mod expectation;
pub mod figure;
pub mod finding;
pub mod fleet;
pub mod flow_counts;
pub mod histogram;
pub mod history;
pub mod host;
pub mod lab;
mod leg;
mod median;
pub mod observed;
pub mod origin;
pub mod outcome;
pub mod path;
mod plain;
pub mod plan;
pub mod printf;
pub mod probe;
pub mod random;
pub mod reading;
pub mod run;
mod run_kind;
#[cfg(feature = "schema")]
pub mod schema;
pub mod selftest;
mod selftest_citation;
pub mod shared;
pub mod source;
pub mod stamps;
pub mod stopping;
mod summary;
pub mod tally;
pub mod tcp;
pub mod traffic;
pub mod trial;
pub mod trust;
pub mod verdict;
pub mod why;

pub use advice::{Advice, AdvicePersistent, AdviceSpent, AdviceStep, AdviceUnchanged, AdviceUntried, Goal};
pub use anatomy::{Anatomy, PartFigures};
pub use capture::{Capture, TimeSequence};
pub use check::{Attempt, Check, Claim};
pub use claim::{Bound, BoundKind, Ceiling, Cost, EndCost, Spent, ThreadTime};
pub use comparison::{Answer, CellComparison, Comparison, Difference, RunComparison, RunName, Unpaired};
pub use device::{Device, Irq, LinkModes, Module, Neighbour, Pci, Timestamping, Traffic};
pub use estimate::Estimate;
pub use event::{Event, EventSink, Phase, SinkError};
pub use expectation::{Expectation, ExpectationError, PathFigure};
pub use figure::{
    Axis, Figure, Look, Map, MapKind, MapLink, MapNode, Mark, Matrix, MatrixCell, Panel, Point, Scale, Series,
};
pub use finding::{Finding, FindingKind};
pub use fleet::{HostCheck, MachineUser};
pub use flow_counts::{DatagramReading, FlowCounts};
pub use histogram::Histogram;
pub use history::{AlertEvent, AlertState, ChangePoint, HistoryPass, HistorySeries, MeshHistory};
pub use host::{CoreUse, CpuAccounting, CpuUse, Interface, Inventory, KernelSetup, Processor, ResourceLimits};
pub use lab::{EmulatedDirection, LabReport, ShapedDirection};
pub use leg::{BothEnds, EndResult, Leg, PathTimes};
pub use median::median;
pub use observed::{HostSeries, Observed, SeriesLine, Watched, WatchedInterface};
pub use options::{
    BitRate, ByteSize, CaptureSpec, CellSettings, Change, Direction, Ecn, EndOptions, Engine, Family, Framing,
    HostSettings, Io, IpProtocol, JournalEntry, LINK_SETTING, Mix, MixStep, NamedTransport, Nanos, NetpipeSizes,
    Observe, Pattern, Payload, PayloadKind, Program, Ratio, ReceiveBy, Reverted, Role, RunSettings, SendBy, Setting,
    SettingNow, SizeCount, Spec, StackRule, Stop, Strategy, TransportFacts, TransportName, ValueError, alternatives,
    transport, units,
};
pub use origin::{Origin, OriginLine, OriginRow};
pub use outcome::{Outcome, PeakCheck, Seconds, Shares, StartUp, Summary};
pub use path::{ClockDrift, ClockOffset, Hop, Path, PathMtu, Ping, Route};
pub use plain::{plain, plain_lines};
pub use plan::{
    Conditions, Design, Every, Factor, FactorKind, HostReading, Otherwise, Plan, PlanEnd, PlanLab, Require,
};
pub use probe::{Confidence, Responsiveness, WorkingConditions, WorkingInterval};
pub use random::SplitMix64;
pub use reading::{FlowReading, Live, Reading, TcpReading};
pub use run::{Ending, Run, RunHeader, Tool};
pub use run_kind::RunKind;
pub use selftest::SelfTest;
pub use selftest_citation::{CitedError, SelfTestCitation};
pub use shared::Shared;
pub use source::{Source, SourceFacts};
pub use stamps::{AnatomyTally, PartTally, StampedExchange, Stamps};
pub use stopping::{Order, Stopping};
pub use summary::{RunDocument, RunSummary};
pub use tally::{
    Count, DatagramTally, Delay, Delays, Encryption, EndTally, FlowTally, Interval, OneWay, PacingTally, ProbeSample,
    RttTally, SocketFacts, WallClock,
};
pub use tcp::TcpSample;
pub use text::Text;
pub use traffic::{PlanTraffic, TrafficKind};
pub use trial::{Cell, EndPass, Ledger, Pass, Retest, Trial};
pub use trust::Trust;
pub use verdict::Verdict;
pub use why::{
    BestRegion, CellWhy, Evidence, Grade, LimiterKind, LocatedLoss, LossLocation, Losses, Remedy, RunWhy, SharedLimit,
    TimePart, Why, WhyDocument,
};
