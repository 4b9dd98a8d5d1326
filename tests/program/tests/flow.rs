//! TCP over the time of a trial, and captures of its packets, between namespaces (root only).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::path::Path;
use std::time::Duration;

use lab::{CrossoverSpec, DirectionSpec, Lab, LabHost, PathSpec};
use model::{Capture, EndTally, Verdict};
use program::{Agent, Doc, Finished, Running, Sandbox, binary, check, skip};

fn serve(host: &LabHost, flags: &[&str]) -> Agent {
    let place = format!("{}:0", host.v4);
    Agent::spawn(host.command(binary::thru()), &[&["--open", "--listen", &place][..], flags].concat())
}

/// Measures from `a` and checks what holds of every measurement.
fn measure(sandbox: &Sandbox, a: &LabHost, args: &[&str]) -> Doc {
    let command = sandbox.prepare(a.command(binary::thru()), &[args, &["--json", "-"]].concat());
    let doc = Running::of(command).wait().ok().doc();
    check::document(&doc, &args.join(" "));
    doc
}

/// Segments that a host has sent again, over all its connections (RetransSegs of /proc/net/snmp).
fn retransmitted(host: &LabHost) -> u64 {
    let output = host.command("cat").arg("/proc/net/snmp").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let found = names.split(' ').zip(values.split(' ')).find(|(name, _)| *name == "RetransSegs");
    found.unwrap().1.parse().unwrap()
}

/// The series of an end's flows are in order and end at the totals.
fn series(end: &EndTally, what: &str) {
    assert!(!end.flows.is_empty(), "{what}");
    for flow in &end.flows {
        let (first, last) = (flow.tcp.first().expect(what), flow.tcp.last().expect(what));
        assert!(flow.tcp.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns), "{what}: {:?}", flow.tcp);
        assert!(flow.tcp.windows(2).all(|pair| pair[0].retransmits <= pair[1].retransmits), "{what}");
        assert!(first.at_ns < 1_000_000_000 && first.cwnd > 0 && first.mss > 0, "{what}: {first:?}");
        assert_eq!(Some(last.retransmits), flow.socket.retransmits, "{what}");
        assert_eq!((Some(last.cwnd), last.min_rtt_ns), (flow.socket.cwnd, flow.socket.min_rtt_ns), "{what}");
        // The hello and the leg's header are not payload; what is not acknowledged yet is missing at the sender.
        assert!(last.bytes_received.unwrap() >= flow.bytes_received, "{what}: {last:?}");
        assert!(last.bytes_acked.unwrap() <= flow.bytes_sent + 4_096, "{what}: {last:?}");
    }
    let spent = end.spent.as_ref().expect(what);
    let (threads, busiest) = (spent.threads.expect(what), spent.busiest.expect(what));
    assert!(threads.elapsed_ns >= threads.cpu_ns && threads.cpu_ns >= threads.system_ns, "{what}: {threads:?}");
    assert!(busiest.threads == 1 && busiest.cpu_ns <= threads.cpu_ns && busiest.cpu_ns > 0, "{what}: {busiest:?}");
}

