//! The result of `thru advise` as text, and as files for the hosts.

use model::{AdvicePersistent, Run};

use crate::labels;

/// The command that measures with the best combination, and what makes it persistent at each host; empty if nothing was confirmed.
pub(crate) fn persistent(run: &Run) -> Vec<String> {
    let Some((advice, command)) = run.advice.as_ref().and_then(|advice| Some((advice, advice.command.as_ref()?)))
    else {
        return Vec::new();
    };
    let mut lines = vec!["# to measure with these settings".to_owned(), labels::plain(command)];
    for (end, kept) in [("near", &advice.near), ("far", &advice.far)] {
        let AdvicePersistent { sysctl, commands, program } = kept;
        let parts = [("in the program", program), ("/etc/sysctl.d", sysctl), ("commands", commands)];
        for (what, list) in parts.into_iter().filter(|(_, list)| !list.is_empty()) {
            lines.push(format!("# {end} host, {what}"));
            lines.extend(list.iter().map(|line| labels::plain(line)));
        }
    }
    lines
}

/// Files for /etc/sysctl.d, of the near and the far host. If nothing was confirmed they only have a comment.
#[must_use]
pub fn sysctl_files(run: &Run) -> [String; 2] {
    let advice = run.advice.as_ref();
    [("near", advice.map(|advice| &advice.near)), ("far", advice.map(|advice| &advice.far))].map(|(end, kept)| {
        let mut text = format!(
            "# {} host of {}, by thru advise, run {}, {}\n",
            end,
            labels::plain(&labels::hosts(run)),
            labels::plain(&run.header.id),
            labels::when(run.header.started_unix_ns)
        );
        let kept = kept.filter(|kept| !kept.sysctl.is_empty());
        match kept {
            None => text.push_str("# No sysctl was found to help.\n"),
            Some(_) => text.push_str(
                "# Buffers and congestion control were measured as socket options; these lines allow them to every program.\n",
            ),
        }
        for line in kept.into_iter().flat_map(|kept| &kept.sysctl) {
            text.push_str(&format!("{}\n", labels::plain(line)));
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::{Advice, Cell, Goal, HostSettings, RunKind};

    fn run(confirmed: bool) -> Run {
        let mut run = sample::pair();
        run.header.kind = RunKind::Advise;
        let levels = [("window".to_owned(), "1MiB".to_owned())];
        let spec = run.outcomes[0].spec.clone();
        run.header.cells =
            vec![Cell::new(0, spec.clone()), Cell { levels: levels.clone().into(), ..Cell::new(1, spec) }];
        let sysctl = vec!["net.core.rmem_max = 1048576".to_owned()];
        run.advice = Some(Advice {
            goal: Goal::Throughput,
            min_effect: 0.01,
            start: [("window".to_owned(), "kernel".to_owned())].into(),
            best: levels.into(),
            confirmed,
            total: None,
            steps: Vec::new(),
            unchanged: Vec::new(),
            untried: Vec::new(),
            spent: Vec::new(),
            command: confirmed.then(|| "thru stream beta --sndbuf 1MiB,".into()),
            settings: HostSettings::default(),
            near: AdvicePersistent::default(),
            far: AdvicePersistent {
                sysctl: if confirmed { sysctl } else { Vec::new() },
                ..AdvicePersistent::default()
            },
        });
        run
    }

    #[test]
    fn start_and_best_are_named() {
        let run = run(true);
        assert_eq!(
            [0, 1].map(|at| crate::sections::sides::side(&run, &run.outcomes[at])),
            [Some("start"), Some("best")]
        );
        let lines = persistent(&run);
        assert_eq!(lines[1], "thru stream beta --sndbuf 1MiB,");
        assert_eq!(lines[2..], ["# far host, /etc/sysctl.d", "net.core.rmem_max = 1048576"]);
    }

    #[test]
    fn files_set_only_what_was_confirmed() {
        let [near, far] = sysctl_files(&run(true));
        assert!(near.contains("# No sysctl was found") && far.ends_with("\nnet.core.rmem_max = 1048576\n"), "{far}");
        let set = |text: &String| text.lines().any(|line| !line.starts_with('#'));
        assert!(!sysctl_files(&run(false)).iter().any(set) && persistent(&run(false)).is_empty());
    }
}
