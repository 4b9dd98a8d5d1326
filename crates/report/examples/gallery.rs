//! Writes every output of a set of generated runs to a directory: `cargo run -p throughline-report --example
//! gallery -- DIR`.

#![allow(clippy::disallowed_methods, reason = "the rule is for the library")]

use std::path::Path;
use std::{env, fs, io};

#[path = "../tests/support/sample.rs"]
mod sample;

#[allow(clippy::print_stdout, reason = "an example for people to run")]
fn main() -> io::Result<()> {
    let Some(directory) = env::args_os().nth(1) else {
        println!("usage: gallery DIR [NAME [PIXELS]]");
        return Ok(());
    };
    let only = env::args().nth(2);
    let pixels = env::args().nth(3).and_then(|pixels| pixels.parse().ok());
    for (name, runs) in sample::gallery() {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let folder = Path::new(&directory).join(name);
        fs::create_dir_all(&folder)?;
        for format in report::FORMATS {
            let mapped = runs.iter().any(|run| report::topology(run).is_some()) && format.name == "png";
            let figures: &[Option<&str>] = if mapped { &[None, Some("topology")] } else { &[None] };
            for figure in figures {
                match (format.render)(&report::View { pixels, figure: *figure, ..report::View::new(&runs) }) {
                    Ok(pieces) => {
                        for piece in pieces {
                            fs::write(folder.join(&piece.name), &piece.bytes)?;
                        }
                    }
                    Err(error) => println!("{name}: {error}"),
                }
            }
        }
    }
    let rows: Vec<report::ListedRun> =
        sample::gallery().iter().flat_map(|(_, runs)| runs).map(report::ListedRun::from).collect();
    fs::write(Path::new(&directory).join("runs.txt"), report::run_list(&rows, 0, "", report::Layout::default()))
}
