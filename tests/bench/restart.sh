# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run
# How long a restart takes, compared with a launch and with one by hand.

# A rank: it leaves a file as soon as its program runs. In a first attempt rank 1
# fails when all have begun.
cat >begin <<'EOF'
#!/bin/sh
: >"begun/${RESTART_COUNT-plain}.$SLURM_PROCID"
test "${RESTART_COUNT-1}" = 0 || exit 0
test "$SLURM_PROCID" = 1 || exec sleep 1000
until test "$(ls begun | grep -c '^0[.]')" = "$SLURM_NTASKS"; do sleep 0.05; done
: >begun/since
exit 3
EOF

# series ROUNDS RANKS: a line for each round, with its times in ms. In Slurm
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
by_hand()
{
	rm -f begun/*
	for count in 0 1; do
		RESTART_COUNT=$count timeout -k 1 60 \
			srun -K --mpi=pmix ./begin && break
	done
	by_hand=$(took 1)
}
ranks=$2
mkdir begun
for round in $(seq "$1"); do
	case $round in
	*[13579]) restart && launch && by_hand || exit ;;
	*) by_hand && launch && restart || exit ;;
	esac
	echo "$restart $launch $by_hand"
done
EOF
chmod 755 begin series

restart()
{
	restart_nodes=${asked_nodes:-8}
	cluster --nodes "$restart_nodes" --gpus 2
	echo "restart, $restart_nodes nodes x 2 ranks, to all of them in main()"
	ratio_head
	on_login salloc -Q -N"$restart_nodes" --ntasks-per-node=2 --gres=gpu:2 \
		./series "$rounds" $((restart_nodes * 2)) >series.out 2>err ||
		die "a restart or a launch has failed: $(tail -n 20 err)"
	awk '{ print $1, $2 }' series.out >pairs.out
	ratio 'a failure / plain srun'
	awk '{ print $1, $3 }' series.out >pairs.out
	ratio '--ddp-restarts / by hand'
}
