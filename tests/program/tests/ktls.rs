//! TLS in the kernel: where it has that, both ends' counts agree and say so; where not, the way is refused with what to do.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use program::{Agent, Sandbox, check, skip};

const FIXED: [&str; 6] = ["--transport", "tls", "--json", "-", "--quiet", "--engine"];
const NO_TLS: &str = "this kernel has no TLS";

/// Whether this kernel has TLS; checks the refusal, and says the line, where it has not.
fn available(test: &str, agent: &Agent, sandbox: &Sandbox) -> bool {
    let finished = sandbox.run(&[&["transfer", "--count", "10"][..], &FIXED, &["ktls", agent.host()]].concat());
    if finished.code == Some(0) {
        return true;
    }
    let message = finished.message();
    assert_eq!(finished.code, Some(7), "{message}");
    assert!(message.contains(NO_TLS) && message.contains("modprobe tls"), "{message}");
    skip::skip(test, &message);
    false
}

#[test]
fn the_kernel_encrypts_at_the_ends_that_ask_for_it() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    if !available("the_kernel_encrypts_at_the_ends_that_ask_for_it", &agent, &sandbox) {
        return;
    }
    let patterns: [&[&str]; 5] = [
        &["transfer", "--block", "100000", "--count", "333"],
        &["transfer", "--block", "1", "--count", "2000", "--reverse"],
        &["stream", "--time", "200ms", "--trials", "2"],
        &["stream", "--time", "200ms", "--trials", "1", "--both", "--flows", "4", "--threads", "1"],
        &["stream", "--time", "200ms", "--trials", "1", "--reverse", "--flows", "2", "--spin", "--probe=200"],
    ];
    for (engine, sends, receives) in [("ktls", true, true), ("ktls,copy", true, false), ("copy,ktls", false, true)] {
        for pattern in patterns {
            let what = format!("{pattern:?} {engine}");
            let finished = sandbox.run(&[pattern, &FIXED, &[engine, agent.host()]].concat());
            assert_eq!(finished.code, Some(0), "{what}: {}", finished.stderr);
            let doc = finished.doc();
            check::document(&doc, &what);
            let both = pattern.contains(&"--both");
            let reverse = pattern.contains(&"--reverse");
            for trial in doc.trials() {
                for (end, sending) in [(&trial.near, !reverse), (&trial.far, reverse)] {
                    let in_kernel: Vec<bool> =
                        end.flows.iter().filter_map(|flow| Some(flow.socket.encryption.as_ref()?.in_kernel)).collect();
                    assert!(!in_kernel.is_empty(), "{what}");
                    // With both directions a flow has a connection each way, and the facts are those of one of them.
                    let wanted = if sending { sends } else { receives };
                    assert!(both || in_kernel.iter().all(|there| *there == wanted), "{what}: {in_kernel:?}");
                }
            }
        }
    }
}

#[test]
fn auto_does_without_what_a_kernel_lacks() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let finished =
        sandbox.run(&[&["stream", "--time", "100ms", "--trials", "1"][..], &FIXED, &["auto", agent.host()]].concat());
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let engine = finished.doc().outcome().spec.engine;
    assert!(engine.auto && ["copy,copy", "ktls,ktls"].contains(&engine.to_string().as_str()), "{engine}");
}
