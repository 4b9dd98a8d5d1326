//! Ours.

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Amount, Job, JobContext, Peer, Read, Reading, binary_job, command_line, start_job};
use crate::process::{Ended, Ready};
use crate::work::{Batch, Launcher, Over, Task, UDP_BUFFER, UNOBSERVED, UNPACED};

pub(super) const NAME: &str = "thru";
const BEFORE: &str = "thru-before";

/// The exit code for too few trials for an interval: it runs one trial or three, like the peers.
const UNTRUSTED: i32 = 8;
/// Trials for a comparison with NPtcp, which prints the best of three means, and the parts of a curve's passes.
const LEGS: usize = 3;

/// `thru serve` and the subcommand for the task.
pub struct Thru;

impl Peer for Thru {
    fn name(&self) -> &'static str {
        NAME
    }

    fn programs(&self) -> &'static [&'static str] {
        &["thru"]
    }

    fn version(&self) -> Option<&'static str> {
        Some("--version")
    }

    fn job(&self, task: Task, context: &JobContext) -> Option<Job> {
        if let Task::Observed { stream } = task {
            return Some(observed(stream, "series", context));
        }
        let host = format!("127.0.0.1:{}", context.port);
        let (subcommand, read): (String, Read) = match task {
            Task::Stream { block } => (format!("stream {host} --block {block}"), best_goodput),
            Task::Uncopied { block } => (format!("stream {host} --block {block} --engine auto"), after_trying),
            Task::Datagrams { .. } | Task::Credit { .. } | Task::Paced { .. } => {
                return Some(datagrams(task, &paced_by(task), context));
            }
            Task::RoundTrip { bytes } => (format!("rr {host} --block {bytes}"), best_round_trip),
            Task::SpinningBesideBlocking { bytes } => (format!("rr {host} --block {bytes} --spin"), best_round_trip),
            Task::Spinning { bytes, over } => {
                let transport = match over {
                    Over::Tcp => "tcp",
                    Over::Udp => "udp",
                    Over::Unix => "unix",
                    Over::Shm => "shm",
                };
                (format!("rr {host} --block {bytes} --spin --transport {transport}"), round_trip)
            }
            Task::Connects { spinning: false } => (format!("rr {host} --connect"), transactions),
            Task::Connects { spinning: true } => {
                (format!("rr {host} --connect --flows 2 --threads 1 --spin"), transactions)
            }
            Task::Crowd { flows, stream: false } => (format!("rr {host} --flows {flows} --threads 2"), transactions),
            Task::Crowd { flows, stream: true } => {
                (format!("stream {host} --block 16384 --flows {flows} --threads 2"), goodput)
            }
            // With default options: with the memory ceiling, and up to its own budget.
            Task::Curve { last } => (format!("curve {host} --to {last}"), curve),
            Task::Launched { by, bytes } => return Some(launched(by, bytes, context)),
            Task::Start => return Some(start_job(context, "--version")),
            Task::Binary => return Some(binary_job(context)),
            Task::Observed { .. } => return None,
        };
        Some(between(task, &host, &subcommand, read, context))
    }
}

/// The same program without observers, as a peer of itself.
pub struct Unobserved;

impl Peer for Unobserved {
    fn name(&self) -> &'static str {
        UNOBSERVED
    }

    fn programs(&self) -> &'static [&'static str] {
        &["thru"]
    }

    fn version(&self) -> Option<&'static str> {
        Some("--version")
    }

    fn job(&self, task: Task, context: &JobContext) -> Option<Job> {
        let Task::Observed { stream } = task else { return None };
        Some(observed(stream, "off", context))
    }
}

/// The same program, unpaced, as a peer of itself.
pub struct Unpaced;

impl Peer for Unpaced {
    fn name(&self) -> &'static str {
        UNPACED
    }

    fn programs(&self) -> &'static [&'static str] {
        &["thru"]
    }

    fn version(&self) -> Option<&'static str> {
        Some("--version")
    }

    fn job(&self, task: Task, context: &JobContext) -> Option<Job> {
        let Task::Credit { .. } = task else { return None };
        Some(datagrams(task, " --unpaced", context))
    }
}

/// Another build, `thru-before` on PATH, to measure the cost of a change.
pub struct Before;

impl Peer for Before {
    fn name(&self) -> &'static str {
        BEFORE
    }

    fn programs(&self) -> &'static [&'static str] {
        &[BEFORE]
    }

    fn version(&self) -> Option<&'static str> {
        Some("--version")
    }

    fn job(&self, task: Task, context: &JobContext) -> Option<Job> {
        Thru.job(task, context)
    }
}

