//! One self-contained page: it loads no script, style, font or image.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use model::{Figure, Run};

use super::page;
use crate::draw::theme::{DARK, LIGHT};
use crate::view::stem;
use crate::{Piece, ReportError, View, labels, run_list};

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// The browser may load nothing from outside the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    view.some_run("html")?;
    let data = data(view.runs)?;
    let title = title(view.runs);
    let style = format!(
        "{}@media (prefers-color-scheme:dark){{@media screen{{{}}}}}\n{STYLE}",
        LIGHT.rules(".figure"),
        DARK.rules(".figure")
    );
    let figures: Vec<Figure> = view.drawn()?.into_iter().map(|drawn| drawn.figure).collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body {
                header { h1 { (title) } (summary(view.runs)) }
                main {
                    (page::findings(view.runs))
                    (page::plans(view.runs))
                    @if !figures.is_empty() { (page::figures(&figures)) }
                    (page::outcomes(view.runs))
                    (page::host_activity(view.runs))
                    (page::hosts(view.runs))
                    (page::method(view.runs))
                }
                footer { (page::untested(view.runs)) p { "The JSON document is in this page, in the element with the id " code { "run-data" } "." } }
                script type="application/json" id="run-data" { (PreEscaped(data)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    Ok(vec![Piece::new(stem(view.runs), "html", page.into_string().into_bytes())])
}

fn title(runs: &[Run]) -> String {
    match runs {
        [run] => labels::title(run),
        _ => format!("{} runs compared", runs.len()),
    }
}

fn summary(runs: &[Run]) -> Markup {
    html! {
        @for run in runs {
            p.lead {
                @if runs.len() > 1 { b { (labels::title(run)) } ": " }
                (labels::distinct(run, |spec| spec.transport.to_string())) " "
                (labels::distinct(run, |spec| spec.pattern.to_string())) ", "
                (labels::hosts(run)) ", " (labels::begun(run))
                @match &run.ending {
                    None => { ", " strong { "not finished" } }
                    Some(ending) if ending.how != "finished" => { ", " strong { (ending.how) }
                        @if let Some(error) = &ending.error { ": " (error) }
                    }
                    Some(_) => {}
                }
                " " span.id { (run.header.id) }
            }
            p.result { (run_list::result(run)) }
        }
    }
}

/// The JSON document, escaped so that no text in it can end the script element or start a comment.
fn data(runs: &[Run]) -> Result<String, ReportError> {
    let json = match runs {
        [run] => serde_json::to_string(run),
        runs => serde_json::to_string(runs),
    };
    let json = json.map_err(|source| ReportError::Json { run: stem(runs).to_owned(), source })?;
    // These characters occur only within JSON strings, where an escape means the same.
    Ok(json
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn page_of(runs: &[Run]) -> String {
        let pieces = render(&View::new(runs)).unwrap();
        String::from_utf8(pieces.into_iter().next().unwrap().bytes).unwrap()
    }

    /// The page without its embedded data, which may hold any text.
    fn outside_data(page: &str) -> (String, String) {
        let (before, rest) = page.split_once("id=\"run-data\">").unwrap();
        let (data, after) = rest.split_once("</script>").unwrap();
        (format!("{before}id=\"run-data\">\n</script>{after}"), data.to_owned())
    }

    /// Asserts that every tag of `page` is closed, in order.
    fn assert_balanced(page: &str) {
        const VOID: [&str; 3] = ["meta", "!DOCTYPE", "br"];
        let mut open: Vec<String> = Vec::new();
        let mut rest = page;
        while let Some(start) = rest.find('<') {
            rest = &rest[start + 1..];
            let end = rest.find('>').unwrap_or_else(|| panic!("an open tag: {}", &rest[..rest.len().min(80)]));
            let tag = &rest[..end];
            rest = &rest[end + 1..];
            let bare: String = tag.split('"').step_by(2).collect();
            assert!(!bare.contains("src") && !bare.contains("href"), "{tag}");
            let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap().to_owned();
            if tag.starts_with('/') {
                assert_eq!(open.pop().as_ref(), Some(&name), "closes </{name}>");
            } else if !tag.ends_with('/') && !VOID.contains(&name.as_str()) {
                // Style and script hold text that is not markup.
                if name == "style" || name == "script" {
                    rest = &rest[rest.find(&format!("</{name}>")).unwrap()..];
                }
                open.push(name);
            }
        }
        assert!(open.is_empty(), "left open: {open:?}");
    }

    #[test]
    fn every_page_is_balanced_self_contained_and_holds_its_data() {
        for (what, runs) in sample::gallery() {
            let page = page_of(&runs);
            let (markup, data) = outside_data(&page);
            assert_balanced(&page);
            let lower = markup.to_lowercase();
            for outside in ["http://", "https://", "<link", "@import"] {
                assert!(!lower.contains(outside), "{what}: {outside}");
            }
            // Clip paths are within the page, and each is of one figure.
            assert!(lower.split("url(").skip(1).all(|rest| rest.starts_with('#')), "{what}");
            let mut ids: Vec<&str> = markup.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
            let all = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), all, "{what}");
            let value: serde_json::Value = serde_json::from_str(&data).unwrap();
            let document = match runs.as_slice() {
                [run] => serde_json::to_string(run).unwrap(),
                runs => serde_json::to_string(runs).unwrap(),
            };
            assert!(value == serde_json::from_str::<serde_json::Value>(&document).unwrap(), "{what}");
        }
    }

    #[test]
    fn hostile_names_stay_text() {
        let run = sample::hostile();
        assert!(run.header.name.as_deref().unwrap().contains("</script><b>"), "the sample is hostile");
        let page = page_of(&[run]);
        assert!(!page.contains("<b>") && !page.contains("</script><b") && !page.contains("<img"), "{page}");
        assert_eq!(page.matches("</script>").count(), 2);
        assert!(page.contains("&lt;/script&gt;&lt;b&gt;"));
    }

    #[test]
    fn a_comparison_names_both_sides_and_their_ceilings() {
        let mut run = sample::pair();
        run.header.near.selftest = Some(model::SelfTestCitation { passed: 5, checks: 6, ..Default::default() });
        let (page, _) = outside_data(&page_of(&[run]));
        let (_, result) = page.split_once("class=\"result\">").unwrap();
        let result = result.split('<').next().unwrap();
        assert!(
            result.starts_with("B not worse") && result.contains("A goodput") && result.contains("B goodput"),
            "{result}"
        );
        assert!(page.contains("A --cc cubic") && page.contains("B --cc bbr"));
        assert!(page.contains("of at most 9.415 Gbit/s") && page.contains("higher bounds: window 3.00 MiB"), "{page}");
        assert!(page.contains("5 of 6 checks passed"));
        assert!(page.contains("No self-test is known for beta: run"), "the other host's");
    }

    #[test]
    fn findings_come_first_and_differing_hosts_are_marked() {
        let page = page_of(&[sample::curve()]);
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
        assert!(at("Findings") < at("<svg") && at("<svg") < at("Outcomes"));
        assert!(at("Outcomes") < at("Hosts"));
        let (_, row) = page.split_once("net.ipv4.tcp_wmem").unwrap();
        let start = page.find("net.ipv4.tcp_wmem").unwrap();
        let before = &page[page[..start].rfind("<tr").unwrap()..start];
        assert!(before.contains("differs"), "{before} {}", &row[..60]);
        assert!(
            !page[page[..page.find("net.ipv4.tcp_sack").unwrap()].rfind("<tr").unwrap()..]
                .starts_with("<tr class=\"differs")
        );
    }
}
