# Removes the namespaces of a lab, with the processes in them and their hosts files, and then its record in the journal
# and the files beside it.
#
# Arguments: path of the ip command, file of the record, namespaces. Starts when its standard input ends: the lab's owner
# holds the only write end of that pipe and never writes. Exits with 0 when nothing is left.

trap '' HUP INT QUIT TERM PIPE
read -r never

ip=$1
record=$2
shift 2

# Whether a namespace exists. If that cannot be determined, it counts as existing.
exists() {
    names=$("$ip" netns list) || return 0
    printf '%s\n' "$names" | while read -r name rest; do
        [ "$name" = "$1" ] && exit 3
    done
    [ $? -eq 3 ]
}

left=0
for namespace; do
    rm -f -- "/etc/netns/$namespace/hosts"
    [ -d "/etc/netns/$namespace" ] && rmdir -- "/etc/netns/$namespace"
    tries=0
    while exists "$namespace"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 200 ]; then
            left=1
            break
        fi
        pids=$("$ip" netns pids "$namespace" 2>/dev/null)
        if [ -n "$pids" ]; then
            # One process number per word. Killed processes need a moment to end.
            kill -KILL $pids 2>/dev/null
            sleep 0.05
        else
            "$ip" netns delete "$namespace" 2>/dev/null || sleep 0.05
        fi
    done
done

# The directory is removed too if a lab made it and nothing else uses it.
made=/etc/netns/.throughline
[ -e "$made" ] && [ "$(ls -A /etc/netns)" = .throughline ] && rm -f -- "$made" && rmdir /etc/netns

[ "$left" -eq 0 ] && rm -f -- "${record%.json}.sock" "${record%.json}.token" "${record%.json}.agents" "$record"
