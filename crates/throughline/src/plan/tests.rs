//! Errors point at line and key; cells are what the file says.

use std::collections::BTreeMap;

use super::*;

fn plan(text: &str) -> Read {
    read("plan.toml", text.into(), &BTreeMap::new()).unwrap_or_else(|failure| panic!("{failure}\n{text}"))
}

fn wrong(text: &str) -> String {
    match read("plan.toml", text.into(), &BTreeMap::new()) {
        Ok(read) => panic!("{read:?}"),
        Err(failure) => {
            assert_eq!(failure.code(), 2);
            failure.to_string()
        }
    }
}

const SIZES: &str = r#"
title = "sizes"
to = ["${host}"]
seed = 7

[vars]
host = "127.0.0.1"

[base]
pattern = "stream"
time = "200ms"
far.rcvbuf = "1MiB"

[[factor]]
field = "block"
levels = ["1KiB", "64KiB"]

[[factor]]
field = "near.sndbuf"
name = "socket size"
levels = ["64KiB", "128KiB"]

[repeat]
min = 3
until = "5%"
max = 9
"#;

#[test]
fn a_plan_becomes_cells_and_specs() {
    let read = plan(SIZES);
    assert_eq!((read.cells.len(), read.rule.min_trials, read.rule.max_trials), (4, 3, 9));
    assert_eq!((read.rule.target, read.rule.seed), (0.05, 7));
    let last = &read.specs[3];
    assert_eq!((last.block, last.near.sndbuf, last.far.sndbuf), (64 << 10, Some(128 << 10), None));
    assert_eq!((last.far.rcvbuf, last.stop), (Some(1 << 20), model::Stop::TimeNs(200_000_000)));
    assert_eq!(read.cells[3].levels["socket size"], "128KiB");
    assert_eq!(read.plan.to, ["127.0.0.1"]);
}

#[test]
fn variables_change_the_plan_and_its_digest() {
    let vars = BTreeMap::from([("host".to_owned(), "10.0.0.9".to_owned())]);
    let other = read("plan.toml", SIZES.into(), &vars).unwrap();
    assert_eq!(other.plan.to, ["10.0.0.9"]);
    assert_ne!(other.plan.digest, plan(SIZES).plan.digest);
    let vars = BTreeMap::from([("hosts".to_owned(), "x".to_owned())]);
    let failure = read("plan.toml", SIZES.into(), &vars).unwrap_err().to_string();
    assert_eq!(failure, "--var hosts: plan.toml has no ${hosts}");
    let several = BTreeMap::from([("host".to_owned(), "a, b".to_owned())]);
    assert_eq!(read("plan.toml", SIZES.into(), &several).unwrap().plan.to, ["a", "b"]);
}

