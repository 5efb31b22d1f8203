# shellcheck shell=sh
# Of scripts in guests (./guests.py), which read it first: what ./run looks at is said by parts, and what takes time is waited
# for by the guest's clock, which is the host's.
unset LD_PRELOAD
# shellcheck disable=SC2034 # for those that read this file
nodewise=/lab/nodewise

# part TITLE…: what is said from here on.
part() { echo "@@ $*"; }
uptime() { read -r now _ </proc/uptime && now=${now%.*}; }
# within SECONDS CONDITION…: waits for what takes fewer seconds on a quiet host, three times as long where others have its
# CPUs as well; the condition's status at the end.
within() {
    uptime
    deadline=$((now + 3 * $1))
    shift
    until "$@"; do
        [ "$now" -lt $deadline ] || return 1
        usleep 50000
        uptime
    done
}
says() { grep -q "$1" "$2" 2>/dev/null; }
# huge_pages NODE COUNT: the size of a node's pool of 2 MiB pages. Where the node's memory lies in smaller pieces, the kernel
# makes fewer of them and says nothing: the page cache is given back, pieces are moved together, and it is asked again.
huge_pages() { within 10 pool_of "$@"; }
pool_of() {
    pool=/sys/devices/system/node/node$1/hugepages/hugepages-2048kB/nr_hugepages
    echo "$2" >"$pool"
    [ "$(cat "$pool")" = "$2" ] && return
    echo 3 >/proc/sys/vm/drop_caches
    echo 1 >/proc/sys/vm/compact_memory
    return 1
}
