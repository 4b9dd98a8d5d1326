//! The command that repeats a run so that its rate can be trusted.

use model::{Outcome, Run, Verdict};
use text::{Text, say};

/// The command of the run with what its trials lacked, and what that is for; `None` if they lacked nothing.
pub(super) fn command(run: &Run, outcome: &Outcome) -> Option<Text> {
    let verdicts = &outcome.summary.verdicts;
    if verdicts.contains(&Verdict::NotSettled) {
        let needed = outcome.summary.start_up.and_then(|start| start.needs_ns)?;
        let words = without(&run.header.command, &["-t", "--time", "--trials", "--budget", "--warmup"]);
        return Some(say!("`thru {words} -t {}s --trials 1` (until it settles)", needed / 1_000_000_000));
    }
    let words = without(&run.header.command, &["--trials", "--budget"]);
    verdicts.contains(&Verdict::SendBufferLimited).then(|| say!("`thru {words} --trials 3` (three connections)"))
}

/// The words of a command after the program's name, without some flags and their values.
fn without(command: &[String], flags: &[&str]) -> String {
    let mut kept = Vec::new();
    let mut words = command.iter().skip(1).map(String::as_str);
    while let Some(word) = words.next() {
        let is_attached = |flag: &&str| flag.len() == 2 && word.len() > 2 && word.starts_with(*flag);
        match word.split_once('=') {
            Some((flag, _)) if flags.contains(&flag) => {}
            None if flags.contains(&word) => drop(words.next()),
            None if flags.iter().any(is_attached) => {}
            _ => kept.push(quoted(word)),
        }
    }
    kept.join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,%@+[]".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use model::StartUp;

    use super::*;
    use crate::sample;

    #[test]
    fn the_command_of_the_run_gets_one_trial_of_the_time_that_it_needs() {
        let of = |words: &[&str]| {
            let mut run = sample::stream();
            run.header.command = words.iter().map(ToString::to_string).collect();
            let summary = &mut run.outcomes[0].summary;
            summary.start_up = Some(StartUp { over_ns: 1, needs_ns: Some(60_000_000_000) });
            let settled = command(&run, &run.outcomes[0]);
            assert_eq!(settled, None, "nothing to do for a rate that has settled");
            run.outcomes[0].summary.verdicts.push(Verdict::NotSettled);
            command(&run, &run.outcomes[0]).unwrap().plain()
        };
        assert_eq!(of(&["/usr/bin/thru", "stream", "b"]), "`thru stream b -t 60s --trials 1` (until it settles)");
        let given = ["thru", "stream", "b", "-t", "5", "--trials=3", "--cc", "reno", "--budget", "9s", "-t4s"];
        assert_eq!(of(&given), "`thru stream b --cc reno -t 60s --trials 1` (until it settles)");
        let quoted = ["thru", "stream", "b", "--set", "far:sysctl.x=4096 8192"];
        assert_eq!(of(&quoted), "`thru stream b --set 'far:sysctl.x=4096 8192' -t 60s --trials 1` (until it settles)");
    }

    #[test]
    fn a_connection_that_its_send_buffer_limits_is_repeated() {
        let mut run = sample::stream();
        run.header.command = ["thru", "stream", "b", "-t", "20s", "--trials", "1"].map(str::to_owned).to_vec();
        run.outcomes[0].summary.verdicts = vec![Verdict::SendBufferLimited];
        let repeated = command(&run, &run.outcomes[0]).unwrap().plain();
        assert_eq!(repeated, "`thru stream b -t 20s --trials 3` (three connections)");
    }
}
