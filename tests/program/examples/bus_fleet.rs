//! How long a coordinator takes to have many agents, over a bus and over TCP in turn: `bus_fleet [AGENTS]`, 2,000 by default.
//!
//! The agents are those of `thru serve`, each with a key, a port, a queue and a connection to the bus of its own, in one process
//! without workers; the coordinator is in the same process. So the time is that of both sides, on the cores of this machine.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement stops at the first surprise")]
#![allow(clippy::print_stdout, reason = "it prints its figures")]

use std::future::pending;
use std::time::{Duration, Instant};

use bus::{BusAccess, Buses, Present, place};
use control::agent::{Agent, AgentOptions, BusOptions};
use control::coordinator::{End, Target};
use control::proto::fingerprint::Fingerprint;
use control::{Access, AgentKey, KnownKeys, Recognized};
use futures_util::StreamExt;
use futures_util::stream::iter;
use model::Family;
use program::bus::BusServer;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Agents that are reached at the same time.
const AT_ONCE: usize = 200;

/// Any key: the agents are of this process.
struct AnyKey;

impl KnownKeys for AnyKey {
    fn check(&self, _: &str, _: &Fingerprint) -> Result<Recognized, String> {
        Ok(Recognized::Known)
    }

    fn keep(&self, _: &str, _: &Fingerprint) -> String {
        String::new()
    }
}

fn main() {
    let count: usize = std::env::args().nth(1).map_or(2000, |count| count.parse().expect("a number of agents"));
    let files = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files });
    let server = BusServer::start("bus_fleet").expect("nats-server");
    let bus = place(&server.url()).unwrap();
    let folder = session::setup::socket_directory().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let begun = Instant::now();
        for number in 0..count {
            let at = place(&bus.of(&format!("n{number}"))).unwrap();
            let options = AgentOptions {
                bus: Some(BusOptions { place: at, access: BusAccess::default() }),
                ..session::setup::local_options(folder.path()).unwrap()
            };
            let key = AgentKey::fresh().unwrap();
            tokio::spawn(async move {
                let served = Agent::serve(options, key, &[([127, 0, 0, 1], 0).into()], pending()).await;
                served.expect("an agent");
            });
        }
        let buses = Buses::default();
        let here = buses.to(&bus).await.unwrap();
        while here.present().await.unwrap().len() < count {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        println!("{count} agents on the bus after {:.2} s", begun.elapsed().as_secs_f64());
        for round in 0..6 {
            let begun = Instant::now();
            let over_bus = round % 2 == 0;
            let agents = here.present().await.unwrap();
            let listed = begun.elapsed();
            let host = |agent: &Present| match agent.contact.port {
                Some(port) if !over_bus => format!("127.0.0.1:{port}"),
                _ => bus.of(&agent.name),
            };
            let hosts: Vec<String> = agents.iter().map(host).collect();
            let reach = async |host: &String| {
                let access = Access { token: None, keys: Box::new(AnyKey), buses: buses.clone() };
                let mut end = End::connect(Target::Remote { host, access: &access, family: Family::Any }).await?;
                end.acquire("a measurement of the bus", |_| {}).await?;
                Ok::<End, control::ControlError>(end)
            };
            let ends: Vec<_> = iter(&hosts).map(reach).buffer_unordered(AT_ONCE).collect().await;
            let held = begun.elapsed();
            let failed = ends.iter().filter(|end| end.is_err()).count();
            println!(
                "{}: {} listed after {:.3} s, {} held after {:.3} s, {failed} failed",
                if over_bus { "bus" } else { "tcp" },
                hosts.len(),
                listed.as_secs_f64(),
                ends.len() - failed,
                held.as_secs_f64()
            );
            if let Some(Err(error)) = ends.iter().find(|end| end.is_err()) {
                println!("  {error}");
            }
            iter(ends.into_iter().flatten()).for_each_concurrent(AT_ONCE, End::release).await;
        }
    });
    runtime.shutdown_background();
}