/// The flag that decides how fast datagrams are sent.
fn paced_by(task: Task) -> String {
    match task {
        Task::Paced { rate, .. } => format!(" --rate {rate}"),
        // The default: paced to the receiver.
        Task::Credit { .. } => String::new(),
        _ => " --unpaced".to_owned(),
    }
}

/// A stream of datagrams with the same socket buffers at both ends.
fn datagrams(task: Task, pace: &str, context: &JobContext) -> Job {
    let host = format!("127.0.0.1:{}", context.port);
    let block = match task {
        Task::Datagrams { block, .. } | Task::Credit { block } => block,
        _ => 1472,
    };
    let engine = match task {
        Task::Datagrams { by: Batch::Segmented, .. } | Task::Paced { segmented: true, .. } => "gso",
        Task::Datagrams { by: Batch::Many, .. } => "mmsg",
        _ => "copy",
    };
    let buffers = format!("--sndbuf {UDP_BUFFER} --rcvbuf {UDP_BUFFER}");
    let subcommand = format!("stream {host} --udp --block {block} --engine {engine} {buffers}{pace}");
    between(task, &host, &subcommand, goodput, context)
}

/// A stream or round trips with so many readings of the hosts.
fn observed(stream: bool, observe: &str, context: &JobContext) -> Job {
    let host = format!("127.0.0.1:{}", context.port);
    let (subcommand, read): (String, Read) = if stream {
        (format!("stream {host} --block 131072 --observe {observe}"), goodput)
    } else {
        (format!("rr {host} --block 1 --observe {observe}"), round_trip)
    };
    between(Task::Observed { stream }, &host, &subcommand, read, context)
}

/// An agent and a client of it.
fn between(task: Task, host: &str, subcommand: &str, read: Read, context: &JobContext) -> Job {
    let mut server = vec![context.program.clone()];
    server.extend(command_line(&format!("serve --listen {host}")));
    let guess = match task {
        Task::Curve { .. } => Some(10.5),
        _ if legs(task) > 1 => Some((context.seconds as usize * LEGS) as f64 + 0.6),
        _ => None,
    };
    Job { also_code: Some(UNTRUSTED), guess, ..Job::new(context, server, client(task, subcommand, context), read) }
}

/// The client's command line.
fn client(task: Task, subcommand: &str, context: &JobContext) -> Vec<String> {
    let mut client = vec![context.program.clone()];
    client.extend(command_line(subcommand));
    if !matches!(task, Task::Curve { .. }) {
        client.extend(command_line(&format!("--time {}s --trials {}", context.seconds, legs(task))));
    }
    client.extend(command_line("--no-store --quiet --json"));
    client.push(context.file());
    client
}

/// Trials of a measurement. NetPIPE prints the best of three. Each is as long as the others' one: how a connection
/// begins is in all of them.
fn legs(task: Task) -> usize {
    match task {
        Task::Stream { .. } | Task::RoundTrip { .. } | Task::SpinningBesideBlocking { .. } => LEGS,
        _ => 1,
    }
}

/// Under mpirun both processes have the same command line; in a PVM virtual machine the command starts its far
/// end itself, on the daemon's core.
fn launched(by: Launcher, bytes: u64, context: &JobContext) -> Job {
    let task = Task::Launched { by, bytes };
    let job = match by {
        Launcher::Mpi => {
            let command = client(task, &format!("rr --transport mpi --block {bytes}"), context);
            Job::mpirun(context, &command, round_trip)
        }
        Launcher::Pvm => {
            let command = client(task, &format!("rr --transport pvm --block {bytes}"), context);
            let daemon = command_line("pvmd -nlocalhost");
            Job {
                ready: Ready::File(context.pvm_file()),
                env: context.pvm_env(),
                ..Job::new(context, daemon, command, round_trip)
            }
        }
    };
    Job { also_code: Some(UNTRUSTED), ..job }
}

fn figure(document: &Value, name: &str) -> Option<f64> {
    document.pointer(&format!("/outcomes/0/summary/{name}")).and_then(Value::as_f64)
}

