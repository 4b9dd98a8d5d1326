//! Runs in every form: listed, shown, exported, drawn.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;

use program::{Agent, Sandbox, skip};

/// Of a curve, three times a millisecond of each size are enough.
const SHORT: [&str; 6] = ["--trials", "3", "--time", "1ms", "--no-ceiling", "--quiet"];

/// A short curve and a stream, by name.
struct Kept {
    sandbox: Sandbox,
    agent: Agent,
}

impl Kept {
    fn new() -> Self {
        Self::up_to("4KiB")
    }

    /// With a curve up to `last`.
    fn up_to(last: &str) -> Self {
        let (sandbox, agent) = (Sandbox::new(), Agent::start());
        let curve = ["curve", "--to", last, "--name", "short", agent.host()];
        sandbox.run(&[&curve[..], &SHORT[..]].concat()).ok();
        sandbox.run(&["stream", "--time", "50ms", "--trials", "3", "--name", "bulk", "--quiet", agent.host()]).ok();
        Self { sandbox, agent }
    }

    fn export(&self, run: &str, format: &str, to: &str) {
        self.sandbox.run(&["export", run, "--format", format, "-o", to]).ok();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.sandbox.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

/// Files of a folder with an ending.
fn files(folder: &Path, ending: &str) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|found| found == ending)).collect()
}

fn assert_png(path: &Path) {
    let bytes = fs::read(path).unwrap();
    // Signature and first chunk (PNG specification, 5.2 and 11.2.2): width and height are not 0.
    assert_eq!(bytes[..8], [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a], "{}", path.display());
    assert_eq!(&bytes[12..16], b"IHDR", "{}", path.display());
    let size = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    assert!(size(16) > 100 && size(20) > 100 && bytes.len() > 2_000, "{} x {}", size(16), size(20));
}

/// Nothing in a page is fetched from elsewhere: addresses may stand only where XML wants a name for its namespace.
fn assert_self_contained(page: &str) {
    for (at, _) in page.match_indices("://") {
        let around: String = page.chars().skip(page[..at].chars().count().saturating_sub(40)).take(100).collect();
        // The name of a namespace of XML, which nothing loads.
        assert!(page[at..].starts_with("://www.w3.org/"), "an address in the page: {around}");
    }
    for fetched in ["<script src", "<link", "@import", "url(http", "<iframe", "<img src=\"http"] {
        assert!(!page.contains(fetched), "the page fetches something: {fetched}");
    }
}

#[test]
fn a_whole_default_curve_has_netpipes_124_lines() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let doc = sandbox.measure(&["curve", "--trials", "3", "--time", "1ms", "--np", "np.out", agent.host()]);
    program::check::document(&doc, "the default sizes");
    let text = fs::read_to_string(sandbox.path("np.out")).unwrap();
    let rows: Vec<Vec<f64>> = text
        .lines()
        .map(|line| line.split_whitespace().map(|number| number.parse().expect("a number")).collect())
        .collect();
    assert_eq!(rows.len(), 124, "{text}");
    assert!(rows.iter().all(|row| row.len() == 3), "{text}");
    assert_eq!((rows[0][0], rows[123][0]), (1.0, 8_388_611.0));
    assert!(rows.windows(2).all(|pair| pair[0][0] < pair[1][0]), "sizes go up");
    let sizes = model::NetpipeSizes::DEFAULT.list();
    for (row, block) in rows.iter().zip(sizes) {
        // NetPIPE's own rule: Mbps are 2^20 bit/s, the time is half a round trip. Its columns keep some six digits.
        let rate = row[0] * 8.0 / row[2] / f64::from(1 << 20);
        assert!(row[0] as u64 == block && (rate / row[1] - 1.0).abs() < 0.02, "{row:?}");
    }
    // The document says the same: netpipe_bps is decimal.
    let largest = doc.run.outcomes.iter().find(|outcome| outcome.spec.block == 8_388_611).unwrap();
    let ratio = largest.summary.netpipe_bps.unwrap() / (rows[123][1] * f64::from(1 << 20));
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
    let kinds: Vec<String> = doc.run.findings.iter().map(|finding| format!("{:?}", finding.kind)).collect();
    for kind in ["Latency", "Peak", "Saturation"] {
        assert!(kinds.iter().any(|found| found == kind), "{kind} is among the findings: {kinds:?}");
    }
    assert!(
        doc.run.outcomes.iter().any(|outcome| outcome.spec.transport == model::TransportName::Memcpy),
        "the memory ceiling is there"
    );
}

