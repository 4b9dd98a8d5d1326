#!/usr/bin/env bash
# `thru fleet up --via srun` in a job of a real Slurm: one node, this host, whose daemons run for the time of this test (root). All of
# their files are in a folder that is removed.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

[ "$(id -u)" = 0 ] || die "this test needs root: Slurm's daemons run as root"
if ! have slurmctld || ! have slurmd || ! have munged; then
    may_install || die "missing: slurm-wlm munge" "run: $(apt_command slurm-wlm munge)"
    as_root apt-get update -q
    apt_install slurm-wlm munge
fi
scripts/setup.sh build
find_rust
cargo build --quiet --locked -p throughline --bins
thru=$PWD/${CARGO_TARGET_DIR:-target}/debug/thru

folder=$(mktemp -d)
chmod 755 "$folder"
stop() {
    pkill -TERM -F "$folder/slurmd.pid" 2>/dev/null || true
    pkill -TERM -F "$folder/slurmctld.pid" 2>/dev/null || true
    pkill -TERM -F "$folder/munged.pid" 2>/dev/null || true
    sleep 1
    rm -rf -- "$folder"
}
trap stop EXIT

node=$(hostname -s)
mkdir -m 700 "$folder/munge"
mkdir "$folder/state" "$folder/spool" "$folder/run"
head -c 1024 /dev/urandom >"$folder/munge/key"
chmod 400 "$folder/munge/key"
munged --force --num-threads=4 --key-file="$folder/munge/key" --seed-file="$folder/munge/seed" --log-file="$folder/munge/log" \
    --pid-file="$folder/munged.pid" --socket="$folder/run/munge"
cat >"$folder/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket=$folder/run/munge
CredType=cred/munge
SlurmUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
export SLURM_CONF=$folder/slurm.conf
slurmctld
slurmd
for _ in {1..60}; do
    [ "$(sinfo --noheader --format %t 2>/dev/null)" != idle ] || break
    sleep 0.5
done

cat >"$folder/job" <<JOB
#!/usr/bin/env bash
#SBATCH --nodes=1 --output=$folder/out
set -euo pipefail
export XDG_DATA_HOME=$folder/data THRU_STORE=$folder/runs THRU_KNOWN_AGENTS=$folder/known THRU_CONFIG=
"$thru" fleet up slurm: --via srun
"$thru" fleet check slurm:
token=\$("$thru" fleet show slurm: | sed -n 's/^token_file = "\(.*\)"/\1/p')
"$thru" rr "\$SLURM_JOB_NODELIST" --token-file "\$token" --time 100ms --trials 2
"$thru" fleet down slurm:
echo "the job is done"
JOB
timeout 120 sbatch --wait "$folder/job" || { cat "$folder/out" "$folder/slurmctld.log" && die "the job failed"; }
cat "$folder/out"
for wanted in "1 of 1 agents run" "1 host can measure" "1 of 1 agents are stopped" "the job is done"; do
    grep -q "$wanted" "$folder/out" || die "the job's output lacks: $wanted"
done
! pgrep -f "$thru serve --listen 0.0.0.0" >/dev/null || die "an agent is left"
