//! NPtcp's options, which its two ends have to be given alike.

use model::NetpipeSizes;
use peer_wire::netpipe::{Mode, SizePlan};
use text::{Text, say};

use crate::ProgramError;

/// First size of a run whose messages are checked.
const FIRST_CHECKED: u64 = 5;
/// NPtcp's largest message here, bytes.
const MOST: u64 = 1 << 30;

/// The options that a receiver has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Options {
    mode: Mode,
    reset: bool,
    integrity: bool,
    sizes: NetpipeSizes,
}

impl Options {
    /// Parses NPtcp's options, such as `-s -u 1000`; an empty text means the defaults.
    pub(super) fn parse(text: &str) -> Result<Self, ProgramError> {
        let refuse = |what: Text, remedy: &str| Err(ProgramError::unsupported(what, remedy));
        let mut options = Self { mode: Mode::PingPong, reset: false, integrity: false, sizes: NetpipeSizes::DEFAULT };
        let mut arguments = text.split_whitespace();
        while let Some(argument) = arguments.next() {
            let mut number = |least: u64| {
                let value = arguments.next().and_then(|value| value.parse().ok());
                value.filter(|value| (least..=MOST).contains(value)).ok_or_else(|| {
                    ProgramError::unsupported(
                        say!("NPtcp's {argument} without a number"),
                        say!("it takes a number from {least} to {MOST}"),
                    )
                })
            };
            match argument {
                "-s" => options.mode = Mode::Stream,
                "-2" => options.mode = Mode::Both,
                "-r" => options.reset = true,
                "-i" => {
                    options.integrity = true;
                    (options.sizes.first, options.sizes.perturbation) = (FIRST_CHECKED, 0);
                }
                "-l" => options.sizes.first = number(1)?,
                "-u" => options.sizes.last = number(1)?,
                "-p" => options.sizes.perturbation = number(0)?,
                _ => {
                    return refuse(
                        say!("NPtcp's option {argument}"),
                        "supported are -s, -2, -r, -i, -l N, -u N and -p N",
                    );
                }
            }
        }
        let modes = text.split_whitespace().filter(|argument| matches!(*argument, "-s" | "-2")).count();
        if modes > 1 {
            return refuse("NPtcp's -s with -2".into(), "give only one of them");
        }
        if options.integrity && options.mode != Mode::PingPong {
            return refuse("NPtcp's -i with -s or -2".into(), "only round trips can be checked; leave one of them out");
        }
        Ok(options)
    }

    /// The schedule of a receiver, which accepts any repeat count.
    pub(super) fn plan(&self) -> SizePlan {
        SizePlan {
            first: self.sizes.first,
            sizes: self.sizes.list(),
            mode: self.mode,
            reset: self.reset,
            integrity: self.integrity,
            count: None,
            only: Vec::new(),
        }
    }
}

/// The sizes that NPtcp would take, if these are such, ascending: with its own first size, last size and perturbation. The first is a centre
/// or the perturbation below one.
pub(super) fn schedule(sizes: &[u64]) -> Option<NetpipeSizes> {
    let (least, most) = (*sizes.first()?, *sizes.last()?);
    let mut candidates = (0..=MOST_PERTURBATION).flat_map(|perturbation| {
        [least, least + perturbation].into_iter().flat_map(move |first| {
            [most, most.saturating_sub(perturbation)].map(|last| NetpipeSizes { first, last, perturbation })
        })
    });
    let ascending = |candidate: &NetpipeSizes| {
        let mut sizes = candidate.list();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    };
    candidates.find(|candidate| ascending(candidate) == sizes)
}

/// Whether NPtcp without options takes all of these sizes.
pub(super) fn are_some(sizes: &[u64]) -> bool {
    let own = NetpipeSizes::DEFAULT.list();
    !sizes.is_empty() && sizes.is_sorted() && sizes.iter().all(|size| own.contains(size))
}

/// The largest perturbation that is recognised, bytes.
const MOST_PERTURBATION: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_nptcp_reads_them() {
        let plan = Options::parse("").unwrap().plan();
        assert_eq!((plan.first, plan.sizes.len(), plan.mode, plan.reset), (1, 124, Mode::PingPong, false));
        let plan = Options::parse("-i").unwrap().plan();
        assert_eq!((plan.first, plan.sizes.len(), plan.integrity), (5, 43, true));
        let plan = Options::parse("-s -l 64 -u 1000").unwrap().plan();
        assert_eq!((plan.first, plan.mode, plan.sizes[..3].to_vec()), (64, Mode::Stream, vec![61, 64, 67]));
        for (wrong, said) in
            [("-s -2", "-s with -2"), ("-i -2", "-i with"), ("-x", "option -x"), ("-u", "without a number")]
        {
            let error = Options::parse(wrong).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_schedule_is_found_in_its_sizes() {
        for sizes in [
            NetpipeSizes::DEFAULT,
            NetpipeSizes { perturbation: 0, ..NetpipeSizes::DEFAULT },
            NetpipeSizes { first: 64, last: 1000, perturbation: 3 },
            NetpipeSizes { first: 1, last: 64, perturbation: 5 },
            NetpipeSizes { first: 10, last: 10_000, perturbation: 3 },
        ] {
            let mut list = sizes.list();
            list.sort_unstable();
            let found = schedule(&list).unwrap();
            assert_eq!((found.first, found.list()), (sizes.first, sizes.list()));
        }
        assert_eq!(schedule(&[1, 10, 100]), None);
        assert_eq!(schedule(&[]), None);
    }
}
