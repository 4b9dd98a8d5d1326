//! The settings of a host during a measurement: those of its inventory, with what the measurement changed.

use std::borrow::Cow;

use model::{Change, EndPass, Inventory, Outcome, Pass, Setting};

/// Sysctls among the settings of a measurement.
const SYSCTL: &str = "sysctl.";

/// The near and the far host as they were during an outcome's trials. Inventories are taken before the settings of the spec are
/// changed. What the passes read back counts more than what was requested, because a kernel may round.
pub(crate) fn in_force<'a>(
    outcome: &Outcome,
    passes: &[Pass],
    [near, far]: [&'a Inventory; 2],
) -> [Cow<'a, Inventory>; 2] {
    let settings = &outcome.spec.settings;
    let own: Vec<&Pass> = outcome.trials.iter().filter_map(|trial| Pass::find(passes, trial.pass)).collect();
    let read = |end: fn(&Pass) -> &EndPass| own.iter().flat_map(|pass| &end(pass).settings).collect::<Vec<&Change>>();
    [changed(near, &settings.near, &read(|pass| &pass.near)), changed(far, &settings.far, &read(|pass| &pass.far))]
}

/// A host's inventory with the settings that were requested and those that were read back.
fn changed<'a>(host: &'a Inventory, requested: &[Setting], read: &[&Change]) -> Cow<'a, Inventory> {
    let requested = requested.iter().map(|one| (one.key.as_str(), one.value.as_str()));
    let read = read.iter().map(|one| (one.key.as_str(), one.now.as_str()));
    let mut host = Cow::Borrowed(host);
    for (key, value) in requested.chain(read) {
        if let Some(name) = key.strip_prefix(SYSCTL) {
            host.to_mut().sysctl.insert(name.replace('/', "."), value.to_owned());
        } else if let Some((device, mtu)) = mtu(key, value) {
            let interfaces = &mut host.to_mut().interfaces;
            interfaces.iter_mut().filter(|one| one.name == device).for_each(|one| one.mtu = Some(mtu));
        }
    }
    host
}

/// The device and its MTU in bytes, of a setting `dev.NAME.mtu`.
fn mtu<'a>(key: &'a str, value: &str) -> Option<(&'a str, u32)> {
    let device = key.strip_prefix("dev.")?.strip_suffix(".mtu")?;
    Some((device, value.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use model::{Interface, Pattern, Setting};

    use super::*;
    use crate::curve::testing::made;

    #[test]
    fn what_was_read_back_replaces_what_was_requested_and_that_the_inventory() {
        let host = Inventory {
            sysctl: [("net.ipv4.tcp_rmem".to_owned(), "4096 131072 6291456".to_owned())].into(),
            interfaces: vec![Interface { name: "eth0.7".into(), mtu: Some(1500), ..Interface::default() }],
            ..Inventory::default()
        };
        let mut outcome = made(Pattern::Stream, 0, 1_024, &[1e9]);
        let set = |key: &str, value: &str| Setting { key: key.into(), value: value.into() };
        outcome.spec.settings.far =
            vec![set("sysctl.net.ipv4.tcp_rmem", "4096 87380 262144"), set("dev.eth0.7.mtu", "9000")];
        outcome.trials[0].pass = 3;
        let rmem = |passes: &[Pass]| {
            let [near, far] = in_force(&outcome, passes, [&host, &host]);
            assert_eq!(near.as_ref(), &host);
            assert_eq!(far.interfaces[0].mtu, Some(9000));
            far.sysctl["net.ipv4.tcp_rmem"].clone()
        };
        assert_eq!(rmem(&[]), "4096 87380 262144");
        let read = |index, now: &str| {
            let change = Change {
                key: "sysctl.net.ipv4.tcp_rmem".into(),
                before: String::new(),
                requested: String::new(),
                now: now.into(),
                host_wide: false,
                note: None,
            };
            Pass { index, far: EndPass { settings: vec![change], ..EndPass::default() }, ..Pass::default() }
        };
        // Another cell's pass does not count.
        assert_eq!(rmem(&[read(2, "1 2 3"), read(3, "4096 87380 262145"), read(4, "4 5 6")]), "4096 87380 262145");
    }
}
