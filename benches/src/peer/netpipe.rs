//! NetPIPE's modules. It decides by itself how often to repeat, and reports the best of three.

use anyhow::{Context, Result};

use super::{Amount, Job, JobContext, Peer, Read, Reading, command_line};
use crate::process::{Ended, Ready};
use crate::work::{Launcher, Task};

/// `NPtcp` as receiver and as transmitter.
pub struct Netpipe;

/// `NPopenmpi`, two processes of mpirun.
pub struct NetpipeMpi;

/// `NPpvm`, two tasks of a virtual machine of one host.
pub struct NetpipePvm;

impl Peer for Netpipe {
    fn name(&self) -> &'static str {
        "NPtcp"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["NPtcp"]
    }

    fn version(&self) -> Option<&'static str> {
        None
    }

    fn prints_best_of_three(&self) -> bool {
        true
    }

    fn job(&self, task: Task, context: &JobContext) -> Option<Job> {
        let (flags, read): (String, Read) = match task {
            Task::Stream { block } => (format!("-s -p 0 -l {block} -u {block}"), rate),
            Task::RoundTrip { bytes } | Task::SpinningBesideBlocking { bytes } => {
                (format!("-p 0 -l {bytes} -u {bytes}"), round_trip)
            }
            Task::Curve { last } => (format!("-u {last}"), curve),
            _ => return None,
        };
        let both = format!("NPtcp -P {} {flags}", context.port);
        let mut client = command_line(&format!("{both} -h 127.0.0.1 -o"));
        client.push(context.file());
        Some(Job::new(context, command_line(&both), client, read))
    }
}

impl Peer for NetpipeMpi {
    fn name(&self) -> &'static str {
        "NPopenmpi"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["NPopenmpi", "mpirun.openmpi"]
    }

    fn version(&self) -> Option<&'static str> {
        None
    }

    fn job(&self, task: Task, context: &JobContext) -> Option<Job> {
        let Task::Launched { by: Launcher::Mpi, bytes } = task else { return None };
        let mut command = command_line(&format!("NPopenmpi -p 0 -l {bytes} -u {bytes} -o"));
        command.push(context.file());
        Some(Job::mpirun(context, &command, round_trip))
    }
}

impl Peer for NetpipePvm {
    fn name(&self) -> &'static str {
        "NPpvm"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["NPpvm", "pvmd"]
    }

    fn version(&self) -> Option<&'static str> {
        None
    }

    fn job(&self, task: Task, context: &JobContext) -> Option<Job> {
        let Task::Launched { by: Launcher::Pvm, bytes } = task else { return None };
        // Both ends need the same sizes, and the transmitter finds the receiver among the machine's tasks. Its
        // start cannot be detected from outside.
        let both = format!("NPpvm -p 0 -l {bytes} -u {bytes}");
        let ready = context.folder.join("ready");
        let script = format!(
            "pvmd -nlocalhost & while [ ! -e {} ]; do sleep 0.01; done; {both} & sleep 0.3; : > {}; wait",
            context.pvm_file().display(),
            ready.display()
        );
        let server = vec!["sh".to_owned(), "-c".to_owned(), script];
        let mut client = command_line(&format!("{both} -h localhost -o"));
        client.push(context.file());
        Some(Job { ready: Ready::File(ready), env: context.pvm_env(), ..Job::new(context, server, client, round_trip) })
    }
}

/// The columns of a line of np.out: bytes, its "Mbps" and half the round trip in seconds.
fn columns(line: &str) -> Option<[f64; 3]> {
    let columns: Vec<f64> = line.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    columns.try_into().ok()
}

fn first(result: &str) -> Result<[f64; 3]> {
    result.lines().next().and_then(columns).context("NetPIPE wrote no line of three columns")
}

