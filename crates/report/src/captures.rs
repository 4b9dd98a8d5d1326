//! What became of the captures of a run, in words.

use model::{ByteSize, Capture, Run, units};

use crate::labels;

/// A sentence for each end that was asked for a capture.
pub(crate) fn of_run(run: &Run) -> Vec<String> {
    let near: Vec<&Capture> = run.passes.iter().filter_map(|pass| pass.near.capture.as_ref()).collect();
    let far: Vec<&Capture> = run.passes.iter().filter_map(|pass| pass.far.capture.as_ref()).collect();
    [("near", near), ("far", far)].into_iter().filter_map(|(end, all)| of_end(end, &all)).collect()
}

fn of_end(end: &str, captures: &[&Capture]) -> Option<String> {
    let missing = captures.iter().find_map(|capture| capture.missing.as_deref()).map(labels::plain);
    let not_fetched = captures.iter().find_map(|capture| capture.not_fetched.as_deref()).map(labels::plain);
    let files: Vec<&str> = captures.iter().filter_map(|capture| capture.file.as_deref()).collect();
    let Some(last) = files.last() else { return missing.map(|why| format!("{end} end: no packets: {why}")) };
    let packets: u64 = captures.iter().map(|capture| capture.packets).sum();
    let drops = match captures.iter().map(|capture| capture.drops).sum::<Option<u64>>() {
        Some(drops) => format!("{drops} dropped for want of room"),
        None => "how many were dropped is not known".to_owned(),
    };
    let cost = captures.iter().map(|capture| capture.cost_ns).sum::<u64>();
    let others = match files.len() - 1 {
        0 => String::new(),
        others => format!(" and {others} before it"),
    };
    let fetched = match captures.iter().filter_map(|capture| capture.fetched_bytes).reduce(|a, b| a + b) {
        Some(bytes) => format!(" ({} fetched)", ByteSize(bytes)),
        None => String::new(),
    };
    let why: String = [missing, not_fetched].into_iter().flatten().map(|why| format!("; {why}")).collect();
    Some(format!(
        "{end} end: {packets} packets in {}{others}{fetched}, {drops}, {} of CPU time{why}",
        labels::plain(last),
        units::seconds(cost as f64)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn each_end_says_where_its_packets_are_or_why_not() {
        let said = of_run(&sample::captured());
        assert_eq!(said.len(), 2);
        assert!(
            said[0].contains("36000 packets in /tmp/thru-1795293478-0a0b0c-trial1-near.pcapng and 7 before it"),
            "{said:?}"
        );
        assert!(said[0].contains(", 0 dropped"), "{said:?}");
        assert!(said[1].starts_with("far end: no packets: this agent captures no packets"), "{said:?}");
        assert_eq!(of_run(&sample::stream()), [""; 0]);
    }

    #[test]
    fn a_file_that_was_fetched_says_how_much_of_it() {
        let mut capture = Capture { file: Some("/here/a-far.pcapng".into()), packets: 9, ..Capture::default() };
        capture.fetched_bytes = Some(3 << 20);
        let said = of_end("far", &[&capture]).unwrap();
        assert!(said.contains("9 packets in /here/a-far.pcapng (3 MiB fetched), "), "{said}");
        capture.fetched_bytes = None;
        capture.not_fetched = Some("thru 0.0.9 on b cannot send it; it stays there".into());
        let said = of_end("far", &[&capture]).unwrap();
        assert!(said.ends_with("; thru 0.0.9 on b cannot send it; it stays there"), "{said}");
    }
}
