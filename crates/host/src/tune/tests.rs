use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use model::Setting;

use super::fake::{FakeBackend, Tables};
use super::*;

/// The configuration space of a recorded NIC, an mlx5 in a slot of PCI Express.
const CONFIG: &str = "/sys/bus/pci/devices/0000:3b:00.0/config";

/// A NIC with rings, moderation and offloads, two cores with governors, an interrupt and a congestion control: a
/// mlx5-like host as its kernel presents itself.
fn host() -> Arc<FakeBackend> {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let count =
        |group, name: &str, now, most| (("eth0".to_owned(), group, name.to_owned()), DeviceNumber { now, most });
    let feature = |name: &str, active, changeable| Feature { name: name.into(), active, wanted: active, changeable };
    Arc::new(FakeBackend::new(Tables {
        files: BTreeMap::from([
            file("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456"),
            file("/proc/sys/net/core/rmem_max", "212992"),
            file("/proc/sys/net/ipv4/tcp_fastopen_key", "0123-4567"),
            file("/proc/sys/net/ipv4/tcp_congestion_control", "cubic"),
            file("/sys/module/tcp_cubic/parameters/beta", "717"),
            file("/sys/module/tcp_cubic/parameters/fast_convergence", "Y"),
            file("/sys/module/mlx/initstate", "live"),
            file("/sys/module/mlx/parameters/debug", "0"),
            file("/sys/module/mlx/parameters/depth", "64"),
            file("/sys/module/mlx/parameters/name", "(null)"),
            file("/sys/module/mlx/drivers/pci:mlx/0000:3b:00.0/net/adapter-mlx/mtu", "1500"),
            file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
            file("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "schedutil"),
            file("/proc/irq/24/smp_affinity_list", "0-1"),
            file("/sys/class/net/eth0/ifindex", "2"),
            file("/sys/class/net/eth0/queues/rx-0/rps_cpus", "00"),
        ]),
        registers: BTreeMap::from([(
            CONFIG.to_owned(),
            include_bytes!("../../testdata/server/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/config").to_vec(),
        )]),
        modules: ["mlx", "spare"]
            .map(|name| {
                let defaults = [("debug", "0"), ("depth", "32")].map(|(name, value)| (name.into(), value.into()));
                (name.to_owned(), BTreeMap::from(defaults))
            })
            .into(),
        links: [("mtu", 1500), ("txqueuelen", 1000), ("state", 1), ("gso_max_size", 65536), ("ifindex", 2)]
            .map(|(field, value)| ("eth0", field, value))
            .into_iter()
            .chain([("adapter-mlx", "mtu", 9000), ("adapter-mlx", "txqueuelen", 1000), ("adapter-mlx", "state", 1)])
            .map(|(device, field, value)| ((device.to_owned(), field.to_owned()), value))
            .collect(),
        counts: BTreeMap::from([
            count(Group::Ring, "rx", 1024, Some(8192)),
            count(Group::Coalesce, "rx-usecs", 8, None),
            count(Group::Coalesce, "adaptive-rx", 1, None),
            count(Group::Queues, "combined", 2, Some(2)),
        ]),
        features: BTreeMap::from([(
            "eth0".to_owned(),
            vec![
                feature("tx-tcp-segmentation", true, true),
                feature("tx-tcp6-segmentation", false, true),
                feature("tx-tcp-ecn-segmentation", false, false),
                feature("rx-lro", false, false),
            ],
        )]),
        ring_step: 512,
        ..Tables::default()
    }))
}

struct Fixture {
    host: Arc<FakeBackend>,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { host: host(), folder: tempfile::tempdir().unwrap_or_else(|error| panic!("{error}")) }
    }

    fn journal(&self) -> Journal {
        Journal::open(Some(&self.folder.path().join("tune"))).unwrap_or_else(|error| panic!("{error}"))
    }

    fn tuner(&self) -> Tuner {
        Tuner::new(self.host.clone(), self.journal(), "a test", Duration::ZERO)
    }

    /// What a killed owner leaves: the file without its lock.
    fn kill(tuner: Tuner) {
        let mut tuner = tuner;
        tuner.forget();
    }
}

