"""What other programs' readers make of recorded outputs: jc, the iperf3 library and flent's own reader.

    python3 -m pip install --no-deps --target FOLDER jc==1.26.1 iperf3==0.1.11 flent==2.3.0
    PYTHONPATH=FOLDER python3 record.py > expected.json

The test `independent` compares the importers with it. Only what is in the output's own units is kept.
"""

import json
import pathlib
import statistics
import sys

import iperf3
import jc
from flent.resultset import ResultSet

DATA = pathlib.Path(__file__).parent.parent / "data"


def parsed(parser, name):
    return jc.parse(parser, (DATA / name).read_text(), quiet=True)


def ping(name):
    one = parsed("ping", name)
    replies = [reply for reply in one["responses"] if reply["type"] == "reply" and not reply["duplicate"]]
    summary = [one.get(f"round_trip_ms_{part}") for part in ("min", "avg", "max")]
    return {
        "sent": one["packets_transmitted"],
        "received": one["packets_received"],
        "times_ms": [reply["time_ms"] for reply in replies],
        "summary_ms": summary,
    }


def traceroute(name):
    hops = parsed("traceroute", name)["hops"]
    return [
        {
            "hop": hop["hop"],
            "addresses": list(dict.fromkeys(probe["ip"] for probe in hop["probes"] if probe["ip"])),
            "times_ms": [probe["rtt"] for probe in hop["probes"] if probe["rtt"] is not None],
        }
        for hop in hops
    ]


def numbers(rows, other=()):
    return [{key: value for key, value in row.items() if isinstance(value, (int, float)) or key in other} for row in rows]


def mpstat(name):
    return numbers((row for row in parsed("mpstat", name) if not row.get("average")), ("cpu", "time"))


def interfaces(name):
    return numbers(parsed("ifconfig", name), ("name", "mac_addr", "ipv4_addr"))


def bandwidth(name):
    result = iperf3.TestResult((DATA / name).read_text())
    kept = ("protocol", "sent_bytes", "sent_bps", "received_bytes", "received_bps", "retransmits", "blksize", "timesecs",
            "packets", "lost_packets", "jitter_ms", "local_cpu_total", "remote_cpu_total")
    return {key: getattr(result, key) for key in kept if getattr(result, key, None) is not None}


def flent(name):
    # The recording has no raw values, which its program always writes.
    results = ResultSet.unserialise({"raw_values": {}, **json.loads((DATA / name).read_text())})
    found = {}
    for series in results.series_names:
        values = [value for value in results.series(series) if value is not None]
        if values:
            found[series] = {"mean": statistics.fmean(values), "median": statistics.median(values)}
    return found


READERS = {
    "ping": (ping, ["ping6.txt", "pingq.txt", "bsd-ping6.txt"]),
    "traceroute": (traceroute, ["traceroute.txt", "traceroute_bsd.txt", "bsd-traceroute6.txt"]),
    "vmstat": (lambda name: numbers(parsed("vmstat", name)), ["vmstat.txt", "vmstat_a.txt", "vmstat_tw.txt"]),
    "mpstat": (mpstat, ["mpstat.txt", "mpstat_once.txt"]),
    "ifconfig": (interfaces, ["2005-ifconfig.txt"]),
    "iperf3": (bandwidth, ["iperf312_udp.json", "iperf316_day.json", "iperf321_tcp.json", "iperf321_tcp_R.json"]),
    "flent": (flent, ["rrul.flent"]),
}

if __name__ == "__main__":
    found = {tool: {name: read(name) for name in names} for tool, (read, names) in READERS.items()}
    json.dump(found, sys.stdout, indent=1, sort_keys=True)
    print()
