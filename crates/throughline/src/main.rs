//! `thru`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    throughline::main()
}