fn settings(texts: &[&str]) -> Vec<Setting> {
    texts.iter().map(|text| text.parse().unwrap_or_else(|error| panic!("{error}"))).collect()
}

#[test]
fn every_kind_is_set_read_back_and_put_back() -> Result<(), TuneError> {
    let fixture = Fixture::new();
    let before = show(fixture.host.as_ref(), &["*".into()], &Allowance::All)?;
    let mut tuner = fixture.tuner();
    let changes = tuner.tune(&settings(&[
        "sysctl.net.ipv4.tcp_rmem=4096 131072  33554432",
        "cc.default=reno",
        "cc.cubic.beta=800",
        "cc.cubic.fast_convergence=0",
        "cpu.governor=performance",
        "irq.24.affinity=1",
        "dev.eth0.rps.rx-0=3",
        "dev.eth0.mtu=9000",
        "dev.eth0.state=down",
        "dev.eth0.ring.rx=4000",
        "dev.eth0.coalesce.rx-usecs=50",
        "dev.eth0.coalesce.adaptive-rx=off",
        "dev.eth0.queues.combined=1",
        "dev.eth0.offload.tso=on",
        "module.mlx.debug=2",
        "module.spare=loaded depth=128",
        "pci.0000:3b:00.0.CAP_EXP+8.w=5000:7000",
        "pci.3b:00.0.latency_timer=f8",
    ]))?;
    let change = |key: &str| changes.iter().find(|change| change.key == key).unwrap_or_else(|| panic!("{key}"));
    assert_eq!(change("dev.eth0.ring.rx").now, "4096");
    assert_eq!(change("dev.eth0.ring.rx").note.as_deref(), Some("the device set 4096 instead"));
    assert_eq!(change("dev.eth0.offload.tso").before, "tx-tcp-segmentation:on tx-tcp6-segmentation:off");
    assert_eq!(change("dev.eth0.offload.tso").now, "on");
    assert_eq!(change("cpu.governor").before, "0:powersave 1:schedutil");
    assert!(change("cpu.governor").host_wide && change("irq.24.affinity").host_wide);
    assert!(!change("dev.eth0.mtu").host_wide);
    assert_eq!(change("sysctl.net.ipv4.tcp_congestion_control").now, "reno");
    assert_eq!(change("module.spare").now, "loaded debug=0 depth=128");
    assert_eq!(change("pci.0000:3b:00.0.CAP_EXP+8.w").before, "2020");
    assert_eq!(change("pci.0000:3b:00.0.CAP_EXP+8.w").now, "5020");
    assert_eq!(fixture.host.tables().registers[CONFIG][0x68..0x6a], [0x20, 0x50]);
    let back = tuner.revert();
    assert_eq!(back.len(), 18);
    assert_eq!(back[0].key, "pci.0000:3b:00.0.latency_timer", "the last first");
    assert!(back.iter().all(|change| change.note.is_none()), "{back:?}");
    assert_eq!(show(fixture.host.as_ref(), &["*".into()], &Allowance::All)?, before);
    assert!(entries(&fixture.journal(), &Allowance::All)?.is_empty());
    Ok(())
}

#[test]
fn an_interface_goes_down_is_changed_and_comes_up_in_one_request() -> Result<(), TuneError> {
    let fixture = Fixture::new();
    let before = show(fixture.host.as_ref(), &["*".into()], &Allowance::All)?;
    let mut tuner = fixture.tuner();
    let changes = tuner.tune(&settings(&["dev.eth0.state=down", "dev.eth0.mtu=3000", "dev.eth0.state=up"]))?;
    assert_eq!(changes.iter().map(|change| change.now.as_str()).collect::<Vec<_>>(), ["down", "3000", "up"]);
    let back = tuner.revert();
    assert_eq!(back.iter().map(|change| change.now.as_str()).collect::<Vec<_>>(), ["down", "1500", "up"]);
    assert_eq!(show(fixture.host.as_ref(), &["*".into()], &Allowance::All)?, before);
    for twice in [["dev.eth0.state=down", "dev.eth0.state=down"], ["dev.eth0.mtu=3000", "dev.eth0.mtu=1500"]] {
        let refused = fixture.tuner().tune(&settings(&twice));
        assert!(refused.is_err_and(|error| error.to_string().contains("set twice")), "{twice:?}");
    }
    Ok(())
}

