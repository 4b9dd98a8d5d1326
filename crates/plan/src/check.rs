//! What `thru check` measures: a stream with a probe in each direction, then a few datagrams in each, as many as a call has. With another
//! program it measures what that supports.

use model::{BitRate, ByteSize, Nanos, Program, Spec};
use options::values::BlockFlag;
use options::{OptionError, TestKind, TestOptions};
use text::say;
use vec1::Vec1;

use crate::resolver::Resolver;
use crate::specs;

/// Length of a stream, if the path needs no longer one.
const STREAM: Nanos = Nanos(4_000_000_000);
/// Length of a flow of datagrams, and what they are: about 300 a second, on any path that carries calls.
const DATAGRAMS: Nanos = Nanos(2_000_000_000);
const DATAGRAM: ByteSize = ByteSize(200);
const RATE: BitRate = BitRate(500_000);
/// One entry of its series: enough of them for an interval of the mean.
const INTERVAL: Nanos = Nanos(50_000_000);
/// Requests a second of the probe beside a stream.
const PROBES: u32 = 100;

/// The sizes of a curve, bytes: some of NPtcp's own, the larger ones close to each other, so that the curve reaches most of its peak also where
/// its time ends early.
const SIZES: [u64; 12] =
    [1, 1 << 10, 1 << 12, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21, 1 << 22];

/// The specs of a check with an agent at the far end, or with another program that `options` name: those that it supports.
///
/// # Errors
/// As [`specs::one`]; and for a program that supports none of them.
pub fn specs(options: &TestOptions, resolver: &dyn Resolver) -> Result<Vec1<Spec>, OptionError> {
    let stream = |reverse| TestOptions {
        reverse,
        time: Some(STREAM),
        probe: options.speak.is_none().then_some(PROBES),
        interval: Some(INTERVAL),
        ..options.clone()
    };
    let datagrams = |reverse| TestOptions {
        reverse,
        udp: true,
        time: Some(DATAGRAMS),
        block: Some(BlockFlag::One(DATAGRAM)),
        rate: Some(RATE),
        ..options.clone()
    };
    let round_trips = |udp| TestOptions { test: TestKind::Rr, udp, time: Some(DATAGRAMS), ..options.clone() };
    if options.speak == Some(Program::Netpipe) {
        return curve(options, resolver);
    }
    let wanted = match options.speak {
        None => vec![stream(false), stream(true), datagrams(false), datagrams(true)],
        Some(Program::Stamp) => vec![round_trips(true)],
        Some(Program::Netperf) => vec![round_trips(false), stream(false), stream(true)],
        Some(_) => vec![stream(false), stream(true), datagrams(false), datagrams(true), round_trips(false)],
    };
    let Some(program) = options.speak else {
        let specs: Result<Vec<Spec>, OptionError> = wanted.iter().map(|one| specs::one(one, resolver)).collect();
        return Vec1::try_from_vec(specs?).map_err(|_| none("thru"));
    };
    let specs = wanted.iter().filter_map(|one| specs::one(one, resolver).ok());
    let supported = specs.filter(|spec| peers::protocol(program).check(spec).is_ok());
    Vec1::try_from_vec(supported.collect()).map_err(|_| none(program.name()))
}

/// The points of a curve with NPtcp, which measures nothing else.
fn curve(options: &TestOptions, resolver: &dyn Resolver) -> Result<Vec1<Spec>, OptionError> {
    let sizes = Some(SIZES.map(ByteSize).into());
    specs::of(&TestOptions { test: TestKind::Curve, sizes, ..options.clone() }, resolver)
}

fn none(program: &str) -> OptionError {
    OptionError::of_key("speak", say!("{program} has no test that a check could use"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestHost;

    #[test]
    fn a_check_with_nptcp_is_a_curve_of_its_own_sizes() {
        let options = TestOptions { speak: Some(Program::Netpipe), ..TestOptions::default() };
        let specs = specs(&options, &TestHost).unwrap();
        assert_eq!(specs.iter().map(|spec| spec.block).collect::<Vec<u64>>(), SIZES);
        peers::protocol(Program::Netpipe).check_curve(&specs).unwrap();
    }
}
