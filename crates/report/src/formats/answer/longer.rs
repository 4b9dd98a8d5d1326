//! The command that measures long enough to settle.

use model::{Outcome, Run};

/// The command of the run with one trial that is long enough to settle.
pub(super) fn command(run: &Run, outcome: &Outcome) -> Option<String> {
    let needed = outcome.summary.start_up.and_then(|start| start.needs_ns).filter(|_| super::is_growing(outcome))?;
    let mut command: Vec<&str> = Vec::new();
    let mut words = run.header.command.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let replaced = ["-t", "--time", "--trials", "--budget", "--warmup"];
        match word.split_once('=') {
            Some((flag, _)) if replaced.contains(&flag) => {}
            None if replaced.contains(&word) => drop(words.next()),
            None if word.starts_with("-t") && !word.starts_with("--") => {}
            _ => command.push(word),
        }
    }
    let words: Vec<String> = command.into_iter().skip(1).map(quoted).collect();
    Some(format!("thru {} -t {}s --trials 1", words.join(" "), needed / 1_000_000_000))
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
    use model::{StartUp, Verdict};

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
            command(&run, &run.outcomes[0]).unwrap()
        };
        assert_eq!(of(&["/usr/bin/thru", "stream", "b"]), "thru stream b -t 60s --trials 1");
        let given = ["thru", "stream", "b", "-t", "5", "--trials=3", "--cc", "reno", "--budget", "9s", "-t4s"];
        assert_eq!(of(&given), "thru stream b --cc reno -t 60s --trials 1");
        let quoted = ["thru", "stream", "b", "--set", "far:sysctl.x=4096 8192"];
        assert_eq!(of(&quoted), "thru stream b --set 'far:sysctl.x=4096 8192' -t 60s --trials 1");
    }
}
