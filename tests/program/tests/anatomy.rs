//! `thru rr --anatomy`: the parts of round trips add up, and the network's part is the path's delay.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::time::Duration;

use lab::{CrossoverSpec, DirectionSpec, Lab, LabError, LabHost, PathSpec};
use model::Anatomy;
use model::stamps::{Part, Parts};
use program::{Agent, Doc, Running, Sandbox, binary, check, skip};

/// The anatomy of a document's outcome, after the checks of what holds of any.
fn checked(doc: &Doc, what: &str) -> Anatomy {
    check::document(doc, what);
    let anatomy = doc.summary().anatomy.as_deref().cloned().unwrap_or_else(|| panic!("{what}: no anatomy"));
    assert_eq!(anatomy.refused, None, "{what}");
    assert!(anatomy.stamped > 0, "{what}: {anatomy:?}");
    // What a script reads: the six keys add up to the seventh.
    let json = &doc.json["outcomes"][0]["summary"]["anatomy"];
    let value = |key: &str| json[key].as_f64().unwrap_or_else(|| panic!("{what}: {key} in {json}"));
    let keys = ["near_send_ns", "network_ns", "far_wakeup_ns", "far_turnaround_ns", "far_send_ns", "near_wakeup_ns"];
    let (sum, whole) = (keys.iter().map(|key| value(key)).sum::<f64>(), value("round_trip_ns"));
    assert!((sum - whole).abs() < 1.0, "{what}: {sum} of {whole}");
    let parts = anatomy.parts.unwrap();
    let shares: f64 = Part::ALL.into_iter().map(|part| parts.get(part).share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{what}: {shares}");
    assert!(Part::ALL.into_iter().all(|part| parts.get(part).p99_ns.is_some() == (anatomy.stamped >= 1_000)), "{what}");
    // The stamps of each exchange are not kept; the round trips that were not stamped are the run's.
    for trial in doc.trials() {
        assert!(trial.near.stamps.is_none() && trial.far.stamps.is_none(), "{what}");
        let (tally, rtt) = (trial.near.anatomy.as_ref().unwrap(), trial.near.rtt.as_ref().unwrap());
        assert!(
            rtt.count + tally.stamped < trial.near.transactions,
            "{what}: {} of {}",
            rtt.count,
            trial.near.transactions
        );
        assert!(rtt.count > tally.stamped, "{what}: most round trips have no stamps");
    }
    anatomy
}

#[test]
fn the_parts_of_a_round_trip_add_up_over_tcp_and_udp() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    for transport in
        [&[][..], &["--udp"], &["--spin"], &["--udp", "--block", "100", "--reply", "7"], &["--block", "200KiB"]]
    {
        let args = [&["rr", "--anatomy", "--count", "1000", "--trials", "2"], transport, &[agent.host()]].concat();
        let what = transport.join(" ");
        let doc = sandbox.measure(&args);
        let anatomy = checked(&doc, &what);
        // Every fourth exchange is to be stamped; some stamps may be missing, but not most.
        assert!(anatomy.missing < anatomy.stamped, "{what}: {anatomy:?}");
        let said = doc.run.findings.iter().any(|finding| finding.statement.plain().contains("the network"));
        assert!(said, "{what}: {:?}", doc.run.findings);
        let shown = sandbox.run(&["show", "last", "-v"]).ok().stdout;
        assert!(shown.contains("Anatomy of a round trip") && shown.contains("far send"), "{what}: {shown}");
        let why = sandbox.run(&["why", "last", "-v"]).ok().stdout;
        assert!(why.contains("the network"), "{what}: {why}");
    }
}

