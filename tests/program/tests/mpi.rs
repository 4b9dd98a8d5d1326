//! `mpirun -n 2 thru ... --transport mpi`, with each MPI that is here.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::process::Command;

use program::launcher::{MPIS, Mpi, mpis};
use program::process::{Signal, eventually, send};
use program::{Doc, Running, Sandbox, check, skip, thorough};

/// Measures between two processes of `mpi`; counts agree, or the test fails.
fn measure(mpi: Mpi, sandbox: &Sandbox, args: &[&str]) -> Doc {
    let flags = ["--transport", "mpi", "--json", "-"];
    let finished = Running::of(mpi.command(sandbox, &[args, &flags].concat())).wait().ok();
    let doc = finished.doc();
    check::document(&doc, &format!("{} {args:?}", mpi.program));
    doc
}

/// All bytes that either end sent, and all that either received.
fn bytes(doc: &Doc) -> (u64, u64) {
    let trials = || doc.run.outcomes.iter().flat_map(|outcome| &outcome.trials);
    let ends = || trials().flat_map(|trial| [&trial.near, &trial.far]);
    (ends().map(|end| end.bytes_sent).sum(), ends().map(|end| end.bytes_received).sum())
}

#[test]
fn streams_and_transfers_over_mpi_lose_no_byte() {
    for mpi in mpis("streams_and_transfers_over_mpi_lose_no_byte") {
        let sandbox = Sandbox::new();
        for direction in [&[][..], &["--reverse"]] {
            for block in if thorough() { &["1", "64", "128KiB", "1000001"][..] } else { &["64", "1000001"] } {
                let args = ["stream", "--time", "40ms", "--trials", "2", "--block", block];
                let doc = measure(mpi, &sandbox, &[&args, direction].concat());
                let (sent, received) = bytes(&doc);
                assert!(sent > 0, "{block}");
                assert_eq!(sent, received, "{} {block}", mpi.program);
            }
        }
        let doc = measure(mpi, &sandbox, &["transfer", "--trials", "1", "--block", "1000", "--bytes", "1234567"]);
        assert_eq!(bytes(&doc), (1_234_567, 1_234_567), "{}", mpi.program);
    }
}

#[test]
fn round_trips_over_mpi_are_timed() {
    for mpi in mpis("round_trips_over_mpi_are_timed") {
        let sandbox = Sandbox::new();
        for extra in [&["--block", "1"][..], &["--spin", "--block", "100", "--reply", "70000"], &["--reverse"]] {
            let args = [&["rr", "--time", "100ms", "--trials", "2"][..], extra].concat();
            let doc = measure(mpi, &sandbox, &args);
            assert!(doc.run.outcomes[0].summary.rtt_p50_ns.is_some_and(|ns| ns > 0.0), "{args:?}");
        }
    }
}

#[test]
fn curves_over_mpi_run_as_round_trips_in_both_directions_and_as_streams() {
    for mpi in mpis("curves_over_mpi_run_as_round_trips_in_both_directions_and_as_streams") {
        let sandbox = Sandbox::new();
        for kind in [&[][..], &["--both"], &["--stream"]] {
            let sizes = ["curve", "--block", "1,4096,65537,1MiB", "--trials", "3", "--time", "2ms", "--no-ceiling"];
            let doc = measure(mpi, &sandbox, &[&sizes, kind].concat());
            let sizes = doc.run.outcomes.iter().filter(|outcome| outcome.spec.transport == model::TransportName::Mpi);
            assert_eq!(sizes.count(), 4, "{kind:?}");
            let (sent, received) = bytes(&doc);
            assert_eq!(sent, received, "{} {kind:?}", mpi.program);
        }
    }
}

#[test]
fn a_process_that_dies_leaves_the_finished_trials_and_says_so() {
    for mpi in mpis("a_process_that_dies_leaves_the_finished_trials_and_says_so") {
        for rank in [0, 1] {
            let sandbox = Sandbox::new();
            let args = ["stream", "--transport", "mpi", "--time", "100ms", "--trials", "200", "--live"];
            let mut running = Running::of(mpi.command(&sandbox, &args));
            let finished = |text: &str| text.lines().filter(|line| line.starts_with("{\"event\":\"trial\"")).count();
            eventually("trials are finished", || finished(&running.stdout()) >= 3);
            assert!(running.runs());
            let process = mpi.process(running.pid(), rank).expect("the process runs");
            send(process, Signal::KILL);
            let ended = running.wait();
            assert_ne!(ended.code, Some(0), "{}", ended.stderr);
            let what = format!("{} {rank}:\n{}", mpi.program, ended.stderr);
            // mpirun ends as soon as a process is lost, and may not pass on what is said after that: the record has it.
            let shown = || sandbox.run(&["show", "last", "--json"]).ok().doc();
            eventually("the run's end is recorded", || shown().run.ending.is_some());
            let shown = shown();
            let ending = shown.run.ending.as_ref().unwrap();
            assert!(shown.trials().len() >= 3, "{what}");
            assert_eq!(ending.how, "failed", "{what}");
            let error = ending.error.as_ref().map(model::Text::plain).unwrap_or_default();
            // Between two trials it is the far end's agent that is missed.
            let says = ["a worker process ended", "lost the connection to the agent at"]
                .iter()
                .any(|words| error.contains(words));
            assert!(says, "{error}\n{what}");
            assert!(error.contains("finished trials are kept"), "{error}\n{what}");
        }
    }
}

#[test]
fn what_mpi_cannot_do_is_said_once_with_the_remedy() {
    let sandbox = Sandbox::new();
    for (args, words) in [
        (&["curve", "--transport", "mpi"][..], "mpirun -n 2 thru curve --transport mpi"),
        (&["stream", "--transport", "mpi", "localhost"], "omit HOST and --from"),
    ] {
        let message = sandbox.run(args).ended_with(2).message();
        assert!(message.contains(words), "{message}");
    }
    for mpi in mpis("what_mpi_cannot_do_is_said_once_with_the_remedy") {
        for args in [["stream", "--flows", "2"], ["stream", "--both", "-q"]] {
            let args = [&args[..], &["--transport", "mpi"]].concat();
            // mpirun has something to say as well.
            let said = Running::of(mpi.command(&sandbox, &args)).wait().ended_with(2).stderr;
            assert_eq!(said.matches("on mpi: its two processes have one channel").count(), 1, "{said}");
        }
    }
}

#[test]
fn a_library_that_is_missing_or_broken_is_named_with_its_package() {
    let name = "a_library_that_is_missing_or_broken_is_named_with_its_package";
    for mpi in MPIS {
        let sandbox = Sandbox::new();
        let args = ["curve", "--transport", "mpi"];
        let command = match mpi.library_file() {
            None => sandbox.command(&args),
            Some(_) if !skip::root(name) => continue,
            Some(file) => {
                // A mount namespace of its own in which the library is an empty file.
                let mut hidden = Command::new("unshare");
                hidden.args(["-m", "sh", "-c", "mount --bind /dev/null \"$0\" && exec \"$@\"", &file]);
                hidden.arg(program::binary::thru());
                sandbox.prepare(hidden, &args)
            }
        };
        let mut command = command;
        command.envs([mpi.first()]);
        let message = Running::of(command).wait().ended_with(7).message();
        assert!(message.starts_with(&format!("thru: {} ", mpi.library)), "{message}");
        assert!(message.ends_with(&format!(": apt-get install {}", mpi.package)), "{message}");
    }
}
