//! TCP stacks that the program loads: there while they are measured with, and gone however that ends. As root.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::path::Path;
use std::process::Command;

use program::process::{Signal, eventually};
use program::stacks::{loaded, turn};
use program::{Agent, Running, Sandbox, binary, check};

const SHORT: [&str; 6] = ["stream", "--no-path", "--time", "200ms", "--trials", "1"];

#[test]
fn a_stack_is_there_while_it_is_measured_with() {
    let Some(_turn) = turn("a_stack_is_there_while_it_is_measured_with") else { return };
    let sandbox = Sandbox::with_token();
    let agent = Agent::with_token(&sandbox, &["--allow-stacks"]);
    let before = loaded();
    for (cc, starts) in
        [("fast:alpha=77,gamma=0.25", "bpf_fast_"), ("scalable", "bpf_scalable"), ("bpf_htcp", "bpf_htcp")]
    {
        let doc = sandbox.measure(&[SHORT.as_slice(), &["--cc", cc, agent.host()]].concat());
        check::document(&doc, cc);
        let trial = &doc.trials()[0];
        for end in [&trial.near, &trial.far] {
            let used = end.flows[0].socket.cc.clone().unwrap();
            assert!(used.starts_with(starts), "{cc}: {used}");
        }
        assert_eq!(doc.run.header.cells[0].spec.near.cc.as_deref(), Some(cc), "the spec says what was asked for");
        eventually("the stack is gone", || loaded() == before);
    }
    // Two sets of parameters in turns.
    let flags =
        ["--a", "--time 50ms --cc fast:alpha=50", "--b", "--time 50ms --cc fast:alpha=60,mi=0", "--pairs", "12"];
    let doc = sandbox.start(&[["ab"].as_slice(), &flags, &[agent.host(), "--json", "-"]].concat()).wait();
    assert!(matches!(doc.code, Some(0 | 3 | 4)), "{doc:?}");
    eventually("the stacks are gone", || loaded() == before);
}

#[test]
fn an_agent_loads_only_what_it_was_allowed_to() {
    let Some(_turn) = turn("an_agent_loads_only_what_it_was_allowed_to") else { return };
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let refused = sandbox.run(&[SHORT.as_slice(), &["--cc", ",aimd:a=3", agent.host()]].concat()).ended_with(4);
    let message = refused.message();
    assert!(
        message.contains("start it with `thru serve --allow-stacks --token-file FILE`") && message.contains("aimd:a=3"),
        "{message}"
    );
    // The near end is the user's own.
    sandbox.measure(&[SHORT.as_slice(), &["--cc", "aimd:a=3,", agent.host()]].concat());
}

#[test]
fn mistakes_are_named_before_anything_is_measured() {
    let sandbox = Sandbox::new();
    let wad = sandbox.path("wad.toml");
    std::fs::write(&wad, "[x]\ndst_addr = '10.0.0.0/40'\n").unwrap();
    for (flags, word) in [
        (["--cc", "fast:alpha=0", "nowhere.invalid"].as_slice(), "1 to 1000000"),
        (&["--cc", "cubic:beta=3", "nowhere.invalid"], "no stack 'cubic'"),
        (&["--cc", "highspeed", "--cc-rules", wad.to_str().unwrap(), "nowhere.invalid"], "10.0.0.0/40"),
    ] {
        let failed = sandbox.run(&[["stream"].as_slice(), flags].concat()).ended_with(2);
        assert!(failed.stderr.contains(word), "{}", failed.stderr);
    }
    let failed = sandbox.run(&["stacks", "info", "vegas"]).ended_with(2);
    assert!(failed.message().contains("htcp"), "{}", failed.stderr);
    assert!(sandbox.run(&["stacks", "info", "fast"]).ok().stdout.contains("alpha        200 (from 1 to 1000000)"));
}

#[test]
fn a_stack_goes_with_a_process_that_is_killed() {
    let Some(_turn) = turn("a_stack_goes_with_a_process_that_is_killed") else { return };
    let (sandbox, before) = (Sandbox::with_token(), loaded());
    let agent = Agent::with_token(&sandbox, &["--allow-stacks"]);
    let start = |cc: &str, agent: &Agent| {
        let client = sandbox.start(&["stream", "--time", "60s", "--trials", "1", "--cc", cc, agent.host()]);
        eventually("the stack is loaded", || loaded().len() > before.len());
        client
    };
    let gone = |what: &str| eventually(what, || loaded() == before);
    // The near end's is the coordinator's own.
    let client = start("aimd:a=4.5,", &agent);
    client.signal(Signal::KILL);
    gone("the stack of a killed coordinator is gone");
    drop(client);
    // The far agent gives up what it holds for a coordinator that was killed, and measures on.
    let client = start(",aimd:a=5.5", &agent);
    client.signal(Signal::KILL);
    gone("the agent unloads for a killed coordinator");
    drop(client);
    let doc = sandbox.measure(&[SHORT.as_slice(), &["--cc", ",aimd:a=6.5", agent.host()]].concat());
    check::document(&doc, "after a coordinator that was killed");
    gone("the stack is gone");
    // An agent that is killed itself.
    let client = start(",aimd:a=7.5", &agent);
    agent.signal(Signal::KILL);
    gone("the stack of a killed agent is gone");
    let _ = client.wait().ended_with(5);
}

