# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# Steps in a row, three of four of which fail, leave nothing behind in Slurm's
# daemons and on the nodes. Daemons note each step, so their memory may grow by
# 4 MB.

# daemons: a line for each, by process, with the number of its open files and
# threads, and its resident kB
daemons()
{
	root sh -c 'for pid in $(pgrep -x "slurmd|slurmctld"); do
		echo "$(cat "/proc/$pid/comm")" \
			"$(ls "/proc/$pid/fd" | wc -l) files" \
			"$(ls "/proc/$pid/task" | wc -l) threads" \
			"$(sed -n "s/^VmRSS:[[:space:]]*//p" "/proc/$pid/status")"
		done'
}

# as_few: whether no daemon has more files and threads than before. slurmctld starts
# a thread for each message, and more where it could not send one at once.
as_few()
{
	daemons >daemons.after
	awk 'NR == FNR { files[FNR] = $2; threads[FNR] = $4; next }
		$2 > files[FNR] || $4 > threads[FNR] { print "more:", $0 }
		END { if (NR != 2 * FNR) print FNR, "daemons, not", NR - FNR }' \
		daemons.before daemons.after >few.out
	! test -s few.out
}

# kept: what there is beside: processes, files in spool folders, in /dev/shm and
# in the folders for temporary files, and cgroups of steps
kept()
{
	root ps -A -o comm= | sort | uniq -c | grep -vw 'ps$'
	root sh -c 'find "$0/spool" "$0/tmp" "$0/home" | sort
		for pid in $(pgrep -x munged); do
			ls -A "/proc/$pid/root/dev/shm"
		done
		find /sys/fs/cgroup -type d -name "step_*"' "$dir/cluster"
}

# soak COUNT
soak()
{
	for step in $(seq "$1"); do
		bounded 60 srun --ddp --jobid="$job" -N2 --gres=gpu:2 \
			sh -c 'test $SLURM_PROCID != 2 || exit $0' $((step % 4)) \
			2>soak.err
		status=$?
		test "$status" -eq $((step % 4)) || {
			echo "step $step: code $status"
			head -n 5 soak.err
		} >>soak.bad
	done
	# slurmstepd itself takes some seconds after tasks that were killed.
	wait_until no_slurmstepd >why
}
no_slurmstepd() { ! root pgrep -x slurmstepd; }

tidy
hold -N2 --ntasks-per-node=2 --gres=gpu:2
: >soak.bad
warm=$((${FAULTS_STEPS:-2000} / 10))
soak "$warm"
daemons >daemons.before
kept >kept.before
soak $((${FAULTS_STEPS:-2000} - warm))
wait_until as_few
kept >kept.after
sed 's/^/# before: /' daemons.before
sed 's/^/# after: /' daemons.after
{
	cat soak.bad
	left
	diff kept.before kept.after
	cat few.out
	awk 'NR == FNR { kb[FNR] = $6; next }
		$6 - kb[FNR] > 4096 { print $1, "grew from", kb[FNR], "kB to",
			$6, "kB" }' daemons.before daemons.after
} >why
! test -s why
result $? "${FAULTS_STEPS:-2000} steps leave nothing behind"
release
