//! Host activity: notable counters, figures, and every counter that changed.

use std::collections::BTreeSet;

use maud::{Markup, html};
use model::{Figure, Run, units};

use crate::host_activity::{self, Host};

/// The section; empty if no host was observed.
pub(in crate::formats) fn section(runs: &[Run]) -> Markup {
    let observed: Vec<(usize, &Run)> =
        runs.iter().enumerate().filter(|(_, run)| !host_activity::hosts(run).is_empty()).collect();
    html! {
        @if !observed.is_empty() {
            section {
                h2 { "Host activity" }
                @for (index, run) in observed {
                    @if runs.len() > 1 { (super::heading(run)) }
                    ul.findings { @for line in host_activity::notable(run) { li { (line) } } }
                    @for figure in figures(run, index) {
                        (super::drawn(&figure))
                    }
                    (counters(&host_activity::hosts(run)))
                }
            }
        }
    }
}

/// A run's figures, with ids that are unique on the page.
fn figures(run: &Run, index: usize) -> Vec<Figure> {
    let mut figures = crate::host_figures(run);
    if index > 0 {
        figures.iter_mut().for_each(|figure| figure.id = format!("{}-{}", figure.id, index + 1));
    }
    figures
}

fn counters(hosts: &[Host<'_>]) -> Markup {
    let names: BTreeSet<&str> = hosts.iter().flat_map(Host::changed).collect();
    let missing: Vec<(&str, &str)> =
        hosts.iter().flat_map(|host| host.missing().into_iter().map(|what| (host.name, what))).collect();
    html! {
        details {
            summary { "Counters that changed (" (names.len()) "), summed over the passes" }
            p.muted {
                "Each name is the source and the kernel's name. – means unknown at that end."
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
                ul.findings { @for (host, what) in missing { li { span.kind { (host) } " not read: " (what) } } }
            }
        }
    }
}
