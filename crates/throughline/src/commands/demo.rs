//! `thru demo`: a measurement between two emulated hosts on one machine.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;
use lab::{CrossoverSpec, Lab};
use session::own::{OwnAgent, TOKEN_VARIABLE, UNTIL_INPUT_ENDS};

use session::failure::{self, Failure};

/// Flags of `thru demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Folder of the report.
    #[arg(long, value_name = "FOLDER", default_value = "demo-report")]
    report: PathBuf,

    /// Measure over loopback, also as root.
    #[arg(long)]
    loopback: bool,

    /// Flags of `thru curve`, after `--`.
    #[arg(last = true)]
    curve: Vec<String>,
}

/// Runs it.
pub fn run(args: &DemoArgs) -> Result<u8, Failure> {
    let available = if args.loopback {
        Err("--loopback is given".to_owned())
    } else {
        lab::available().map_err(|error| error.to_string())
    };
    let lab = match available {
        Ok(()) => {
            let lab = Lab::crossover(&CrossoverSpec::default()).map_err(|error| Failure::host(error.to_string()))?;
            outln!("Two hosts in network namespaces, joined by a veth pair: {}.", lab.name());
            Some(lab)
        }
        Err(why) => {
            outln!("Measuring over loopback: {why}.");
            None
        }
    };
    let thru = std::env::current_exe()
        .map_err(|error| Failure::other(format!("cannot find this program's own file: {error}")))?;
    let command = |host: &str| -> Result<Command, Failure> {
        match &lab {
            Some(lab) => Ok(lab.host(host).map_err(|error| Failure::host(error.to_string()))?.command(&thru)),
            None => Ok(Command::new(&thru)),
        }
    };
    let address = match &lab {
        Some(lab) => lab.host("b").map_err(|error| Failure::host(error.to_string()))?.v4.to_string(),
        None => "127.0.0.1".into(),
    };
    // Ctrl-C reaches the curve too, which stores its results and ends. This process then writes the report and cleans up.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::other)?;
    let _interrupts =
        runtime.block_on(async { tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()) });
    let store = args.report.join("runs.sqlite");
    std::fs::create_dir_all(&args.report)
        .map_err(|error| Failure::output(format!("cannot make {}: {error}", args.report.display())))?;
    let agent = OwnAgent::start(command("b")?, &address)?;
    let mut curve = command("a")?;
    curve
        .args([UNTIL_INPUT_ENDS, "curve"])
        .arg(&agent.target)
        .arg("--store")
        .arg(&store)
        .args(["--name", "demo"])
        .args(&args.curve)
        .env_remove(TOKEN_VARIABLE);
    let mut run = || {
        let mut child = curve.stdin(Stdio::piped()).spawn()?;
        let _input = child.stdin.take();
        child.wait()
    };
    let measured = run().map_err(|error| Failure::other(format!("cannot start {}: {error}", thru.display())))?;
    let code = u8::try_from(measured.code().unwrap_or(1)).unwrap_or(1);
    if [0, failure::UNTRUSTED, failure::INTERRUPTED].contains(&code) {
        write_report(&thru, &store, &args.report)?;
    }
    Ok(code)
}

fn write_report(thru: &std::path::Path, store: &std::path::Path, folder: &std::path::Path) -> Result<(), Failure> {
    let run = super::show::load("last", Some(store))?;
    out!("\nThe report:\n");
    let runs = std::slice::from_ref(&run);
    for (format, target) in
        [("html", folder.join("curve.html")), ("png", folder.to_owned()), ("np", folder.join("np.out"))]
    {
        for path in crate::output::write_pieces(format, runs, Some(&target), None)? {
            outln!("  {}", path.display());
        }
    }
    out!("\nNext, on two real hosts: run `thru serve --listen 0.0.0.0 --token-file FILE` on one\n");
    outln!("and `thru curve HOST --token-file FILE` on the other ({}).", thru.display());
    Ok(())
}
