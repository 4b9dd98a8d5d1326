//! Agents that stand for hosts: each has a connection and a name of its own on the bus.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, BusAccess, BusStream, Contact, Place, attend, place};
use clap::Args;
use store::AgentResults;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::mesh::{Answer, Mesh, Question};

/// Time between two attempts to reach the bus.
const RETRY: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// The bus.
    #[arg(long)]
    url: String,
    /// Number of the first host.
    #[arg(long)]
    first: usize,
    /// Number of hosts of this process.
    #[arg(long)]
    count: usize,
    /// The file in which they keep results.
    #[arg(long)]
    results: PathBuf,
    #[command(flatten)]
    mesh: Mesh,
}

/// Says `ready`, waits for a line, takes the names, says `leased`, and answers until it is killed.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    tell("ready")?;
    std::io::stdin().lock().read_line(&mut String::new())?;
    let place = place(&options.url)?;
    let results = Arc::new(AgentResults::open(&options.results)?);
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let hosts = options.first..options.first + options.count;
        let leased =
            futures_util::future::join_all(hosts.map(|host| begin(&place, host, options.mesh, results.clone()))).await;
        tell("leased")?;
        // They are held for as long as the process lives.
        futures_util::future::join_all(leased).await;
        Ok(())
    })
}

/// Takes a host's name, as soon as the bus is there and the name is free; what is returned answers for ever.
async fn begin(place: &Place, host: usize, mesh: Mesh, results: Arc<AgentResults>) -> impl Future<Output = ()> + use<> {
    let name = Mesh::name(host);
    let (attendance, mut arrived) = loop {
        let contact = Contact { port: Some(6280), key: format!("key of {name}"), ..Contact::default() };
        if let Ok(bus) = Bus::connect(place, &BusAccess::default()).await
            && let Ok(begun) = attend(&bus, &name, contact, |_| {}).await
        {
            break begun;
        }
        tokio::time::sleep(RETRY).await;
    };
    let answering = tokio::spawn(async move {
        while let Some(arrival) = arrived.recv().await {
            tokio::spawn(answer(arrival.stream, host, mesh, results.clone()));
        }
    });
    async move {
        let _ = answering.await;
        drop(attendance);
    }
}

/// A test whose coordinator is lost ends without a result, as with real agents.
async fn answer(stream: BusStream, host: usize, mesh: Mesh, results: Arc<AgentResults>) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(Question { cell, round, time_ms, keep }) = serde_json::from_str(&line) else { return };
        // The file belongs to all hosts of this process.
        let run = format!("{}, cell {cell}", Mesh::name(host));
        let kept = keep && is_kept(&results, &run, round);
        if !kept {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(time_ms)) => {}
                _ = lines.next_line() => return,
            }
        }
        if keep && !kept && results.keep(&run, round, &round.to_be_bytes()).is_err() {
            return;
        }
        let answer = Answer { bytes: mesh.bytes(host, cell, round), kept };
        let Ok(mut answer) = serde_json::to_vec(&answer) else { return };
        answer.push(b'\n');
        if write.write_all(&answer).await.is_err() {
            return;
        }
    }
}

/// Whether the result of a round is kept.
fn is_kept(results: &AgentResults, run: &str, round: u32) -> bool {
    let mut number = 0;
    while let Ok(Some((next, result))) = results.after(run, number) {
        if result == round.to_be_bytes() {
            return true;
        }
        number = next;
    }
    false
}

/// Tells the process that started this one.
pub(crate) fn tell(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