#[test]
fn retransmits_over_time_end_at_the_kernels_count() {
    let test = "retransmits_over_time_end_at_the_kernels_count";
    let forward = DirectionSpec {
        delay: Duration::from_millis(2),
        rate_bps: Some(100_000_000),
        loss: 0.01,
        ..DirectionSpec::default()
    };
    let reverse = DirectionSpec { delay: Duration::from_millis(2), ..DirectionSpec::default() };
    let spec = PathSpec { link: CrossoverSpec::default(), forward, reverse, seed: 7 };
    let lab = match lab::available().and_then(|()| Lab::path(&spec)) {
        Ok(lab) => lab,
        Err(error) => return skip::skip(test, &error.to_string()),
    };
    let (a, b) = (lab.host("a").unwrap(), lab.host("b").unwrap());
    let (agent, sandbox) = (serve(b, &[]), Sandbox::new());
    let before = retransmitted(a);
    let doc = measure(&sandbox, a, &["stream", "--time", "2s", "--trials", "1", "--flows", "2", agent.host()]);
    let counted = retransmitted(a) - before;
    let trial = &doc.trials()[0];
    series(&trial.near, "near");
    series(&trial.far, "far");
    let of_flows: u64 = trial.near.flows.iter().map(|flow| flow.tcp.last().unwrap().retransmits).sum();
    // The control connection crosses the same path, with a few packets.
    assert!(of_flows > 0 && of_flows <= counted && counted - of_flows <= 10, "{of_flows} of {counted}");
    for flow in &trial.near.flows {
        assert!(flow.tcp.len() >= 10, "{} readings of 2 s", flow.tcp.len());
        let middle = &flow.tcp[flow.tcp.len() / 2];
        assert!(middle.min_rtt_ns.is_some_and(|ns| ns >= 4_000_000), "twice 2 ms: {middle:?}");
        assert!(middle.delivery_bps.is_some_and(|bps| bps < 110_000_000), "{middle:?}");
        assert!(middle.ssthresh.is_some(), "a loss ends slow start: {middle:?}");
        for option in ["timestamps", "sack", "wscale"] {
            assert!(flow.socket.negotiated.iter().any(|name| name == option), "{:?}", flow.socket.negotiated);
        }
    }
    let html = sandbox.path("page.html");
    sandbox.run(&["report", "last", "-o", html.to_str().unwrap()]).ok();
    let page = program::page::texts(&std::fs::read_to_string(html).unwrap());
    for title in ["Congestion window over time", "round-trip time over time", "delivery rate", "Retransmitted segments"]
    {
        assert!(page.contains(title), "{title}");
    }
    // What is not there is not invented: no option, no series of renewed connections or of a curve.
    let plain = ["rr", "--connect", "--time", "100ms", "--trials", "1", agent.host()];
    assert!(measure(&sandbox, a, &plain).trials()[0].near.flows.iter().all(|flow| flow.tcp.is_empty()));
}

#[test]
fn negotiated_options_are_those_of_the_hosts() {
    let Some(lab) = skip::lab("negotiated_options_are_those_of_the_hosts", &CrossoverSpec::default()) else { return };
    let (a, b) = (lab.host("a").unwrap(), lab.host("b").unwrap());
    let (agent, sandbox) = (serve(b, &[]), Sandbox::new());
    let settings = |values: [u8; 4]| {
        for host in [a, b] {
            for (name, value) in ["ecn", "sack", "timestamps", "window_scaling"].iter().zip(values) {
                let file = format!("/proc/sys/net/ipv4/tcp_{name}");
                let script = format!("echo {value} > {file}");
                assert!(host.command("sh").args(["-c", &script]).status().unwrap().success(), "{script}");
            }
        }
    };
    let negotiated = || {
        let doc = measure(&sandbox, a, &["stream", "--time", "50ms", "--trials", "1", agent.host()]);
        let trial = &doc.trials()[0];
        let of = |end: &EndTally| (end.flows[0].socket.negotiated.clone(), end.flows[0].socket.wscale.is_some());
        (of(&trial.near), of(&trial.far))
    };
    settings([1, 1, 1, 1]);
    let (near, far) = negotiated();
    let has = |names: &[String], wanted: &[&str]| wanted.iter().all(|name| names.iter().any(|own| own == name));
    assert!(has(&near.0, &["ecn", "sack", "timestamps", "wscale"]) && near.1, "{near:?}");
    assert!(has(&far.0, &["ecn", "ecn-seen", "sack", "timestamps", "wscale"]), "packets came ECT: {far:?}");
    settings([0, 0, 0, 0]);
    assert_eq!(negotiated(), ((vec![], false), (vec![], false)));
}

/// The captures of both ends in the first pass.
fn captures(doc: &Doc) -> (&Capture, Option<&Capture>) {
    let pass = &doc.run.passes[0];
    (pass.near.capture.as_ref().unwrap(), pass.far.capture.as_ref())
}

