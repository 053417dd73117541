# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# A hundred steps at once in one allocation. In every other one a rank fails.

tidy
hold -N2 --ntasks-per-node=2 --overcommit
for step in $(seq 100); do
	bounded 300 srun --ddp --jobid="$job" --overlap --overcommit -N2 -n4 \
		sh -c 'sleep 2; test $SLURM_PROCID != 3 || exit $0' \
		$((step % 2 * 5)) >many.out."$step" 2>&1 &
	echo "$step $!"
done >many.pids
: >why
while read -r step pid; do
	wait "$pid"
	status=$?
	lines=$(grep -c '^slurm-ddp: rank 3 failed first .*: exit code 5$' \
		many.out."$step")
	test "$status $lines" = "$((step % 2 * 5)) $((step % 2))" || {
		echo "step $step: code $status"
		head -n 5 many.out."$step"
	} >>why
done <many.pids
left >>why
! test -s why
result $? '100 steps at once: each has its own code and culprit'
release
rm -f many.*
