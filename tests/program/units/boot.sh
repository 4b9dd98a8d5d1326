#!/bin/bash
# Boots systemd as process 1 of new namespaces with the units of packaging/, and runs client.sh there as a unit: boot.sh THRU PACKAGING FOLDER.
# client.sh and what it writes are in FOLDER. The host's files are read only or covered; what systemd makes of control groups is in groups of
# their own, which the caller removes by `boot.sh --clean FOLDER`.
set -eu

# The hierarchies of control groups: one, or one for each controller.
hierarchies() {
    if [ -e /sys/fs/cgroup/cgroup.procs ]; then echo /sys/fs/cgroup; else ls -d /sys/fs/cgroup/*; fi
}

if [ "$1" = --clean ]; then
    # Processes of a system that was killed take a moment to end.
    for _ in $(seq 100); do
        left=""
        for hierarchy in $(hierarchies); do
            own=$hierarchy/$(basename "$2")
            [ ! -d "$own" ] || find "$own" -depth -type d -exec rmdir {} + 2>/dev/null || left=$own
        done
        [ -n "$left" ] || exit 0
        sleep 0.1
    done
    echo "$left is left" >&2
    exit 1
fi

if [ "$1" != --inside ]; then
    for hierarchy in $(hierarchies); do
        own=$hierarchy/$(basename "$3")
        { mkdir "$own" && echo $$ >"$own/cgroup.procs"; } 2>/dev/null || true
    done
    exec unshare --mount --pid --fork --kill-child --mount-proc --uts --ipc --net --cgroup "$0" --inside "$@"
fi

thru=$2 packaging=$3 folder=$4
mount --make-rprivate /
mount --bind "$folder" /mnt
mount -t tmpfs tmpfs /srv
for covered in etc usr/local; do
    mkdir -p "/srv/$covered/new" "/srv/$covered/work"
    mount -t overlay overlay -o "lowerdir=/$covered,upperdir=/srv/$covered/new,workdir=/srv/$covered/work" "/$covered"
done
cp "$thru" /usr/local/bin/thru
cp "$packaging"/*.service "$packaging/thru.sysusers" /srv/
mount -t tmpfs -o mode=755 tmpfs /run
for covered in /tmp /var/tmp /var/lib /var/log; do
    mount -t tmpfs -o mode=1777 tmpfs "$covered"
done
chmod 755 /var/lib
ip link set lo up

# As docs/manual/security.md says.
mkdir -p /run/systemd/system /etc/throughline /etc/sysusers.d
cp /srv/*.service /run/systemd/system/
cp /srv/thru.sysusers /etc/sysusers.d/thru.conf
systemd-sysusers
thru token new -o /etc/throughline/token

# systemd passes a credential by access lists of a file system in memory, which not every kernel has. The rest of the unit is as it is.
chown -R thru: /etc/throughline
mkdir /run/systemd/system/thru-agent.service.d /run/systemd/system/thru-helper.service.d
cat >/run/systemd/system/thru-agent.service.d/test.conf <<'UNIT'
[Service]
LoadCredential=
ExecStart=
ExecStart=/usr/local/bin/thru serve --listen 0.0.0.0 --listen [::] --token-file /etc/throughline/token --key-file %S/throughline/agent.key --helper /run/throughline/helper.sock --allow-tuning
StandardError=append:/mnt/agent.log
UNIT
cat >/run/systemd/system/thru-helper.service.d/test.conf <<'UNIT'
[Service]
StandardError=append:/mnt/helper.log
UNIT
# Nothing else starts: other units would set up the machine.
for target in sysinit basic; do
    printf '[Unit]\nDescription=%s\n' "$target" >"/run/systemd/system/$target.target"
done
cat >/run/systemd/system/client.service <<'UNIT'
[Unit]
After=thru-agent.service thru-helper.service
[Service]
Type=oneshot
ExecStart=/bin/bash /mnt/client.sh
StandardOutput=append:/mnt/client.log
StandardError=append:/mnt/client.log
UNIT
cat >/run/systemd/system/all.target <<'UNIT'
[Unit]
DefaultDependencies=no
Wants=thru-agent.service thru-helper.service client.service
UNIT
exec env -i container=other PATH="$PATH" /lib/systemd/systemd --system --unit=all.target --log-target=null --show-status=no
