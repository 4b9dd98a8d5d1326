//! Errors point at line and key; cells match the file.

#![allow(clippy::disallowed_methods, reason = "the repository's own plans are files")]

use std::collections::BTreeMap;

use text::RateUnit;

use super::*;
use crate::mistake::Mistake;
use crate::testing::TestHost;

fn read(name: &str, text: String, vars: &BTreeMap<String, String>, in_lab: bool) -> Result<ParsedPlan, Mistake> {
    super::read(name, text, vars, in_lab, &TestHost)
}

fn plan(text: &str) -> ParsedPlan {
    read("plan.toml", text.into(), &BTreeMap::new(), false).unwrap_or_else(|mistake| panic!("{mistake}\n{text}"))
}

fn wrong(text: &str) -> String {
    match read("plan.toml", text.into(), &BTreeMap::new(), false) {
        Ok(read) => panic!("{read:?}"),
        Err(mistake) => mistake.shown(RateUnit::Bits),
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
    let last = &read.cells[3].spec;
    assert_eq!((last.block, last.near.sndbuf, last.far.sndbuf), (64 << 10, Some(128 << 10), None));
    assert_eq!((last.far.rcvbuf, last.stop), (Some(1 << 20), model::Stop::TimeNs(200_000_000)));
    assert_eq!(read.cells[3].planned.levels["socket size"], "128KiB");
    assert_eq!(read.plan.to, ["127.0.0.1"]);
}

#[test]
fn variables_change_the_plan_and_its_digest() {
    let vars = BTreeMap::from([("host".to_owned(), "10.0.0.9".to_owned())]);
    let other = read("plan.toml", SIZES.into(), &vars, false).unwrap();
    assert_eq!(other.plan.to, ["10.0.0.9"]);
    assert_ne!(other.plan.digest, plan(SIZES).plan.digest);
    let vars = BTreeMap::from([("hosts".to_owned(), "x".to_owned())]);
    let mistake = read("plan.toml", SIZES.into(), &vars, false).unwrap_err().to_string();
    assert_eq!(mistake, "--var hosts: plan.toml has no ${hosts}");
    let several = BTreeMap::from([("host".to_owned(), "a, b".to_owned())]);
    assert_eq!(read("plan.toml", SIZES.into(), &several, false).unwrap().plan.to, ["a", "b"]);
}

#[test]
fn errors_point_at_line_column_and_key() {
    for (text, message) in [
        ("to = [\"a\"]\nrepeats = 3\n", "plan.toml:2:1: repeats: a plan has no 'repeats'; did you mean 'repeat'?"),
        ("to = \"a\n", "plan.toml:1:8: "),
        (
            "to = \"a\"\n[base]\nsndbufs = 1\n",
            "plan.toml:3:1: base.sndbufs: thru stream has no 'sndbufs'; did you mean 'sndbuf'?",
        ),
        ("to = \"a\"\n[base]\nsndbuf = \"x\"\n", "plan.toml:3:1: base.sndbuf: 'x' is not a size"),
        (
            "to = \"${hots}\"\n[vars]\nhost = \"a\"\n",
            "plan.toml:1:6: to: ${hots} has no value: add --var hots=VALUE, or hots = \"...\" to [vars]; did you mean ${host}?",
        ),
        ("to = \"a\"\n[[factor]]\nfield = \"block\"\n", "plan.toml:3:9: factor[1].field: 'block' has no `levels`"),
        ("to = \"a\"\n[[factor]]\nlevels = [1]\n", "plan.toml:2:1: factor[1]: a factor needs one of `field`"),
        ("to = \"a\"\n[[factor]]\nfield = \"block\"\nlevels = [1, 2, 1]\n", "the level '1' is given twice"),
        (
            "to = \"a\"\n[[factor]]\nfield = \"block\"\nend = \"left\"\nlevels = [1]\n",
            "plan.toml:4:7: factor[1].end: 'left' is not one of near, far, both",
        ),
        (
            "to = \"a\"\n[[factor]]\nobserved = \"kernels\"\n",
            "factor[1].observed: the inventory has no 'kernels'; did you mean 'kernel'?",
        ),
        ("to = \"a\"\ndesign = \"lists\"\n", "plan.toml:2:10: design: 'lists' is not one of factorial, list, zip"),
        ("to = \"a\"\n[[cell]]\nblock = 1\n", "[[cell]] needs design = \"list\""),
        (
            "to = \"a\"\ndesign = \"list\"\n[[cell]]\nblock = 1\n[[cell]]\nflows = 1\n",
            "plan.toml:5:1: cell[2]: every cell needs the same keys: block",
        ),
        ("to = \"a\"\n[repeat]\nmin = 7\nmax = 6\n", "plan.toml:2:1: repeat: `max` is below `min`"),
        ("to = \"a\"\n[schedule]\nevery = \"15m\"\n", "schedule: `for` is missing"),
        (
            "to = \"a\"\n[schedule]\nevery = 1\nfor = 2\n[repeat]\nuntil = \"2%\"\n",
            "with [schedule], each pass runs `min` trials",
        ),
        ("to = \"a\"\n[require]\nload = \"much\"\n", "plan.toml:3:8: require.load: 'much' is not a number, 0 or more"),
        ("to = \"a\"\n[require]\nload = -1\n", "plan.toml:3:8: require.load: '-1' is not a number, 0 or more"),
        ("to = \"a\"\n[require]\nforeign = \"1GB\"\n", "plan.toml:3:11: require.foreign: '1GB' has the unit byte"),
        ("to = \"a\"\nseed = -1\n", "plan.toml:2:8: seed: '-1' is not a whole number from 0"),
        ("to = \"a\"\n[repeat]\nmin = 0\n", "plan.toml:3:7: repeat.min: '0' is not a whole number from 1"),
        ("to = \"a\"\n[repeat]\nbudget = \"0s\"\n", "plan.toml:3:10: repeat.budget: '0s' must be more than 0"),
        ("to = \"a:99999\"\n", "plan.toml:1:6: to: 'a:99999' is not a valid host"),
        ("to = \"a\"\nname = \"\"\n", "plan.toml:2:8: name: '' is empty"),
        ("to = \"a\"\n[base]\nflows = \"x\"\n", "plan.toml:3:1: base.flows: 'x' is not a whole number from 1 to 16384"),
        ("to = \"a\"\n[base]\nunpaced = true\n", "plan.toml:3:1: base.unpaced: cell 1: `unpaced` has no effect on tcp"),
        (
            "to = \"a\"\n[base]\npattern = \"curves\"\n",
            "base.pattern: unknown pattern 'curves': use one of stream, rr, transfer, curve",
        ),
        ("[base]\nblock = 1\n", "plan.toml:1:1: cell 1: tcp needs a far host: add to = [\"HOST\"] at the top"),
        ("from = [\"a\"]\nto = [\"a\"]\n", "`from` and `to` contain no pair of different hosts"),
        (
            "to = \"a\"\n[base]\npattern = \"curve\"\n[[factor]]\nfield = \"block\"\nlevels = [1, 2]\n",
            "plan.toml:5:9: factor[1].field: the sizes of a curve are already the factor",
        ),
        (
            "to = \"a\"\n[base]\npattern = \"curve\"\nadaptive = true\n",
            "plan.toml:4:1: base.adaptive: 'adaptive' is not a field of a cell",
        ),
        (
            "to = \"a\"\n[base]\npattern = \"curve\"\nfirst = \"2\"\nto = \"1\"\n",
            "plan.toml:5:1: base.to: cell 1: `to` is smaller than `first`",
        ),
        ("to = \"a\"\n[base]\nfind-no-loss = true\n", "cell 1: "),
        (
            "to = \"a\"\n[base]\nreverse = true\n[[factor]]\nfield = \"both\"\nlevels = [\"true\"]\n",
            "plan.toml:3:1: base.reverse: cell 1 (both true): `reverse` and `both` cannot be used together",
        ),
        (
            "to = \"a\"\n[[factor]]\nfield = \"unpaced\"\nlevels = [\"false\", \"true\"]\n",
            "plan.toml:3:9: factor[1].field: cell 2 (unpaced true): `unpaced` has no effect on tcp",
        ),
        (
            "to = \"a\"\ndesign = \"list\"\n[[cell]]\nunpaced = false\n[[cell]]\nunpaced = true\n",
            "plan.toml:6:1: cell[2].unpaced: cell 2 (unpaced true): `unpaced` has no effect on tcp",
        ),
        (
            "to = \"a\"\n[base]\ntransport = \"udp\"\nnear.nodelay = true\n",
            "plan.toml:4:6: base.near.nodelay: cell 1: `nodelay` has no effect on udp",
        ),
        (
            "to = \"a\"\n[[factor]]\nfield = \"near.sndbuf\"\nlevels = [\"x\"]\n",
            "plan.toml:3:9: factor[1].field: near.sndbuf: 'x' is not a size",
        ),
        (
            "to = \"a\"\n[base]\npattern = \"transfer\"\n",
            "plan.toml:1:1: cell 1: a transfer needs its amount: add `count` or `bytes`",
        ),
        (
            "to = \"a\"\n[base]\nno-path = true\n",
            "base.no-path: 'no-path' is not a field of a cell: the path of a plan",
        ),
        ("to = \"a\"\n[base]\ntransport = \"mpi\"\n", "its launcher starts both ends"),
        ("to = \"a\"\n[base]\nprobe = 5\npattern = \"rr\"\n", "base.probe: thru rr has no 'probe'"),
        (
            "to = \"a\"\n[[factor]]\nfield = \"block\"\ndear = true\nlevels = [1]\n",
            "plan.toml:4:8: factor[1].dear: `dear` is now called `expensive`",
        ),
        ("to = \"a\"\n[settings]\nleft = { \"x\" = 1 }\n", "settings.left: settings has no 'left'"),
    ] {
        let is = wrong(text);
        assert!(is.contains(message), "is:       {is}\nexpected: {message}");
    }
}

#[test]
fn settings_of_interfaces_are_expensive_and_all_settings_reach_the_specs() {
    let read = plan(
        "to = \"a\"\n[settings.both]\n\"sysctl.net.ipv4.tcp_no_metrics_save\" = 1\n[[factor]]\nname = \"mtu\"\nsetting = \"dev.eth0.mtu\"\nend = \"far\"\nlevels = [1500, 9000]\n[[factor]]\nfield = \"flows\"\nlevels = [1, 2]\n",
    );
    assert!(read.plan.factors[0].expensive && !read.plan.factors[1].expensive);
    assert_eq!(read.cells[0].spec.settings.near.len(), 1);
    let far: Vec<String> = read.cells[2].spec.settings.far.iter().map(ToString::to_string).collect();
    assert_eq!(far, ["sysctl.net.ipv4.tcp_no_metrics_save=1", "dev.eth0.mtu=9000"]);
}

#[test]
fn pairs_of_hosts_share_their_spec_unless_something_differs() {
    let text = "from = [\"a\", \"b\"]\nto = [\"c\", \"d\"]\n[[factor]]\nfield = \"flows\"\nlevels = [1, 2]\n";
    let read = plan(text);
    assert!(read.specs().take(4).all(|spec| spec.is_same(&read.cells[0].spec) && spec.flows == 1));
    assert!(read.specs().skip(4).all(|spec| spec.is_same(&read.cells[4].spec) && spec.flows == 2));
}

#[test]
fn a_curve_is_a_cell_for_each_size_and_the_sizes_are_its_first_factor() {
    let text = "to = [\"a\", \"b\"]\n[base]\npattern = \"curve\"\nblock = \"1KiB,8,64KiB\"\n\
                [[factor]]\nname = \"socket\"\nfield = \"sndbuf\"\nlevels = [\"32KiB\", \"1MiB\"]\n";
    let read = plan(text);
    let sizes = &read.plan.factors[0];
    assert_eq!((sizes.name.as_str(), sizes.kind), ("block", model::FactorKind::Sizes));
    assert_eq!((sizes.levels.as_slice(), read.cells.len()), (&["8B", "1KiB", "64KiB"].map(str::to_owned)[..], 12));
    let blocks: Vec<u64> = read.specs().take(4).map(|spec| spec.block).collect();
    assert_eq!((blocks, read.cells[1].planned.levels["block"].as_str()), (vec![8, 1 << 10, 64 << 10, 8], "1KiB"));
    let (slots, _) = super::slots(&read.plan, &read.cells).unwrap_or_else(|mistake| panic!("{mistake}"));
    assert_eq!(slots.iter().map(analysis::plan::Slot::cells).collect::<Vec<_>>(), [0..3, 3..6, 6..9, 9..12]);
    // Beside a curve every cell has its block as a level.
    let mixed = plan(
        "to = \"a\"\n[base]\nblock = \"4KiB\"\n[[factor]]\nfield = \"pattern\"\nlevels = [\"curve\", \"stream\"]\n",
    );
    assert_eq!((mixed.cells.len(), mixed.cells[1].planned.levels["block"].as_str()), (2, "4KiB"));
    let (slots, _) = super::slots(&mixed.plan, &mixed.cells).unwrap_or_else(|mistake| panic!("{mistake}"));
    assert_eq!(slots.len(), 2);
}

#[test]
fn engine_auto_and_find_no_loss_are_fields() {
    let read = plan("to = \"a\"\n[base]\nengine = \"auto\"\n");
    assert!(read.cells[0].spec.engine.auto);
    let read = plan("to = \"a\"\n[base]\ntransport = \"udp\"\nfind-no-loss = true\n");
    assert!(read.cells[0].spec.no_loss && read.cells[0].spec.rate_bps.is_none());
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
    assert_eq!((read.cells[1].spec.block, read.cells[1].spec.near.sndbuf), (2_000, Some(128 << 10)));
}

#[test]
fn two_patterns_share_a_base_and_each_takes_its_own() {
    let read = plan(
        "to = \"a\"\n[base]\nreply = \"4KiB\"\nrate = \"1Gbit\"\n[[factor]]\nfield = \"pattern\"\nlevels = [\"rr\", \"stream\"]\n",
    );
    assert_eq!((read.cells[0].spec.reply, read.cells[1].spec.reply), (Some(4 << 10), None));
}

#[test]
fn all_plans_of_the_repository_can_be_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
    let mut count = 0;
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    for path in files.filter(|path| path.extension().is_some_and(|ending| ending == "toml")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let in_lab = text.contains("\n[lab]\n");
        let names = [("host", "x"), ("server", "x"), ("device", "x"), ("hosts", "x,y"), ("switched", "y")];
        let vars = names.iter().filter(|(name, _)| text.contains(&format!("${{{name}}}")));
        let vars = vars.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let name = path.display().to_string();
        // Outside its lab with given values, and in its lab, which has values for all variables.
        let outside = self::read(&name, text.clone(), &vars, false).unwrap_or_else(|mistake| panic!("{mistake}"));
        let none = BTreeMap::new();
        let read =
            read(&name, text, if in_lab { &none } else { &vars }, in_lab).unwrap_or_else(|mistake| panic!("{mistake}"));
        assert!(read.cells.len() > 1 || read.plan.schedule.is_some());
        assert_eq!((read.plan.lab.is_some(), outside.plan.lab.is_some()), (in_lab, false));
        if let Some(lab) = &read.plan.lab {
            let file = folder.join(&lab.topology).display().to_string();
            let topology = if lab.topology.contains('/') { file } else { lab.topology.clone() };
            let topology = crate::testing::topology(&topology, &lab.vars).unwrap_or_else(|mistake| panic!("{mistake}"));
            let hosts = read.plan.to.iter().chain(&read.plan.from);
            assert!(hosts.into_iter().all(|host| topology.index_of(host).is_some()), "{name}");
        }
        count += 1;
    }
    assert!(count >= 19, "{count}");
}