#[test]
fn all_or_none() -> Result<(), TuneError> {
    let fixture = Fixture::new();
    let mut tuner = fixture.tuner();
    tuner.tune(&settings(&["dev.eth0.mtu=1400"]))?;
    let failed = tuner.tune(&settings(&["sysctl.net.ipv4.tcp_rmem=1 2 3", "dev.eth0.ring.rx=9000"]));
    assert!(failed.is_err_and(|error| error.to_string().contains("maximum is 8192")));
    assert_eq!(fixture.host.read("/proc/sys/net/ipv4/tcp_rmem").ok().as_deref(), Some("4096 131072 6291456"));
    assert_eq!(
        fixture.host.link("eth0").ok().and_then(|link| link.get("mtu").copied()),
        Some(1400),
        "an earlier one stays"
    );
    drop(tuner);
    assert_eq!(fixture.host.link("eth0").ok().and_then(|link| link.get("mtu").copied()), Some(1500));
    Ok(())
}

#[test]
fn mistakes_change_nothing_and_name_the_remedy() {
    let fixture = Fixture::new();
    let refusal = |text: &str| {
        let error = fixture.tuner().tune(&settings(&[text])).err().unwrap_or_else(|| panic!("{text} was taken"));
        (error.fault(), error.to_string())
    };
    let (fault, text) = refusal("sysctl.net.ipv4.tcp_rmen=1");
    assert_eq!(fault, TuneFault::Wrong);
    assert!(text.contains("did you mean sysctl.net.ipv4.tcp_rmem?"), "{text}");
    assert!(refusal("mtu=1").1.contains("keys look like"));
    assert!(refusal("dev.eth1.mtu=1").1.contains("did you mean dev.eth0.mtu?"));
    assert!(refusal("dev.eth0.mtu=big").1.contains("whole number"));
    assert!(refusal("dev.eth0.state=sideways").1.contains("up or down"));
    assert!(refusal("dev.eth0.offload.lro=on").1.contains("fixed"));
    assert!(refusal("irq.24.affinity=x").1.contains("0-3"));
    assert!(refusal("sysctl.net.ipv4.../../x=1").1.contains("no setting"));
    assert!(refusal("dev.eth0.ring.tx=1").1.contains("does not support it"));
    assert!(refusal("module.nosuch=loaded").1.contains("there is no setting 'module.nosuch'"));
    assert!(refusal("module.tcp_cubic=unloaded").1.contains("built into the kernel"));
    assert!(refusal("module.mlx=up").1.contains("unloaded, loaded"));
    assert!(refusal("module.mlx=loaded dept=1").1.contains("has no parameter dept; it has debug, depth"));
    assert!(
        refusal("module.mlx=unloaded")
            .1
            .contains("set dev.adapter-mlx.address=none and dev.adapter-mlx.state=down before")
    );
    assert!(refusal("pci.0000:3c:00.0.LATENCY_TIMER=40").1.contains("did you mean pci.0000:3b:00.0.LATENCY_TIMER?"));
    assert!(refusal("pci.0000:3b:00.0.CAP_PCIX+2.w=1").1.contains("no such capability"));
    assert!(refusal("pci.0000:3b:00.0.LATENCY_TIMER=100").1.contains("at most two digits"));
    assert!(refusal("pci.0000:3b:00.0.10.l=0").1.contains("there is no setting"));
    assert!(fixture.host.tables().writes.is_empty());
}

/// The state of the interface that a module drives.
fn driven(fixture: &Fixture) -> Option<[u32; 2]> {
    let link = fixture.host.link("adapter-mlx").ok()?;
    Some([link["mtu"], link["state"]])
}