#[test]
fn errors_point_at_line_column_and_key() {
    for (text, said) in [
        ("to = [\"a\"]\nrepeats = 3\n", "plan.toml:2:1: repeats: a plan has no 'repeats'; did you mean 'repeat'?"),
        ("to = \"a\n", "plan.toml:1:8: "),
        (
            "to = \"a\"\n[base]\nsndbufs = 1\n",
            "plan.toml:3:1: base.sndbufs: thru stream has no 'sndbufs'; did you mean 'sndbuf'?",
        ),
        ("to = \"a\"\n[base]\nsndbuf = \"x\"\n", "plan.toml:3:1: base.sndbuf: invalid value 'x'"),
        (
            "to = \"${hots}\"\n[vars]\nhost = \"a\"\n",
            "plan.toml:1:6: to: ${hots} has no value: add --var hots=VALUE, or hots = \"...\" to [vars]; there is ${host}",
        ),
        ("to = \"a\"\n[[factor]]\nfield = \"block\"\n", "plan.toml:3:9: factor[1].field: 'block' has no `levels`"),
        ("to = \"a\"\n[[factor]]\nlevels = [1]\n", "plan.toml:2:1: factor[1]: a factor is a `field`"),
        ("to = \"a\"\n[[factor]]\nfield = \"block\"\nlevels = [1, 2, 1]\n", "the level '1' is there twice"),
        (
            "to = \"a\"\n[[factor]]\nfield = \"block\"\nend = \"left\"\nlevels = [1]\n",
            "plan.toml:4:7: factor[1].end: 'left' is none of near, far, both",
        ),
        (
            "to = \"a\"\n[[factor]]\nobserved = \"kernels\"\n",
            "factor[1].observed: the inventory has no 'kernels'; did you mean 'kernel'?",
        ),
        ("to = \"a\"\ndesign = \"lists\"\n", "plan.toml:2:10: design: 'lists' is none of factorial, list, zip"),
        ("to = \"a\"\n[[cell]]\nblock = 1\n", "cells are listed with design = \"list\" only"),
        (
            "to = \"a\"\ndesign = \"list\"\n[[cell]]\nblock = 1\n[[cell]]\nflows = 1\n",
            "plan.toml:5:1: cell[2]: every cell names the same: block",
        ),
        ("to = \"a\"\n[repeat]\nmin = 7\nmax = 6\n", "plan.toml:2:1: repeat: `max` is below `min`"),
        ("to = \"a\"\n[schedule]\nevery = \"15m\"\n", "schedule: `for` is missing"),
        (
            "to = \"a\"\n[schedule]\nevery = 1\nfor = 2\n[repeat]\nuntil = \"2%\"\n",
            "with [schedule] every time takes `min` trials",
        ),
        ("to = \"a\"\n[require]\nload = \"much\"\n", "plan.toml:3:8: require.load: invalid float"),
        (
            "to = \"a\"\n[base]\npattern = \"curve\"\n",
            "base.pattern: no pattern of a plan is called 'curve'; there are stream, rr, transfer",
        ),
        ("[base]\nblock = 1\n", "plan.toml:1:1: cell 1: tcp needs a far host: add to = [\"HOST\"] at the top"),
        ("from = [\"a\"]\nto = [\"a\"]\n", "no host of `from` has another one in `to`"),
        ("to = \"a\"\n[base]\nengine = \"auto\"\n", "name the ways"),
        ("to = \"a\"\n[base]\ntransport = \"mpi\"\n", "started by its own launcher"),
        ("to = \"a\"\n[base]\nprobe = 5\npattern = \"rr\"\n", "base.probe: thru rr has no 'probe'"),
        ("to = \"a\"\n[settings]\nleft = { \"x\" = 1 }\n", "settings.left: settings has no 'left'"),
    ] {
        let is = wrong(text);
        assert!(is.contains(said), "is:     {is}\nwanted: {said}");
    }
}

#[test]
fn settings_of_interfaces_are_dear_and_all_settings_reach_the_specs() {
    let read = plan(
        "to = \"a\"\n[settings.both]\n\"sysctl.net.ipv4.tcp_no_metrics_save\" = 1\n[[factor]]\nname = \"mtu\"\nsetting = \"dev.eth0.mtu\"\nend = \"far\"\nlevels = [1500, 9000]\n[[factor]]\nfield = \"flows\"\nlevels = [1, 2]\n",
    );
    assert!(read.plan.factors[0].dear && !read.plan.factors[1].dear);
    assert_eq!(read.specs[0].settings.near.len(), 1);
    let far: Vec<String> = read.specs[2].settings.far.iter().map(ToString::to_string).collect();
    assert_eq!(far, ["sysctl.net.ipv4.tcp_no_metrics_save=1", "dev.eth0.mtu=9000"]);
}

#[test]
fn a_list_makes_its_fields_factors() {
    let read = plan(
        "to = \"a\"\ndesign = \"list\"\n[[cell]]\nblock = 1000\nnear.sndbuf = \"64KiB\"\n[[cell]]\nblock = 2000\nnear.sndbuf = \"128KiB\"\n",
    );
    assert_eq!(
        read.plan.factors.iter().map(|factor| factor.name.as_str()).collect::<Vec<_>>(),
        ["block", "near.sndbuf"]
    );
    assert_eq!((read.specs[1].block, read.specs[1].near.sndbuf), (2_000, Some(128 << 10)));
}

#[test]
fn two_patterns_share_a_base_and_each_takes_its_own() {
    let read = plan(
        "to = \"a\"\n[base]\nreply = \"4KiB\"\nrate = \"1Gbit\"\n[[factor]]\nfield = \"pattern\"\nlevels = [\"rr\", \"stream\"]\n",
    );
    assert_eq!((read.specs[0].reply, read.specs[1].reply), (Some(4 << 10), None));
}

#[test]
fn the_plans_that_come_along_can_be_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let vars = ["host", "device"].iter().filter(|name| text.contains(&format!("${{{name}}}")));
        let vars = vars.map(|name| ((*name).to_owned(), "x".to_owned())).collect();
        let read = read(&path.display().to_string(), text, &vars).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(read.cells.len() > 1);
        count += 1;
    }
    assert!(count >= 2);
}