#[test]
fn the_plans_of_the_seed_script_can_be_read() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = std::fs::read_to_string(root.join("scripts/seeds.sh")).unwrap();
    let mut count = 0;
    for words in script.lines().filter_map(|line| line.strip_prefix("seed ")) {
        let (plan, vars) = words.split_once(' ').unwrap_or((words, ""));
        let path = root.join(format!("plans/{plan}.toml"));
        let text = std::fs::read_to_string(&path).unwrap();
        // The figures are no variables.
        let vars =
            vars.strip_prefix("--figures ").map_or(vars, |rest| rest.split_once(' ').map_or("", |(_, vars)| vars));
        let vars = vars.split_whitespace().map(|pair| pair.split_once('=').unwrap());
        let vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let read = read(&path.display().to_string(), text, &vars, true);
        let read = read.unwrap_or_else(|mistake| panic!("{words}: {mistake}"));
        assert!(!read.cells.is_empty(), "{words}");
        count += 1;
    }
    assert!(count >= 15, "{count}");
}

#[test]
fn the_values_of_a_lab_apply_only_in_it() {
    let text = "to = \"${server}\"\n[vars]\nmtu = 1500\n[base]\nblock = \"1KiB\"\n\
                [lab]\ntopology = \"crossover\"\nvars = { mtu = \"${mtu}\" }\nvalues = { server = \"b\", mtu = 9000 }\n\
                [lab.host_wide]\n\"sysctl.net.core.wmem_max\" = 1000\n";
    let none = BTreeMap::new();
    let within = read("plan.toml", text.into(), &none, true).unwrap_or_else(|mistake| panic!("{mistake}"));
    let lab = within.plan.lab.unwrap();
    assert_eq!(
        (within.plan.to, lab.topology.as_str(), lab.vars["mtu"].as_str()),
        (vec!["b".into()], "crossover", "9000")
    );
    assert_eq!(lab.host_wide, ["sysctl.net.core.wmem_max=1000".parse().unwrap()]);
    let without = wrong(text);
    assert!(without.contains("${server} has no value: add --var server=VALUE"), "{without}");
    assert!(without.contains("or use --lab to measure in the plan's own lab"), "{without}");
    let given = BTreeMap::from([("server".to_owned(), "h".to_owned())]);
    let outside = read("plan.toml", text.into(), &given, false).unwrap_or_else(|mistake| panic!("{mistake}"));
    assert_eq!((outside.plan.to, outside.plan.lab), (vec!["h".to_owned()], None));
}

