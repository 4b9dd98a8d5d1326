//! A coordinator of simulated tests: it may be killed at any time, and continued with its store or, on another host, from the bus.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use analysis::Context;
use analysis::plan::{Slot, round};
use anyhow::{anyhow, ensure};
use bus::{Bus, BusAccess, BusStream, Place, place};
use clap::Args;
use futures_util::{StreamExt, stream};
use model::{EndTally, Ending, Event, EventSink, Ledger, Pass, Run, Trial};
use session::run::on_bus::{OnBus, bring};
use store::{Recorder, Store};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use crate::agents::tell;
use crate::mesh::{Answer, Mesh, Question};

/// The run's id.
pub(crate) const RUN: &str = "simulated";
/// Time between two attempts.
const RETRY: Duration = Duration::from_millis(200);
/// How often the bus is asked for the run at the start.
const ATTEMPTS: u32 = 100;
/// Time limit for an answer, beside the length of the test.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// The bus.
    #[arg(long)]
    url: String,
    /// Its store.
    #[arg(long)]
    store: PathBuf,
    #[command(flatten)]
    mesh: Mesh,
    #[command(flatten)]
    tests: Tests,
}

/// The simulated tests.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Tests {
    /// Length of a test, ms.
    #[arg(long, default_value_t = 20)]
    pub(crate) time_ms: u64,
    /// Most tests at the same time.
    #[arg(long, default_value_t = 64)]
    pub(crate) at_once: usize,
}

/// Says `begun N` with the number of trials that it has, `done N` after each one, `recalled` for each one that its agents had kept, and
/// `finished`.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let place = place(&options.url)?;
    fetch(&place, &options.store)?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(conduct(options, place))
}

/// Brings the run from the bus into a store that does not have it.
pub(crate) fn fetch(place: &Place, store: &Path) -> anyhow::Result<()> {
    let mut attempts = 0;
    while let Err(failure) = bring(RUN, place, Some(store)) {
        attempts += 1;
        ensure!(attempts < ATTEMPTS, "the run cannot be brought from the bus: {failure}");
        std::thread::sleep(RETRY);
    }
    Ok(())
}

async fn conduct(options: &Options, place: Place) -> anyhow::Result<()> {
    let (mesh, tests) = (options.mesh, options.tests);
    let store = Store::open(&options.store)?;
    let bus = connected(&place).await;
    let mut kept = Kept::begin(&store, &bus, place, mesh).await?;
    tell(&format!("begun {}", kept.count()))?;
    let slots = mesh.slots();
    let hosts: Vec<Mutex<Option<Line>>> = (0..mesh.hosts).map(|_| Mutex::new(None)).collect();
    for number in 0..mesh.rounds {
        for step in round(&slots, 1, Some(mesh.seed), number) {
            let left: Vec<u32> = step.into_iter().filter(|cell| kept.done(*cell) <= number).collect();
            let test = |cell| test(&bus, &hosts, &slots[cell as usize], number, tests.time_ms);
            let mut ended = stream::iter(left).map(test).buffer_unordered(tests.at_once);
            while let Some((cell, answers)) = ended.next().await {
                kept.result(cell, number, answers)?;
                if answers.iter().all(|answer| answer.kept) {
                    tell("recalled")?;
                }
                tell(&format!("done {}", kept.count()))?;
            }
        }
    }
    kept.end().await?;
    tell("finished")?;
    Ok(())
}

