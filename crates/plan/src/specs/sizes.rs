//! The block sizes of a curve.

use engine::transport::Transport;
use model::{Direction, NetpipeSizes, Spec, Stop};
use options::{OptionError, TestOptions};
use text::{Text, say};
use vec1::Vec1;

/// Length of a single pass over a size without `time`, ns. A coordinator computes a better one from its budget.
const PASS_NS: u64 = 10_000_000;

/// A spec for each size that the transport can carry, ascending.
pub(super) fn specs(options: &TestOptions, base: &Spec, transport: &dyn Transport) -> Result<Vec1<Spec>, OptionError> {
    let capabilities = transport.capabilities();
    let wrong = |key, what: Text| Err(OptionError::of_key(key, what));
    let first = options.first.map_or(NetpipeSizes::DEFAULT.first, |first| first.0);
    if options.to.is_some_and(|to| to.0 < first) {
        return wrong("to", say!("`--to` is smaller than `--first`: swap them"));
    }
    if options.to.is_some_and(|to| to.0 > capabilities.max_block) {
        let (name, most) = (transport.name(), capabilities.max_block);
        return wrong("to", say!("the largest block of {name} is {most} bytes: use a smaller `--to`"));
    }
    if base.direction == Direction::Both && capabilities.datagram {
        let name = transport.name();
        return wrong("both", say!("a curve over {name} does not support `--both`: use tcp, unix or shm"));
    }
    let mut blocks: Vec<u64> = options.sizes.iter().flatten().map(|block| block.0).collect();
    if blocks.is_empty() {
        let least = if options.stream { capabilities.min_stream_block } else { 1 };
        let last = options.to.map_or(NetpipeSizes::DEFAULT.last, |to| to.0);
        let perturbation = options.perturbation.unwrap_or(NetpipeSizes::DEFAULT.perturbation);
        blocks = NetpipeSizes { first, last, perturbation }.list();
        blocks.retain(|block| (least..=capabilities.max_block).contains(block));
    }
    blocks.sort_unstable();
    blocks.dedup();
    let stop = Stop::AboutNs(options.time.map_or(PASS_NS, |time| time.0));
    let specs: Vec<Spec> =
        blocks.into_iter().map(|block| Spec { block, interval_ns: 0, stop, ..base.clone() }).collect();
    Vec1::try_from_vec(specs).map_err(|_| {
        let (name, most) = (transport.name(), capabilities.max_block);
        OptionError::of_key("first", say!("the largest block of {name} is {most} bytes: use a smaller `--first`"))
    })
}