#[test]
fn a_factor_with_sets_changes_several_fields_at_once() {
    let text = "[base]\ntransport = \"unix\"\n[[factor]]\nname = \"socket\"\nlevels = \"small, large\"\n\
                [factor.sets.small]\nsndbuf = 65000\nfar.rcvbuf = 65000\n\
                [factor.sets.large]\nsndbuf = \"1MiB\"\nnear.sysctl.net.ipv4.tcp_wmem = \"4096 65536 1048576\"\n";
    let read = plan(text);
    assert_eq!((read.cells[0].spec.near.sndbuf, read.cells[0].spec.far.rcvbuf), (Some(65_000), Some(65_000)));
    assert_eq!(read.cells[1].spec.settings.near[0].to_string(), "sysctl.net.ipv4.tcp_wmem=4096 65536 1048576");
    assert_eq!(read.cells[1].planned.levels["socket"], "large");
    assert!(!read.plan.factors[0].expensive);
    let other = text.replace("\"small, large\"", "[\"smal\"]");
    assert!(
        wrong(&other).contains("the factor 'socket': its sets has no 'smal'; did you mean 'small'"),
        "{}",
        wrong(&other)
    );
    let other = text.replace("sndbuf = 65000", "sndbufs = 65000");
    assert!(wrong(&other).contains("did you mean 'sndbuf'"), "{}", wrong(&other));
    assert!(
        plan(&text.replace("near.sysctl.net.ipv4.tcp_wmem", "dev.eth0.mtu").replace("4096 65536 1048576", "1500"))
            .plan
            .factors[0]
            .expensive
    );
}

