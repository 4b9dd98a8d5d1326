//! Sentences on the captures of a run.

use model::{ByteSize, Capture, Change, Interface, Inventory, Run};
use text::{Count, Text, Time, say};

use crate::labels;

/// A sentence for each end at which a capture was requested.
pub(crate) fn of_run(run: &Run) -> Vec<Text> {
    let near: Vec<&Capture> = run.passes.iter().filter_map(|pass| pass.near.capture.as_ref()).collect();
    let far: Vec<&Capture> = run.passes.iter().filter_map(|pass| pass.far.capture.as_ref()).collect();
    [("near", near), ("far", far)].into_iter().filter_map(|(end, all)| of_end(end, &all, run)).collect()
}

/// The files of each end and the number of packets in them, or why there is none, in short; `None` if no capture was requested.
pub(crate) fn files(run: &Run) -> Option<Text> {
    let of = |pick: fn(&model::Pass) -> Option<&Capture>| run.passes.iter().filter_map(pick).collect::<Vec<_>>();
    let ends = [("near", of(|pass| pass.near.capture.as_ref())), ("far", of(|pass| pass.far.capture.as_ref()))];
    if ends.iter().all(|(_, captures)| captures.is_empty()) {
        return None;
    }
    let of_end = |(end, captures): &(&str, Vec<&Capture>)| {
        let late = late(end, captures, run).map_or(Text::default(), |why| say!(" ({why})"));
        let files: Vec<&str> = captures.iter().filter_map(|capture| capture.file.as_deref()).collect();
        let missing = captures.iter().find_map(|capture| capture.missing.as_deref()).map(labels::plain);
        let packets = Count(captures.iter().map(|capture| capture.packets).sum());
        match (files.as_slice(), missing) {
            ([], Some(why)) => say!("{end} end: nothing: {why}"),
            ([], None) => say!("{end} end: nothing"),
            ([file], _) => say!("{end} end: {packets} packets in {}{late}", labels::plain(file)),
            ([earlier @ .., last], _) => {
                let files = if earlier.len() == 1 { "file" } else { "files" };
                say!(
                    "{end} end: {packets} packets in {} and {} earlier {files}{late}",
                    labels::plain(last),
                    earlier.len()
                )
            }
        }
    };
    Some(Text::join(ends.iter().map(of_end), "; "))
}

/// Settings of interrupt coalescing by ethtool's names that make received packets wait for an interrupt if they are not 0.
const COALESCING: [&str; 3] = ["adaptive-rx", "rx-usecs", "rx-frames"];

/// Why received packets get their time stamps late, if the interface is known to coalesce interrupts.
fn late(end: &str, captures: &[&Capture], run: &Run) -> Option<Text> {
    let header = &run.header;
    let settings = header.settings.as_ref();
    let (host, changes): (&Inventory, &[Change]) = match end {
        "near" => (&header.near, settings.map_or(&[], |all| &all.near)),
        _ => (&header.far, settings.map_or(&[], |all| &all.far)),
    };
    let captured = captures.iter().find_map(|capture| capture.interface.as_ref())?;
    let is_captured = |interface: &&Interface| interface.name == *captured;
    let before = &host.interfaces.iter().find(is_captured)?.device.as_ref()?.coalescing;
    let value = |name: &'static str| {
        let key = format!("dev.{captured}.coalesce.{name}");
        match changes.iter().find(|change| change.key == key).map(|change| change.now.as_str()) {
            Some("on") => Some(1),
            Some(now) => now.parse().ok(),
            None => before.get(name).copied(),
        }
    };
    let active = COALESCING.iter().filter_map(|name| Some((*name, value(name).filter(|value| *value > 0)?)));
    let active: Vec<(&str, u64)> = active.collect();
    // An interrupt for each frame is none too few.
    if active.iter().all(|(name, value)| *name == "rx-frames" && *value == 1) {
        return None;
    }
    let shown = |(name, value): &(&str, u64)| {
        if *name == COALESCING[0] { (*name).to_owned() } else { format!("{name} {value}") }
    };
    let shown: Vec<String> = active.iter().map(shown).collect();
    Some(say!(
        "{} coalesces interrupts ({}): packets wait for an interrupt before they are stamped, and those of one interrupt seem to \
         arrive together",
        labels::plain(captured),
        shown.join(", ")
    ))
}

fn of_end(end: &str, captures: &[&Capture], run: &Run) -> Option<Text> {
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
    let late = late(end, captures, run).map_or(Text::default(), |why| say!("; {why}"));
    Some(say!(
        "{end} end: {packets} packet{} in {}{others}{fetched}, {drops}, {} of CPU time{why}; time stamps by the kernel, not by the NIC{late}",
        if packets == 1 { "" } else { "s" },
        labels::plain(last),
        Time(cost as f64)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::Device;

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
        let line = of_end("far", &[&capture], &sample::stream()).unwrap();
        assert!(line.plain().contains("9 packets in /here/a-far.pcapng (3 MiB fetched), "), "{line:?}");
        capture.fetched_bytes = None;
        capture.not_fetched = Some("thru 0.0.9 on b cannot send it; the file stays on b".into());
        let line = of_end("far", &[&capture], &sample::stream()).unwrap();
        assert!(line.plain().contains("; thru 0.0.9 on b cannot send it; the file stays on b; time"), "{line:?}");
    }

    #[test]
    fn coalesced_interrupts_are_a_warning() {
        let captured = |settings: &[(&str, u64)], changed: &[(&str, &str)]| {
            let mut run = sample::captured();
            run.passes.iter_mut().for_each(|pass| {
                pass.near.capture.as_mut().unwrap().interface = Some("eth0".into());
            });
            let coalescing = settings.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            let device = Some(Device { coalescing, ..Device::default() });
            run.header.near.interfaces = vec![Interface { name: "eth0".into(), device, ..Interface::default() }];
            let change = |key: &str, now: &str| Change {
                key: key.into(),
                before: "50".into(),
                requested: now.into(),
                now: now.into(),
                host_wide: false,
                note: None,
            };
            let near = changed.iter().map(|(key, now)| change(key, now)).collect();
            run.header.settings = Some(model::RunSettings { near, ..model::RunSettings::default() });
            (files(&run).unwrap().plain(), of_run(&run)[0].plain())
        };
        let (short, long) = captured(&[("adaptive-rx", 1), ("rx-usecs", 50), ("rx-frames", 0)], &[]);
        let warning = "eth0 coalesces interrupts (adaptive-rx, rx-usecs 50): packets wait for an interrupt";
        assert!(short.contains(&format!("earlier files ({warning}")), "{short}");
        assert!(long.contains(&format!("time stamps by the kernel, not by the NIC; {warning}")), "{long}");
        for off in [&[("adaptive-rx", 0), ("rx-usecs", 0)][..], &[("rx-usecs", 0), ("rx-frames", 1)], &[]] {
            let (short, long) = captured(off, &[]);
            assert!(!short.contains("coalesces") && long.ends_with("not by the NIC"), "{short} {long}");
        }
        let set = [("dev.eth0.coalesce.adaptive-rx", "off"), ("dev.eth0.coalesce.rx-usecs", "0")];
        assert!(!captured(&[("adaptive-rx", 1), ("rx-usecs", 50)], &set).0.contains("coalesces"));
    }
}
