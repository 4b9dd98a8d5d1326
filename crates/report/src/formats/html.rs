//! One self-contained page: it loads no script, style, font or image. Its script draws what [`Page`] has.

use std::io::Write as _;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};

use super::page::Page;
use crate::view::stem;
use crate::{Piece, ReportError, View};
use drawing::theme::{DARK, LIGHT};

const STYLE: &str = include_str!("../../../../web/dist/page.css");
const SCRIPT: &str = include_str!("../../../../web/dist/page.js");
/// What draws the figures: crates/page-drawing as WebAssembly.
const DRAWING: &[u8] = include_bytes!("../../../../web/dist/drawing.wasm");
/// The same, as each document contains it.
static PACKED_DRAWING: LazyLock<String> = LazyLock::new(|| packed(DRAWING).unwrap_or_default());

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    view.some_run("html")?;
    let broken = |source| ReportError::Json { run: stem(view.runs).to_owned(), source };
    let page = Page::new(view)?;
    let data = packed(&page.bytes().map_err(broken)?).map_err(|error| broken(serde_json::Error::io(error)))?;
    let results = summary(&page);
    let data = html! { script type="text/plain" id="data" { (data) } };
    let (document, _) = document(&page.document, "", &results, &data);
    Ok(vec![Piece::new(stem(view.runs), "html", document.into_bytes())])
}

/// What the file shows before its script runs, and where none does: in a mail's preview, a search, or a print that does not wait.
fn summary(page: &Page) -> Markup {
    html! {
        header { h1 { (page.title) } }
        main {
            @if let Some(compared) = &page.compared {
                @for answer in &compared.answers { p.result { (answer) } }
                table {
                    thead { tr { @for title in &compared.head { th scope="col" { (title) } } } }
                    tbody {
                        @for row in compared.rows.iter().take(FIRST_ROWS) {
                            tr { @for cell in &row.cells { td { (cell) } } }
                        }
                    }
                }
            }
            @for run in &page.runs {
                article.answer {
                    @if page.runs.len() > 1 { h2 { (run.title) } }
                    @for line in &run.plan { p { (line) } }
                    p.result { (run.result) }
                    p {
                        @if let Some([trust, _]) = run.trust { span class={ "trust " (trust) } { "trust " (trust) } " " }
                        @if let Some(ending) = &run.ending { strong { (ending) } " " }
                        span.muted { (run.measured) ", " (run.hosts) ", " (run.begun) }
                    }
                    dl { @for (title, text) in &run.answer { div { dt { (title) } dd { (text) } } } }
                }
            }
            noscript {
                p {
                    "The figures and tables need JavaScript. Without it: " code { "thru report RUN -o report.md" }
                    " writes the tables, " code { "-o report.svg" } " the figures."
                }
            }
        }
    }
}

/// The rows of a comparison that are shown without the script.
const FIRST_ROWS: usize = 50;

/// The same page without data: its script asks the server that it came from for them. Returns the document, and its content security
/// policy for the server to send with it.
#[must_use]
pub fn page_shell(title: &str) -> (String, String) {
    let missing = html! { noscript { p { "This page needs JavaScript. " code { "thru runs" } " lists the runs." } } };
    document(title, "; connect-src 'self'", &missing, &html! {})
}

/// The bytes that the script of [`page_shell`] shows: what a report has within the file, not compressed.
///
/// # Errors
/// No run, or one that cannot be shown.
pub fn page_data(view: &View<'_>) -> Result<Vec<u8>, ReportError> {
    view.some_run("html")?;
    let broken = |source| ReportError::Json { run: stem(view.runs).to_owned(), source };
    Page::new(view)?.bytes().map_err(broken)
}