/// A plan with a cell at an agent and one at another program.
const SYSTEMS: &str = r#"
to = ["b"]
[base]
pattern = "stream"
[[factor]]
name = "system"
levels = ["ours", "theirs"]
[factor.sets.ours]
[factor.sets.theirs]
speak = "iperf3"
host = "c:5201"
"#;

#[test]
fn a_cell_may_have_another_programs_server_as_its_far_end() {
    let read = plan(SYSTEMS);
    let ends: Vec<_> = read.cells.iter().map(|cell| (cell.planned.to.as_deref(), cell.spec.speak)).collect();
    assert_eq!(ends, [(Some("b"), None), (Some("c:5201"), Some(model::Program::Iperf3))]);
    let preview = Preview::of(&read, None, None).unwrap();
    assert_eq!(preview.programs, [["iperf3", "c:5201", "iperf3 -s"].map(str::to_owned)]);
    // A level for an agent, where the program is the factor.
    let levels = plan("to = \"b\"\n[[factor]]\nfield = \"speak\"\nlevels = [\"thru\", \"netperf\"]\n");
    assert_eq!(levels.cells[0].spec.speak, None);
    assert_eq!(levels.cells[1].spec.speak, Some(model::Program::Netperf));
}

#[test]
fn what_another_program_cannot_do_is_refused() {
    for (old, new, part) in [
        ("speak = \"iperf3\"", "speak = \"iperf3\"\npattern = \"rr\"", "iperf3"),
        ("speak = \"iperf3\"", "speak = \"iperf3\"\nprobe = 10", "`probe` with iperf3"),
        ("speak = \"iperf3\"", "speak = \"iperf9\"", "iperf9"),
        ("speak = \"iperf3\"", "speak = \"iperf3\"\nfrom = \"d\"", "`from` with `speak = iperf3`"),
        (
            "[base]",
            "[settings.far]\n\"dev.eth0.mtu\" = 9000\n[base]",
            "dev.eth0.mtu at the far end with `speak = iperf3`",
        ),
        ("to = [\"b\"]", "to = [\"b\", \"d\"]", "already has several hosts"),
    ] {
        let said = wrong(&SYSTEMS.replacen(old, new, 1));
        assert!(said.contains(part), "{new}: {said}");
    }
}

