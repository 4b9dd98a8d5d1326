//! A path as a topology and a command in its lab.

use std::fmt::Write as _;

use crate::path::Path;

/// Keeps a core busy until it is killed.
const SPIN: &str = "while :; do :; done";

/// The topology file of the path's lab: hosts `a` (near) and `b`.
pub fn topology(path: &Path) -> String {
    let mut text = format!("seed = {}\n\n[sysctl]\n", path.index + 1);
    for (key, value) in &path.sysctl {
        let _ = writeln!(text, "\"{key}\" = \"{value}\"");
    }
    text.push_str("\n[[host]]\nname = \"a\"\n\n[[host]]\nname = \"b\"\n\n[[link]]\nbetween = [\"a\", \"b\"]\n");
    let _ = writeln!(text, "mtu = {}", path.mtu);
    if path.rtt_ns > 0 {
        let _ = writeln!(text, "delay = \"{}ns\"", path.rtt_ns / 2);
    }
    let [forward, back] = if path.reverse { ["reverse", "forward"] } else { ["forward", "reverse"] };
    if let Some(bps) = path.back_bps {
        let _ = writeln!(text, "\n[link.{back}]\nrate = \"{bps}bit\"\nqueue = {}", path.back_queue_bytes);
    }
    let _ = writeln!(text, "\n[link.{forward}]");
    if let Some(bytes) = path.hole {
        let _ = writeln!(text, "mtu = {bytes}");
    }
    if let Some((share, ns)) = path.reorder {
        let _ = writeln!(text, "reorder = {{ probability = {share}, by = \"{ns}ns\" }}");
    }
    if let Some(bps) = path.rate_bps {
        let _ = writeln!(text, "rate = \"{bps}bit\"\nqueue = {}", path.queue_bytes);
    }
    if let Some(discipline) = &path.discipline {
        let _ = writeln!(text, "discipline = {discipline}");
    }
    if path.loss > 0.0 {
        let _ = writeln!(text, "loss = {}", path.loss);
    }
    if path.jitter_ns > 0 {
        let [spread, every] = [path.jitter_ns, 2 * path.jitter_ns];
        let _ =
            writeln!(text, "jitter = {{ spread = \"{spread}ns\", distribution = \"uniform\", every = \"{every}ns\" }}");
    }
    text
}

/// The shell script that runs on host `a`: prepares the sender, keeps a core busy if need be, and measures. `thru` and `document` are
/// words of a shell.
pub fn script(path: &Path, thru: &str, document: &str) -> String {
    let mut lines = vec!["set -e".to_owned()];
    lines.extend(path.before.iter().cloned());
    if path.beside {
        let reverse = if path.reverse { " --reverse" } else { "" };
        lines.extend([
            "ip netns exec \"$THRU_LAB-b\" iperf3 --server --one-off --port 5299 >/dev/null & beside=\"$!\"; sleep 0.3"
                .to_owned(),
            format!("iperf3 --client b --port 5299 --time 60{reverse} >/dev/null & beside=\"$beside $!\"; sleep 1"),
            "trap 'kill $beside' EXIT".to_owned(),
        ]);
    }
    if let Some(spin) = path.spinners {
        for _ in 0..spin.count {
            // A session of its own, because the scheduler divides a core fairly between sessions (sched_autogroup_enabled).
            lines.push(format!("setsid taskset -c {} sh -c '{SPIN}' & spinners=\"$spinners $!\"", spin.core));
        }
        lines.push("trap 'kill $spinners' EXIT".to_owned());
    }
    let mut words = vec![thru.to_owned(), "stream".into(), "b".into()];
    words.extend(path.flags.iter().cloned());
    if let Some(cc) = &path.cc {
        words.extend(["--cc".into(), if path.reverse { format!(",{cc}") } else { format!("{cc},") }]);
    }
    if path.reverse {
        words.push("--reverse".into());
    }
    words.extend(["--no-store", "--quiet", "--json"].map(str::to_owned));
    words.push(document.to_owned());
    lines.push(words.join(" "));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_lab_and_a_command() {
        let mut path = Path::bare(1, 6);
        (path.rtt_ns, path.rate_bps, path.queue_bytes, path.loss) = (10_000_000, Some(50_000_000), 65_536, 0.01);
        path.cc = Some("reno".into());
        path.of_receiver("rcvbuf", "64KiB");
        let text = topology(&path);
        for line in ["seed = 7", "delay = \"5000000ns\"", "[link.forward]", "rate = \"50000000bit\"", "loss = 0.01"] {
            assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
        }
        let script = script(&path, "thru", "run.json");
        let command = "thru stream b --rcvbuf ,64KiB --cc reno, --no-store --quiet --json run.json";
        assert_eq!(script.lines().last(), Some(command));
    }

    #[test]
    fn what_the_acknowledgements_pass_is_the_other_direction() {
        let mut path = Path::bare(1, 6);
        (path.reverse, path.back_bps, path.back_queue_bytes, path.hole) = (true, Some(64_000), 9_000, Some(1_400));
        let text = topology(&path);
        assert!(text.contains("[link.forward]\nrate = \"64000bit\"\nqueue = 9000\n"), "{text}");
        assert!(text.contains("[link.reverse]\nmtu = 1400\n"), "{text}");
    }
}
