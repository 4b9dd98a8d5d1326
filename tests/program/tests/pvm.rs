//! `thru ... --transport pvm` in a virtual machine of this host.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use program::agent::children;
use program::launcher::VirtualMachine;
use program::process::{Signal, eventually, send};
use program::{Doc, Running, Sandbox, check, thorough};

fn measure(machine: &VirtualMachine, sandbox: &Sandbox, args: &[&str]) -> Doc {
    let flags = ["--transport", "pvm", "--json", "-"];
    let doc = Running::of(machine.command(sandbox, &[args, &flags].concat())).wait().ok().doc();
    check::document(&doc, &format!("{args:?}"));
    doc
}

/// All bytes that either end sent, and all that either received.
fn bytes(doc: &Doc) -> (u64, u64) {
    let trials = || {
        doc.run
            .outcomes
            .iter()
            .filter(|one| one.spec.transport == model::TransportName::Pvm)
            .flat_map(|one| &one.trials)
    };
    let ends = || trials().flat_map(|trial| [&trial.near, &trial.far]);
    (ends().map(|end| end.bytes_sent).sum(), ends().map(|end| end.bytes_received).sum())
}

#[test]
fn every_pattern_over_pvm_loses_no_byte_and_leaves_no_task() {
    let sandbox = Sandbox::new();
    let Some(machine) = VirtualMachine::start(&sandbox, "every_pattern_over_pvm_loses_no_byte_and_leaves_no_task")
    else {
        return;
    };
    let short = ["--time", "100ms", "--trials", "2"];
    let patterns = [
        &["stream", "--block", "1000001", "--reverse"][..],
        &["rr", "--spin", "--block", "100", "--reply", "70000"],
        &["curve", "--block", "1,65537", "--both"],
        &["stream", "--block", "64"],
        &["stream"],
        &["rr", "--block", "1"],
        &["curve", "--block", "1,4096,65537,1MiB"],
        &["curve", "--block", "4096,65537", "--stream"],
    ];
    for pattern in &patterns[..if thorough() { patterns.len() } else { 3 }] {
        let doc = measure(&machine, &sandbox, &[*pattern, &short].concat());
        let (sent, received) = bytes(&doc);
        assert!(sent > 0 && sent == received, "{pattern:?}: {sent} sent, {received} received");
    }
    let doc = measure(&machine, &sandbox, &["transfer", "--trials", "1", "--block", "1000", "--bytes", "1234567"]);
    assert_eq!(bytes(&doc), (1_234_567, 1_234_567));
    eventually("the far agents have ended", || children(machine.pid()).is_empty() && machine.tasks() == 0);
}

#[test]
fn a_task_that_dies_leaves_the_finished_trials_and_says_so() {
    let sandbox = Sandbox::new();
    let Some(machine) = VirtualMachine::start(&sandbox, "a_task_that_dies_leaves_the_finished_trials_and_says_so")
    else {
        return;
    };
    let args = ["stream", "--transport", "pvm", "--time", "100ms", "--trials", "200", "--live"];
    let mut running = Running::of(machine.command(&sandbox, &args));
    let finished = |text: &str| text.lines().filter(|line| line.starts_with("{\"event\":\"trial\"")).count();
    eventually("trials are finished", || finished(&running.stdout()) >= 3);
    assert!(running.runs());
    let agent = children(machine.pid())[0];
    send(agent, Signal::KILL);
    let ended = running.wait().ended_with(5);
    assert!(ended.message().contains("finished trials are kept"), "{}", ended.stderr);
    assert!(sandbox.run(&["show", "last", "--json"]).ok().doc().trials().len() >= 3);
}

#[test]
fn an_interrupted_command_takes_its_far_end_with_it() {
    let sandbox = Sandbox::new();
    let Some(machine) = VirtualMachine::start(&sandbox, "an_interrupted_command_takes_its_far_end_with_it") else {
        return;
    };
    let args = ["stream", "--transport", "pvm", "--time", "10m", "--trials", "1"];
    let mut running = Running::of(machine.command(&sandbox, &args));
    running.until_printed("trial 1");
    running.signal(Signal::TERM);
    running.wait().ended_with(130);
    eventually("the far agent has ended", || children(machine.pid()).is_empty());
}

#[test]
fn what_pvm_lacks_is_said_once_with_the_remedy() {
    let sandbox = Sandbox::new();
    for (args, code, words) in [
        (&["stream", "--transport", "pvm", "localhost"][..], 2, "omit HOST and --from"),
        (&["stream", "--transport", "pvm", "--flows", "2"], 2, "leave --flows and --both out"),
    ] {
        let message = sandbox.run(args).ended_with(code).message();
        assert!(message.contains(words), "{message}");
    }
    let mut command = sandbox.command(&["rr", "--transport", "pvm"]);
    command.env("PVM_TMP", sandbox.path("")).env("PVM_ALLOW_ROOT", "1").env_remove("PVMSOCK").env_remove("PVM_VMID");
    let message = Running::of(command).wait().ended_with(7).message();
    // Where the library is missing too, its package is the remedy.
    assert!(
        message.contains("no virtual machine of this user: start one with `echo quit | pvm`")
            || message.ends_with("libpvm3.so.3 not found: apt-get install pvm"),
        "{message}"
    );
}