#[test]
fn np_files_of_other_curves_have_their_sizes() {
    let kept = Kept::new();
    kept.export("short", "np", "np.out");
    let sizes = model::NetpipeSizes { last: 4 << 10, ..model::NetpipeSizes::DEFAULT }.list();
    let text = kept.read("np.out");
    let blocks: Vec<u64> =
        text.lines().map(|line| line.split_whitespace().next().unwrap().parse::<f64>().unwrap() as u64).collect();
    assert_eq!(blocks, sizes);
    let screen = kept.sandbox.run(&["export", "short", "--format", "np-screen"]).ok().stdout;
    assert!(screen.contains("Mbps") && screen.lines().count() >= sizes.len(), "{screen}");
}

#[test]
fn csv_has_a_line_for_each_outcome() {
    let kept = Kept::new();
    kept.export("short", "csv", "run.csv");
    let text = kept.read("run.csv");
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    for column in ["block", "rtt_p50_ns", "netpipe_bps", "ci95_low", "trust"] {
        assert!(columns.iter().any(|found| found.contains(column)), "{column} in {columns:?}");
    }
    let outcomes = kept.sandbox.run(&["show", "short", "--json"]).ok().doc().run.outcomes.len();
    let rows: Vec<&str> = lines.collect();
    assert_eq!(rows.len(), outcomes, "{text}");
}

#[test]
fn runs_are_found_by_what_people_call_them() {
    let kept = Kept::up_to("8");
    let id = |reference: &str| kept.sandbox.run(&["show", reference, "--json"]).ok().doc().run.header.id;
    assert_eq!(id("last"), id("bulk"));
    assert_eq!(id("last~1"), id("short"));
    assert_eq!(id(&id("short")), id("short"));
    let list = kept.sandbox.run(&["runs"]).ok().stdout;
    for word in ["short", "bulk", "curve", "stream"] {
        assert!(list.contains(word), "{word} in:\n{list}");
    }
    assert!(list.lines().all(|line| line.chars().count() <= 80) && !list.contains('\u{1b}'), "{list}");
    let sorted = kept.sandbox.run(&["runs", "--sort", "name", "-n", "1"]).ok().stdout;
    assert!(sorted.contains("\nbulk ") && sorted.contains("\n1 more: `thru runs -n 2 --sort name"), "{sorted}");
    let unknown = kept.sandbox.run(&["show", "shirt"]);
    assert_ne!(unknown.code, Some(0));
    assert!(unknown.message().contains("short"), "a near match is offered: {}", unknown.stderr);
    assert_ne!(kept.sandbox.run(&["show", "last~9"]).code, Some(0));
    // A store of its own has its own runs.
    let empty = kept.sandbox.run(&["runs", "--store", "other.sqlite"]).ok().stdout;
    assert!(!empty.contains("short"), "{empty}");
    // What is not kept is not listed.
    kept.sandbox.run(&["transfer", "--count", "1", "--name", "unkept", "--no-store", kept.agent.host()]).ok();
    assert!(!kept.sandbox.run(&["runs"]).ok().stdout.contains("unkept"));
}

#[test]
fn pages_and_pictures_stand_alone() {
    let kept = Kept::new();
    let report = |args: &[&str]| kept.sandbox.run(&[&["report"], args].concat()).ok();
    report(&["short", "-o", "page.html"]);
    let page = kept.read("page.html");
    assert_self_contained(&page);
    let figures = |page: &str| program::page::data(page)["figures"].as_array().unwrap().len();
    assert!(figures(&page) >= 3 && page.contains("short"), "the figures are in the page");
    // Two runs over each other.
    let again = ["curve", "--to", "4KiB", "--name", "again", "-6", kept.agent.host_v6()];
    kept.sandbox.run(&[&again[..], &SHORT[..]].concat()).ok();
    report(&["short", "again", "-o", "both.html"]);
    let both = kept.read("both.html");
    assert_self_contained(&both);
    let texts = program::page::texts(&both);
    assert!(texts.contains("short") && texts.contains("again"), "both runs are named");
    report(&["short", "again", "-o", "pictures.svg"]);
    let drawings = files(&kept.sandbox.path(""), "svg");
    assert!(!drawings.is_empty());
    for drawing in &drawings {
        let text = fs::read_to_string(drawing).unwrap();
        assert!(text.contains("<svg") && text.contains("short") && text.contains("again"), "{}", drawing.display());
        assert_self_contained(&text);
    }
    report(&["short", "-o", "pictures.png"]);
    let pictures = files(&kept.sandbox.path(""), "png");
    assert!(!pictures.is_empty());
    pictures.iter().for_each(|picture| assert_png(picture));
    // One figure alone goes to standard output too.
    assert!(figures(&kept.sandbox.run(&["export", "bulk", "--format", "html"]).ok().stdout) >= 1);
}

