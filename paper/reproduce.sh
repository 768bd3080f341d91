#!/bin/sh
# Runs every study behind the figures of this repository, one after the other, into the folder OUTPUT.
#
#   paper/reproduce.sh OUTPUT             what takes minutes
#   COMPLETE=1 paper/reproduce.sh OUTPUT  what takes hours as well
#
# Needs the commands of Hanse on PATH, and the recorded logs: those of HANSE_TRACES, or `scenario fetch` gets them.
# A study that was interrupted goes on where it was.
set -eu
[ $# -eq 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
output=$1
mkdir -p "$output"
[ -n "${HANSE_TRACES:-}" ] || scenario fetch kth ctc sdsc05 sdsc00

study() { # NAME COMMAND…
    name=$1
    shift
    echo "== $name"
    "$@" --output "$output/$name"
}
study table-1 scenario run table-1-six-months --no-html
study decentralized-grid scenario paper decentralized-grid --shipped
study utility-scheduling scenario paper utility-scheduling
study greedy-criteria scenario paper greedy-criteria
study genetic-fuzzy scenario paper genetic-fuzzy
study kinds-of-nodes scenario study kinds-of-nodes
study malleability scenario study malleability
study questions-and-delays scenario study questions-and-delays
study nobody-loses scenario study nobody-loses
study gorba-rescheduling scenario paper gorba-rescheduling
if [ -n "${COMPLETE:-}" ]; then
    study decentralized-grid-complete scenario paper decentralized-grid
    study genetic-fuzzy-complete scenario paper genetic-fuzzy --complete
    study questions-and-delays-complete scenario study questions-and-delays --complete
fi
echo "Figures beside those of the papers: $output/*/study.html"
