//! What readers have, and what they do before and beside the commands of pages. Each entry is of a page, by the end of its path, and of
//! commands, by a part of them.

/// The end of a page's path, a part of its command, and what holds for it.
pub(super) type Entry<T> = (&'static str, &'static str, T);

/// A curve, with the name of a run in the tasks.
pub(super) const CURVE: &str = "thru curve HOST --to 16 --budget 2s --name A";
/// Streams and curves with the names that other pages give them.
pub(super) const RUNS: [&str; 2] = [
    "thru stream HOST -t 100ms --trials 3 && thru export last -f json -o stream.json && \
     for name in A1 A2 A3 B1 B2 B3 p1 p2 outbound return; do thru import stream.json --name $name; done",
    "thru export A -f json -o curve.json && \
     for name in before after mtu1500 mtu9000 blocking spinning B; do thru import curve.json --name $name; done",
];

const STACK: &str = "[ -e mine.bpf.c ] || thru stacks info aimd --source >mine.bpf.c; thru stacks info aimd --header >stack.h; \
                     sed -i s/aimd/mine/g mine.bpf.c; clang -g -O2 -target bpf -mcpu=v3 -c mine.bpf.c -o mine.bpf.o";
const KEYS: &str = "openssl genrsa -out private.pem 2048; echo me,e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 \
                    >users.csv";
const BUS: &str = "nats-server -js -sd ~/nats & sleep 1; for host in a c; do HOME=~/$host ip netns exec $host thru serve --listen \
                   0.0.0.0:6290 --open --bus nats://bus.example/$host & done; sleep 1";

/// Not on the agent that serves nuttcp, whose data has the same port.
const IPERF2: &str =
    "ip netns exec b thru serve --listen 127.0.0.1:0 --speak iperf2 --speak-listen 10.0.0.2 --speak-open & sleep 1";

/// What a reader does before a command, in words of a shell: what the page says in prose, and what only this reader has to do.
pub(super) const BEFORE: [Entry<&str>; 16] = [
    (
        "",
        "--a-file a.json",
        "thru stream HOST -t 100ms --trials 1; thru show last --json | jq '.outcomes[0].spec' | tee a.json >b.json",
    ),
    (
        "",
        "agent dismiss",
        "echo SHA256:doArXuB0H26TPmBZaOfN2IriJYtWy63GsmjnIwFEQkU 192.0.2.1 >>~/.local/share/throughline/known_clients",
    ),
    ("", "--token-file FILE", "[ -e FILE ] || cp ../token FILE"),
    ("token.txt", "thru curve", "cp ../token thru.token"),
    ("", "serve --listen :: --token-file FILE --bus", "ip netns exec apart nats-server -js -sd ~/nats-apart & sleep 1"),
    ("fleet.md", "fleet check nats:", BUS),
    ("import.md", "thru show 1998-netperf.txt-2", "thru import 1998-netperf.txt"),
    ("import.txt", "import np.out", "thru export A -f np -o np.out; rm ~/.local/share/throughline/runs.sqlite"),
    ("lake.md", "export nightly", "thru import stream.json --name nightly"),
    ("output.md", "--format np2", "thru curve HOST --to 1KiB"),
    ("show.txt", "--as iperf3", "thru stream HOST -t 100ms --trials 1"),
    ("", "--speak iperf2", IPERF2),
    ("speak.md", "--rsa-private-key-path", KEYS),
    ("stacks.md", "--cc-rules FILE", "cp wad.conf FILE"),
    ("", "stacks load ./mine.bpf.o", STACK),
    ("tune.txt", "apply /etc/sysctl.d", "cp 90-net.conf /etc/sysctl.d/"),
];

/// Seconds for commands that take longer than others and whose results are needed, or that cannot end earlier.
pub(super) const LONGER: [Entry<u64>; 4] = [
    ("", "for i in 1 2 3", 30),
    ("lab-run.txt", "nordunet-2002", 20),
    ("", "--flows 10000", 60),
    ("emulate-a-path.md", "iperf3 -c geneva", 20),
];

/// Commands that need what is not here, and what that is.
pub(super) const ELSEWHERE: [Entry<&str>; 9] = [
    ("", "thru fleet up", "ssh, Slurm or MPI on far hosts: tests/fleet_launch.rs"),
    ("", "thru fleet down", "what `thru fleet up` started"),
    ("", "thru mesh slurm: ", "a job of Slurm: scripts/slurm.sh"),
    ("", "--transport pvm", "a virtual machine of PVM: tests/pvm.rs"),
    (
        "run.txt",
        "mtu.toml --var host=B --var device=eth0 --resume",
        "a quiet machine, for which the plan waits: tests/plans.rs",
    ),
    ("serve.md", "HOST:7000", "a firewall that forwards ports: tests/data_addresses.rs"),
    ("", "module.", "a module of a real host: crates/host/src/tune/tests.rs"),
    ("tune.md", "set pci.", "a device of a real host: crates/host/src/tune/tests.rs"),
    ("", "2003-land-speed.toml --lab", "limits of the whole machine: scripts/seeds.sh"),
];