/// A plan whose lab varies the rate of its links.
const LINKS: &str = r#"
to = ["b"]
[lab]
topology = "crossover"
[[lab.factor]]
name = "rate"
setting = "link.rate"
levels = ["1Mbit", "10Mbit"]
[base]
count = 1000
block = "125"
pattern = "transfer"
[repeat]
min = 1
max = 1
"#;

#[test]
fn a_stream_drains_the_queue_of_its_lab() {
    let text = LINKS
        .replace("count = 1000\nblock = \"125\"\npattern = \"transfer\"", "pattern = \"stream\"\ntime = \"200ms\"");
    let within = read("plan.toml", text, &BTreeMap::new(), true).unwrap();
    let topology = crate::testing::lab_of(&within).unwrap();
    let preview = Preview::of(&within, Some(&topology), None).unwrap();
    // 1 MiB at 1 and at 10 Mbit/s.
    let drained = 8_388_608_000 + 838_860_800;
    assert_eq!((preview.round_ns, preview.drains), (2 * 290_000_000 + drained, false));
    let elsewhere = Preview::of(&within, None, None).unwrap();
    assert_eq!((elsewhere.round_ns, elsewhere.drains), (2 * 290_000_000, true));
}

#[test]
fn a_lab_has_factors_of_its_own() {
    let elsewhere = plan(LINKS);
    assert_eq!((elsewhere.cells.len(), elsewhere.plan.factors.len()), (1, 0));
    let within = read("plan.toml", LINKS.into(), &BTreeMap::new(), true).unwrap();
    let rates: Vec<String> = within.specs().map(|spec| spec.settings.links[0].to_string()).collect();
    assert_eq!(rates, ["link.rate=1Mbit", "link.rate=10Mbit"]);
    let said = wrong(&LINKS.replace("[[lab.factor]]", "[[factor]]"));
    assert!(said.contains("link.rate is a property of a lab's links: use --lab"), "{said}");
    let topology = crate::testing::lab_of(&within).unwrap();
    assert_eq!(topology.links[0].carrier(), lab::topology::Carrier::Emulator);
    // 1000 bits each: a second and a tenth, and what is around a trial.
    let preview = Preview::of(&within, Some(&topology), None).unwrap();
    assert_eq!((preview.untimed, preview.round_ns), (0, 1_100_000_000 + 2 * 90_000_000));
    assert_eq!(Preview::of(&within, None, None).unwrap().untimed, 2);
    let bad = read("plan.toml", LINKS.replace("link.rate", "link.a.c.rate"), &BTreeMap::new(), true).unwrap();
    assert!(crate::testing::lab_of(&bad).unwrap_err().to_string().contains("no such link"));
}

