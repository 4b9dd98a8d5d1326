//! `thru demo`: a real path on one machine, measured.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use clap::Args;
use lab::{CrossoverSpec, Lab};

use crate::failure::{self, Failure};

/// Flags of `thru demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where the report goes.
    #[arg(long, value_name = "FOLDER", default_value = "demo-report")]
    report: PathBuf,

    /// Measure over loopback even where namespaces can be made.
    #[arg(long)]
    loopback: bool,

    /// Flags for `thru curve`, after `--`.
    #[arg(last = true)]
    curve: Vec<String>,
}

/// Runs it.
pub fn run(args: &DemoArgs) -> Result<u8, Failure> {
    let available = if args.loopback {
        Err("--loopback was asked for".to_owned())
    } else {
        lab::available().map_err(|error| error.to_string())
    };
    let lab = match available {
        Ok(()) => {
            let lab = Lab::crossover(&CrossoverSpec::default()).map_err(|error| Failure::host(error.to_string()))?;
            println!("Two hosts in network namespaces, joined by a veth pair: {}.", lab.name());
            Some(lab)
        }
        Err(why) => {
            println!("Measuring over loopback: {why}.");
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
    // Ctrl-C reaches the curve too, which ends with its results kept; this process stays to report them and to clean up.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::other)?;
    let _interrupts =
        runtime.block_on(async { tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()) });
    let store = args.report.join("runs.sqlite");
    std::fs::create_dir_all(&args.report)
        .map_err(|error| Failure::output(format!("cannot make {}: {error}", args.report.display())))?;
    let (_agent, target) = serve(command("b")?, &address)?;
    let mut curve = command("a")?;
    curve.arg("curve").arg(&target).arg("--store").arg(&store).args(["--name", "demo"]).args(&args.curve);
    let measured =
        curve.status().map_err(|error| Failure::other(format!("cannot start {}: {error}", thru.display())))?;
    let code = u8::try_from(measured.code().unwrap_or(1)).unwrap_or(1);
    if [0, failure::UNTRUSTED, failure::INTERRUPTED].contains(&code) {
        write_report(&thru, &store, &args.report)?;
    }
    Ok(code)
}

/// An agent that ends with this process.
struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts an agent on any free port of `address` and returns where it listens.
fn serve(mut command: Command, address: &str) -> Result<(Agent, String), Failure> {
    // Out of reach of Ctrl-C, so that the curve can end its measurement with it.
    command.process_group(0);
    command.args(["serve", "--open", "--listen"]).arg(format!("{address}:0")).stderr(Stdio::piped());
    let failed = |error: std::io::Error| Failure::other(format!("cannot start an agent: {error}"));
    let mut child = command.spawn().map_err(failed)?;
    let Some(errors) = child.stderr.take() else { return Err(Failure::other("an agent without standard error")) };
    let agent = Agent(child);
    let mut lines = BufReader::new(errors).lines();
    for line in lines.by_ref() {
        let line = line.map_err(failed)?;
        if let Some(rest) = line.split("listening on ").nth(1) {
            let target = rest.split_whitespace().next().unwrap_or_default().to_owned();
            // What else it says would only stand in the way here, but it must not block on a full pipe.
            std::thread::spawn(move || lines.for_each(drop));
            return Ok((agent, target));
        }
    }
    Err(Failure::other("the agent ended before it listened"))
}

fn write_report(thru: &std::path::Path, store: &std::path::Path, folder: &std::path::Path) -> Result<(), Failure> {
    let run = super::show::load("last", Some(store))?;
    println!("\nThe report:");
    let runs = std::slice::from_ref(&run);
    for (format, target) in
        [("html", folder.join("curve.html")), ("png", folder.to_owned()), ("np", folder.join("np.out"))]
    {
        for path in crate::output::write_pieces(format, runs, Some(&target), None)? {
            println!("  {}", path.display());
        }
    }
    println!("\nNext, on two real hosts: `thru serve --listen 0.0.0.0 --token-file FILE` on one,");
    println!("`thru curve HOST --token-file FILE` on the other ({}).", thru.display());
    Ok(())
}
