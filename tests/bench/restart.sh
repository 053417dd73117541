# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run
# How long a restart takes, compared with a launch.

# A rank: it leaves a file as soon as its program runs. In a first attempt rank 1
# fails when all have begun.
cat >begin <<'EOF'
#!/bin/sh
: >"begun/${RESTART_COUNT-plain}.$SLURM_PROCID"
test "${RESTART_COUNT-1}" = 0 || exit 0
test "$SLURM_PROCID" = 1 || exec sleep 1000
until test "$(ls begun | grep -c '^0[.]')" = "$WORLD_SIZE"; do sleep 0.05; done
: >begun/since
exit 3
EOF

# series ROUNDS RANKS: a line for each round, with both times in ms. In Slurm
# 22.05 a plain srun of many nodes can hang when its step has ended.
cat >series <<'EOF'
#!/bin/sh
# took NAME: from the file since to the last of NAME, of which there is one a rank
took()
{
	find begun -name "$1.*" -printf '%T@\n' | sort -n | awk -v ranks="$ranks" \
		-v since="$(find begun -name since -printf '%T@')" '
		END { if (NR != ranks) exit 1
			print ($1 - since) * 1e3 }'
}
restart()
{
	rm -f begun/*
	srun --ddp --ddp-restarts=1 ./begin && restart=$(took 1)
}
launch()
{
	rm -f begun/*
	: >begun/since
	timeout -k 1 60 srun --mpi=pmix ./begin
	launch=$(took plain)
}
ranks=$2
mkdir begun
for round in $(seq "$1"); do
	case $round in
	*[13579]) restart && launch || exit ;;
	*) launch && restart || exit ;;
	esac
	echo "$restart $launch"
done
EOF
chmod 755 begin series

restart()
{
	cluster --nodes "$restart_nodes" --gpus 2
	echo "restart, $restart_nodes nodes x 2 ranks, to all of them in main()"
	ratio_head
	on_login salloc -Q -N"$restart_nodes" --ntasks-per-node=2 --gres=gpu:2 \
		./series "$rounds" $((restart_nodes * 2)) >pairs.out 2>err ||
		die "a restart or a launch has failed: $(tail -n 20 err)"
	ratio 'a failure / plain srun'
}
