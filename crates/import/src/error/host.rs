//! Faults of a host's settings, interfaces and activity.

/// A fault of what ethtool, nstat, sar, ss, sysctl, typeperf or vmstat print.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A driver of an unknown device.
    #[error("ethtool -i does not print its device: keep the line with the command")]
    NoDevice,
    /// A setting below no folder of /proc/sys, by the beginning of its name.
    #[error("no kernel setting begins with '{0}.'")]
    Setting(String),
    /// A counter that the kernel's protocols do not have.
    #[error("'{0}' is not a counter of the kernel's protocols")]
    Counter(String),
    /// A counter that is not an integer.
    #[error("{name}: {value} is not an integer")]
    Count {
        /// Its name.
        name: String,
        /// Its value, as in the document.
        value: String,
    },
    /// A counter with two values.
    #[error("{name} is {above} in an earlier line and {here} here")]
    TwoCounts {
        /// Its name.
        name: String,
        /// The earlier value.
        above: i64,
        /// The later value.
        here: i64,
    },
    /// A line of ss without the details that belong to it.
    #[error("a connection has no details (was -i omitted, or is the text cut off?)")]
    NoDetails,
    /// A word of ss before a rate that is not there.
    #[error("'{0}' has no rate")]
    NoRate(String),
    /// A word of ss without a valid number.
    #[error("'{0}' has no number")]
    NoNumber(String),
    /// A row of sar above one with a later time.
    #[error("its time is earlier than in the row above")]
    Earlier,
    /// A figure with two values.
    #[error("a second value of {0} at the same time")]
    Twice(String),
    /// An average outside the range of its series.
    #[error("the average of {0} is not between its values")]
    Average(String),
    /// Tables of other columns.
    #[error("no supported table; columns: {}", .0.join(", "))]
    OtherColumns(Vec<String>),
    /// A listing of sar without its last lines.
    #[error("the listing ends without averages: it is cut off or still running")]
    NoAverages,
    /// A time that cannot be read, as in the document.
    #[error("{0} is not a time")]
    Time(String),
    /// A reading that is not after the one before it, by its time.
    #[error("{0} is not later than the previous reading")]
    NotAfter(String),
    /// Figures of a core or an interface without its name.
    #[error("figures of {figures} have no {key}")]
    NoName {
        /// Their name.
        figures: String,
        /// The key of the name.
        key: &'static str,
    },
    /// A value that cannot be a figure.
    #[error("{name} of {which} is {value}, which is not a valid figure")]
    Figure {
        /// Its name.
        name: String,
        /// The core or the interface.
        which: String,
        /// As in the document.
        value: String,
    },
    /// Shares of a core's time that are not 100 % together.
    #[error("the shares of the time{} add up to {percent:.2} %", core.as_ref().map_or(String::new(), |core| format!(" of {core}")))]
    Shares {
        /// The core, if it is not that of the line.
        core: Option<String>,
        /// Their sum.
        percent: f64,
    },
    /// Shares of the CPU's time that are not 100 % together; their sum.
    #[error("the shares of the CPU's time add up to {0} %")]
    CpuShares(f64),
    /// A line of vmstat with fewer numbers.
    #[error("expected {0} numbers")]
    Numbers(usize),
    /// A head of vmstat alone.
    #[error("vmstat's header has no lines below it")]
    HeadAlone,
    /// The first line of vmstat alone.
    #[error("only the mean since boot: run vmstat with a delay and a count")]
    SinceBoot,
    /// Times of lines that are not in order.
    #[error("the times go backwards or repeat")]
    Times,
}