async fn connected(place: &Place) -> Bus {
    loop {
        match Bus::connect(place, &BusAccess::default()).await {
            Ok(bus) => return bus,
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}

/// A connection to an agent.
type Line = BufReader<BusStream>;

/// Both hosts of a pair are asked at the same time; the trial is joined of their answers.
async fn test(bus: &Bus, hosts: &[Mutex<Option<Line>>], slot: &Slot, round: u32, time_ms: u64) -> (u32, [Answer; 2]) {
    let question = Question { cell: slot.cell, round, time_ms, keep: true };
    let [near, far] = [slot.near, slot.far].map(|host| ask(bus, &hosts[host], host, question));
    let (near, far) = tokio::join!(near, far);
    (slot.cell, [near, far])
}

/// Asks a host until it answers: it, or the bus, may be down.
pub(crate) async fn ask(bus: &Bus, line: &Mutex<Option<Line>>, host: usize, question: Question) -> Answer {
    let mut line = line.lock().await;
    loop {
        if line.is_none() {
            *line = bus.open(&Mesh::name(host)).await.ok().map(|(stream, _)| BufReader::new(stream));
        }
        if let Some(open) = line.as_mut() {
            let limit = ANSWER_LIMIT + Duration::from_millis(question.time_ms);
            if let Ok(Some(answer)) = tokio::time::timeout(limit, exchange(open, question)).await {
                return answer;
            }
            *line = None;
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn exchange(line: &mut Line, question: Question) -> Option<Answer> {
    let mut asked = serde_json::to_vec(&question).ok()?;
    asked.push(b'\n');
    line.write_all(&asked).await.ok()?;
    let mut answer = String::new();
    line.read_line(&mut answer).await.ok()?;
    serde_json::from_str(&answer).ok()
}

/// The run in the store and on the bus.
struct Kept {
    recorder: Recorder,
    on_bus: OnBus,
    run: Run,
    trials: BTreeMap<u32, Vec<Trial>>,
    next_pass: u32,
}

impl Kept {
    async fn begin(store: &Store, bus: &Bus, place: Place, mesh: Mesh) -> anyhow::Result<Self> {
        let mut recorder = store.recorder()?;
        let loaded = store.load(RUN).ok();
        let is_new = loaded.is_none();
        let (run, mut trials) = match loaded {
            Some(loaded) => {
                recorder.resume(RUN)?;
                let stored =
                    loaded.run.outcomes.iter().flat_map(|outcome| outcome.trials.clone()).chain(loaded.orphans);
                let trials: Vec<Trial> = stored.collect();
                (Run { outcomes: Vec::new(), findings: Vec::new(), ending: None, ..loaded.run }, trials)
            }
            None => (Run::new(mesh.header(RUN)), Vec::new()),
        };
        trials.sort_by_key(|trial| trial.pass);
        let on_bus = loop {
            let earlier = (!is_new).then_some((&run, trials.as_slice()));
            match OnBus::begin(bus.clone(), place.clone(), RUN, earlier).await {
                Ok(begun) => break begun,
                Err(_) => tokio::time::sleep(RETRY).await,
            }
        };
        let last = run.passes.iter().map(|pass| pass.index).chain(trials.iter().map(|trial| trial.pass)).max();
        let mut of_cell: BTreeMap<u32, Vec<Trial>> = BTreeMap::new();
        trials.into_iter().for_each(|trial| of_cell.entry(trial.cell).or_default().push(trial));
        let header = run.header.clone();
        let mut kept = Self { recorder, on_bus, run, trials: of_cell, next_pass: last.map_or(0, |last| last + 1) };
        if is_new {
            kept.event(&Event::Run(header))?;
        }
        Ok(kept)
    }

    /// Number of all trials.
    fn count(&self) -> usize {
        self.trials.values().map(Vec::len).sum()
    }

    /// Number of the trials of a cell.
    fn done(&self, cell: u32) -> u32 {
        self.trials.get(&cell).map_or(0, |trials| trials.len() as u32)
    }

    /// As every sink of a run on a bus: the store first.
    fn event(&mut self, event: &Event) -> anyhow::Result<()> {
        self.recorder.event(event)?;
        self.on_bus.event(event);
        Ok(())
    }

    fn result(&mut self, cell: u32, round: u32, [near, far]: [Answer; 2]) -> anyhow::Result<()> {
        let pass = self.next_pass;
        self.next_pass += 1;
        let trial = Trial {
            cell,
            pass,
            position: 0,
            near: EndTally { bytes_sent: near.bytes, ..EndTally::default() }.into(),
            far: EndTally { bytes_received: far.bytes, ..EndTally::default() }.into(),
            ledger: Ledger::default(),
            value: Some(8.0 * far.bytes as f64),
            verdicts: Vec::new(),
        };
        self.trials.entry(cell).or_default().push(trial.clone());
        self.event(&Event::Trial(trial))?;
        self.event(&Event::Pass(Pass { index: pass, round: Some(round), ..Pass::default() }))
    }

    async fn end(mut self) -> anyhow::Result<()> {
        let trials = std::mem::take(&mut self.trials);
        for cell in self.run.header.cells.clone() {
            let own = trials.get(&cell.id).cloned().unwrap_or_default();
            self.event(&Event::Outcome(analysis::outcome(&cell, own, &self.run.header.stopping, Context::default())))?;
        }
        self.event(&Event::End(Ending { how: "finished".into(), ..Ending::default() }))?;
        self.on_bus.finish().await.map_or(Ok(()), |line| Err(anyhow!(line)))
    }
}
