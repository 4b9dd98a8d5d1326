//! Figures of one result that contradict each other.

/// Figures of which not all can be right.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Contradiction {
    /// A rate that does not follow from its bytes and its time.
    #[error("{bytes} bytes in {} s contradict {bps} bit/s", rounded(*seconds, *decimals))]
    Rate {
        /// Bytes.
        bytes: f64,
        /// Their time, s.
        seconds: f64,
        /// With how many decimals the time is shown; `None` for all.
        decimals: Option<usize>,
        /// The rate, bit/s.
        bps: f64,
    },
    /// The same with the size in MB, the time in s and the rate in Mbps as printed.
    #[error("{} MB in {} s contradict {} Mbps", .0[0], .0[1], .0[2])]
    PrintedRate(Box<[String; 3]>),
    /// A time that does not follow from the bytes and their rate.
    #[error("{bytes} bytes in {seconds} s contradict the printed rate")]
    Time {
        /// Bytes.
        bytes: u64,
        /// The time, s.
        seconds: f64,
    },
    /// A throughput that does not follow from its bytes and its time.
    #[error("{megabits} megabits/sec contradicts {bytes} bytes in {seconds} s")]
    Throughput {
        /// The throughput, 10^6 bit/s.
        megabits: f64,
        /// Bytes.
        bytes: u64,
        /// Their time, s.
        seconds: f64,
    },
    /// A rate of bits that does not follow from the messages and their time.
    #[error("{messages} messages of {block} bytes in {seconds} s contradict {bps} bit/s")]
    Messages {
        /// Number of messages.
        messages: f64,
        /// Bytes of each.
        block: u64,
        /// Their time, s.
        seconds: f64,
        /// The rate, bit/s.
        bps: f64,
    },
    /// A rate of messages that does not follow from their number and their time.
    #[error("{messages} messages in {seconds} s contradict {per_s} messages/s")]
    MessageRate {
        /// Number of messages.
        messages: u64,
        /// Their time, s.
        seconds: f64,
        /// The rate, messages/s.
        per_s: f64,
    },
    /// A rate of bits that does not follow from that of the messages.
    #[error("{megabits} Mbps contradicts {per_s} messages/s of {block} bytes")]
    MessageSize {
        /// The rate, 2^20 bit/s.
        megabits: f64,
        /// Messages/s.
        per_s: f64,
        /// Bytes of each.
        block: u64,
    },
    /// A receiver's rate above the sender's.
    #[error("{received} bit/s received contradict {sent} bit/s sent")]
    ReceivedRate {
        /// The receiver's, bit/s.
        received: f64,
        /// The sender's, bit/s.
        sent: f64,
    },
    /// Rate and time of one block.
    #[error("rate and time contradict each other")]
    RateAndTime,
    /// A sum that its connections do not add up to.
    #[error("the {name} of {sum:.0} bytes contradicts its connections' {connections:.0} bytes")]
    Sum {
        /// "sum", or as the program prints it.
        name: &'static str,
        /// The sum, bytes.
        sum: f64,
        /// What the connections add up to, bytes.
        connections: f64,
    },
    /// A sum that its streams do not add up to.
    #[error("{sum} bytes contradict the {streams} of its streams")]
    Streams {
        /// The sum, bytes.
        sum: u64,
        /// What the streams add up to, bytes.
        streams: u64,
    },
    /// A total that the processes do not add up to.
    #[error("the processes' {processes} bytes contradict a total of {total}")]
    Processes {
        /// What the processes add up to, bytes.
        processes: u64,
        /// The total, bytes.
        total: u64,
    },
    /// More in the intervals than in the whole test.
    #[error("intervals of {intervals:.4} MB contradict a total of {total:.4} MB")]
    Intervals {
        /// What the intervals add up to, MiB.
        intervals: f64,
        /// The total, MiB.
        total: f64,
    },
    /// Bytes that are not those of the datagrams.
    #[error("{bytes} bytes contradict {datagrams} datagrams of {block} bytes")]
    Datagrams {
        /// Bytes.
        bytes: u64,
        /// Number of datagrams.
        datagrams: u64,
        /// Bytes of each.
        block: u64,
    },
    /// A part above the whole, of TCP's counters.
    #[error("{part} {part_value} contradicts {whole} {whole_value}")]
    Part {
        /// The part.
        part: &'static str,
        /// Its value.
        part_value: f64,
        /// The whole.
        whole: &'static str,
        /// Its value.
        whole_value: f64,
    },
    /// More datagrams lost than sent.
    #[error("{lost} of {all} datagrams lost: more than were sent")]
    Lost {
        /// The lost ones.
        lost: u64,
        /// All of them.
        all: u64,
    },
    /// More bytes received than sent.
    #[error("{received:.0} bytes received of {sent:.0} sent")]
    ReceivedBytes {
        /// Bytes received.
        received: f64,
        /// Bytes sent.
        sent: f64,
    },
    /// More messages received than sent.
    #[error("{received} messages received of {sent}")]
    ReceivedMessages {
        /// Messages received.
        received: f64,
        /// Messages sent.
        sent: f64,
    },
    /// More answers than questions.
    #[error("{received} {answers} to {sent} {questions}")]
    Answers {
        /// Number of answers.
        received: u64,
        /// What answers: "answers" or "replies".
        answers: &'static str,
        /// Number of questions.
        sent: u64,
        /// What was sent: "echo requests" or "messages".
        questions: &'static str,
    },
    /// More replies in the text than its summary counts.
    #[error("{replies} replies contradict the {summary} of the summary")]
    Replies {
        /// In the text.
        replies: usize,
        /// In the summary.
        summary: usize,
    },
    /// A mean that is not that of the replies.
    #[error("a mean of {mean} ms contradicts the replies, whose mean is {replies:.3} ms")]
    MeanOfReplies {
        /// As printed, ms.
        mean: f64,
        /// That of the replies, ms.
        replies: f64,
    },
    /// A mean outside its range.
    #[error("a mean of {mean} ms is not between {min} and {max} ms")]
    MeanOutside {
        /// The mean, ms.
        mean: f64,
        /// The smallest value, ms.
        min: f64,
        /// The largest value, ms.
        max: f64,
    },
    /// A mean latency, us, that is outside its range, or another one in the summary.
    #[error("a mean of {0} us contradicts the other figures")]
    MeanLatency(f64),
}

impl Contradiction {
    /// More answers than echo requests.
    pub(crate) fn echoes([sent, received]: [u32; 2]) -> Self {
        let (received, sent) = (received.into(), sent.into());
        Self::Answers { received, answers: "answers", sent, questions: "echo requests" }
    }
}

/// A figure with this number of decimals.
fn rounded(figure: f64, decimals: Option<usize>) -> String {
    decimals.map_or_else(|| figure.to_string(), |decimals| format!("{figure:.decimals$}"))
}