#[test]
fn groups_are_a_factor_that_is_measured_at_the_same_time() {
    let text = r#"
to = ["127.0.0.1"]
[base]
time = "4s"
udp = false
[[factor]]
field = "cc"
levels = ["cubic", "reno"]
[[group]]
name = "bulk"
flows = 4
far.rcvbuf = "1MiB"
[[group]]
start = "1s"
stop = "3s"
direction = "reverse"
"#;
    let read = plan(text);
    assert_eq!(
        (read.cells.len(), read.plan.groups().map(|groups| groups.levels.clone())),
        (4, Some(vec!["bulk".into(), "2".into()]))
    );
    let combinations: Vec<usize> = read.cells.iter().map(|cell| cell.planned.combination).collect();
    assert_eq!(combinations, [0, 0, 1, 1], "a step for each congestion control");
    let (slots, _) = super::slots(&read.plan, &read.cells).unwrap();
    assert_eq!(analysis::plan::round(&slots, 1, None, 0), [[0, 1], [2, 3]]);
    let (bulk, late) = (&read.cells[0].spec, &read.cells[1].spec);
    assert_eq!((bulk.flows, bulk.far.rcvbuf, bulk.start_ns), (4, Some(1 << 20), Some(0)));
    assert_eq!((late.flows, late.direction, late.start_ns), (1, model::Direction::Reverse, Some(1_000_000_000)));
    assert_eq!((late.stop, bulk.stop), (model::Stop::TimeNs(2_000_000_000), model::Stop::TimeNs(4_000_000_000)));
    assert_eq!((late.near.cc.as_deref(), read.cells[3].spec.near.cc.as_deref()), (Some("cubic"), Some("reno")));

    let with = |group: &str| wrong(&format!("to = [\"127.0.0.1\"]\n{group}"));
    assert!(with("[[group]]\nflow = 1\n").contains("has no 'flow'; did you mean 'flows'?"));
    assert!(
        with("[[group]]\nflows = 1\nstart = \"3s\"\nstop = \"2s\"\n").contains("group 1: `stop` (2.00 s) is not after")
    );
    assert!(with("[[group]]\nhost = \"b\"\n").contains("group[1].host: 'host' is the same for all groups"));
    assert!(with("[[group]]\n\"sysctl.a.b\" = 1\n").contains("is the same for all groups"));
    assert!(with("[[group]]\nflows = 1\n[base]\npattern = \"curve\"\n").contains("a curve"));
    assert!(with("[[group]]\n").contains("a group needs a key"));
    assert!(wrong("to = [\"a\", \"b\"]\n[[group]]\nflows = 1\n").contains("between two hosts"));
}