#[test]
fn gnuplot_draws_what_was_exported() {
    if !skip::program("gnuplot_draws_what_was_exported", "gnuplot", "gnuplot-nox") {
        return;
    }
    let kept = Kept::new();
    // Into a folder, and as a file with its data beside it.
    kept.export("short", "gnuplot", "plots");
    kept.export("bulk", "gnuplot", "plots/bulk.gp");
    let folder = kept.sandbox.path("plots");
    let scripts = files(&folder, "gp");
    assert_eq!(scripts.len(), 2, "{:?}", fs::read_dir(&folder).unwrap().collect::<Vec<_>>());
    for script in &scripts {
        let name = script.file_name().unwrap().to_str().unwrap();
        for settings in ["term=\"png\"", "term=\"eps\"", "term=\"eps\"; mono=1"] {
            let mut command = std::process::Command::new("gnuplot");
            // In the locale C it warns of a degree sign that no script has.
            command.args(["-e", settings, name]).current_dir(&folder).env("LC_ALL", "C.UTF-8");
            let drawn = program::Running::of(command).wait().ok();
            assert!(!drawn.stderr.contains("warning"), "{name}: {}", drawn.stderr);
        }
    }
    let (pictures, prints) = (files(&folder, "png"), files(&folder, "eps"));
    assert!(!pictures.is_empty() && !prints.is_empty(), "{:?}", fs::read_dir(&folder).unwrap().collect::<Vec<_>>());
    pictures.iter().for_each(|picture| assert_png(picture));
    for print in prints {
        assert!(fs::read(&print).unwrap().starts_with(b"%!PS-Adobe"), "{}", print.display());
    }
}

#[test]
fn what_is_shown_names_values_with_units_and_trust() {
    let kept = Kept::new();
    let text = kept.sandbox.run(&["show", "bulk"]).ok().stdout;
    assert!(text.contains("bit/s") && text.contains("bulk"), "{text}");
    let curve = kept.sandbox.run(&["show", "short", "--all"]).ok().stdout;
    for word in ["4 KiB", "us", "Latency"] {
        assert!(curve.to_lowercase().contains(&word.to_lowercase()), "{word} in:\n{curve}");
    }
    // Without --all the answer fits on a screen.
    let answer = kept.sandbox.run(&["show", "short"]).ok().stdout;
    assert!(answer.lines().count() <= 28 && answer.contains("Latency") && answer.contains("4 KiB"), "{answer}");
}

#[test]
fn generated_pages_and_completions_are_there() {
    let sandbox = Sandbox::new();
    sandbox.run(&["generate", "man", "man"]).ok();
    let pages = files(&sandbox.path("man"), "1");
    assert!(pages.len() > 10, "{pages:?}");
    for page in pages {
        assert!(fs::read_to_string(&page).unwrap().contains(".TH"), "{}", page.display());
    }
    // Examples stay lines: man(1) fills text that is not marked.
    let help = sandbox.run(&["stream", "--help"]).ok().stdout;
    let page = fs::read_to_string(sandbox.path("man/thru-stream.1")).unwrap().replace("\\-", "-");
    let (_, section) = page.split_once(".SH EXAMPLES\n.nf\n").unwrap();
    let (examples, notes) = section.split_once("\n.fi\n.SH NOTES\n.nf\n").unwrap();
    assert!(examples.lines().count() > 5 && help.contains(examples) && !page.contains("Examples:"), "{examples}");
    assert!(notes.starts_with("iperf3 options that work here") && notes.ends_with(".fi\n"), "{notes}");
    assert!(fs::read_to_string(sandbox.path("man/thru.1")).unwrap().contains("\n.SH VERSION"));
    sandbox.run(&["generate", "completions", "completions"]).ok();
    assert!(fs::read_dir(sandbox.path("completions")).unwrap().count() >= 4);
    let help = sandbox.run(&["--help"]).ok().stdout;
    for command in ["serve", "curve", "stream", "rr", "transfer", "runs", "show", "report", "export", "host"] {
        assert!(help.contains(command), "{command}");
        let own = sandbox.run(&[command, "--help"]).ok().stdout;
        assert!(own.contains("thru") && own.contains("Usage"), "{own}");
    }
}

#[test]
fn a_host_describes_itself() {
    let sandbox = Sandbox::new();
    let text = sandbox.run(&["host"]).ok().stdout;
    assert!(text.contains("kernel") && text.contains("lo"), "{text}");
    let json: model::Inventory = serde_json::from_str(&sandbox.run(&["host", "--json"]).ok().stdout).unwrap();
    assert!(json.interfaces.iter().any(|found| found.name == "lo"), "{json:?}");
}
