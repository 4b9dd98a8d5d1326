//! The measuring path: what carries bytes ([`transport`]), how the two ends use it ([`pattern`]), and the threads that
//! run and count ([`runner`]).
//!
//! A trial: the coordinator sends a [`TrialPlan`] to both ends. The passive end's [`transport::Transport`] listens,
//! the active end's connects, one [`transport::Link`] per flow. [`runner::run`] gives each flow the machine of its
//! pattern, releases all threads at once and returns the counts. All memory is allocated before that release; after
//! it, a thread makes system calls, stores to its own counters, and does nothing else.

mod core;
pub mod pattern;
pub mod runner;
pub mod transport;

/// Entry points for coverage-guided tests: what decodes the bytes of peers, for bytes of any kind. Only for `fuzz/`.
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing {
    pub use crate::pattern::fuzzing::{datagrams, sequence, stream};
    pub use crate::transport::fuzzing::{signals, tcp_info};

    #[cfg(test)]
    mod tests {
        type Entry = fn(&[u8]);

        #[test]
        fn every_input_of_the_corpus_is_survived() {
            let entries: [(&str, Entry); 5] = [
                ("datagrams", super::datagrams),
                ("sequence", super::sequence),
                ("signals", super::signals),
                ("stream", super::stream),
                ("tcp_info", super::tcp_info),
            ];
            for (target, entry) in entries {
                corpus::inputs(target).unwrap().iter().for_each(|input| entry(input));
            }
        }
    }
}

pub use self::core::{
    EngineError, LegStop, LinkPlan, Signals, TrialPlan, WallError, now_ns, random, unix_ns, wall_error,
};
pub use runner::{LegTally, run};
