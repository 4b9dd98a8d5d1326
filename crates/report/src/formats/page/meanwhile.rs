//! What the hosts did meanwhile: in words, in pictures, and every counter that changed.

use std::collections::BTreeSet;

use maud::{Markup, PreEscaped, html};
use model::{Figure, Run, units};

use crate::draw::{Use, draw};
use crate::meanwhile::{self, Host};

/// The section; nothing where nobody observed.
pub(in crate::formats) fn section(runs: &[Run]) -> Markup {
    let observed: Vec<(usize, &Run)> =
        runs.iter().enumerate().filter(|(_, run)| !meanwhile::hosts(run).is_empty()).collect();
    html! {
        @if !observed.is_empty() {
            section {
                h2 { "Hosts meanwhile" }
                @for (place, run) in observed {
                    @if runs.len() > 1 { (super::heading(run)) }
                    ul.findings { @for line in meanwhile::notable(run) { li { (line) } } }
                    @for figure in figures(run, place) {
                        div.figure { (PreEscaped(draw(&figure, Use::Inline))) }
                    }
                    (counters(&meanwhile::hosts(run)))
                }
            }
        }
    }
}

/// A run's pictures, with ids that differ from those of other runs on the page.
fn figures(run: &Run, place: usize) -> Vec<Figure> {
    let mut figures = crate::host_figures(run);
    if place > 0 {
        figures.iter_mut().for_each(|figure| figure.id = format!("{}-{}", figure.id, place + 1));
    }
    figures
}

fn counters(hosts: &[Host<'_>]) -> Markup {
    let names: BTreeSet<&str> = hosts.iter().flat_map(Host::changed).collect();
    let missing: Vec<(&str, &str)> =
        hosts.iter().flat_map(|host| host.missing().into_iter().map(|gap| (host.name, gap))).collect();
    html! {
        details {
            summary { "All " (names.len()) " counters that changed, added up over the passes" }
            p.muted {
                "The kernel's names behind the source's. – is a counter of which nothing is known there."
                @for host in hosts {
                    @if let Some((share, ns)) = host.cost() {
                        " Reading took " (format!("{:.2}", 100.0 * share)) " % of a core over " (units::seconds(ns as f64)) " (" (host.name) ")."
                    }
                }
            }
            div.wide { table {
                thead { tr { th.words { "counter" } @for host in hosts { th.number { (host.name) } } } }
                tbody {
                    @for name in names {
                        tr {
                            td { (name) }
                            @for host in hosts { td.number { (host.grew(name).map_or("–".to_owned(), |by| by.to_string())) } }
                        }
                    }
                }
            } }
            @if !missing.is_empty() {
                ul.findings { @for (host, gap) in missing { li { span.kind { (host) } " not read: " (gap) } } }
            }
        }
    }
}
