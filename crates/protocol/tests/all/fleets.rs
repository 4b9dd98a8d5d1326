//! Whole runs: processes with coordinators, agents on many hosts, and other programs, over links with delays that are lost and cut off.
//! Processes and agents are killed at any step and start again; clocks are set; some agents are not what they say.

mod agent;
mod links;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use model::random::SplitMix64;
use model::{BothEnds, EndResult, EndTally};
use protocol::agent::SessionId;
use protocol::coordinator::{
    Action, Answer, Conducted, Dialogue, DialogueError, End, Event, Fault, Fleet, LineId, Member, Outside, Work, WorkId,
};
use protocol::message::{FromAgent, ToAgent};
use schedule::FailureKind;

use agent::AgentSide;
use links::Link;

use super::calendar::Calendar;
use super::host;
use super::machine::Machine;
use super::runs::Run;

/// No run takes longer than this, in virtual time.
const END: Duration = Duration::from_secs(20_000);
/// Parts of a run: a process that is killed, or cannot go on, is started again so often.
const PARTS: usize = 8;
/// Actions that may follow from one event, and messages that may wait for a process, for each host.
const ACTIONS: usize = 400;
const WAITING: usize = 2_000;

/// What happens at a time.
#[derive(Debug)]
enum Due {
    /// A process starts a run, or goes on with it.
    Start {
        run: usize,
    },
    ToAgent {
        link: u64,
        what: Option<Box<ToAgent>>,
    },
    ToProcess {
        link: u64,
        what: Option<Box<FromAgent>>,
    },
    /// The host of an agent has done something.
    Host {
        agent: usize,
        life: u64,
        session: SessionId,
        answer: host::Answer,
    },
    AgentTimer {
        agent: usize,
        life: u64,
        session: SessionId,
    },
    /// The deadline of a process.
    Timer {
        process: u64,
    },
    /// Some work of a process is done.
    Done {
        process: u64,
        id: WorkId,
        what: Work,
    },
    KillProcess {
        process: u64,
    },
    Stop {
        process: u64,
    },
    KillAgent {
        agent: usize,
    },
    StartAgent {
        agent: usize,
    },
    /// The network of an agent fails, or is there again.
    CutOff {
        agent: usize,
    },
    Reach {
        agent: usize,
    },
    SetClock,
}

/// A process that conducts a run.
struct Process {
    run: usize,
    outside: Outside,
    dialogue: Dialogue<'static, (Conducted, usize)>,
    deadline: Option<Duration>,
}

/// What may go wrong in a seed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Faults {
    /// One in this many messages ends its connection.
    pub(super) cut_one_in: Option<usize>,
    /// Events of each kind: killed processes, killed agents, networks that fail, clocks that are set, users that stop.
    pub(super) events: [usize; 5],
    pub(super) hostile: usize,
    /// One in this many works of a host fails.
    pub(super) fails_one_in: Option<usize>,
}

pub(super) struct World {
    now: Duration,
    /// The wall clocks are ahead of the time by this, ns.
    clock_ns: u64,
    random: SplitMix64,
    agents: Vec<AgentSide>,
    processes: BTreeMap<u64, Process>,
    pub(super) runs: Vec<Run>,
    links: BTreeMap<u64, Link>,
    /// The links by their process and line, and by their agent, its process and session.
    by_line: BTreeMap<(u64, LineId), u64>,
    by_session: BTreeMap<(usize, u64, SessionId), u64>,
    /// Processes and links with messages that are not taken.
    waiting: BTreeSet<(u64, u64)>,
    calendar: Calendar<Due>,
    numbers: u64,
    events: u64,
    delay_ns: u64,
    faults: Faults,
    /// When the first processes are killed, after their starts.
    kills: VecDeque<Duration>,
    has_all_processes: bool,
    /// Results of agents that a run has used.
    results_used: usize,
    /// What has arrived, with the number of its link.
    said: Option<Vec<(u64, Said)>>,
}

/// A message that has arrived.
#[derive(Debug, Clone)]
pub(super) enum Said {
    ToAgent(ToAgent),
    ToProcess(FromAgent),
}