#[test]
fn traffic_is_a_factor_beside_others_and_its_mistakes_are_named() {
    let hosts = "from = [\"a\", \"b\", \"c\", \"d\"]\nto = [\"a\"]\n";
    let text = format!(
        "{hosts}[traffic]\nkind = \"incast\"\nsenders = \"3, 1\"\n[[factor]]\nfield = \"cc\"\nlevels = [\"cubic\", \"reno\"]\n"
    );
    let read = plan(&text);
    assert_eq!(read.cells.len(), 2 * (1 + 3));
    let (slots, _) = super::slots(&read.plan, &read.cells).unwrap();
    assert_eq!(analysis::plan::round(&slots, 1, None, 0), [vec![0], vec![1, 2, 3], vec![4], vec![5, 6, 7]]);
    assert_eq!(read.plan.factors[1].levels, ["1", "3"]);

    let with = |rest: &str| wrong(&format!("{hosts}{rest}"));
    for (rest, expected) in [
        ("[traffic]\nkind = \"all\"\n", "traffic.kind: 'all' is not one of incast, fan-out, ring"),
        ("[traffic]\nsenders = 1\n", "`kind` is missing: write one of incast"),
        ("[traffic]\nkind = \"incast\"\nsenders = 4\n", "4 senders are too many: there are 3 other hosts"),
        ("[traffic]\nkind = \"incast\"\ncuts = 4\n", "`cuts` does not apply to incast"),
        ("[traffic]\nkind = \"ring\"\n", "ring runs within one set of hosts"),
        ("[traffic]\nkind = \"incast\"\n[base]\nboth = true\n", "omit `reverse` and `both`"),
        ("[traffic]\nkind = \"incast\"\n[base]\npattern = \"curve\"\n", "a curve"),
        ("[traffic]\nkind = \"incast\"\n[[group]]\nflows = 2\n", "[traffic] and [[group]] cannot be used together"),
        ("light = 4\n", "each needs a bounded rate: give `rate`"),
        ("light = 4\n[traffic]\nkind = \"incast\"\n", "omit `light`"),
    ] {
        let found = with(rest);
        assert!(found.contains(expected), "{rest}: {found}");
    }
}

#[test]
fn more_cells_than_a_plan_may_have_are_refused_before_they_are_made() {
    let levels: Vec<String> = (1..=100).map(|size| format!("\"{size}KiB\"")).collect();
    let levels = levels.join(", ");
    let factor = |field: &str| format!("[[factor]]\nfield = \"{field}\"\nlevels = [{levels}]\n");
    let text = format!("to = [\"b\"]\n[base]\npattern = \"curve\"\n{}{}", factor("near.sndbuf"), factor("far.rcvbuf"));
    let message = wrong(&text);
    assert!(message.contains("more than 100000 cells with the sizes of its curves"), "{message}");
}
