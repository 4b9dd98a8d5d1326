# A machine of its own for the commands of a page: `machine.sh THRU HOME` in new network, mount and process namespaces. It is near, the
# host of the reader; a, b and c are far hosts behind a switch of 100 Mbit/s, each with an agent that knows the user of near; apart is
# where the page starts agents. It ends with its standard input, and nothing of it stays.
set -e
thru=$1 home=$2

# What belongs to this machine alone: /etc, the names of namespaces, the records of labs.
mount -t sysfs sysfs /sys
mount -t bpf bpf /sys/fs/bpf 2>/dev/null || true
mount -t tmpfs tmpfs /run
mkdir /run/netns /run/etc
cp -a /etc/. /run/etc
mount --bind /run/etc /etc
mkdir -p /etc/netns
mount -t tmpfs tmpfs /var/lib
# Settings of the whole kernel stay as they are.
for folder in fs kernel vm; do
    mount --bind /proc/sys/$folder /proc/sys/$folder
    mount -o remount,ro,bind /proc/sys/$folder
done
useradd --system --no-create-home thru 2>/dev/null || true

# join HOST ADDRESS...
join() {
    local host=$1 address place=() peer=()
    shift
    if [ "$host" != near ]; then
        ip netns add "$host"
        place=(-n "$host") peer=(netns "$host")
    fi
    ip "${place[@]}" link set lo up
    ip link add "port-$host" netns switch mtu 9000 type veth peer name eth0 mtu 1500 "${peer[@]}"
    ip -n switch link set "port-$host" master br0
    ip -n switch link set "port-$host" up
    ip "${place[@]}" link set eth0 up
    for address; do
        ip "${place[@]}" address add "$address/24" dev eth0
    done
    ip "${place[@]}" address add "fd00::${1##*.}/64" dev eth0 nodad
    tc "${place[@]}" qdisc add dev eth0 root tbf rate 100mbit burst 32kb latency 50ms
}
ip netns add switch
ip -n switch link add br0 mtu 9000 type bridge
ip -n switch link set br0 up
join near 10.0.0.1 192.0.2.1 198.18.97.1 10.93.0.1 203.0.113.1
join b 10.0.0.2 192.0.2.2 198.18.97.2 10.93.0.2 203.0.113.9
join a 10.0.0.3
join c 10.0.0.4
ip link add eth1 type veth peer name spare netns switch
ip link set eth1 up
ip netns add apart
ip -n apart link set lo up
for address in 10.0.0.1 10.0.0.2 192.0.2.2; do
    ip -n apart address add $address dev lo
done
cat >>/etc/hosts <<'HOSTS'
10.0.0.1 bus.example
10.0.0.2 HOST B b server lab1 n1
10.0.0.3 A a n2
10.0.0.4 C c n3
HOSTS
for number in $(seq -w 16); do
    echo "10.0.0.4 node$number" >>/etc/hosts
done

# Agents, with the far user's folder, where they keep whom they know: one has an invitation to give, and speaks to the clients of other
# programs as well; one serves the loopback of near.
[ -e "$home/token" ] || HOME=$home/far "$thru" token new -o "$home/token"
mkdir -p "$home/far/packets"
chown thru "$home/far/packets"
serve() {
    local host=$1
    shift
    HOME=$home/far ip netns exec "$host" "$thru" serve "$@" --token-file "$home/token" --allow-tuning --allow-stacks \
        --allow-capture="$home/far/packets" >"$home/$host.out" 2>"$home/$host.log" </dev/null &
    until_printed "$host.log"
}
# until_printed FILE: what the last agent listens on, the second IP version last.
until_printed() {
    until grep -q 'listening on \[::' "$home/$1"; do
        kill -0 $! || { cat "$home/$1" >&2 && exit 1; }
        sleep 0.02
    done
}
serve b --invite --speak iperf3,netperf,netpipe,nuttcp,nttcp,stamp --speak-listen :: --speak-open
serve a --invited
serve c --invited
tc qdisc add dev lo root tbf rate 200mbit burst 256kb latency 50ms
HOME=$home/home "$thru" serve --speak iperf3 >"$home/near.out" 2>"$home/near.log" </dev/null &
until_printed near.log
until grep -q -- --code "$home/b.out"; do sleep 0.02; done
echo ready
# A shell waits for processes whose parents have ended, as the first process of a machine does.
while read -r _; do :; done