/// Further figures of some works: lost datagrams, evenness of sending, time until all flows are open.
fn extras(document: &Value, reading: &mut Reading) {
    if let (Some(lost), Some(rate)) = (figure(document, "packets_lost"), figure(document, "packets_per_s")) {
        let seconds = figure(document, "duration_ns").unwrap_or(0.0) / 1e9;
        reading.also.insert("lost_percent", 100.0 * lost / (lost + rate * seconds).max(1.0));
    }
    let near = |name: &str| document.pointer(&format!("/outcomes/0/trials/0/near/{name}")).and_then(Value::as_f64);
    reading.also.extend(near("pacing/p99_ns").map(|error| ("distance_error_p99_ns", error)));
    // Null with one flow.
    let Some(fairness) = figure(document, "fairness") else { return };
    reading.also.insert("fairness_percent", 100.0 * fairness);
    let setup = |end: &str| document.pointer(&format!("/passes/0/{end}/setup_ns")).and_then(Value::as_f64);
    let setup = setup("near").into_iter().chain(setup("far")).reduce(f64::max);
    reading.also.extend(setup.map(|ns| ("setup_ns", ns)));
}

fn goodput(_: &Ended, result: &str) -> Result<Reading> {
    let document: Value = serde_json::from_str(result)?;
    let mut reading = Reading::from(figure(&document, "goodput_bps").context("no goodput in thru's document")?);
    extras(&document, &mut reading);
    Ok(reading)
}

/// With `--engine auto` it tries each send method before it measures; those bytes are not in the document.
fn after_trying(ended: &Ended, result: &str) -> Result<Reading> {
    Ok(Reading { amount: Amount::Unknown, ..goodput(ended, result)? })
}

fn rate(document: &Value) -> Result<f64> {
    figure(document, "transactions_per_s").filter(|rate| *rate > 0.0).context("no rate in thru's document")
}

/// The mean, as the peers give it; the median is kept beside it.
fn round_trip(_: &Ended, result: &str) -> Result<Reading> {
    let document: Value = serde_json::from_str(result)?;
    let mut reading = Reading::from(1e9 / rate(&document)?);
    reading.also.extend(figure(&document, "rtt_p50_ns").map(|median| ("rtt_p50_ns", median)));
    Ok(reading)
}

/// The value of `of` in each trial.
fn of_trials<'a>(document: &'a Value, of: impl Fn(&Value) -> Option<f64> + 'a) -> impl Iterator<Item = f64> + 'a {
    let trials = document.pointer("/outcomes/0/trials").and_then(Value::as_array);
    trials.into_iter().flatten().filter_map(of)
}

fn best_goodput(ended: &Ended, result: &str) -> Result<Reading> {
    let document: Value = serde_json::from_str(result)?;
    let best = of_trials(&document, |trial| trial.pointer("/value")?.as_f64()).reduce(f64::max);
    Ok(Reading { best, amount: known(figure(&document, "bytes_received")), ..goodput(ended, result)? })
}

fn best_round_trip(ended: &Ended, result: &str) -> Result<Reading> {
    let document: Value = serde_json::from_str(result)?;
    let best = of_trials(&document, mean_round_trip).reduce(f64::min);
    let rate = rate(&document)?;
    let exchanges = figure(&document, "duration_ns").map(|ns| ns / 1e9 * rate);
    Ok(Reading { best, amount: known(exchanges), ..round_trip(ended, result)? })
}

/// The amount moved in all trials.
fn known(amount: Option<f64>) -> Amount {
    amount.map_or(Amount::Unknown, Amount::Known)
}

/// The mean round trip of a trial, ns.
fn mean_round_trip(trial: &Value) -> Option<f64> {
    trial.pointer("/near/rtt/mean_ns")?.as_f64()
}

fn transactions(_: &Ended, result: &str) -> Result<Reading> {
    let document: Value = serde_json::from_str(result)?;
    let mut reading = Reading::from(rate(&document)?);
    extras(&document, &mut reading);
    Ok(reading)
}

/// How long it took, how many sizes were sure to the target by then, and the curve of the best of three means.
fn curve(ended: &Ended, result: &str) -> Result<Reading> {
    let document: Value = serde_json::from_str(result)?;
    let outcomes = document.pointer("/outcomes").and_then(Value::as_array).context("no outcomes in thru's document")?;
    let points: Vec<&Value> =
        outcomes.iter().filter(|outcome| outcome.pointer("/spec/transport") == Some(&Value::from("tcp"))).collect();
    let missed = |outcome: &&&Value| {
        let verdicts = outcome.pointer("/summary/verdicts").and_then(Value::as_array);
        verdicts.is_some_and(|list| list.iter().any(|verdict| verdict == "target-missed"))
    };
    let mut reading = Reading::from(ended.report.elapsed_ns as f64);
    reading.also.insert("points", points.len() as f64);
    reading.also.insert("points_at_target", (points.len() - points.iter().filter(missed).count()) as f64);
    reading.curve = points.iter().filter_map(|outcome| least(outcome)).collect();
    Ok(reading)
}

