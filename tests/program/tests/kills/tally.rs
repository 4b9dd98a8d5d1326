//! What kills did, as a row of a table.

use std::collections::BTreeSet;

use super::events::Kept;

/// Counts of one victim's kills.
pub(crate) struct Tally {
    victim: String,
    kills: usize,
    in_a_trial: usize,
    changed: usize,
    announced: usize,
    kept: usize,
    at_once: usize,
    recovered: usize,
    faults: Vec<String>,
}

impl Tally {
    pub(crate) fn new(victim: &str) -> Self {
        let (victim, faults) = (victim.to_owned(), Vec::new());
        Self { victim, kills: 0, in_a_trial: 0, changed: 0, announced: 0, kept: 0, at_once: 0, recovered: 0, faults }
    }

    /// A kill, in a trial or not, while settings were changed or not.
    pub(crate) fn kill(&mut self, in_a_trial: bool, changed: bool) {
        self.kills += 1;
        self.in_a_trial += usize::from(in_a_trial);
        self.changed += usize::from(changed);
    }

    /// The trials that were announced must be in the store.
    pub(crate) fn trials(&mut self, what: &str, announced: &BTreeSet<Kept>, stored: &BTreeSet<Kept>) {
        self.announced += announced.len();
        self.kept += announced.intersection(stored).count();
        self.check(announced.is_subset(stored), || format!("{what}: announced {announced:?}, stored {stored:?}"));
        // An event is kept before it is told, so the store may be one ahead.
        self.check(stored.len() <= announced.len() + 1, || {
            format!("{what}: announced {announced:?}, stored {stored:?}")
        });
    }

    /// Whether all settings went back by themselves, or else by the next command.
    pub(crate) fn settings(&mut self, what: &str, at_once: bool, back: bool) {
        self.at_once += usize::from(at_once);
        self.recovered += usize::from(!at_once && back);
        self.check(back, || format!("{what}: not all settings are back"));
    }

    pub(crate) fn check(&mut self, holds: bool, fault: impl FnOnce() -> String) {
        if !holds {
            let fault = fault();
            println!("FAULT: {fault}");
            self.faults.push(fault);
        }
    }

    /// Prints the row and fails if anything was wrong.
    pub(crate) fn conclude(self) {
        println!(
            "| victim | kills | in a trial | with settings changed | trials announced | trials kept | settings back at once | by recovery |"
        );
        println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
        let Self { victim, kills, in_a_trial, changed, announced, kept, at_once, recovered, faults } = self;
        println!("| {victim} | {kills} | {in_a_trial} | {changed} | {announced} | {kept} | {at_once} | {recovered} |");
        assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    }
}
