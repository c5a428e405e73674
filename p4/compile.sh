#!/bin/sh
# Compiles tributary.p4 and writes what is committed beside it: the program for
# bmv2, its P4Info, and the digests of all sources and both. It needs p4c
# (p4c-bm2-ss on the path, or in P4C) and jq. Then `go generate` writes the
# constants of package p4 anew.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${P4C:-p4c-bm2-ss}" --std p4-16 --arch v1model --p4runtime-files "$work/info.txt" -o "$work/program.json" tributary.p4

jq -c -f bmv2.jq "$work/program.json" >tributary.json
cp "$work/info.txt" tributary.p4info.txtpb
sha256sum tributary.p4 stages/*.p4 bmv2.jq tributary.json tributary.p4info.txtpb >tributary.sum