/// NetPIPE runs the exchange all the time, also to find its repeat count, and does not print the total. The
/// amount is the rate times its run time.
fn all_along(value: f64, per_second: f64, ended: &Ended) -> Reading {
    let mut reading = Reading::from(value);
    reading.amount = Amount::Known(per_second * ended.report.elapsed_ns as f64 / 1e9);
    reading
}

/// Its Mbps are 2^20 bit/s.
fn rate(ended: &Ended, result: &str) -> Result<Reading> {
    let [_, mbps, _] = first(result)?;
    let bits_per_second = mbps * 1_048_576.0;
    Ok(all_along(bits_per_second, bits_per_second / 8.0, ended))
}

/// The best of three means; other tools print one mean. It is half a round trip in units of 10 ns; the rate has
/// more digits.
fn round_trip(ended: &Ended, result: &str) -> Result<Reading> {
    let [bytes, mbps, half] = first(result)?;
    let half = if mbps > 0.0 { bytes * 8.0 / (mbps * 1_048_576.0) } else { half };
    Ok(all_along(half * 2e9, 0.5 / half, ended))
}

fn curve(ended: &Ended, result: &str) -> Result<Reading> {
    let lines: Vec<[f64; 3]> = result.lines().filter_map(columns).collect();
    if lines.is_empty() {
        anyhow::bail!("NPtcp wrote no line of three columns");
    }
    let mut reading = Reading::from(ended.report.elapsed_ns as f64);
    reading.also.insert("points", lines.len() as f64);
    reading.curve = lines.iter().map(|[bytes, _, half]| (*bytes as u64, half * 2e9)).collect();
    Ok(reading)
}

impl JobContext {
    /// The file that a PVM daemon makes when it can be spoken to.
    pub fn pvm_file(&self) -> std::path::PathBuf {
        self.folder.join(format!("pvmd.{}", rustix::process::getuid().as_raw()))
    }

    /// A virtual machine of its own, apart from any that the user has.
    pub fn pvm_env(&self) -> Vec<(&'static str, String)> {
        vec![
            ("PVM_ROOT", "/usr/lib/pvm3".to_owned()),
            ("PVM_ALLOW_ROOT", "1".to_owned()),
            ("PVM_TMP", self.folder.to_string_lossy().into_owned()),
        ]
    }
}

impl Job {
    /// Two processes of mpirun, the first on the client's core and the second on the server's; both in the client's account.
    pub fn mpirun(context: &JobContext, command: &[String], read: Read) -> Self {
        let [client, server] = context.cores;
        let mut argv = command_line("mpirun.openmpi --allow-run-as-root --bind-to none");
        for (separator, core) in [("", client), (":", server)] {
            argv.extend(command_line(&format!("{separator} -n 1 taskset -c {core}")));
            argv.extend_from_slice(command);
        }
        Self { spread: true, ..Self::alone(context, argv, read) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUT: &str = "  131072 20000.000000   0.00005000\n  131075 19000.000000   0.00005300\n";

    #[test]
    fn its_own_units_become_ours() {
        let mut ended = Ended::default();
        ended.report.elapsed_ns = 2_000_000_000;
        let stream = rate(&ended, OUT).unwrap();
        assert!((stream.value - 20_971_520_000.0).abs() < 1.0 && stream.amount == Amount::Known(5_242_880_000.0));
        let points = curve(&ended, OUT).unwrap();
        assert_eq!((points.value, points.also["points"]), (2e9, 2.0));
        assert_eq!(points.curve[0].0, 131_072);
        assert!((points.curve[0].1 - 100_000.0).abs() < 1e-6);
        assert!(rate(&ended, "").is_err() && curve(&ended, "").is_err());
    }

    #[test]
    fn a_short_round_trip_keeps_the_digits_that_the_rate_has() {
        // NPopenmpi -p 0 -l 1 -u 1: its time would be 2,620 ns.
        let trip = round_trip(&Ended::default(), "       1 5.826811   0.00000131\n").unwrap();
        assert!((trip.value - 2_618.7).abs() < 0.1, "{}", trip.value);
    }
}
