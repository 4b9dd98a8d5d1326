//! Tests of the registry and of the command lines of the UDP rows.

use super::*;
use crate::work::WORKS;

fn context() -> JobContext {
    let program = "some/where/tool".to_owned();
    JobContext { program, port: 6000, second_port: 6001, seconds: 2, cores: [1, 0], folder: "folder".into() }
}

#[test]
fn versions_are_found_in_what_tools_print() {
    for (text, version) in [
        ("iperf 3.12 (cJSON 1.7.15)", "3.12"),
        ("sockperf, version 3.7-no.git", "3.7"),
        ("nuttcp-6.1.2", "6.1.2"),
        ("iperf version 2.1.8 (12 August 2022) pthreads", "2.1.8"),
    ] {
        assert_eq!(find_version(text).as_deref(), Some(version), "{text}");
    }
    assert_eq!(find_version("usage: none."), None);
}

#[test]
fn every_work_has_peers_and_every_server_gets_its_port() {
    for work in WORKS {
        let jobs: Vec<(&str, Job)> =
            PEERS.iter().filter_map(|peer| Some((peer.name(), peer.job(work.task, &context())?))).collect();
        assert_eq!(jobs[0].0, OURS, "{}", work.id);
        assert!(jobs.len() > 1 || work.task == Task::Binary, "{} has no peer", work.id);
        for (name, job) in jobs {
            let Some(server) = job.server else { continue };
            match &job.ready {
                Ready::Port(port) => assert!(server.join(" ").contains(&port.to_string()), "{} {name}", work.id),
                Ready::File(file) => assert!(file.starts_with("folder"), "{} {name}", work.id),
            }
        }
    }
}

/// The command lines of the tools that run a work: server and client.
fn commands(id: &str) -> Vec<(&'static str, String, String)> {
    let work = WORKS.iter().find(|work| work.id == id).unwrap();
    let job = |peer: &&'static dyn Peer| {
        let job = peer.job(work.task, &context())?;
        Some((peer.name(), job.server.unwrap_or_default().join(" "), job.client.join(" ")))
    };
    PEERS.iter().filter_map(job).collect()
}

#[test]
fn unpaced_datagrams_have_the_same_buffers_in_every_tool() {
    let clients: Vec<(&str, String)> =
        commands("udp-single").into_iter().map(|(name, _, client)| (name, client)).collect();
    let tool = "some/where/tool";
    let thru = format!(
        "{tool} stream 127.0.0.1:6000 --udp --block 1472 --engine copy --sndbuf 204800 --rcvbuf 204800 --unpaced --time 2s \
         --trials 1 --no-store --quiet --json folder/result"
    );
    let iperf3 = format!("{tool} -c 127.0.0.1 -p 6000 -t 2 -J -u -b 0 -l 1472 -w 204800");
    let expected: Vec<(&str, String)> = vec![
        ("thru", thru.clone()),
        ("thru-before", thru),
        ("iperf3", iperf3.clone()),
        ("iperf3-new", iperf3),
        (
            "netperf",
            "netperf -H 127.0.0.1 -4 -p 6000 -l 2 -P 0 -v 0 -t UDP_STREAM -f m -- -m 1472 -R 1 -s 204800 -S 204800 \
             -k REMOTE_RECV_THROUGHPUT,LSS_SIZE_END,RSR_SIZE_END"
                .into(),
        ),
        ("nuttcp", "nuttcp -t -P 6000 -p 6001 -u -R0 -l1472 -w200 -ws200 -T2 -fparse 127.0.0.1".into()),
        ("iperf2", "iperf -c 127.0.0.1 -u -p 6000 -l 1472 -w 204800 -b 1000g -t 2 -f k".into()),
        ("xfr", "xfr --no-update-check 127.0.0.1 -p 6000 -t 2 -u -b 0 -l 1472 -w 204800 --zeros --json".into()),
    ];
    assert_eq!(clients, expected);
    // The only server whose buffers its client cannot set.
    let servers = commands("udp-single");
    let (_, server, _) = servers.iter().find(|(name, ..)| *name == "iperf2").unwrap();
    assert_eq!(server, "iperf -s -u -p 6000 -l 1472 -w 204800");
}

#[test]
fn segments_are_compared_with_segments_only() {
    for id in ["udp-gso", "udp64-gso", "paced5g"] {
        let names: Vec<&str> = commands(id).iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, ["thru", "thru-before", "iperf3-gsro"], "{id}");
        for (name, _, client) in commands(id) {
            let flag = if name == "iperf3-gsro" { "--gsro" } else { "--engine gso" };
            assert!(client.contains(flag) && client.contains("204800"), "{id}: {client}");
        }
    }
    for id in ["udp-single", "udp64-single", "udp64-mmsg", "paced10m", "paced1g"] {
        assert!(commands(id).iter().all(|(_, _, client)| !client.contains("gs")), "{id}");
    }
}

#[test]
fn pacing_to_the_receiver_is_compared_with_unpaced_thru_only() {
    for id in ["udp-credit", "udp64-credit"] {
        let commands = commands(id);
        let names: Vec<&str> = commands.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, ["thru", "thru-unpaced", "thru-before"], "{id}");
        assert!(!commands[0].2.contains("paced"));
        assert_eq!(commands[1].2.replace(" --unpaced", ""), commands[0].2);
    }
    let unpaced = |id: &str| commands(id).into_iter().next().unwrap().2.contains(" --unpaced ");
    assert!(["udp-single", "udp64-single", "udp64-mmsg", "udp-gso", "udp64-gso"].into_iter().all(unpaced));
}