#[test]
fn a_reload_sets_parameters_and_keeps_the_interface() -> Result<(), TuneError> {
    let fixture = Fixture::new();
    let before = show(fixture.host.as_ref(), &["module.mlx".into()], &Allowance::All)?;
    assert_eq!(before[0].value, "loaded debug=0 depth=64");
    let mut tuner = fixture.tuner();
    // What is there already is not loaded again.
    tuner.tune(&settings(&["module.mlx=loaded depth=64"]))?;
    assert!(fixture.host.tables().writes.is_empty());
    let change = tuner.tune(&settings(&["module.mlx=loaded depth=16"]))?;
    assert_eq!(change[0].now, "loaded debug=0 depth=16");
    assert_eq!(driven(&fixture), Some([9000, 1]));
    drop(tuner);
    assert_eq!(show(fixture.host.as_ref(), &["module.mlx".into()], &Allowance::All)?, before);
    assert_eq!(driven(&fixture), Some([9000, 1]));
    Ok(())
}

#[test]
fn a_module_that_does_not_load_gets_its_old_parameters() -> Result<(), TuneError> {
    let fixture = Fixture::new();
    let failed = fixture.tuner().tune(&settings(&["module.mlx=loaded depth=broken"]));
    assert!(failed.is_err_and(|error| error.to_string().contains("Invalid argument")));
    assert_eq!(fixture.host.read("/sys/module/mlx/parameters/depth").ok().as_deref(), Some("64"));
    assert_eq!(driven(&fixture), Some([9000, 1]));
    Ok(())
}

#[test]
fn a_module_is_unloaded_after_its_interface_and_comes_back_before_it() -> Result<(), TuneError> {
    let fixture = Fixture::new();
    let mut tuner = fixture.tuner();
    tuner.tune(&settings(&["dev.adapter-mlx.mtu=1500", "dev.adapter-mlx.state=down", "module.mlx=unloaded"]))?;
    assert_eq!(driven(&fixture), None);
    Fixture::kill(tuner);
    let found = recover(&fixture.journal(), fixture.host.as_ref())?;
    assert!(found[0].done, "{found:?}");
    assert_eq!(driven(&fixture), Some([9000, 1]));
    Ok(())
}

#[test]
fn the_kernels_secrets_are_neither_shown_nor_changed() -> Result<(), TuneError> {
    let fixture = Fixture::new();
    let shown = show(&*fixture.host, &["sysctl.net.ipv4.*".into()], &Allowance::All)?;
    let keys: Vec<&str> = shown.iter().map(|setting| setting.key.as_str()).collect();
    assert_eq!(keys, ["sysctl.net.ipv4.tcp_congestion_control", "sysctl.net.ipv4.tcp_rmem"]);
    let refused = show(&*fixture.host, &["sysctl.net.ipv4.tcp_fastopen_key".into()], &Allowance::All)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(refused.contains("a secret") && !refused.contains("0123"), "{refused}");
    assert!(fixture.tuner().tune(&settings(&["sysctl.net.ipv4.tcp_fastopen_key=1"])).is_err());
    assert!(fixture.host.tables().writes.is_empty());
    Ok(())
}

#[test]
fn changes_of_a_killed_owner_are_restored_by_the_next() -> Result<(), TuneError> {
    let fixture = Fixture::new();
    let mut tuner = fixture.tuner();
    tuner.tune(&settings(&["dev.eth0.mtu=9000", "sysctl.net.core.rmem_max=1"]))?;
    assert!(recover(&fixture.journal(), fixture.host.as_ref())?.is_empty(), "its owner is alive");
    Fixture::kill(tuner);
    assert_eq!(entries(&fixture.journal(), &Allowance::All)?[0].changes.len(), 2);
    let found = recover(&fixture.journal(), fixture.host.as_ref())?;
    assert_eq!(found[0].changes.iter().map(|change| change.now.as_str()).collect::<Vec<_>>(), ["212992", "1500"]);
    assert!(entries(&fixture.journal(), &Allowance::All)?.is_empty());
    Ok(())
}

