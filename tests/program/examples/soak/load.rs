//! Connections by hand, from a process on the crowd's host: clients that wait or look in, and everything that is no client.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::counts::Counts;
use crate::shared::Load;
use crate::world::World;
use crate::{crowd, hostile};

/// Time for all connections to end.
const END: Duration = Duration::from_secs(30);

/// The process: `load ROOT OPEN SEED`. It ends with its input.
pub(crate) fn run(args: &[String]) {
    // A connection that the agent ends is counted, not reported.
    std::panic::set_hook(Box::new(|_| {}));
    let load = Load {
        root: args[0].clone(),
        open: args[1].clone(),
        counts: Counts::default(),
        clients: Arc::default(),
        stop: Arc::default(),
        begun: Instant::now(),
        seed: args[2].parse().unwrap(),
    };
    crowd::start(&load);
    hostile::start(&load);
    let stop = load.stop.clone();
    let input = std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        stop.store(true, Ordering::SeqCst);
    });
    let say = || {
        let clients = load.clients.load(Ordering::SeqCst);
        println!("{}", serde_json::json!({"clients": clients, "counts": load.counts.all()}));
    };
    while load.goes_on() {
        say();
        std::thread::sleep(Duration::from_millis(500));
    }
    let deadline = Instant::now() + END;
    while load.clients.load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    say();
    let _ = input.join();
}

/// That process, from outside.
pub(crate) struct Loads {
    child: Child,
    said: Arc<Mutex<serde_json::Value>>,
}

impl Loads {
    pub(crate) fn start(world: &World, seed: u64) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut command = world.host("crowd").command(program);
        command.args(["load", world.root.host(), world.open.host(), &seed.to_string()]).process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let said = Arc::new(Mutex::new(serde_json::Value::Null));
        let last = said.clone();
        std::thread::spawn(move || {
            let values = lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok());
            values.for_each(|value| *last.lock().unwrap() = value);
        });
        Self { child, said }
    }

    /// Its authenticated clients at the moment.
    pub(crate) fn clients(&self) -> usize {
        self.said.lock().unwrap()["clients"].as_u64().unwrap_or(0) as usize
    }

    pub(crate) fn stop(mut self) -> BTreeMap<String, u64> {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + END + Duration::from_secs(5);
        while self.child.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        let said = self.said.lock().unwrap()["counts"].clone();
        serde_json::from_value(said).unwrap_or_default()
    }
}

impl Drop for Loads {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
