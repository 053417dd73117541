# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# What takes long: 100 faults drawn at random, 100 steps at once, and a soak.

# draws: 100 lines, as in ranks.sh, from all combinations of what is there
draws()
{
	awk -v have="$have" -v seed="$FAULTS_SEED" '
	function draw(text, words) {
		return words[int(rand() * split(text, words)) + 1]
	}
	BEGIN {
		points["sh"] = "start step"
		points["job"] = "start init collective"
		points["torch"] = points["train"] = \
			"start init after collective step"
		srand(seed)
		for (i = 0; i < 100; i++) {
			program = draw(have)
			way = draw("KILL SEGV TERM exit3 limit oom" \
				(program == "torch" ? " error" : ""))
			print program, draw(points[program]), way, \
				int(rand() * 4)
		}
	}'
}

FAULTS_SEED=${FAULTS_SEED:-$(date +%s)}
echo "# FAULTS_SEED=$FAULTS_SEED"
draws >cases
wrong=0
while read -r program point way rank <&3; do
	step "$program" "$point" "$way" "$rank"
	is_told "$program" "$way" "$rank" >why 2>&1 || {
		wrong=$((wrong + 1))
		echo "# $program $point $way $rank" && sed 's/^/# /' why
	}
done 3<cases
test "$wrong" -le 1
result $? "of 100 faults drawn at random, $wrong have no or another culprit"

# A hundred steps in one allocation; in every other one a rank fails.
tidy
hold -N2 --ntasks-per-node=2 --overcommit
for step in $(seq 100); do
	bounded 300 srun --ddp --jobid="$job" --overlap --overcommit -N2 -n4 \
		sh -c 'sleep 2; test $SLURM_PROCID != 3 || exit $0' \
		$((step % 2 * 5)) >many.out."$step" 2>&1 &
	echo $!
done >many.pids
many=0
while read -r pid; do
	wait "$pid"
	many=$((many + $?))
done <many.pids
test "$many" -eq 250 && test "$(cat many.out.* |
	grep -c '^slurm-ddp: rank 3 failed first .*: exit code 5$')" = 50
result $? '100 steps at once: each has its own code and culprit'
release
rm -f many.*

# resident COMM: the largest resident size in kB of such processes
resident()
{
	root ps -C "$1" -o rss= | sort -n | tail -n 1
}

# opened COMM: the most files that such a process has open
opened()
{
	root sh -c 'for pid in $(pgrep -x "$0"); do
		ls "/proc/$pid/fd" | wc -l; done' "$1" | sort -n | tail -n 1
}

hold -N2 --gres=gpu:2
soak()
{
	for step in $(seq "$1"); do
		bounded 60 srun --ddp --jobid="$job" --gres=gpu:2 sh -c \
			'test $SLURM_PROCID != 2 || exit $0' $((step % 4)) \
			2>>soak.err
		test $? -eq $((step % 4)) || echo "step $step" >>soak.bad
	done
}
rm -f soak.bad
soak 200
before="$(resident slurmd) $(resident slurmctld)"
files="$(opened slurmd) $(opened slurmctld)"
soak 1800
release
echo "# resident kB of slurmd, slurmctld: $before, then $(resident slurmd)" \
	"$(resident slurmctld); files: $files, then $(opened slurmd)" \
	"$(opened slurmctld)"
left >why
test ! -s left.out && test ! -e soak.bad &&
	test "$files" = "$(opened slurmd) $(opened slurmctld)"
result $? '2,000 steps leave nothing behind'
