//! An agent that is killed while it starts, and restores what an earlier owner left.

use std::time::Duration;

use program::Running;
use program::agent::{descendants, helpers};
use program::process::{Signal, reaches, runs};

use super::bed::{Bed, End, LIMIT, SACK, comes_true};
use super::tally::Tally;
use super::victim::Victim;

pub(crate) struct Early<'a> {
    pub(crate) bed: &'a Bed,
    pub(crate) victim: Victim,
}

impl Early<'_> {
    /// Kills an agent, or its helper, this long after its start. The next one restores everything.
    pub(crate) fn kill(&self, moment: Duration, tally: &mut Tally) {
        let (bed, what) = (self.bed, format!("kill of the {} {moment:?} after its start", self.victim.name()));
        self.leave();
        let flags = bed.serving();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let mut agent = Running::of(bed.command(End::Far, &[&["serve"], &flags[..]].concat()));
        std::thread::sleep(moment);
        let below = self.strike(&mut agent);
        tally.kill(false, true);
        tally.check(!agent.stderr().contains("panicked"), || format!("{what}: {}", agent.stderr()));
        let gone = || !below.iter().any(|pid| runs(*pid));
        tally.check(comes_true(LIMIT, gone), || format!("{what}: its processes run: {below:?}"));
        let at_once = bed.is_back(End::Far);
        // The next one of the same user and folder for temporary files, which removes what the killed one left there.
        let mut next = Running::of(bed.command(End::Far, &[&["serve"], &flags[..]].concat()));
        program::eventually("the next agent listens", || next.stderr().contains("listening on") || !next.runs());
        next.signal(Signal::TERM);
        let _ = next.wait().ok();
        bed.recover(0, true);
        tally.settings(&what, at_once, bed.is_back(End::Far));
        tally.check(bed.records() == 0, || format!("{what}: the journal has {} files", bed.records()));
    }

    /// A changed setting without an owner.
    fn leave(&self) {
        let set = format!("{SACK}=0");
        let mut owner = Running::of(self.bed.command(End::Far, &["tune", "set", &set, "--for", "1m"]));
        owner.until_printed("is now 0");
        owner.signal(Signal::KILL);
        let _ = owner.wait();
    }

    /// Returns the processes that must then end.
    fn strike(&self, agent: &mut Running) -> Vec<u32> {
        if self.victim == Victim::Helper {
            let mut found = Vec::new();
            while found.is_empty() && agent.runs() {
                found = helpers(agent.pid());
            }
            let _ = found.into_iter().all(|pid| reaches(pid, Signal::KILL));
        }
        // An agent without its helper is of no use.
        let below = descendants(agent.pid());
        agent.signal(Signal::KILL);
        below
    }
}