/// Packets in a file, by tcpdump.
fn packets_in(file: &Path) -> u64 {
    let output = std::process::Command::new("tcpdump").args(["-n", "-t", "-r"]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.starts_with("IP")).count() as u64
}

#[test]
fn every_packet_that_is_counted_is_in_the_file_at_both_ends() {
    let test = "every_packet_that_is_counted_is_in_the_file_at_both_ends";
    let Some(lab) = skip::lab(test, &CrossoverSpec::default()) else { return };
    if !skip::program(test, "tcpdump", "tcpdump") {
        return;
    }
    let (a, b) = (lab.host("a").unwrap(), lab.host("b").unwrap());
    let sandbox = Sandbox::with_token();
    let (there, place) = (sandbox.path("there"), format!("{}:0", b.v4));
    let allowed = format!("--allow-capture={}", there.display());
    let agent = Agent::spawn(
        b.command(binary::thru()),
        &[sandbox.token_flags().as_slice(), &[&allowed, "--listen", &place]].concat(),
    );
    // Held to a rate that a busy machine can keep up with: a capture that drops is not what is tested here.
    let args = ["stream", "--time", "500ms", "--trials", "1", "--rate", "200Mbit", "--capture=here", agent.host()];
    let doc = measure(&sandbox, a, &args);
    let (near, far) = captures(&doc);
    let far = far.unwrap();
    // Both lie beside each other here, under one name, and the agent has none left.
    let name = |capture: &Capture, end: &str| capture.file.as_ref().unwrap().strip_suffix(end).unwrap().to_owned();
    assert_eq!(name(near, "-near.pcapng"), name(far, "-far.pcapng"));
    let left = |there: &Path| std::fs::read_dir(there).unwrap().count();
    assert_eq!((near.fetched_bytes, left(&there)), (None, 0));
    for (capture, folder) in [(near, sandbox.path("here")), (far, sandbox.path("here"))] {
        let file = Path::new(capture.file.as_ref().unwrap());
        assert!(file.starts_with(folder) && capture.missing.is_none(), "{capture:?}");
        assert!(capture.fetched_bytes.is_none_or(|bytes| bytes == file.metadata().unwrap().len()), "{capture:?}");
        assert_eq!((capture.fetched_bytes.is_some(), &capture.not_fetched), (std::ptr::eq(capture, far), &None));
        assert_eq!((capture.drops, capture.snaplen), (Some(0), 96));
        assert_eq!(capture.interface.as_ref(), Some(&a.interface), "both have the same name");
        assert_eq!(packets_in(file), capture.packets, "{}", file.display());
        assert!(capture.packets > 20 && capture.cost_ns > 0);
        let sequence = capture.sequence.as_ref().unwrap();
        let trial = &doc.trials()[0];
        // Each byte of the payload, the hello and the leg's header before it.
        let (last, sent) = (sequence.data.last().unwrap().1, trial.near.bytes_sent);
        let flow = &trial.near.flows[0].socket;
        assert_eq!(Some(&sequence.sender), flow.local.as_ref());
        assert!(last <= sent + 4_096 && (sequence.data_kept > 1 || last >= sent), "{last} of {sent}");
        assert!(sequence.data.len() + sequence.acks.len() + sequence.retransmitted_at.len() <= 4_000);
        assert!(capture.bytes > sent, "headers came along");
    }
    sandbox.run(&["report", "last", "--figure", "time-sequence", "-o", "sequence.svg"]).ok();
    assert!(std::fs::read_to_string(sandbox.path("sequence.svg")).unwrap().contains("acknowledged"));
    // UDP goes by the same port.
    let short = ["stream", "--udp", "--time", "200ms", "--rate", "20Mbit", "--trials", "1", "--capture", agent.host()];
    let doc = measure(&sandbox, a, &[&short[..], &["--fetch", "0"]].concat());
    let (near, far) = captures(&doc);
    let far = far.unwrap();
    assert!(Path::new(far.file.as_ref().unwrap()).starts_with(&there) && left(&there) == 1, "left there: {far:?}");
    assert_eq!((far.fetched_bytes, far.not_fetched.as_ref()), (None, None));
    let sent = doc.trials()[0].near.datagrams.unwrap().sent;
    assert!(near.packets >= sent && near.sequence.is_none(), "{} packets of {sent} datagrams", near.packets);
    assert_eq!(packets_in(Path::new(near.file.as_ref().unwrap())), near.packets);
    // What is over the bound is cut off, at the end of a packet, and that is said.
    let doc = measure(&sandbox, a, &[&short[..], &["--fetch", "2KiB"]].concat());
    let far = captures(&doc).1.unwrap();
    let (file, why) = (Path::new(far.file.as_ref().unwrap()), far.not_fetched.as_ref().unwrap());
    let bytes = far.fetched_bytes.unwrap();
    assert!(bytes <= 2_048 && bytes == file.metadata().unwrap().len(), "{far:?}");
    assert!(why.contains("the rest is lost: use `--fetch ") && why.contains("to fetch all of it"), "{why}");
    let packets = packets_in(file);
    assert!(packets > 5 && packets < far.packets && left(&there) == 1, "{packets} of {}", far.packets);
    let text = Running::of(sandbox.prepare(a.command(binary::thru()), &["show", "-v"])).wait().ok().stdout;
    assert!(text.contains("far end: ") && text.contains("fetched"), "{text}");
}

