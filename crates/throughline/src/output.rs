//! Writes the results of the renderers.

use command::{Failure, files};
use std::io::Write;
use std::path::{Path, PathBuf};
use thiserror::Error;

use model::Run;
use report::{Distance, Format, Layout, Piece, ReportError, View};

use crate::console;
use crate::registries;

/// Renders runs as `format` to `path` (`-` for standard output; a folder for several files) and returns the paths of the files.
pub fn write_pieces(format: &str, view: View<'_>, path: &Path) -> Result<Vec<PathBuf>, Failure> {
    rendered(format, &View { layout: layout(), ..view }, Some(path).filter(|path| *path != Path::new("-")))
}

/// Renders runs as `format` to standard output, and for the form of another program the answer to standard error. Without a format they
/// are a screen, which has colours on a terminal. For one measurement, prints only the answer unless `all`; `stored` is where the rest
/// is kept, if it is. A `distance` between the hosts adds the rate times it.
pub fn print(
    format: Option<&str>,
    runs: &[Run],
    all: bool,
    distance: Option<Distance>,
    stored: Option<&Stored<'_>>,
) -> Result<(), Failure> {
    let ids: Vec<&str> = runs.iter().map(|run| run.header.id.as_str()).collect();
    let whole = match stored {
        None => "-v".to_owned(),
        Some(Stored(None)) => format!("thru show {} -v", ids.join(" ")),
        Some(Stored(Some(store))) => format!("thru show {} -v --store {}", ids.join(" "), store.display()),
    };
    let whole = (!all).then_some(whole.as_str());
    let view = View { whole, distance, layout: layout(), ..View::new(runs) };
    let Some(format) = format else {
        pieces("text", &view)?.1.iter().for_each(|piece| console::screen(&String::from_utf8_lossy(&piece.bytes)));
        return Ok(());
    };
    rendered(format, &view, None)?;
    // The forms of other programs have no place for an interval or for a reason to distrust a figure.
    if report::format(format).is_some_and(|format| format.program.is_some()) {
        runs.iter().for_each(|run| errln!("{}", console::line(&report::headline(run))));
    }
    Ok(())
}

/// The store that has a run, if it is not the default one.
pub struct Stored<'a>(pub Option<&'a Path>);

fn rendered(format: &str, view: &View<'_>, path: Option<&Path>) -> Result<Vec<PathBuf>, Failure> {
    let beside = path.map(files::beside).unwrap_or_default();
    let (format, pieces) = pieces(format, &View { beside: &beside, ..view.clone() })?;
    match path {
        None => to_stdout(format.name, &pieces),
        Some(path) => files::write_together(path, pieces.into_iter().map(|piece| (piece.name, piece.bytes)).collect()),
    }
}

/// What a format makes of a view.
fn pieces(format: &str, view: &View<'_>) -> Result<(&'static Format, Vec<Piece>), Failure> {
    let format = registries::format(format).map_err(|error| Failure::usage(error.to_string()))?;
    let pieces = format.check(view).and_then(|()| (format.render)(view)).map_err(|error| match error {
        ReportError::Option { .. } | ReportError::Range { .. } => Failure::usage(error),
        error => Failure::other(error),
    })?;
    Ok((format, pieces))
}

/// A path without the extension of a picture.
#[derive(Debug, Error)]
#[error("use the extension .svg or .png")]
pub struct NoPicture;

/// A path that ends in .svg or .png.
pub fn picture(text: &str) -> Result<PathBuf, NoPicture> {
    let path = PathBuf::from(text);
    if ending(&path).is_some() { Ok(path) } else { Err(NoPicture) }
}

/// `svg` or `png`, if the path ends in it.
fn ending(path: &Path) -> Option<&'static str> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    ["svg", "png"].into_iter().find(|known| *known == ending)
}

/// Draws figures into `path`, which [`picture`] accepted, or also into files next to it if there are several; returns their paths.
pub fn draw(figures: &[model::Figure], path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let format = ending(path).unwrap_or("svg");
    let pieces = figures.iter().map(|figure| report::picture(figure, format)).collect::<Result<Vec<_>, _>>();
    let pieces = pieces.map_err(Failure::other)?.into_iter().map(|piece| (piece.name, piece.bytes)).collect();
    files::write_together(path, pieces)
}

fn to_stdout(format: &str, pieces: &[Piece]) -> Result<Vec<PathBuf>, Failure> {
    let [piece] = pieces else {
        return Err(Failure::usage(format!(
            "{format} has {} files: write them to a folder with `thru export RUN --format {format} -o FOLDER`",
            pieces.len()
        )));
    };
    // JSON has its own escapes, and so have a page's data; pictures are not text.
    let escaped = format.contains("json") || format == "html";
    let shown = std::str::from_utf8(&piece.bytes).ok().filter(|_| !escaped).map(model::plain_lines);
    let bytes = shown.as_deref().map_or(piece.bytes.as_slice(), str::as_bytes);
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).or_else(|error| console::failed(&error))?;
    Ok(Vec::new())
}

/// Columns of a page that is not on a terminal, and fewest columns of one that is.
const COLUMNS: u16 = 100;
const LEAST_COLUMNS: u16 = 40;

/// How texts are laid out here.
pub fn layout() -> Layout {
    Layout { columns: columns(), spelling: console::spelling() }
}

/// Columns of the terminal, or what a page has.
pub fn columns() -> u16 {
    terminal_columns().unwrap_or(COLUMNS)
}

/// Columns of the terminal: COLUMNS, or what the terminal says.
pub fn terminal_columns() -> Option<u16> {
    let requested = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| size.ws_col);
    requested.or_else(terminal).filter(|columns| *columns >= LEAST_COLUMNS)
}
