//! Datagrams of several sizes, and a load that grows beside probes with a connection each.

use model::{Direction, Mix, Pattern, SizeCount, Spec, Stop};

use super::pair::{measure, one_leg};

#[test]
fn a_mix_of_sizes_is_sent_in_its_sequence_and_counted_by_size() {
    for (direction, address, ipv6) in [(Direction::Send, "127.0.0.1", false), (Direction::Reverse, "::1", true)] {
        let mix = "imix:594,64*3,1518,64".parse::<Mix>().unwrap().steps(ipv6);
        let payload = |index: usize| mix[index].payload_bytes;
        // Eight datagrams of each flow: a whole sequence and the first two of the next.
        let (stop, rate_bps) = (Stop::Blocks(16), Some(10_000_000));
        let spec = Spec {
            direction,
            block: payload(2),
            mix: mix.clone(),
            flows: 2,
            stop,
            rate_bps,
            ..Spec::new("udp", Pattern::Transfer)
        };
        let pair = measure(&spec, &one_leg(&spec), address);
        let (near, far) = pair.last();
        let (sender, receiver) = if direction == Direction::Send { (near, far) } else { (far, near) };
        let counts = |sizes: &[SizeCount], pick: fn(&SizeCount) -> u64| {
            sizes.iter().map(|size| (size.payload_bytes, pick(size))).collect::<Vec<_>>()
        };
        let expected = |flows: u64| vec![(payload(1), 5 * flows), (payload(0), 2 * flows), (payload(2), flows)];
        assert_eq!(counts(&sender.sizes, |size| size.sent), expected(2), "{address}");
        assert_eq!(counts(&receiver.sizes, |size| size.received), expected(2), "{address}");
        for flow in &receiver.flows {
            assert_eq!(counts(&flow.sizes, |size| size.received), expected(1), "{address}");
        }
        let bytes = 2 * (5 * payload(1) + 2 * payload(0) + payload(2));
        assert_eq!((sender.bytes_sent, receiver.bytes_received), (bytes, bytes), "{address}");
        assert_eq!((sender.blocks_sent, sender.calls_sent), (16, 16), "one datagram per call");
    }
}

#[test]
fn flows_start_one_after_the_other_beside_probes_on_new_connections() {
    let spec = Spec {
        responsiveness: true,
        probe: Some(40),
        flows: 2,
        rate_bps: None,
        direction: Direction::Reverse,
        stop: Stop::TimeNs(2 * Spec::RAMP_NS),
        ..Spec::new("tcp", Pattern::Stream)
    };
    let pair = measure(&spec, &one_leg(&spec), "127.0.0.1");
    let (near, far) = pair.last();
    assert_eq!(near.bytes_received, far.bytes_sent);
    let begun: Vec<u64> = far.flows.iter().map(|flow| flow.sending_ns.unwrap()[0]).collect();
    // The clock of the trial may start a moment after its threads.
    assert!(begun.len() == 2 && begun[1] > begun[0] && begun[1] >= Spec::RAMP_NS / 2, "{begun:?}");
    // On a busy machine some are late, and none is made up for.
    assert!((8..=96).contains(&near.probes.len()) && far.probes.is_empty(), "{}", near.probes.len());
    assert!(near.probes.iter().all(|probe| probe.connect_ns > 0 && probe.request_ns > 0));
    assert!(near.probes.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns));
    assert_eq!(near.probe.as_ref().map(|all| all.count), Some(near.probes.len() as u64));
}