#[test]
fn a_curve_has_the_anatomy_of_its_smallest_size() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let curve = |budget: &str, flags: &[&str]| {
        let fixed = ["curve", "--to", "64", "--no-ceiling", "--budget", budget];
        sandbox.measure(&[&fixed[..], flags, &[agent.host()]].concat())
    };
    for (name, transport) in [("over tcp", "tcp"), ("over udp", "udp")] {
        let doc = curve("3s", &["--transport", transport, "--name", name]);
        check::document(&doc, transport);
        let with: Vec<_> =
            doc.run.outcomes.iter().filter_map(|one| Some((one.spec.block, one.summary.anatomy.as_ref()?))).collect();
        let [(1, anatomy)] = with[..] else { panic!("{transport}: {with:?}") };
        assert!(anatomy.stamped > 0 && anatomy.refused.is_none(), "{transport}: {anatomy:?}");
        let parts = anatomy.parts.unwrap();
        let sum: f64 = Part::ALL.into_iter().map(|part| parts.get(part).mean_ns).sum();
        assert!((sum - anatomy.round_trip_ns.unwrap()).abs() < 1.0, "{transport}: {sum} of {anatomy:?}");
    }
    for flags in [&["--stream"][..], &["--flows", "2"], &["--reverse"]] {
        let doc = curve("300ms", flags);
        assert!(doc.run.outcomes.iter().all(|one| one.summary.anatomy.is_none()), "{flags:?}");
    }
    let shown = sandbox.run(&["show", "over tcp", "over udp"]).ok().stdout;
    assert_eq!(shown.matches("The two hosts spend").count(), 2, "{shown}");
    assert!(shown.lines().any(|line| line.contains("over tcp") && line.contains("over udp")), "{shown}");
}

#[test]
fn a_thread_that_spins_is_not_woken_up() {
    let test = "a_thread_that_spins_is_not_woken_up";
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() < 2) {
        return skip::skip(test, "two cores");
    }
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let medians = |wait: &str| {
        let flags = ["rr", "--anatomy", "--pin", "1,0", "--time", "200ms", "--trials", "2", wait];
        let doc = sandbox.measure(&[&flags[..], &[agent.host()]].concat());
        let parts = checked(&doc, wait).parts.unwrap();
        (parts.far_wakeup.p50_ns, parts.near_wakeup.p50_ns)
    };
    // Another program may have a core for the length of a measurement.
    let mut seen = Vec::new();
    let fell = (0..10).any(|_| {
        let (blocking, spinning) = (medians("--wait=blocking"), medians("--spin"));
        seen.push((blocking, spinning));
        spinning.0 < blocking.0 && spinning.1 < blocking.1
    });
    assert!(fell, "medians of far and near, blocking and spinning: {seen:?}");
}

#[test]
fn what_cannot_be_divided_is_refused_with_one_message() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    for (flags, what) in [
        (&["--flows", "4"][..], "--anatomy with --flows 4"),
        (&["--connect"], "--anatomy with crr"),
        (&["--reverse"], "--anatomy with --reverse"),
        (&["--transport", "tls"], "--anatomy on tls"),
        (&["--wait", "epoll"], "--anatomy with --wait epoll"),
        (&["--io", "read-write"], "--anatomy with --io read-write"),
    ] {
        let args = [&["rr", "--anatomy"], flags, &[agent.host()]].concat();
        let message = sandbox.run(&args).ended_with(2).message();
        assert!(
            message.contains(what) && message.contains("it works only for `thru rr` over tcp"),
            "{flags:?}: {message}"
        );
    }
}

/// How far the network's part may be from the path's delay.
const TOLERANCE: Duration = Duration::from_micros(50);

