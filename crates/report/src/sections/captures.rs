//! Sentences on the captures of a run.

use model::{ByteSize, Capture, Run};
use text::{Count, Text, Time, say};

use crate::labels;

/// A sentence for each end at which a capture was requested.
pub(crate) fn of_run(run: &Run) -> Vec<Text> {
    let near: Vec<&Capture> = run.passes.iter().filter_map(|pass| pass.near.capture.as_ref()).collect();
    let far: Vec<&Capture> = run.passes.iter().filter_map(|pass| pass.far.capture.as_ref()).collect();
    [("near", near), ("far", far)].into_iter().filter_map(|(end, all)| of_end(end, &all)).collect()
}

/// The files of each end and the number of packets in them, or why there is none, in short; `None` if no capture was requested.
pub(crate) fn files(run: &Run) -> Option<Text> {
    let of = |pick: fn(&model::Pass) -> Option<&Capture>| run.passes.iter().filter_map(pick).collect::<Vec<_>>();
    let ends = [("near", of(|pass| pass.near.capture.as_ref())), ("far", of(|pass| pass.far.capture.as_ref()))];
    if ends.iter().all(|(_, captures)| captures.is_empty()) {
        return None;
    }
    let of_end = |(end, captures): &(&str, Vec<&Capture>)| {
        let files: Vec<&str> = captures.iter().filter_map(|capture| capture.file.as_deref()).collect();
        let missing = captures.iter().find_map(|capture| capture.missing.as_deref()).map(labels::plain);
        let packets = Count(captures.iter().map(|capture| capture.packets).sum());
        match (files.as_slice(), missing) {
            ([], Some(why)) => say!("{end} end: nothing: {why}"),
            ([], None) => say!("{end} end: nothing"),
            ([file], _) => say!("{end} end: {packets} packets in {}", labels::plain(file)),
            ([earlier @ .., last], _) => {
                let files = if earlier.len() == 1 { "file" } else { "files" };
                say!("{end} end: {packets} packets in {} and {} earlier {files}", labels::plain(last), earlier.len())
            }
        }
    };
    Some(Text::join(ends.iter().map(of_end), "; "))
}

fn of_end(end: &str, captures: &[&Capture]) -> Option<Text> {
    let missing = captures.iter().find_map(|capture| capture.missing.as_deref()).map(labels::plain);
    let not_fetched = captures.iter().find_map(|capture| capture.not_fetched.as_deref()).map(labels::plain);
    let files: Vec<&str> = captures.iter().filter_map(|capture| capture.file.as_deref()).collect();
    let Some(last) = files.last() else { return missing.map(|why| say!("{end} end: no capture: {why}")) };
    let packets: u64 = captures.iter().map(|capture| capture.packets).sum();
    let drops = match captures.iter().map(|capture| capture.drops).sum::<Option<u64>>() {
        Some(drops) => say!("{drops} dropped by the full capture buffer"),
        None => "drops unknown".into(),
    };
    let cost = captures.iter().map(|capture| capture.cost_ns).sum::<u64>();
    let others = match files.len() - 1 {
        0 => Text::default(),
        1 => " and 1 earlier file".into(),
        others => say!(" and {others} earlier files"),
    };
    let fetched = match captures.iter().filter_map(|capture| capture.fetched_bytes).reduce(|a, b| a + b) {
        Some(bytes) => say!(" ({} fetched)", ByteSize(bytes)),
        None => Text::default(),
    };
    let why: String = [missing, not_fetched].into_iter().flatten().map(|why| format!("; {why}")).collect();
    Some(say!(
        "{end} end: {packets} packet{} in {}{others}{fetched}, {drops}, {} of CPU time{why}",
        if packets == 1 { "" } else { "s" },
        labels::plain(last),
        Time(cost as f64)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_screen_names_the_files_of_both_ends() {
        let text = files(&sample::captured()).unwrap().plain();
        assert!(
            text.starts_with("near end: 36,000 packets in /tmp/")
                && text.contains("-near.pcapng and 7 earlier files; "),
            "{text}"
        );
        assert!(text.contains("; far end: nothing: this agent captures no packets"), "{text}");
        assert_eq!(files(&sample::stream()), None);
    }

    #[test]
    fn each_end_has_its_file_or_the_reason_for_none() {
        let lines = of_run(&sample::captured());
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0]
                .plain()
                .contains("36000 packets in /tmp/thru-1795293478-0a0b0c-trial1-near.pcapng and 7 earlier files"),
            "{lines:?}"
        );
        assert!(lines[0].plain().contains(", 0 dropped"), "{lines:?}");
        assert!(lines[1].plain().starts_with("far end: no capture: this agent captures no packets"), "{lines:?}");
        assert_eq!(of_run(&sample::stream()), []);
    }

    #[test]
    fn a_fetched_file_has_its_size() {
        let mut capture = Capture { file: Some("/here/a-far.pcapng".into()), packets: 9, ..Capture::default() };
        capture.fetched_bytes = Some(3 << 20);
        let line = of_end("far", &[&capture]).unwrap();
        assert!(line.plain().contains("9 packets in /here/a-far.pcapng (3 MiB fetched), "), "{line:?}");
        capture.fetched_bytes = None;
        capture.not_fetched = Some("thru 0.0.9 on b cannot send it; the file stays on b".into());
        let line = of_end("far", &[&capture]).unwrap();
        assert!(line.plain().ends_with("; thru 0.0.9 on b cannot send it; the file stays on b"), "{line:?}");
    }
}
