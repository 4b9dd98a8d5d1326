//! `thru web`: who may see the page, what it refuses, and what its end leaves.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use program::process::{Signal, eventually};
use program::{Agent, Running, Sandbox};
use serde_json::{Value, json};

/// The page of a sandbox, whose sockets are in it, too.
struct Page {
    sandbox: Sandbox,
    process: Running,
    /// Address and port.
    at: String,
    token: String,
}

/// An answer.
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Page {
    fn open() -> Self {
        Self::of(Sandbox::new())
    }

    fn of(sandbox: Sandbox) -> Self {
        let command = sandbox.command(&["web", "--listen", "127.0.0.1:0"]);
        let mut process = Running::of(in_it(&sandbox, command));
        process.until_printed("\n");
        let address = process.stdout();
        let (at, token) = address.trim().trim_start_matches("http://").split_once("/#token=").unwrap();
        let (at, token) = (at.to_owned(), token.to_owned());
        Self { sandbox, process, at, token }
    }

    /// A request with these lines in its head, besides the body's.
    fn ask(&self, request: &str, head: &[String], body: &str) -> Answer {
        let mut socket = TcpStream::connect(&self.at).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let lines = head.iter().map(|line| format!("{line}\r\n")).collect::<String>();
        let length = body.len();
        let more = format!("Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close");
        write!(socket, "{request} HTTP/1.1\r\n{lines}{more}\r\n\r\n{body}").unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: answer[end + 4..].to_vec() }
    }

    fn host(&self) -> String {
        format!("Host: {}", self.at)
    }

    fn authorization(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), &[self.host(), self.authorization()], "")
    }

    /// As the page itself sends it.
    fn post(&self, path: &str, body: &Value) -> Answer {
        let head = [self.host(), self.authorization(), format!("Origin: http://{}", self.at)];
        self.ask(&format!("POST {path}"), &head, &body.to_string())
    }

    fn thru(&self, args: &[&str]) -> Running {
        Running::of(in_it(&self.sandbox, self.sandbox.command(args)))
    }

    /// Where runs look for the page.
    fn sockets(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.sandbox.path("runtime/throughline/followers"));
        entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    }
}

fn in_it(sandbox: &Sandbox, mut command: std::process::Command) -> std::process::Command {
    let folder = sandbox.path("runtime");
    if !folder.exists() {
        std::fs::create_dir(&folder).unwrap();
    }
    command.env("XDG_RUNTIME_DIR", folder);
    command
}

#[test]
fn the_page_is_for_who_has_the_token_and_its_address() {
    let page = Page::open();
    page.sandbox.run(&["stream", "--transport", "shm", "--time", "50ms", "--trials", "3", "--name", "secret"]).ok();
    let (host, authorization) = (page.host(), page.authorization());
    let shell = page.ask("GET /", std::slice::from_ref(&host), "");
    let text = String::from_utf8_lossy(&shell.body).into_owned();
    assert!(shell.status == 200 && text.contains("<script>") && !text.contains("secret"), "no data without the token");
    let policy = shell.head.lines().find(|line| line.starts_with("content-security-policy")).unwrap();
    for part in ["default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "script-src 'sha256-"] {
        assert!(policy.contains(part), "{policy}");
    }
    // The drawing of figures is WebAssembly; no text becomes code.
    assert!(!policy.replace("'wasm-unsafe-eval'", "").contains("unsafe"), "{policy}");

    assert_eq!(page.get("/api/runs").status, 200);
    let wrong = format!("Authorization: Bearer {}x", page.token);
    let other = "Host: attacker.example:6290".to_owned();
    for path in ["runs", "page?run=secret", "live", "forms", "agents", "agent", "look", "compare?a=1&b=2", "nothing"] {
        let request = format!("GET /api/{path}");
        for head in [vec![host.clone()], vec![host.clone(), wrong.clone()]] {
            let refused = page.ask(&request, &head, "");
            assert_eq!((refused.status, refused.body.windows(6).any(|six| six == b"secret")), (401, false), "{path}");
        }
        // A name that an attacker lets point to this address.
        assert_eq!(page.ask(&request, &[other.clone(), authorization.clone()], "").status, 421, "{path}");
    }
    // One of two names could be another site's.
    for hosts in [[&host, &other], [&other, &host], [&host, &host]] {
        let head: Vec<String> = hosts.into_iter().chain([&authorization]).cloned().collect();
        assert!(matches!(page.ask("GET /api/runs", &head, "").status, 400 | 421));
    }
    let id = page.get("/api/runs").json()["runs"][0]["id"].as_str().unwrap().to_owned();
    for request in [format!("DELETE /api/runs/{id}"), format!("POST /api/runs/{id}"), "POST /api/tests".to_owned()] {
        for origin in [None, Some("null"), Some("http://127.0.0.1:1"), Some("https://attacker.example")] {
            let head: Vec<String> = [host.clone(), authorization.clone()]
                .into_iter()
                .chain(origin.map(|origin| format!("Origin: {origin}")))
                .collect();
            assert_eq!(page.ask(&request, &head, "{}").status, 403, "{request} {origin:?}");
        }
    }
    assert_eq!(page.get("/api/runs").json()["runs"][0]["name"], "secret", "it is still there");
    assert_eq!(page.get("/api/nothing").status, 404);
}

