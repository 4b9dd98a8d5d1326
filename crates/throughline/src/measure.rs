//! From a request to its exit code: conducts the run, prints it and writes its files.

use std::path::{Path, PathBuf};

use command::failure::{self, Failure};
use command::files;
use model::Run;
use report::View;
use session::{Finished, Request, Work};

use crate::console;
use crate::flags::Output;
use crate::shape::Shape;
use crate::sinks::Terminal;

/// Measures and returns the exit code.
pub fn measure(request: &Request, output: &Output, shape: Shape<'_>) -> Result<u8, Failure> {
    Ok(measure_run(request, output, shape)?.1)
}

/// Measures and returns the run and the exit code. There is no run if another process conducted it (mpirun).
pub fn measure_run(request: &Request, output: &Output, shape: Shape<'_>) -> Result<(Option<Run>, u8), Failure> {
    session::check(request)?;
    if let Work::Measurement { specs, .. } = &request.work {
        output.check(request.kind, specs)?;
    }
    if session::is_launched(request)? {
        return Ok((None, session::launch::mpi::run(console::fail)?));
    }
    let (run, code) = conduct(request, output, shape)?;
    Ok((Some(run), code))
}

/// Conducts a run, shows it and returns it with the exit code.
pub fn conduct(request: &Request, output: &Output, shape: Shape<'_>) -> Result<(Run, u8), Failure> {
    // Checked now, not after ten minutes of measuring.
    let files = output.json.iter().map(PathBuf::as_path).filter(|path| *path != Path::new("-")).chain(shape.np);
    files.into_iter().try_for_each(files::check_writable)?;
    let mut terminal = Terminal::new(output, shape.lines)?;
    let finished = session::conduct(request, &mut terminal);
    terminal.close(finished.is_ok())?;
    let Finished { run, failure } = finished?;
    // A failed run may have nothing to show; its failure is reported in any case.
    let shown = show(output, shape, &run);
    match failure {
        Some(failure) => Err(failure),
        None => Ok((run, shown?)),
    }
}

/// Prints and writes a finished run. The exit code tells whether it can be trusted.
pub fn show(output: &Output, shape: Shape<'_>, run: &Run) -> Result<u8, Failure> {
    let runs = std::slice::from_ref(run);
    if let Some(path) = &output.json {
        crate::output::write_pieces("json", View::new(runs), path)?;
    }
    if let Some(path) = shape.np {
        crate::output::write_pieces("np", View::new(runs), path)?;
    }
    if !output.quiet && !output.live && !output.is_document() {
        // Scripts that read NetPIPE's file may read its screen output, too.
        let form = output.form().or(shape.np.map(|_| "np-screen"));
        let stored = crate::output::Stored(output.store.as_deref());
        let all = shape.all || output.verbose;
        crate::output::print(form, std::slice::from_ref(run), all, None, Some(&stored).filter(|_| !output.no_store))?;
    }
    Ok(failure::of_run(run))
}
