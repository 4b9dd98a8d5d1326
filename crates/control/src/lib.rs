//! How measurements are controlled: the [`agent`] that drives one machine, the
//! [`worker`] process in which a measurement runs alone, the [`helper`] that does what needs privileges, and the
//! [`coordinator`] that carries out the steps of a run.
//!
//! The coordinator runs the near end's agent within its own process. It uses the same messages for that agent as for the
//! far end's `thru serve`.

mod access;
pub mod agent;
mod connection_end;
pub mod coordinator;
mod error;
pub mod helper;
mod key_error;
mod limits;

mod patience;
pub mod proof;
pub mod scrape;
mod tls;
mod wire;
pub mod worker;

/// Entry points for coverage-guided tests of what bounds an agent's clients. Only for `fuzz/`.
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing {
    pub use crate::agent::fuzzing::gate;

    #[cfg(test)]
    mod tests {
        #[test]
        fn every_input_of_the_corpus_is_survived() {
            corpus::inputs("gate").unwrap().iter().for_each(|input| super::gate(input));
        }
    }
}

pub use access::{Access, Answers, KnownKeys, Recognized};
pub use connection_end::ConnectionEnd;
pub use error::ControlError;
pub use key_error::KeyError;
pub use limits::raise_file_limit;
pub use tls::AgentKey;