#[test]
fn what_a_host_lacks_is_said_in_one_line() {
    let test = "what_a_host_lacks_is_said_in_one_line";
    let Some(_turn) = turn(test) else { return };
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let flags = [SHORT.as_slice(), &["--cc", "aimd:a=9.5,", agent.host()]].concat();
    let within = |wrapper: &[&str]| {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(binary::thru());
        Running::of(sandbox.prepare(command, &flags)).wait().ended_with(7).message()
    };
    let hidden = |mount: &str| within(&["unshare", "-m", "sh", "-c", &format!("{mount} && exec \"$0\" \"$@\"")]);
    for (message, wanted) in [
        (hidden("mount -t tmpfs none /sys/kernel/btf"), "there is no /sys/kernel/btf/vmlinux"),
        (hidden("mount --bind /dev/null /sys/kernel/btf/vmlinux"), "no BPF struct_ops for TCP"),
        (within(&["setpriv", "--bounding-set", "-all"]), "CAP_BPF is missing"),
        (within(&["unshare", "--user", "--map-root-user"]), "root run `thru stacks load aimd:a=9.5 --any-user`"),
    ] {
        assert!(message.contains(wanted), "{message}");
    }
}

#[test]
fn a_stack_of_one_s_own_is_kept_until_it_is_unloaded() {
    let Some(_turn) = turn("a_stack_of_one_s_own_is_kept_until_it_is_unloaded") else { return };
    let mounted = std::fs::read_to_string("/proc/self/mounts").unwrap().contains(" /sys/fs/bpf bpf ");
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    // As the manual says: the template's source and the header, compiled by the user; here the object that is kept.
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/stacks/objects/aimd.bpf.o");
    std::fs::copy(kept, sandbox.path("mine.bpf.o")).unwrap();
    let said = sandbox.run(&["stacks", "load", "./mine.bpf.o:a=8.5", "--any-user"]).ok().stdout;
    let name = said.split(' ').next().unwrap().to_owned();
    let guard = Unload(name.clone());
    assert!(name.starts_with("bpf_aimd_") && loaded().contains(&name), "{said}");
    let again = sandbox.run(&["stacks", "load", "./mine.bpf.o:a=8.5"]).ended_with(7).message();
    assert!(again.contains(&format!("already has a congestion control {name}")), "{again}");
    let list = sandbox.run(&["stacks", "list"]).ok().stdout;
    assert!(list.contains(&format!("{name} (until unload)")), "{list}");
    // An agent without the right to load may use what is there.
    let doc = sandbox.measure(&[SHORT.as_slice(), &["--cc", &name, agent.host()]].concat());
    assert_eq!(doc.trials()[0].far.flows[0].socket.cc.as_ref(), Some(&name));
    sandbox.run(&["stacks", "unload", &name]).ok();
    eventually("the stack is gone", || !loaded().contains(&name));
    let failed = sandbox.run(&["stacks", "unload", &name]).ended_with(7).message();
    assert!(failed.contains("thru stacks list"), "{failed}");
    drop(guard);
    if !mounted {
        let _ = Command::new("umount").arg("/sys/fs/bpf").status();
    }
}

#[test]
fn what_load_was_given_unloads_it() {
    let Some(_turn) = turn("what_load_was_given_unloads_it") else { return };
    let mounted = std::fs::read_to_string("/proc/self/mounts").unwrap().contains(" /sys/fs/bpf bpf ");
    let (sandbox, before) = (Sandbox::new(), loaded());
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/stacks/objects/aimd.bpf.o");
    std::fs::copy(kept, sandbox.path("mine.bpf.o")).unwrap();
    std::fs::write(sandbox.path("wad.toml"), "[x]\ndst_addr = '192.0.2.0/24'\nsndbuf = 65536\n").unwrap();
    for given in [
        ["./mine.bpf.o:a=8.75"].as_slice(),
        &["./mine.bpf.o"],
        &["aimd:a=8.75"],
        &["highspeed", "--cc-rules", "wad.toml"],
        &["bpf_highspeed:max_ssth=77", "--cc-rules", "wad.toml"],
    ] {
        let said = sandbox.run(&[["stacks", "load"].as_slice(), given].concat()).ok().stdout;
        let name = said.split(' ').next().unwrap().to_owned();
        let _guard = Unload(name.clone());
        assert!(loaded().contains(&name), "{said}");
        let unload = [["stacks", "unload"].as_slice(), given].concat();
        let said = sandbox.run(&unload).ok().stdout;
        assert!(said.starts_with(&format!("{name} is unloaded")), "{given:?}: {said}");
        eventually("the stack is gone", || loaded() == before);
        let failed = sandbox.run(&unload).ended_with(7).message();
        assert!(failed.contains(&name), "{failed}");
    }
    let failed = sandbox.run(&["stacks", "unload", "fast", "--cc-rules", "wad.toml"]).ended_with(2).message();
    assert!(failed.contains("no rules for destinations"), "{failed}");
    if !mounted {
        let _ = Command::new("umount").arg("/sys/fs/bpf").status();
    }
}

/// Unloads a stack also when the test stops in the middle.
struct Unload(String);

impl Drop for Unload {
    fn drop(&mut self) {
        if loaded().contains(&self.0) {
            let _ = Command::new(binary::thru()).args(["stacks", "unload", &self.0]).status();
        }
    }
}
