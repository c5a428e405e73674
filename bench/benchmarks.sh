#!/usr/bin/env bash
# Measures all that docs/benchmarks.md shows, and writes its tables. As root,
# with Go and the packages that bench/peers/README.md names; about eight minutes.
#
#   OUT   directory of what was measured (a new one)
#   RUN   command before each of the measurements, none of which takes over 150 s
#   PART  parts to measure again, of those in OUT; others keep what they have
set -euo pipefail
out=$(realpath -m "${OUT:-$(mktemp -d)}")
cd "$(dirname "$0")/.."
run=${RUN:-}
parts=${PART:-short middle long shaped unshaped groups stream loss}
mkdir -p "$out"
go build -C bench -o "$out/collbench" ./cmd/collbench

# part NAME SUBCOMMAND ARGUMENT...
part() {
	local name=$1
	shift
	case " $parts " in *" $name "*) ;; *) return 0 ;; esac
	echo "$name: collbench $*" >&2
	$run "$out/collbench" "$@" --format json >"$out/$name.json.new"
	mv "$out/$name.json.new" "$out/$name.json"
}

peers='peers --peers openmpi,gloo --rows'
part short $peers 8@200mbit,64KiB@200mbit,8@unshaped,64KiB@unshaped
part middle $peers 1MiB@200mbit,1MiB@unshaped,16MiB@unshaped
part long $peers 16MiB@200mbit

sizes='--bytes 8,64KiB,1MiB,16MiB'
part shaped fabric --transport offload --pace steady --rate 200mbit $sizes --iterations 3000,1000,200,12
part unshaped fabric --transport offload --pace steady $sizes --iterations 5000,3000,500,100

long='fabric --transport offload --rate 200mbit --bytes 16MiB'
part groups $long --groups 2 --iterations 10
part stream $long --beside-tcp --iterations 10
part loss $long --loss 0.01 --pace steady --iterations 12

"$out/collbench" report --into docs/benchmarks.md "$out"/*.json
echo "measured into $out" >&2