/// A size and the shortest of three mean round trips, ns, each over a third of its legs. NPtcp's means cover
/// 0.1 s each, a leg some milliseconds, so single legs would give lower minima.
fn least(outcome: &Value) -> Option<(u64, f64)> {
    let legs = outcome.pointer("/trials")?.as_array()?;
    let means = legs.chunks(legs.len().div_ceil(LEGS).max(1)).filter_map(mean_of_legs);
    Some((outcome.pointer("/spec/block")?.as_u64()?, means.reduce(f64::min)?))
}

/// The mean of all round trips of these legs, ns.
fn mean_of_legs(legs: &[Value]) -> Option<f64> {
    let times = |leg: &Value| Some((leg.pointer("/near/rtt/count")?.as_f64()?, mean_round_trip(leg)?));
    let (count, sum) =
        legs.iter().filter_map(times).fold((0.0, 0.0), |(count, sum), (n, mean)| (count + n, sum + n * mean));
    (count > 0.0).then(|| sum / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_taken_from_the_first_outcome() {
        let text =
            r#"{"outcomes":[{"summary":{"goodput_bps":5e9,"transactions_per_s":20000.0,"rtt_p50_ns":49000.0}}]}"#;
        assert_eq!(goodput(&Ended::default(), text).unwrap().value, 5e9);
        let reading = round_trip(&Ended::default(), text).unwrap();
        assert_eq!((reading.value, reading.also["rtt_p50_ns"]), (50_000.0, 49_000.0));
        assert_eq!(transactions(&Ended::default(), text).unwrap().value, 20_000.0);
        assert!(goodput(&Ended::default(), r#"{"outcomes":[]}"#).is_err());
    }

    #[test]
    fn the_best_of_three_legs_is_kept_with_the_mean() {
        let text = r#"{"outcomes":[{"summary":{"goodput_bps":5e9,"transactions_per_s":20000.0,"bytes_received":7.0,"duration_ns":2e9},
            "trials":[{"value":4e9,"near":{"rtt":{"mean_ns":52000.0}}},{"value":6e9,"near":{"rtt":{"mean_ns":48000.0}}}]}]}"#;
        let stream = best_goodput(&Ended::default(), text).unwrap();
        assert_eq!((stream.value, stream.best, stream.amount), (5e9, Some(6e9), Amount::Known(7.0)));
        let trip = best_round_trip(&Ended::default(), text).unwrap();
        assert_eq!((trip.value, trip.best, trip.amount), (50_000.0, Some(48_000.0), Amount::Known(40_000.0)));
    }

    #[test]
    fn set_up_loss_and_pacing_come_along() {
        let text = r#"{"passes":[{"near":{"setup_ns":70},"far":{"setup_ns":90}}],
            "outcomes":[{"summary":{"goodput_bps":1.0,"packets_lost":25,"packets_per_s":75.0,"duration_ns":1000000000,
              "fairness":0.5},
            "trials":[{"near":{"pacing":{"sends":1000,"p50_ns":1,"p99_ns":44,"max_ns":50}}}]}]}"#;
        let also = goodput(&Ended::default(), text).unwrap().also;
        assert_eq!((also["setup_ns"], also["lost_percent"], also["distance_error_p99_ns"]), (90.0, 25.0, 44.0));
    }

    #[test]
    fn a_curve_counts_its_converged_points_and_has_the_shortest_mean_of_three_parts() {
        let text = r#"{"outcomes":[{"spec":{"transport":"tcp","block":1},"summary":{"verdicts":["same-host"]},
              "trials":[{"near":{"rtt":{"count":1,"mean_ns":9.0}}},{"near":{"rtt":{"count":3,"mean_ns":5.0}}},
                        {"near":{"rtt":{"count":2,"mean_ns":9.0}}},{"near":{}},{"near":{"rtt":{"count":1,"mean_ns":7.0}}}]},
            {"spec":{"transport":"tcp","block":2},"summary":{"verdicts":["target-missed"]}},
            {"spec":{"transport":"memcpy"},"summary":{"verdicts":[]}}]}"#;
        let mut ended = Ended::default();
        ended.report.elapsed_ns = 17;
        let reading = curve(&ended, text).unwrap();
        assert_eq!((reading.value, reading.also["points"], reading.also["points_at_target"]), (17.0, 2.0, 1.0));
        assert_eq!(reading.curve, [(1, 6.0)]);
    }
}
