#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One node's part of a Ray cluster, as a task of srun --ddp: Ray's head and the
# program run on rank 0's node, and the other nodes serve until it has ended.
#
#     srun --ddp --ntasks-per-node=1 bash ray_node.sh PROGRAM [ARGUMENT...]
#
# Ray's port is the step's, its other ports are any that are free, and its files
# are in a folder of their own, so that several jobs can share a node. (Of
# ray[client] there can be one head a node: its port is always 10001.)
set -u

export RAY_ADDRESS=$MASTER_ADDR:$MASTER_PORT
export RAY_raylet_start_wait_time_s=300		# on a busy node
files=$(mktemp -d /tmp/ray.XXXXXX) || exit 1
trap 'rm -rf "$files"' EXIT
unset OMP_NUM_THREADS	# Ray sets it for its workers, by what each asks for
start=(ray start --block --temp-dir "$files" --num-cpus "$(nproc)"
	--dashboard-agent-listen-port 0 --disable-usage-stats)

head_is_up()
{
	(: <"/dev/tcp/$MASTER_ADDR/$MASTER_PORT") 2>/dev/null
}

# Once its port is open, the head needs a while to be joined.
join()
{
	for _ in 1 2 3 4 5; do
		head_is_up || return
		"${start[@]}" --address "$RAY_ADDRESS"
	done
}

if test "$NODE_RANK" -eq 0; then
	"${start[@]}" --head --port "$MASTER_PORT" --include-dashboard false \
		--node-ip-address "$MASTER_ADDR" >"$files/log" 2>&1 &
else
	until head_is_up; do sleep 1; done
	join >"$files/log" 2>&1 &
fi
ray=$!

# ray_is_up: or else print what Ray has said
ray_is_up()
{
	kill -0 "$ray" 2>/dev/null || {
		cat "$files/log" >&2
		return 1
	}
}

status=0
if test "$NODE_RANK" -eq 0; then
	# Go on when all nodes are there.
	until head_is_up && python3 -c 'import os, ray, time
ray.init(log_to_driver=False, logging_level="error")
nodes = int(os.environ["GROUP_WORLD_SIZE"])
while sum(node["Alive"] for node in ray.nodes()) < nodes:
    time.sleep(1)' >>"$files/log" 2>&1; do
		ray_is_up || exit 1
		sleep 1
	done
	"$@"
	status=$?
else
	while head_is_up; do
		ray_is_up || exit 1
		sleep 1
	done
fi
# Ray's processes end with that which started them, without the minute for which
# they would look for the head.
pkill -KILL -P "$ray" || kill -KILL "$ray"
wait
exit "$status"
