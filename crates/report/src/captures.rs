//! What became of the captures of a run, in words.

use model::{Capture, Run, units};

use crate::words;

/// A sentence for each end that was asked for a capture.
pub(crate) fn of_run(run: &Run) -> Vec<String> {
    let near: Vec<&Capture> = run.passes.iter().filter_map(|pass| pass.near.capture.as_ref()).collect();
    let far: Vec<&Capture> = run.passes.iter().filter_map(|pass| pass.far.capture.as_ref()).collect();
    [("near", near), ("far", far)].into_iter().filter_map(|(end, all)| of_end(end, &all)).collect()
}

fn of_end(end: &str, captures: &[&Capture]) -> Option<String> {
    let missing = captures.iter().find_map(|capture| capture.missing.as_deref()).map(words::plain);
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
    let why = missing.map(|why| format!("; {why}")).unwrap_or_default();
    Some(format!(
        "{end} end: {packets} packets in {}{others}, {drops}, {} of CPU time{why}",
        words::plain(last),
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
}