#[test]
fn kept_settings_stay_until_reverted_and_nest() -> Result<(), TuneError> {
    let fixture = Fixture::new();
    let mtu = || fixture.host.link("eth0").ok().and_then(|link| link.get("mtu").copied());
    for value in ["9000", "4000"] {
        let mut tuner = fixture.tuner();
        tuner.tune(&settings(&[&format!("dev.eth0.mtu={value}")]))?;
        assert!(tuner.keep()?.is_some());
    }
    assert!(recover(&fixture.journal(), fixture.host.as_ref())?.is_empty());
    assert_eq!(mtu(), Some(4000));
    let older = entries(&fixture.journal(), &Allowance::All)?[1].id.clone();
    let refused = revert(&fixture.journal(), fixture.host.as_ref(), &Which::One(older), false, &Allowance::All)?;
    assert!(refused[0].changes[0].note.as_ref().is_some_and(|note| note.contains("from 9000 to 4000")));
    revert(&fixture.journal(), fixture.host.as_ref(), &Which::Here, false, &Allowance::All)?;
    assert_eq!(mtu(), Some(1500), "the newest first");
    assert!(entries(&fixture.journal(), &Allowance::All)?.is_empty());
    let unknown = revert(&fixture.journal(), fixture.host.as_ref(), &Which::One("t0".into()), false, &Allowance::All);
    assert!(unknown.is_err_and(|error| error.fault() == TuneFault::Wrong));
    Ok(())
}

#[test]
fn changes_by_other_programs_are_left_unless_forced() -> Result<(), TuneError> {
    let fixture = Fixture::new();
    let mut tuner = fixture.tuner();
    tuner.tune(&settings(&["sysctl.net.core.rmem_max=1000"]))?;
    let _ = fixture.host.write("/proc/sys/net/core/rmem_max", "5000");
    let back = tuner.revert();
    assert!(back[0].note.as_ref().is_some_and(|note| note.contains("from 1000 to 5000")), "{back:?}");
    assert_eq!(fixture.host.read("/proc/sys/net/core/rmem_max").ok().as_deref(), Some("5000"));
    // It is reported once, and not at each start.
    assert!(recover(&fixture.journal(), fixture.host.as_ref())?.is_empty());
    assert_eq!(entries(&fixture.journal(), &Allowance::All)?.len(), 1);
    revert(&fixture.journal(), fixture.host.as_ref(), &Which::Here, true, &Allowance::All)?;
    assert_eq!(fixture.host.read("/proc/sys/net/core/rmem_max").ok().as_deref(), Some("212992"));
    assert!(entries(&fixture.journal(), &Allowance::All)?.is_empty());
    Ok(())
}

#[test]
fn a_setting_in_use_names_its_owner_and_can_be_waited_for() -> Result<(), TuneError> {
    let fixture = Fixture::new();
    let mut first = fixture.tuner();
    first.tune(&settings(&["dev.eth0.mtu=9000"]))?;
    first.tune(&settings(&["dev.eth0.mtu=8000"]))?;
    let busy = fixture.tuner().tune(&settings(&["dev.eth0.mtu=4000"]));
    assert!(busy.is_err_and(|error| error.fault() == TuneFault::Busy && error.to_string().contains("'a test'")));
    fixture.tuner().tune(&settings(&["dev.eth0.txqueuelen=1"]))?;
    let waiting = Tuner::new(fixture.host.clone(), fixture.journal(), "waits", Duration::from_secs(60));
    let changed = std::thread::scope(|scope| {
        let mut waiting = waiting;
        let second = scope.spawn(move || waiting.tune(&settings(&["dev.eth0.mtu=4000"])));
        drop(first);
        second.join().unwrap_or_else(|_| panic!("the thread died"))
    })?;
    assert_eq!((changed[0].before.as_str(), changed[0].now.as_str()), ("1500", "4000"));
    Ok(())
}

#[test]
fn after_another_boot_nothing_is_left_to_restore() -> Result<(), TuneError> {
    let fixture = Fixture::new();
    let mut tuner = fixture.tuner();
    tuner.tune(&settings(&["dev.eth0.mtu=9000"]))?;
    tuner.keep()?;
    rewrite(fixture.folder.path(), |text| text.replace(&journal::boot_id(), "an-earlier-boot"));
    fixture.host.tables().writes.clear();
    assert!(recover(&fixture.journal(), fixture.host.as_ref())?.is_empty());
    assert!(entries(&fixture.journal(), &Allowance::All)?.is_empty());
    assert!(fixture.host.tables().writes.is_empty());
    Ok(())
}

