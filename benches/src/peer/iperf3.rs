//! iperf3 with default options: the distribution's, a newer one on PATH, and the newest with UDP_SEGMENT and
//! UDP_GRO.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Job, JobContext, Peer, Read, Reading, command_line, everywhere_on_path, output_of, version_of};
use crate::process::Ended;
use crate::work::{Batch, Task, UDP_BUFFER};

/// `iperf3 -s` and `iperf3 -c` of one kind.
#[derive(Debug)]
pub struct Iperf3 {
    name: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Debian's, or the only one.
    Packaged,
    /// The newest on PATH, if it is newer.
    Newest,
    /// The newest, with `--gsro`.
    Segmenting,
}

/// The packaged version.
pub static PACKAGED: Iperf3 = Iperf3 { name: "iperf3", kind: Kind::Packaged };
/// A newer, self-built version.
pub static NEWEST: Iperf3 = Iperf3 { name: "iperf3-new", kind: Kind::Newest };
/// For segmented datagrams.
pub static SEGMENTING: Iperf3 = Iperf3 { name: "iperf3-gsro", kind: Kind::Segmenting };

/// Its default block size over TCP, bytes.
const OWN_BLOCK: u64 = 128 << 10;

impl Peer for Iperf3 {
    fn name(&self) -> &'static str {
        self.name
    }

    fn programs(&self) -> &'static [&'static str] {
        &["iperf3"]
    }

    fn version(&self) -> Option<&'static str> {
        Some("--version")
    }

    fn find(&self) -> Option<PathBuf> {
        let here: Vec<(Version, PathBuf)> = everywhere_on_path("iperf3")
            .into_iter()
            .map(|file| (version_of(&file, "--version").as_deref().map(parts).unwrap_or_default(), file))
            .collect();
        choose(self.kind, &here, |file| output_of(file, "--help").contains("--gsro"))
    }

    fn job(&self, task: Task, context: &JobContext) -> Option<Job> {
        let segments = self.kind == Kind::Segmenting;
        let gsro = if segments { " --gsro" } else { "" };
        let length = |block| if block == OWN_BLOCK { String::new() } else { format!(" -l {block}") };
        let (flags, read): (String, Read) = match task {
            Task::Datagrams { block, by } if segments == (by == Batch::Segmented) => {
                (format!(" -u -b 0{gsro} -l {block} -w {UDP_BUFFER}"), arrived)
            }
            Task::Paced { rate, segmented } if segments == segmented => {
                (format!(" -u -b {rate}{gsro} -l 1472 -w {UDP_BUFFER}"), arrived)
            }
            _ if segments => return None,
            Task::Stream { block } => (length(block), received),
            Task::Uncopied { block } => (format!(" -Z{}", length(block)), received),
            Task::Start => return Some(super::start_job(context, "--version")),
            _ => return None,
        };
        let JobContext { program, port, seconds, .. } = context;
        Some(Job::new(
            context,
            command_line(&format!("{program} -s -p {port}")),
            command_line(&format!("{program} -c 127.0.0.1 -p {port} -t {seconds} -J{flags}")),
            read,
        ))
    }
}

/// The parts of a version number.
type Version = Vec<u64>;

fn parts(version: &str) -> Version {
    version.split('.').map_while(|part| part.parse().ok()).collect()
}

/// Selects the program of a kind from those on PATH.
fn choose(kind: Kind, here: &[(Version, PathBuf)], segments: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let in_usr = |(_, file): &&(Version, PathBuf)| file.parent() == Some(Path::new("/usr/bin"));
    let packaged = here.iter().find(in_usr).or(here.first())?;
    let newest = here.iter().reduce(|best, other| if other.0 > best.0 { other } else { best })?;
    let chosen = match kind {
        Kind::Packaged => packaged,
        Kind::Newest => Some(newest).filter(|newest| newest.0 > packaged.0)?,
        Kind::Segmenting => Some(newest).filter(|newest| segments(&newest.1))?,
    };
    Some(chosen.1.clone())
}

/// Over UDP it prints the sent rate and the lost share.
fn arrived(ended: &Ended, _: &str) -> Result<Reading> {
    let document: Value = serde_json::from_str(&ended.stdout).context("iperf3 printed no document")?;
    let figure = |name: &str| document.pointer(&format!("/end/sum/{name}")).and_then(Value::as_f64);
    let (rate, lost) = figure("bits_per_second").zip(figure("lost_percent")).context("no sum in iperf3's document")?;
    let mut reading = Reading::from(rate * (1.0 - lost / 100.0));
    reading.also.insert("lost_percent", lost);
    Ok(reading)
}

fn received(ended: &Ended, _: &str) -> Result<Reading> {
    let document: Value = serde_json::from_str(&ended.stdout).context("iperf3 printed no document")?;
    let rate = document.pointer("/end/sum_received/bits_per_second").and_then(Value::as_f64);
    rate.map(Reading::from).context("no received rate in iperf3's document")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_received_rate_counts() {
        let said = |text: &str| Ended { stdout: text.into(), ..Ended::default() };
        let text = r#"{"end":{"sum_sent":{"bits_per_second":2e9},"sum_received":{"bits_per_second":1e9}}}"#;
        assert_eq!(received(&said(text), "").unwrap().value, 1e9);
        assert!(received(&said(r#"{"error":"unable to connect"}"#), "").is_err());
    }

    #[test]
    fn of_datagrams_the_lost_ones_do_not_count() {
        // iperf3 3.12 -u -b 10M -l 1472 -t 1 -J, with another loss.
        let text = r#"{"end":{"sum":{"bits_per_second":9997114.0,"packets":849,"lost_percent":25.0,"sender":true}}}"#;
        let reading = arrived(&Ended { stdout: text.into(), ..Ended::default() }, "").unwrap();
        assert_eq!((reading.value, reading.also["lost_percent"]), (7_497_835.5, 25.0));
    }

    #[test]
    fn an_older_one_is_no_newest_and_the_same_version_is_one_peer() {
        let file = |folder: &str| PathBuf::from(format!("{folder}/iperf3"));
        let debian = (parts("3.12"), file("/usr/bin"));
        let built = (parts("3.21"), file("/usr/local/bin"));
        let both = [built.clone(), debian.clone()];
        assert_eq!(choose(Kind::Packaged, &both, |_| true), Some(debian.1.clone()));
        assert_eq!(choose(Kind::Newest, &both, |_| true), Some(built.1.clone()));
        assert_eq!(choose(Kind::Segmenting, &both, |file| *file == built.1), Some(built.1.clone()));
        let alone = [debian.clone()];
        assert_eq!(choose(Kind::Newest, &alone, |_| true), None);
        assert_eq!(choose(Kind::Segmenting, &alone, |_| false), None);
        assert_eq!(choose(Kind::Newest, &[(parts("3.9"), file("/opt/bin")), debian], |_| true), None);
        assert_eq!(choose(Kind::Packaged, std::slice::from_ref(&built), |_| true), Some(built.1.clone()));
        assert_eq!(choose(Kind::Packaged, &[], |_| true), None);
    }
}