impl World {
    /// The world of a seed.
    pub(super) fn new(seed: u64) -> Self {
        let mut random = SplitMix64::new(seed.wrapping_mul(SplitMix64::STEP) ^ 0xF1EE7);
        let faults = if random.below(4) == 0 {
            Faults::default()
        } else {
            Faults {
                cut_one_in: [None, Some(2_000), Some(300)][random.below(3)],
                events: std::array::from_fn(|_| random.below(4).saturating_sub(1)),
                hostile: random.below(8) / 7,
                fails_one_in: [None, None, Some(40)][random.below(3)],
            }
        };
        Self::with(seed, faults)
    }

    /// The world of a seed, with these faults.
    pub(super) fn with(seed: u64, faults: Faults) -> Self {
        let mut random = SplitMix64::new(seed.wrapping_mul(SplitMix64::STEP) ^ 0xA6E27);
        // A few have many hosts.
        let hosts = 2 + if random.below(40) == 0 { random.below(62) } else { random.below(6) };
        let agents = (0..hosts).map(|number| AgentSide::new(number < faults.hostile, faults, &mut random)).collect();
        let runs = (0..=random.below(3)).map(|number| Run::new(number, hosts, &mut random)).collect();
        Self::over(agents, runs, random, faults)
    }

    /// A world of a seed with so many hosts and these runs.
    pub(super) fn of(seed: u64, hosts: usize, runs: Vec<Run>, faults: Faults) -> Self {
        let mut random = SplitMix64::new(seed.wrapping_mul(SplitMix64::STEP) ^ 0xB0D1);
        let agents = (0..hosts).map(|_| AgentSide::new(false, faults, &mut random)).collect();
        Self::over(agents, runs, random, faults)
    }

    fn over(agents: Vec<AgentSide>, runs: Vec<Run>, mut random: SplitMix64, faults: Faults) -> Self {
        let hosts = agents.len();
        let mut world = Self {
            now: Duration::ZERO,
            clock_ns: 1_700_000_000_000_000_000,
            delay_ns: 10_u64.pow(4 + random.below(5) as u32),
            random,
            agents,
            processes: BTreeMap::new(),
            runs,
            links: BTreeMap::new(),
            by_line: BTreeMap::new(),
            by_session: BTreeMap::new(),
            waiting: BTreeSet::new(),
            calendar: Calendar::default(),
            numbers: 0,
            events: 0,
            faults,
            kills: VecDeque::new(),
            has_all_processes: true,
            results_used: 0,
            said: None,
        };
        for run in 0..world.runs.len() {
            let at = world.later(5_000_000_000);
            world.schedule(at, Due::Start { run });
        }
        let [_, agents, networks, clocks, _] = faults.events;
        for _ in 0..agents {
            let (at, agent) = (world.later(60_000_000_000), world.random.below(hosts));
            world.schedule(at, Due::KillAgent { agent });
        }
        for _ in 0..networks {
            let (at, agent) = (world.later(60_000_000_000), world.random.below(hosts));
            world.schedule(at, Due::CutOff { agent });
        }
        for _ in 0..clocks {
            let at = world.later(60_000_000_000);
            world.schedule(at, Due::SetClock);
        }
        world
    }

    /// Kills the first processes so long after their starts.
    pub(super) fn kill_after(&mut self, times: [Duration; 2]) {
        (self.kills, self.has_all_processes) = (times.into(), false);
    }

    /// Notes what is said, over links without delay.
    pub(super) fn listen(&mut self) {
        (self.said, self.delay_ns) = (Some(Vec::new()), 1);
    }

    /// What was said, with the agent of each link, by the numbers of the links.
    pub(super) fn said(&mut self) -> Vec<(u64, Said)> {
        self.said.take().unwrap_or_default()
    }

    /// Results of agents that runs have used.
    pub(super) fn results_used(&self) -> usize {
        self.results_used
    }

    /// Runs to the end. Returns the number of events, or the promise that was broken.
    pub(super) fn run(&mut self, mut trace: Option<&mut Vec<String>>) -> Result<u64, String> {
        while let Some(due) = self.next() {
            let is_timer = matches!(due, Due::AgentTimer { .. } | Due::Timer { .. });
            if let Some(trace) = trace.as_deref_mut().filter(|_| !is_timer) {
                trace.push(format!("{:>12.6} s  {}", self.now.as_secs_f64(), short(&due)));
            }
            if self.now > END {
                return Err(format!(
                    "not over in time: {} processes, {} links",
                    self.processes.len(),
                    self.links.len()
                ));
            }
            let touched = match &due {
                Due::Host { agent, .. } | Due::AgentTimer { agent, .. } | Due::KillAgent { agent } => *agent,
                Due::ToAgent { link, .. } => self.links.get(link).map_or(usize::MAX, |link| link.agent),
                _ => usize::MAX,
            };
            self.happen(due)?;
            self.check(touched)?;
        }
        self.check_end().map(|()| self.events)
    }