#[test]
fn the_page_starts_only_what_its_forms_offer() {
    let page = Page::open();
    let forms = page.get("/api/forms").json();
    let forms = forms.as_array().unwrap();
    let commands: Vec<&str> = forms.iter().map(|form| form["command"].as_str().unwrap()).collect();
    assert_eq!(commands, ["check", "stream", "rr", "curve", "transfer", "ab", "mesh", "run"]);
    for form in forms {
        for field in form["fields"].as_array().unwrap() {
            let name = field["name"].as_str().unwrap();
            assert!(
                !["json", "store", "no-store", "np", "token-file", "until-input-ends", "help"].contains(&name),
                "{name}"
            );
            // No file of the choice of who has the token.
            assert!(!["capture", "fetch", "rsa-public-key-path", "username"].contains(&name), "{name}");
            assert!(!matches!(field["value"].as_str(), Some("FILE" | "DIR")), "{field}");
        }
    }
    let file = page.sandbox.path("written").display().to_string();
    for body in [
        json!({ "command": "lab", "subject": "run" }),
        json!({ "command": "stream", "options": [["json", file]] }),
        json!({ "command": "stream", "options": [["capture", file]] }),
        json!({ "command": "stream", "subject": format!("--json={file}") }),
        json!({ "command": "stream", "options": [["time", null]] }),
        json!({ "command": "stream", "options": [["transport", "nosuch"]] }),
        json!({ "command": "stream", "options": [["transport", "memcpy"], ["payload", "/etc/passwd"]] }),
        json!({ "command": "stream", "subject": "127.0.0.1:9" }),
    ] {
        let refused = page.post("/api/tests", &body);
        let error = refused.json()["error"].as_str().unwrap_or_default().to_owned();
        assert!(refused.status == 400 && !error.is_empty(), "{body} {error}");
    }
    assert!(!std::path::Path::new(&file).exists());
    assert_eq!(page.post("/api/tests", &json!({ "command": 1 })).status, 422);
    let started = page.post(
        "/api/tests",
        &json!({ "command": "rr", "options": [["transport", "unix"], ["time", "20ms"], ["trials", "3"]] }),
    );
    assert_eq!(started.status, 200, "{}", started.json());
    let id = started.json()["run"].as_str().unwrap().to_owned();
    eventually("the run is stored", || {
        page.get("/api/runs").json()["runs"]
            .as_array()
            .unwrap()
            .iter()
            .any(|run| run["id"] == id.as_str() && run["ending"] == "finished")
    });
    let data = page.get(&format!("/api/page?run={id}"));
    let length = u32::from_le_bytes(data.body[..4].try_into().unwrap()) as usize;
    let shown: Value = serde_json::from_slice(&data.body[4..4 + length]).unwrap();
    assert_eq!(shown["runs"][0]["command"], "thru rr --transport=unix --time=20ms --trials=3");
    assert_eq!(page.post(&format!("/api/runs/{id}"), &json!({ "tags": ["x".repeat(100)] })).status, 400);
}

