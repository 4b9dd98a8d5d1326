# What a client and an administrator do beside the agent; units.rs reads what it prints.
export HOME=/tmp
for _ in $(seq 300); do
    grep -q 'listening on \[::\]' /mnt/agent.log && break
    sleep 0.1
done
agent=$(systemctl show -P MainPID thru-agent)
for name in Uid CapPrm CapBnd NoNewPrivs Seccomp; do
    grep "^$name:" "/proc/$agent/status"
done
measure() { thru "$@" --token-file /etc/throughline/token --no-store --quiet --json - | tr -d ' \n' | grep -o '"how":"[a-z]*"'; }
measure stream 127.0.0.1 --no-path --time 100ms --trials 1
measure rr ::1 --no-path --time 100ms --trials 1
measure stream ::1 --transport udp --flows 2 --no-path --time 100ms --trials 1
measure stream 127.0.0.1 --transport udp --no-path --time 100ms --trials 1
idle=/proc/sys/net/ipv4/tcp_slow_start_after_idle
echo "before: $(cat $idle)"
thru tune set sysctl.net.ipv4.tcp_slow_start_after_idle=0 127.0.0.1 --token-file /etc/throughline/token --for 3s >/tmp/tune.log 2>&1 &
for _ in $(seq 100); do
    [ "$(cat $idle)" = 0 ] && break
    sleep 0.05
done
echo "set: $(cat $idle)"
wait
echo "after: $(cat $idle)"
cat /tmp/tune.log
systemctl stop thru-agent thru-helper
for unit in thru-agent thru-helper; do
    echo "$unit: $(systemctl show -P Result $unit), started again $(systemctl show -P NRestarts $unit) times"
done
touch /mnt/done