    fn next(&mut self) -> Option<Due> {
        let (now, due) = self.calendar.next()?;
        self.now = now;
        self.events += 1;
        Some(due)
    }

    fn schedule(&mut self, at: Duration, due: Due) {
        self.calendar.schedule(at, due);
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn later(&mut self, most_ns: u64) -> Duration {
        self.now + Duration::from_nanos(self.random.next_u64() % most_ns.max(1))
    }

    fn happen(&mut self, due: Due) -> Result<(), String> {
        match due {
            Due::Start { run } => self.start(run)?,
            Due::ToAgent { link, what } => self.arrive(link, what),
            Due::ToProcess { link: link_number, what } => {
                if let (Some(said), Some(message)) = (&mut self.said, &what) {
                    said.push((link_number, Said::ToProcess(FromAgent::clone(message))));
                }
                if let Some(link) = self.links.get_mut(&link_number).filter(|link| !link.ended[1]) {
                    link.waiting.push_back(what);
                    if link.waiting.len() > WAITING {
                        return Err(format!("{} messages wait for a process", link.waiting.len()));
                    }
                    let process = link.process;
                    self.waiting.insert((process, link_number));
                    self.pass_on(process)?;
                }
            }
            Due::Host { agent, life, session, answer } => {
                if self.agents[agent].life == Some(life) {
                    let outs = self.agents[agent].machine.done(self.now, session, answer, &mut self.random);
                    self.follow(agent, outs);
                }
            }
            Due::AgentTimer { agent, life, session } => {
                if self.agents[agent].life == Some(life) {
                    let outs = self.agents[agent].machine.timer(self.now, session, &mut self.random);
                    self.follow(agent, outs);
                }
            }
            Due::Timer { process } => {
                if let Some(own) = self.processes.get_mut(&process)
                    && own.deadline.is_some_and(|deadline| deadline <= self.now)
                {
                    own.deadline = None;
                    self.go_on(process, None)?;
                }
            }
            Due::Done { process, id, what } => self.done(process, id, what)?,
            Due::KillProcess { process } => self.kill(process),
            Due::Stop { process } => self.go_on(process, Some(Event::Stop))?,
            Due::KillAgent { agent } => self.kill_agent(agent),
            Due::StartAgent { agent } => {
                let life = self.number();
                self.agents[agent].life = Some(life);
            }
            Due::CutOff { agent } => {
                self.agents[agent].cut_off = true;
                self.cut_links_of(agent, Duration::from_secs(10));
                let at = self.later(60_000_000_000);
                self.schedule(at, Due::Reach { agent });
            }
            Due::Reach { agent } => self.agents[agent].cut_off = false,
            Due::SetClock => {
                self.clock_ns = 1_500_000_000_000_000_000 + self.random.next_u64() % 300_000_000_000_000_000;
            }
        }
        Ok(())
    }

    /// Connects to the hosts of a run, and begins a part of it. Without its hosts it is tried again.
    fn start(&mut self, run: usize) -> Result<(), String> {
        if self.runs[run].parts >= PARTS || self.runs[run].is_over() {
            return Ok(());
        }
        self.runs[run].parts += 1;
        let process = self.number();
        let outside = Outside::new(self.now, self.random.next_u64());
        let hosts = self.runs[run].hosts.clone();
        let mut members = Vec::new();
        for (number, agent) in hosts.iter().enumerate() {
            members.push(match agent {
                None => Member::Program,
                Some(agent) => match self.connect(process, &outside, *agent) {
                    Some(connected) => Member::Agent(Box::new(End::new(&outside, connected))),
                    None if hosts.len() > 2 => Member::Lost(format!("host {number}"), "it does not answer".into()),
                    None => {
                        self.cut_lines_of(process);
                        let at = self.later(20_000_000_000);
                        self.schedule(at, Due::Start { run });
                        return Ok(());
                    }
                },
            });
        }
        // A run needs one of its hosts.
        if members.iter().all(|member| !matches!(member, Member::Agent(_))) {
            let at = self.later(20_000_000_000);
            self.schedule(at, Due::Start { run });
            return Ok(());
        }
        let fleet = Fleet::new(&outside, members, "a plan");
        let (order, resumed) = self.runs[run].order(self.clock_ns + self.now.as_nanos() as u64);
        let dialogue = Dialogue::new(&outside, conduct(fleet, order, resumed));
        self.processes.insert(process, Process { run, outside, dialogue, deadline: None });
        if let Some(after) = self.kills.pop_front() {
            self.schedule(self.now + after, Due::KillProcess { process });
        }
        let [kills, _, _, _, stops] = self.faults.events;
        if self.runs[run].parts < PARTS {
            for _ in 0..kills {
                let at = self.later(40_000_000_000);
                self.schedule(at, Due::KillProcess { process });
            }
            if stops > 1 {
                let at = self.later(40_000_000_000);
                self.schedule(at, Due::Stop { process });
            }
        }
        // In the end every user loses patience.
        let at = self.later(10_000_000_000) + Duration::from_secs(900);
        self.schedule(at, Due::Stop { process });
        self.go_on(process, None)
    }

    fn go_on(&mut self, process: u64, event: Option<Event>) -> Result<(), String> {
        let Some(own) = self.processes.get_mut(&process) else { return Ok(()) };
        let actions = own.dialogue.on(self.now, self.clock_ns + self.now.as_nanos() as u64, event);
        let most = ACTIONS * self.runs[own.run].hosts.len();
        if actions.len() > most {
            return Err(format!("{} actions follow from one event", actions.len()));
        }
        for action in actions {
            self.act(process, action)?;
        }
        let Some(own) = self.processes.get_mut(&process) else { return Ok(()) };
        if let Some((Conducted { result, .. }, used)) = own.dialogue.end() {
            let run = own.run;
            self.results_used += used;
            self.processes.remove(&process);
            self.cut_lines_of(process);
            return self.ended(run, &result);
        }
        let deadline = own.dialogue.deadline();
        if deadline != own.deadline {
            own.deadline = deadline;
            if let Some(at) = deadline {
                self.schedule(at.max(self.now), Due::Timer { process });
            }
        }
        self.pass_on(process)
    }

    /// A part of a run has ended by itself: one that could not go on is continued later, as by its user.
    fn ended(&mut self, run: usize, result: &Result<(), DialogueError>) -> Result<(), String> {
        if let Err(error) = result {
            let at = self.later(30_000_000_000);
            self.runs[run].errors.push(error.clone());
            self.schedule(at, Due::Start { run });
        } else {
            self.runs[run].finished()?;
        }
        Ok(())
    }

    fn act(&mut self, process: u64, action: Action) -> Result<(), String> {
        match action {
            Action::Send(line, message) => self.send_to_agent(process, line, message),
            Action::AcceptUpTo(..) => {}
            Action::Close(line) | Action::Cut(line) => {
                if let Some(number) = self.link_of(process, line) {
                    self.end_link(number, Duration::ZERO);
                }
            }
            Action::Show(event) => {
                let run = self.processes[&process].run;
                return self.runs[run].store(*event);
            }
            Action::Work(id, what) => {
                let takes = match &what {
                    Work::Connect { .. } => self.delay_ns * 3,
                    Work::Test { .. } => 2_000_000_000,
                    _ => 1,
                };
                let at = self.later(takes);
                self.schedule(at, Due::Done { process, id, what });
            }
        }
        Ok(())
    }

    fn done(&mut self, process: u64, id: WorkId, what: Work) -> Result<(), String> {
        let Some(own) = self.processes.get(&process) else { return Ok(()) };
        let (outside, run) = (own.outside.clone(), own.run);
        let fault = |kind| Answer::Failed(Fault { number: 0, kind, said: "it does not answer".into() });
        let answer = match what {
            Work::Connect { host } => {
                let agent = self.runs[run].hosts[host];
                match agent.and_then(|agent| self.connect(process, &outside, agent)) {
                    Some(connected) => Answer::Connected(Box::new(connected)),
                    None => fault(FailureKind::Host),
                }
            }
            Work::Test { number, legs, .. } => {
                let end = |tally: EndTally| EndResult { tallies: vec![tally; legs.len()], ..EndResult::default() };
                let bytes = 1_000 + u64::from(number);
                let near = end(EndTally { bytes_sent: bytes, sending_ns: 1_000, ..EndTally::default() });
                let far = Some(end(EndTally { bytes_received: bytes, receiving_ns: 1_000, ..EndTally::default() }));
                match self.faults.fails_one_in {
                    Some(many) if self.random.below(many) == 0 => fault(FailureKind::Run),
                    _ => Answer::Tested(Box::new(BothEnds { near, far, failure: None }), Vec::new()),
                }
            }
            Work::Address { port, .. } => Answer::Address(SocketAddr::from(([192, 0, 2, 1], port))),
            Work::ReadLinks => Answer::NoLab,
            Work::Disk(_) => Answer::Bytes(0),
            Work::SetLinks(_) | Work::BeginLinks | Work::ForgetPath(_) => Answer::Done,
        };
        self.go_on(process, Some(Event::Done(id, answer)))
    }

    fn kill(&mut self, process: u64) {
        if let Some(own) = self.processes.remove(&process) {
            self.cut_lines_of(process);
            let (run, at) = (own.run, self.later(20_000_000_000));
            self.schedule(at, Due::Start { run });
        }
    }

    /// The process of an agent ends. What it has kept and changed is on its disk: the next one reverts the settings.
    fn kill_agent(&mut self, agent: usize) {
        let side = &mut self.agents[agent];
        if side.life.take().is_none() {
            return;
        }
        side.machine = Machine::new(side.slots, side.rules.clone(), side.machine.host.after_restart());
        self.cut_links_of(agent, Duration::ZERO);
        let at = self.later(30_000_000_000);
        self.schedule(at, Due::StartAgent { agent });
    }

    /// What holds at any time.
    fn check(&mut self, number: usize) -> Result<(), String> {
        if let Some(side) = self.agents.get_mut(number) {
            let running = side.machine.agent.queue().running();
            if running > side.slots {
                return Err(format!("{running} measurements run on host {number} with {} slots", side.slots));
            }
            side.machine
                .host
                .check(side.machine.agent.measurements())
                .map_err(|error| format!("host {number}: {error}"))?;
        }
        Ok(())
    }

    /// What holds when nothing happens any more.
    fn check_end(&mut self) -> Result<(), String> {
        if let Some((process, own)) = self.processes.first_key_value() {
            return Err(format!("process {process} of run {} waits for ever", own.run));
        }
        for (number, side) in self.agents.iter_mut().enumerate() {
            let agent = &mut side.machine.agent;
            let left = [agent.clients(), agent.measurements(), agent.queue().running(), agent.queue().waiting()];
            if left != [0; 4] {
                return Err(format!("left at host {number}: {left:?} clients, measurements, slots and waiting ones"));
            }
            side.machine.host.check_end().map_err(|error| format!("host {number}: {error}"))?;
        }
        let faultless = self.has_all_processes
            && self.faults.cut_one_in.is_none()
            && self.faults.fails_one_in.is_none()
            && self.faults.hostile == 0
            && self.faults.events[..3] == [0; 3]
            && self.faults.events[4] == 0;
        self.runs.iter().try_for_each(|run| run.check_end(faultless))
    }
}

/// What a command does with a fleet that it has reached.
async fn conduct(mut fleet: Fleet, order: protocol::coordinator::RunOrder, resumed: bool) -> (Conducted, usize) {
    let outside = fleet.outside().clone();
    match outside.unless_stopped(fleet.acquire(|_, _| {})).await {
        Some(Ok(())) => {}
        Some(Err(error)) => return (Conducted { result: Err(error), left: Vec::new() }, 0),
        None => return (Conducted { result: Err(DialogueError::Interrupted), left: Vec::new() }, 0),
    }
    fleet.keep_results_of(&order.header);
    if resumed {
        fleet.recall_results().await;
    }
    let conducted = fleet.conduct(order).await;
    let _ = fleet.release_machines().await;
    if conducted.result.is_ok() {
        fleet.forget_results();
    }
    let used = fleet.recalled();
    fleet.release();
    (conducted, used)
}

/// A line of the trace.
fn short(due: &Due) -> String {
    let text = format!("{due:?}");
    text.chars().take(300).collect()
}