/// A document and its policy: the browser runs this script and this style only, and loads nothing but what `more` allows. Figures are
/// drawn by WebAssembly that the document contains.
fn document(title: &str, more: &str, shown: &Markup, data: &Markup) -> (String, String) {
    let style = format!("{}{}{STYLE}", LIGHT.rules(".drawing"), DARK.rules(".dark .drawing"));
    let policy = format!(
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; script-src '{}' 'wasm-unsafe-eval'; style-src '{}'{more}",
        hash(SCRIPT),
        hash(&style)
    );
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body {
                div id="page" { (shown) }
                (data)
                script type="text/plain" id="drawing" { (PACKED_DRAWING.as_str()) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    (document.into_string(), policy)
}

/// Compressed (zlib), in base64.
fn packed(bytes: &[u8]) -> std::io::Result<String> {
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::default());
    packer.write_all(bytes)?;
    Ok(STANDARD.encode(packer.finish()?))
}

/// A source of a content security policy: only the element with this text.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(digest(&SHA256, text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::ZlibDecoder;
    use model::Run;
    use serde_json::Value;

    use super::*;
    use crate::Layout;
    use crate::sample;
    use text::{RateUnit, Spelling};

    fn page_of(runs: &[Run]) -> String {
        let pieces = render(&View::new(runs)).unwrap();
        String::from_utf8(pieces.into_iter().next().unwrap().bytes).unwrap()
    }

    /// The text of the first element that begins with `start`.
    fn element<'a>(page: &'a str, start: &str, end: &str) -> &'a str {
        page.split_once(start).unwrap().1.split_once(end).unwrap().0
    }

    fn data_of(page: &str) -> Value {
        let packed = STANDARD.decode(element(page, "id=\"data\">", "</script>")).unwrap();
        let mut bytes = Vec::new();
        ZlibDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        serde_json::from_slice(&bytes[4..4 + length]).unwrap()
    }

    #[test]
    fn every_page_is_one_file_that_runs_its_own_script_only() {
        for (what, runs) in sample::gallery() {
            let page = page_of(&runs);
            let policy = element(&page, "Content-Security-Policy\" content=\"", "\"").replace("&#39;", "'");
            let script = page.rsplit_once("<script>").unwrap().1.split_once("</script>").unwrap().0;
            for own in [hash(script), hash(element(&page, "<style>", "</style>"))] {
                assert!(policy.contains(&format!("'{own}'")), "{what}: {policy} {own}");
            }
            assert_eq!(page.matches("<script").count(), 3, "{what}");
            // The policy keeps the script from loading anything; its addresses are names of XML's namespaces.
            assert!(SCRIPT.replace("http://www.w3.org/", "").split("://").nth(1).is_none(), "{what}");
            let lower = page.replace(SCRIPT, "").to_lowercase();
            for outside in ["http://", "https://", "<link", "@import", "url(", "<img", "style=\""] {
                assert!(!lower.contains(outside), "{what}: {outside}");
            }
            let data = data_of(&page);
            assert_eq!(data["runs"].as_array().unwrap().len(), runs.len(), "{what}");
            let titles: Vec<&str> =
                data["figures"].as_array().unwrap().iter().filter_map(|of| of["title"].as_str()).collect();
            assert!(crate::figures(&runs).iter().all(|figure| titles.contains(&figure.title.as_str())), "{what}");
        }
    }

    #[test]
    fn texts_are_spelled_and_the_script_is_not() {
        let mut run = sample::curve();
        run.findings[0].statement = text::say!("more `--flows`");
        run.header.command = vec!["thru".to_owned(), "`--flows`".to_owned()];
        let runs = [run];
        let spelling = Spelling { rates: RateUnit::Bytes, ..Spelling::default() };
        let layout = Layout { spelling, ..Layout::default() };
        let pieces = render(&View { layout, ..View::new(&runs) }).unwrap();
        let page = String::from_utf8(pieces.into_iter().next().unwrap().bytes).unwrap();
        assert!(page.contains(SCRIPT));
        let run = &data_of(&page)["runs"][0];
        assert_eq!(run["findings"][0]["statement"], "more --flows");
        assert!(run["command"].as_str().unwrap().contains("`--flows`"), "{}", run["command"]);
        assert!(run["result"].as_str().unwrap().contains("GB/s"), "{}", run["result"]);
    }

    #[test]
    fn hostile_names_stay_data() {
        let run = sample::hostile();
        assert!(run.header.name.as_deref().unwrap().contains("</script><b>"), "the sample is hostile");
        let page = page_of(&[run]);
        let shell = page.replace(SCRIPT, "");
        assert!(!shell.contains("<b></b>") && !shell.contains("</script><b") && !shell.contains("<img"));
        assert_eq!(shell.matches("</script>").count(), 3);
        assert!(shell.contains("&lt;/script&gt;&lt;b&gt;"), "it is in the title");
        let data = data_of(&page);
        assert!(data["title"].as_str().unwrap().contains("</script><b>"));
    }

    #[test]
    fn a_comparison_names_both_sides_and_their_ceilings() {
        let mut run = sample::pair();
        run.header.near.selftest = Some(model::SelfTestCitation { passed: 5, checks: 6, ..Default::default() });
        let data = data_of(&page_of(&[run]));
        let run = &data["runs"][0];
        let result = run["result"].as_str().unwrap();
        assert!(
            result.starts_with("B --cc bbr is not worse than A --cc cubic") && result.contains("A goodput"),
            "{result}"
        );
        let all = run.to_string();
        let figures = data["figures"].to_string();
        assert!(figures.contains("A --cc cubic") && figures.contains("B --cc bbr"));
        assert!(all.contains("of at most 9.41 Gbit/s") && all.contains("higher bounds: window 3.00 MiB"), "{all}");
        assert!(all.contains("5 of 6 checks passed"));
        assert!(all.contains("No self-test is known for beta: run"), "the other host's");
    }

    #[test]
    fn differing_hosts_are_marked() {
        let data = data_of(&page_of(&[sample::curve()]));
        let facts = data["runs"][0]["facts"].as_array().unwrap();
        let differs = |name: &str| facts.iter().find(|fact| fact["name"] == name).map(|fact| fact["differs"] == true);
        assert_eq!(differs("net.ipv4.tcp_wmem"), Some(true));
        assert_eq!(differs("net.ipv4.tcp_sack"), Some(false));
    }

    #[test]
    fn runs_beside_each_other_show_what_differs_between_them() {
        let mut other = sample::stream();
        other.header.far.kernel = Some("7.7.7-other".to_owned());
        let data = data_of(&page_of(&[sample::stream(), other]));
        let rows = data["differing"]["rows"].as_array().unwrap();
        assert!(rows.iter().any(|row| row[0] == "far: kernel" && row[2] == "7.7.7-other"), "{rows:?}");
        assert!(rows.iter().all(|row| row[0] != "near: kernel"), "{rows:?}");
    }

    #[test]
    fn a_million_samples_fit_into_15_mb() {
        let mut run = sample::stream();
        let mut state = 1_u64;
        let far = &mut run.outcomes[0].trials[0].far;
        far.intervals = (0..1_000_000_u64)
            .map(|n| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let bytes_received = 1_000_000 + (state >> 44);
                let jitter = (state >> 20) % 1_000;
                model::Interval {
                    start_ns: n * 1_000_000 + jitter,
                    end_ns: (n + 1) * 1_000_000,
                    bytes_received,
                    ..Default::default()
                }
            })
            .collect();
        run.outcomes[0].trials.truncate(1);
        run.outcomes[0].spec.interval_ns = 1_000_000;
        let page = page_of(&[run]);
        assert!(page.len() <= 15_000_000, "{} bytes", page.len());
        assert!(page.len() > 3_000_000, "the samples are there: {} bytes", page.len());
    }
}