#[test]
fn a_capture_that_cannot_be_leaves_the_measurement_alone() {
    let test = "a_capture_that_cannot_be_leaves_the_measurement_alone";
    let Some(lab) = skip::lab(test, &CrossoverSpec::default()) else { return };
    let (a, b) = (lab.host("a").unwrap(), lab.host("b").unwrap());
    let (agent, sandbox) = (serve(b, &[]), Sandbox::new());
    let args = ["stream", "--time", "1s", "--trials", "1", "--capture=full", "--json", "-", agent.host()];
    std::fs::create_dir(sandbox.path("full")).unwrap();
    let through = |wrapper: &[&str]| -> Finished {
        let thru = binary::thru().to_str().unwrap();
        let words = [&wrapper[1..], &[thru], &args].concat();
        Running::of(sandbox.prepare(a.command(wrapper[0]), &words)).wait().ok()
    };
    // Without the right: said, with the remedy, and measured all the same.
    let doc = through(&["setpriv", "--bounding-set", "-net_raw"]).doc();
    check::document(&doc, "without CAP_NET_RAW");
    let (near, far) = captures(&doc);
    assert!(near.missing.as_ref().unwrap().contains("CAP_NET_RAW") && near.file.is_none(), "{near:?}");
    assert!(far.unwrap().missing.as_ref().unwrap().contains("--allow-capture"), "{far:?}");
    assert!(!doc.has(Verdict::CutShort));
    // A disk of 300 KiB, in a mount namespace that ends with the command.
    let script = "mount -t tmpfs -o size=300k none full && exec \"$0\" \"$@\"";
    let doc = through(&["unshare", "--mount", "sh", "-c", script]).doc();
    check::document(&doc, "on a full disk");
    let near = captures(&doc).0;
    let missing = near.missing.as_ref().unwrap();
    assert!(missing.contains("ended before the trial") && missing.contains("is full"), "{near:?}");
    assert!(near.packets > 0 && near.file.is_some(), "{near:?}");
    let text = Running::of(sandbox.prepare(a.command(binary::thru()), &["show", "-v"])).wait().ok().stdout;
    assert!(text.contains("Captures\n- near end: ") && text.contains("is full"), "{text}");
    // What cannot be captured at all is refused or said.
    let short = sandbox.run(&["stream", "--snaplen", "20", "--capture", agent.host()]).ended_with(2);
    assert!(short.message().contains("--snaplen: '20'"), "{}", short.stderr);
}