#[test]
fn one_test_at_a_time_and_it_ends_with_the_page() {
    let agent = Agent::start();
    let page = Page::open();
    let body = json!({ "command": "stream", "subject": agent.host(), "options": [["time", "200ms"], ["trials", "500"], ["budget", "100s"]] });
    let started = page.post("/api/tests", &body);
    assert_eq!(started.status, 200, "{}", started.json());
    let id = started.json()["run"].as_str().unwrap().to_owned();
    let second = page.post("/api/tests", &body);
    assert!(second.status == 409 && second.json()["error"].as_str().unwrap().contains("stop it first"));
    // What runs is not deleted.
    let head = [page.host(), page.authorization(), format!("Origin: http://{}", page.at)];
    assert_eq!(page.ask(&format!("DELETE /api/runs/{id}"), &head, "").status, 400);
    eventually("a trial is stored", || page.get(&format!("/api/page?run={id}")).status == 200);
    page.process.signal(Signal::KILL);
    eventually("the test ends, too, and keeps its trials", || {
        let run = page.sandbox.run(&["export", &id, "--format", "json"]);
        run.code == Some(0) && run.doc().run.ending.is_some_and(|ending| ending.how == "interrupted")
    });
    // The next page removes the socket of the one that was killed.
    assert_eq!(page.sockets().len(), 1);
    let Page { sandbox, .. } = page;
    let next = Page::of(sandbox);
    assert_eq!(next.sockets().len(), 1);
    next.process.signal(Signal::TERM);
    assert_eq!(next.process.wait().code, Some(0));
}

#[test]
fn a_run_of_the_command_line_is_told_and_stopped_by_every_page() {
    let agent = Agent::start();
    let page = Page::open();
    let mut others = Running::of(in_it(&page.sandbox, page.sandbox.command(&["web", "--listen", "127.0.0.1:0"])));
    others.until_printed("token=");
    assert_eq!(page.sockets().len(), 2);
    let run = page.thru(&["stream", agent.host(), "--time", "200ms", "--trials", "500", "--budget", "100s"]);
    // The stream of events, up to the run's first points.
    let mut events = TcpStream::connect(&page.at).unwrap();
    events.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(events, "GET /api/live HTTP/1.1\r\n{}\r\n{}\r\n\r\n", page.host(), page.authorization()).unwrap();
    let (mut told, mut part) = (String::new(), [0; 4096]);
    while !told.contains("\"bits_per_s\":") {
        let count = events.read(&mut part).unwrap();
        assert!(count > 0, "{told}");
        told.push_str(&String::from_utf8_lossy(&part[..count]));
    }
    let id = told.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let stopped = page.post(&format!("/api/live/{id}/stop"), &json!({}));
    assert_eq!(stopped.status, 200, "{}", stopped.json());
    let ended = run.wait();
    assert_eq!(ended.code, Some(130), "as after Ctrl-C: {}", ended.stderr);
    eventually("the page knows", || page.post(&format!("/api/live/{id}/stop"), &json!({})).status == 400);
    others.signal(Signal::TERM);
    assert_eq!(others.wait().code, Some(0));
    assert_eq!(page.sockets().len(), 1);
}

#[test]
fn a_port_in_use_is_named() {
    let page = Page::open();
    let refused = page.sandbox.run(&["web", "--listen", &page.at]).ended_with(7).message();
    assert!(refused.contains(&page.at) && refused.contains("another port"), "{refused}");
    page.sandbox.run(&["web", "--listen", "somewhere"]).ended_with(2);
}

#[test]
fn connections_without_the_token_are_few_and_keep_nobody_out() {
    let page = Page::open();
    let half = format!("GET / HTTP/1.1\r\n{}\r\nX: ", page.host());
    let held: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(&page.at).unwrap();
            stream.write_all(half.as_bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(page.get("/api/runs").status, 200);
    eventually("the oldest are closed", || {
        let closed = held.iter().filter(|stream| {
            stream.set_nonblocking(true).unwrap();
            // The end, or a reset: what it has sent was not read.
            stream.peek(&mut [0]).is_ok_and(|count| count == 0)
                || stream.take_error().unwrap().is_some()
                || stream.peek(&mut [0]).is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock)
        });
        closed.count() >= 150
    });
    assert_eq!(page.get("/api/runs").status, 200);
}
