//! Which settings of its host an agent's clients may read and change, and with which permissions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and says what it saw"
)]

use lab::CrossoverSpec;
use program::{Agent, Running, Sandbox, binary, skip};

const SACK: &str = "sysctl.net.ipv4.tcp_sack";

#[test]
fn permissions_of_an_agent_need_a_token() {
    let sandbox = Sandbox::new();
    for flag in ["--allow-tuning", "--allow-tuning=vm.dirty_*", "--allow-capture", "--allow-stacks"] {
        for more in [["--listen", "127.0.0.1:0"].as_slice(), &["--open", "--listen", "127.0.0.1:0"]] {
            let message = sandbox.run(&[&["serve", flag], more].concat()).ended_with(2).message();
            let named = flag.split('=').next().unwrap();
            assert!(message.contains(named) && message.contains("--token-file FILE"), "{message}");
        }
    }
    let sandbox = Sandbox::with_token();
    for pattern in ["*", "vm", "kernel.*", "kernel.core_pattern", "vm/../kernel.x"] {
        let flag = format!("--allow-tuning={pattern}");
        let args = [&["serve", flag.as_str(), "--listen", "127.0.0.1:0"][..], &sandbox.token_flags()].concat();
        assert!(sandbox.run(&args).ended_with(2).message().contains(pattern));
    }
}

#[test]
fn clients_read_and_set_network_keys_and_added_ones() {
    let sandbox = Sandbox::with_token();
    let journal = sandbox.path("journal");
    let flags = ["--allow-tuning", "--journal", journal.to_str().unwrap()];
    let agent = Agent::with_token(&sandbox, &flags);
    sandbox.run(&["tune", "show", SACK, agent.host()]).ok();
    let mine = sandbox.run(&["tune", "show", "sysctl.vm.swappiness"]).ok().stdout;
    for key in ["sysctl.vm.swappiness", "sysctl.kernel.core_pattern", "sysctl.fs.file-max"] {
        let shown = sandbox.run(&["tune", "show", key, agent.host()]).ended_with(4);
        assert!(shown.stdout.is_empty() && shown.message().contains(&format!("may not change {key}")), "{shown:?}");
        // The current value: if the agent accepted it after all, nothing would change.
        let same = format!("{key}={}", std::fs::read_to_string(path(key)).unwrap().trim());
        let set = sandbox.run(&["tune", "set", &same, agent.host(), "--for", "1ms"]).ended_with(4);
        assert!(set.message().contains(&format!("may not change {key}")), "{}", set.message());
    }
    let all = sandbox.run(&["tune", "show", agent.host()]).ok().stdout;
    assert!(all.contains("sysctl.net.core.") && !all.contains("cpu.governor") && !all.contains("irq."), "{all}");
    for key in ["sysctl.net/./ipv4/tcp_sack", "sysctl.net/ipv4/../../vm/swappiness", "sysctl.net.//.vm.swappiness"] {
        let shown = sandbox.run(&["tune", "show", key, agent.host()]);
        assert!(shown.code == Some(2) && shown.stdout.is_empty(), "{key}: {shown:?}");
    }
    // Also with read permission only.
    let looking = Agent::start();
    let open = Sandbox::new();
    open.run(&["tune", "show", SACK, looking.host()]).ok();
    open.run(&["tune", "show", "sysctl.vm.swappiness", looking.host()]).ended_with(4);
    let added = Agent::with_token(&sandbox, &[flags.as_slice(), &["--allow-tuning=vm.swap*"]].concat());
    assert_eq!(sandbox.run(&["tune", "show", "sysctl.vm.swappiness", added.host()]).ok().stdout, mine);
    sandbox.run(&["tune", "show", "sysctl.vm.dirty_ratio", added.host()]).ended_with(4);
}

fn path(key: &str) -> String {
    format!("/proc/sys/{}", key.trim_start_matches("sysctl.").replace('.', "/"))
}

#[test]
fn a_metric_is_one_word_and_a_file_has_one_owner() {
    let test = "a_metric_is_one_word_and_a_file_has_one_owner";
    let Some(lab) = skip::lab(test, &CrossoverSpec::default()) else { return };
    let sandbox = Sandbox::with_token();
    let (a, b) = (lab.host("a").unwrap(), lab.host("b").unwrap());
    let dress = |host: &lab::LabHost, args: &[&str]| {
        let mut command = sandbox.prepare(host.command(binary::thru()), args);
        command.env("THRU_JOURNAL", sandbox.path("journal"));
        Running::of(command)
    };
    let (place, token) = (format!("{}:0", b.v4), sandbox.token_flags());
    let mut command = b.command(binary::thru());
    command.env("THRU_JOURNAL", sandbox.path("journal"));
    let agent = Agent::spawn(command, &[&token[..], &["--allow-tuning", "--listen", &place]].concat());
    let routes = || {
        let output = b.command("ip").args(["-4", "route", "show"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let before = routes();
    let network = before.split_whitespace().next().unwrap();
    for value in ["5ms scope global", "5ms via 10.9.9.9 onlink dev lo", "-force"] {
        let set = format!("route.{network}.rto_min={value}");
        let refused = dress(a, &["tune", "set", &set, agent.host(), "--for", "1ms"]).wait().ended_with(2);
        assert!(refused.message().contains("write a time such as 5ms"), "{}", refused.message());
        assert_eq!(routes(), before);
    }
    let set = format!("route.{network}.rto_min=5ms");
    let taken = dress(a, &["tune", "set", &set, agent.host(), "--for", "1ms"]).wait().ok();
    assert!(taken.stdout.contains("restored to none"), "{}", taken.stdout);
    assert_eq!(routes(), before);
    let mut holder = dress(b, &["tune", "set", "sysctl.net.ipv4.ip_forward=1", "--for", "1m"]);
    holder.until_printed("is now");
    for key in ["net/ipv4/ip_forward", "net.ipv4.conf.all.forwarding", "net/ipv4/conf/eth0/forwarding"] {
        let busy = dress(a, &["tune", "set", &format!("sysctl.{key}=0"), agent.host(), "--for", "1ms"]);
        assert!(busy.wait().ended_with(4).message().contains("is in use by 'thru tune set"), "{key}");
    }
    holder.signal(program::process::Signal::INT);
    holder.wait().ok();
}