/// The longest of some round trips of a ping.
fn ping(from: &LabHost, to: &str) -> Duration {
    let output = from.command("ping").args(["-n", "-q", "-i", "0.01", "-c", "40", to]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let longest = said.lines().find_map(|line| line.split_once(" = ")?.1.split('/').nth(2)?.parse::<f64>().ok());
    Duration::from_secs_f64(longest.unwrap_or_else(|| panic!("{said}")) / 1_000.0)
}

/// Two hosts with this delay and loss each way, and an agent on the second.
fn delayed(test: &str, delay: Duration, loss: f64) -> Option<(Lab, Agent)> {
    let direction = || DirectionSpec { delay, loss, ..DirectionSpec::default() };
    let spec = PathSpec { link: CrossoverSpec::default(), forward: direction(), reverse: direction(), seed: 7 };
    match lab::available().and_then(|()| Lab::path(&spec)) {
        Ok(lab) => {
            let b = lab.host("b").unwrap();
            let agent = Agent::spawn(b.command(binary::thru()), &["--open", "--listen", &format!("{}:0", b.v4)]);
            Some((lab, agent))
        }
        Err(error @ (LabError::Privilege { .. } | LabError::NotAllowed { .. } | LabError::Emulator { .. })) => {
            skip::skip(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_network_takes_the_delay_of_the_path() {
    let (test, delay) = ("the_network_takes_the_delay_of_the_path", Duration::from_millis(3));
    if !skip::program(test, "ping", "iputils-ping") {
        return;
    }
    let Some((lab, agent)) = delayed(test, delay, 0.0) else { return };
    let (a, sandbox) = (lab.host("a").unwrap(), Sandbox::new());
    for transport in [&[][..], &["--udp"]] {
        let flags = ["rr", "--anatomy", "--time", "1s", "--trials", "2", "--no-path", "--json", "-"];
        let args = [&flags[..], transport, &[agent.host()]].concat();
        let doc = Running::of(sandbox.prepare(a.command(binary::thru()), &args)).wait().ok().doc();
        let what = transport.join(" ");
        let anatomy = checked(&doc, &what);
        let parts: Parts<u64> = Parts::of(|part| anatomy.parts.unwrap().get(part).p50_ns);
        // The emulator lets no packet go early. How late it is depends on the machine, and a ping sees it too: the kernel answers it,
        // so that no program is woken up for it.
        let (network, whole) = (Duration::from_nanos(parts.network), 2 * delay);
        let longest = ping(a, &lab.host("b").unwrap().v4.to_string()).max(whole);
        assert!(
            network + TOLERANCE >= whole && network <= longest + TOLERANCE,
            "{what}: {network:?}, ping {longest:?}"
        );
        let hosts: u64 = Part::ALL.into_iter().filter(|part| *part != Part::Network).map(|part| *parts.get(part)).sum();
        assert!(u128::from(hosts) < whole.as_nanos(), "{what}: {parts:?}");
    }
    drop(agent);
    lab.close().unwrap();
}

#[test]
fn lost_datagrams_are_counted_and_the_others_keep_their_numbers() {
    let (test, delay) = ("lost_datagrams_are_counted_and_the_others_keep_their_numbers", Duration::from_millis(1));
    let Some((lab, agent)) = delayed(test, delay, 0.05) else { return };
    let (a, sandbox) = (lab.host("a").unwrap(), Sandbox::new());
    // A number of one byte begins again within the trial.
    let flags = ["rr", "--anatomy", "--udp", "--count", "300", "--trials", "1", "--no-path", "--json", "-"];
    let args = [&flags[..], &[agent.host()]].concat();
    let doc = Running::of(sandbox.prepare(a.command(binary::thru()), &args)).wait().ok().doc();
    let anatomy = doc.summary().anatomy.clone().unwrap();
    let lost = doc.trials()[0].near.datagrams.unwrap().replies_lost;
    // Of 300 exchanges 18 blocks have four that are stamped, and the rest of twelve has the same.
    assert_eq!(anatomy.stamped + anatomy.missing + anatomy.stepped, 76, "{anatomy:?}");
    assert!(lost > 0 && anatomy.missing <= lost && anatomy.stamped > 0, "{lost} lost, {anatomy:?}");
    let network = Duration::from_nanos(anatomy.parts.unwrap().network.p50_ns);
    assert!(network + TOLERANCE >= 2 * delay && network < 4 * delay, "{network:?}");
    drop(agent);
    lab.close().unwrap();
}