#[test]
fn a_removed_namespace_is_dropped_with_a_note() -> Result<(), TuneError> {
    let fixture = Fixture::new();
    let mut tuner = fixture.tuner();
    tuner.tune(&settings(&["dev.eth0.mtu=9000"]))?;
    Fixture::kill(tuner);
    rewrite(fixture.folder.path(), |text| {
        let inode = Namespace::current().unwrap_or_else(|error| panic!("{error}"));
        let cookie = inode.cookie.map_or_else(|| "null".into(), |cookie| cookie.to_string());
        text.replace(&format!("\"inode\":{}", inode.inode), "\"inode\":1")
            .replace(&format!("\"cookie\":{cookie}"), "\"cookie\":1")
    });
    let found = recover(&fixture.journal(), fixture.host.as_ref())?;
    assert!(found[0].changes[0].note.as_ref().is_some_and(|note| note.contains("no longer exists")), "{found:?}");
    assert!(entries(&fixture.journal(), &Allowance::All)?.is_empty());
    Ok(())
}

#[test]
fn patterns_match_any_text() {
    assert!(fits("dev.*.mtu", "dev.eth0.100.mtu"));
    assert!(fits("*", "anything"));
    assert!(fits("cc.*.*", "cc.cubic.beta") && !fits("cc.*.*", "cc.default"));
    assert!(!fits("dev.*.mtu", "dev.eth0.mtux") && fits("a", "a") && !fits("a", "ab"));
    assert!(
        is_key("dev.*") && is_key("sysctl.x") && !is_key("10.0.0.1") && !is_key("host.example") && !is_key("route")
    );
    assert!(resembles_key("sysctll.net.x") && !resembles_key("host.example") && !resembles_key("10.0.0.1"));
    assert!(is_entry("t18a2f0c9b3d4e5f6") && !is_entry("tango") && !is_entry("t1"));
}

fn rewrite(folder: &Path, change: impl Fn(String) -> String) {
    for entry in std::fs::read_dir(folder.join("tune")).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let _ = std::fs::write(entry.path(), change(text));
    }
}

#[test]
fn a_disallowed_setting_is_neither_read_nor_set_nor_listed_nor_restored() -> Result<(), TuneError> {
    let fixture = Fixture::new();
    let network = Allowance::Network(Vec::new());
    fixture.host.tables().files.insert("/proc/sys/vm/dirty_ratio".into(), "20".into());
    let refused = |result: Result<(), TuneError>| {
        let error = result.err().unwrap_or_else(|| panic!("it was allowed"));
        assert!(error.fault() == TuneFault::Refused && error.to_string().contains("may not change"), "{error}");
    };
    let key = "sysctl.vm.dirty_ratio".to_owned();
    refused(show(fixture.host.as_ref(), std::slice::from_ref(&key), &network).map(|_| ()));
    refused(fixture.tuner().within(network.clone()).tune(&settings(&["sysctl.vm.dirty_ratio=5"])).map(|_| ()));
    refused(fixture.tuner().within(network.clone()).tune(&settings(&["cpu.governor=performance"])).map(|_| ()));
    let all = show(fixture.host.as_ref(), &["*".into()], &network)?;
    assert!(all.iter().any(|one| one.key == "dev.eth0.ring.rx"));
    assert!(!all.iter().any(|one| one.key.starts_with("cpu.") || one.key.starts_with("irq.")), "{all:?}");
    // Settings that the host's own user left are not accessible to clients.
    let mut own = fixture.tuner();
    own.tune(&settings(&["sysctl.vm.dirty_ratio=5", "dev.eth0.mtu=1400"]))?;
    let id = own.keep()?.unwrap_or_default();
    assert_eq!(entries(&fixture.journal(), &network)?[0].changes.len(), 1);
    assert!(revert(&fixture.journal(), fixture.host.as_ref(), &Which::All, true, &network)?.is_empty());
    refused(revert(&fixture.journal(), fixture.host.as_ref(), &Which::One(id), true, &network).map(|_| ()));
    let more = Allowance::Network(vec!["vm.dirty_*".parse().unwrap()]);
    assert_eq!(show(fixture.host.as_ref(), &[key], &more)?[0].value, "5");
    assert_eq!(revert(&fixture.journal(), fixture.host.as_ref(), &Which::All, false, &more)?.len(), 1);
    Ok(())
}

