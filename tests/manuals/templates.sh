# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run
# When the templates put their job into the queue again. srun and scontrol are
# FAKES: the one ends as it is told to, and both note their arguments.

templates=$top/contrib/sbatch
mkdir fakes
cat >fakes/srun <<END
#!/bin/sh
# FAKE
echo "srun \$*" >>"$scratch/asked"
exit "\$FAKE_CODE"
END
cat >fakes/scontrol <<END
#!/bin/sh
# FAKE
echo "scontrol \$*" >>"$scratch/asked"
END
chmod 755 fakes/srun fakes/scontrol

# template NAME CODE [VARIABLE=VALUE...]: run it as job 7, with an srun that ends
# with CODE
template()
{
	: >asked
	template=$templates/$1.sbatch
	template_code=$2
	shift 2
	call env -u SLURM_RESTART_COUNT -u SLURM_ARRAY_JOB_ID \
		-u SLURM_ARRAY_TASK_ID PATH="$scratch/fakes:$PATH" \
		FAKE_CODE="$template_code" SLURM_JOB_ID=7 SLURM_JOB_NAME=job \
		"$@" sh "$template"
}

# What is asked of scontrol, what is said, and the template's own exit code
had()
{
	echo "$status|$(sed -n 's/^scontrol //p' asked)|$(cat out err)"
}

# Code of srun, requeues so far (none: Slurm does not say), exit code, asked of
# scontrol, said
cat >ends <<'END'
0||0||
2||2||
65||65||
75||0|requeue 7|exit code 75: requeued
1||0|requeue 7|exit code 1: requeued
75|19|0|requeue 7|exit code 75: requeued
75|20|75||exit code 75, after 20 requeues: that was the last
1|20|1||exit code 1, after 20 requeues: that was the last
1|21|1||exit code 1, after 20 requeues: that was the last
0|20|0||
2|20|2||
65|20|65||
END
for name in pytorch_requeue ddp-train_requeue; do
	while IFS='|' read -r code count wanted; do
		template $name "$code" ${count:+SLURM_RESTART_COUNT="$count"}
		equal "$name: code $code after ${count:-no} requeues" \
			"$wanted" "$(had)"
	done <ends
	equal "$name: each job starts failed ranks 3 times again" 1 \
		"$(grep -c '^srun --ddp-restarts=3 ' asked)"
	template $name 75 SLURM_ARRAY_JOB_ID=9 SLURM_ARRAY_TASK_ID=3
	equal "$name: of an array, the task alone is queued again" \
		'0|requeue 9_3|exit code 75: requeued' "$(had)"
done