#[test]
fn a_file_has_one_owner_however_it_is_called() -> Result<(), TuneError> {
    let fixture = Fixture::new();
    let file = |name: &str| fixture.host.tables().files.insert(format!("/proc/sys/net/ipv4/{name}"), "0".into());
    for name in
        ["ip_forward", "conf/all/forwarding", "conf/eth0/forwarding", "conf/all/rp_filter", "conf/eth0/rp_filter"]
    {
        file(name);
    }
    let busy = |in_use: &str, requested: &str| -> Result<bool, TuneError> {
        let mut owner = fixture.tuner();
        owner.tune(&settings(&[in_use]))?;
        Ok(fixture.tuner().tune(&settings(&[requested])).is_err_and(|error| error.fault() == TuneFault::Busy))
    };
    for (in_use, requested) in [
        ("sysctl.net.ipv4.tcp_rmem=1 2 3", "sysctl.net/ipv4/tcp_rmem=1 2 4"),
        ("cc.default=reno", "sysctl.net/ipv4/tcp_congestion_control=bbr"),
        ("sysctl.net.ipv4.ip_forward=1", "sysctl.net.ipv4.conf.all.forwarding=1"),
        ("sysctl.net.ipv4.ip_forward=1", "sysctl.net.ipv4.conf.eth0.forwarding=1"),
        ("sysctl.net.ipv4.conf.eth0.rp_filter=1", "sysctl.net.ipv4.conf.all.rp_filter=1"),
        ("dev.eth0.offload.tso=off", "dev.eth0.offload.tx-tcp6-segmentation=on"),
        ("irq.24.affinity=1", "irq.024.affinity=0"),
        ("dev.eth0.rps.rx-0=1", "dev.eth0.rps.rx-00=2"),
        ("cc.cubic.beta=800", "module.tcp_cubic.beta=801"),
        ("module.mlx.debug=1", "module.mlx=loaded depth=1"),
        ("pci.0000:3b:00.0.68.w=1", "pci.3b:00.0.CAP_EXP+8.w=2"),
    ] {
        assert!(busy(in_use, requested)? && busy(requested, in_use)?, "{in_use} and {requested}");
    }
    assert!(!busy("sysctl.net.ipv4.conf.eth0.rp_filter=1", "sysctl.net.ipv4.conf.eth0.forwarding=1")?);
    Ok(())
}

#[test]
fn keys_and_values_are_plain_words() {
    let fixture = Fixture::new();
    let wrong = |text: &str| {
        let error = fixture.tuner().tune(&settings(&[text])).err().unwrap_or_else(|| panic!("{text:?} was taken"));
        assert_eq!(error.fault(), TuneFault::Wrong, "{text:?}: {error}");
        let tables = fixture.host.tables();
        // Similar names are looked up for the message.
        assert!(tables.writes.is_empty() && tables.ran.iter().all(|line| line.ends_with("route show")), "{text:?}");
    };
    for text in [
        "sysctl.net/./ipv4/tcp_rmem=1 2 3",
        "sysctl.net//ipv4/tcp_rmem=1 2 3",
        "sysctl.net/ipv4/../core/rmem_max=1",
        "sysctl.net.//.core.rmem_max=1",
        "sysctl.net.core\n.rmem_max=1",
        "sysctl.net.core.rmem_max=1\n2",
        "sysctl.net.core.rmem_max=1\u{1b}[2J",
        "dev.eth0.mtu=+9000",
        "dev.../eth0.mtu=9000",
        "route.10.0.0.0/24.rto_min=5ms scope global via 10.0.0.9",
        "route.10.0.0.0/24.rto_min=-5ms",
        "route.10.0.0.0/24.congctl=reno via 10.0.0.9",
        "route.10.0.0.0/24.congctl=-force",
        "route.10.0.0.0/24.mtu=lock 1400 dev lo",
        "route.10.0.0.0/24.initcwnd=10 via 10.0.0.9",
        "qdisc.eth0=netem distribution ../../../tmp/x",
        "qdisc.eth0=netem distribution /tmp/x",
        "qdisc.eth0=tbf rate 1gbit;reboot",
    ] {
        wrong(text);
    }
}
