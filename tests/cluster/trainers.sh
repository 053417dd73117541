# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# Programs that train: MPI's world is the same as that of the variables;
# PyTorch, ddp-train and the sbatch templates run unchanged.

cluster --nodes 2 --gpus 2

if command -v mpicc >/dev/null; then
	cat >world.c <<-'END'
	#include <mpi.h>
	#include <stdio.h>
	#include <stdlib.h>

	int main(int argc, char **argv)
	{
		int rank, size, sum, mine;

		MPI_Init(&argc, &argv);
		MPI_Comm_rank(MPI_COMM_WORLD, &rank);
		MPI_Comm_size(MPI_COMM_WORLD, &size);
		mine = atoi(getenv("RANK"));
		MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		printf("%d %s %d %s %d\n", rank, getenv("RANK"), size,
		       getenv("WORLD_SIZE"), sum);
		MPI_Finalize();
		return 0;
	}
	END
	mpicc -o world world.c >why 2>&1
	printf '%s\n' n2 n1 n1 n2 >hostfile
	while read -r options; do
		# shellcheck disable=SC2086 # several words
		call login $options ./world
		equal "MPI's ranks are the variables': $options" \
			'0 0 4 4 6 1 1 4 4 6 2 2 4 4 6 3 3 4 4 6' \
			"$(sort out | paste -sd' ')"
	done <<-END
	srun --ddp -N2 --gres=gpu:2
	srun --ddp -N2 --gres=gpu:2 -m cyclic
	env SLURM_HOSTFILE=$scratch/hostfile srun --ddp -n4 --gres=gpu:2
	srun --ddp -n1 ./world : -n3 --overcommit
	END
else
	skip "MPI's ranks are the variables'" 'no mpicc'
fi

# Open MPI needs nodes to wait for each other in a fence without data.
if pkg-config --exists pmix && command -v cc >/dev/null; then
	cat >fence.c <<-'END'
	#include <pmix.h>
	#include <fcntl.h>
	#include <stdio.h>
	#include <stdlib.h>
	#include <unistd.h>

	int main(void)
	{
		pmix_proc_t me;

		if (PMIx_Init(&me, NULL, 0) != PMIX_SUCCESS)
			return 1;
		if (me.rank > 0) {
			usleep(300000);
			close(creat("late", 0666));
		}
		if (PMIx_Fence(NULL, 0, NULL, 0) != PMIX_SUCCESS)
			return 1;
		printf("%u %s\n", me.rank, access("late", F_OK) ?
		       "went ahead" : "waited");
		return PMIx_Finalize(NULL, 0) != PMIX_SUCCESS;
	}
	END
	# shellcheck disable=SC2046 # several words
	cc -o fence fence.c $(pkg-config --cflags --libs pmix) >why 2>&1
	call login srun --ddp -N2 ./fence
	equal 'a PMIx fence without data makes nodes wait' \
		'0 waited 1 waited' "$(sort out | paste -sd' ')"
else
	skip 'a PMIx fence without data makes nodes wait' 'no PMIx to compile with'
fi

# table: print the host of each rank, by ddp-train's table
table()
{
	awk '/^step/ { exit } $1 ~ /^[0-9]+$/ { print $2 }' out | paste -sd' '
}

# falling: whether the loss is lower at the end than at the beginning
falling()
{
	awk '$1 ~ "^[0-9]+/[0-9]+$" { last = $2; if (!n++) first = last }
		END { exit !(n > 1 && last < first) }' out
}

if test -n "$train"; then
	cp /usr/share/common-licenses/GPL-3 text
	call login srun --ddp -N2 --gres=gpu:2 ddp-train --data text
	equal 'srun --ddp -N2 --gres=gpu:2 ddp-train succeeds' 0 "$status"
	equal "the table of ddp-train is the step's" 'n1 n1 n2 n2' "$(table)"
	check 'the loss falls' falling
	call login srun --ddp -N2 --gres=gpu:2 ddp-train --model toy \
		--backend mpi -m cyclic
	equal 'all ranks say one sentence of a bad option' 2 "$status"
	# It is rank 0 that cannot write, and alone says so; all end for it.
	sentence='rank 0 on n1: cannot write --log none/log: No such file'
	for again in 1 2 3 4; do
		call login srun --ddp -N2 --gres=gpu:2 ddp-train --log none/log
		cp err why
		test "$status $(grep -c '^ddp-train: ' err)" = '2 1' &&
			grep -Eq "^slurm-ddp: (all 4 ranks failed in the $(
				)same way,|rank 0 failed first on n1 .*) $(
				)after .* s: exit code 2: $sentence" err
		result $? "no silent rank is named: $again"
	done
	# A rank that the machine leaves no CPU for the 2 s in which all are
	# asked is named, too.
	for victim in 0,n1 3,n2; do
		for _ in 1 2 3; do
			rm -f log
			call login srun --ddp -N2 --gres=gpu:2 sh -c '
				test $SLURM_PROCID -ne ${0%,*} || {
					until test -s log; do sleep 0.1; done
					kill -STOP $$
				} &
				exec ddp-train "$@"' $victim --data text \
				--log log --steps 1000000000 --timeout 3
			grep '^ddp-train: ' err >why
			grep -q ' for rank .*, rank .* did not answer: ' why ||
				break
		done
		test "$status" -ne 0 && test "$(wc -l <why)" -eq 1 &&
			grep -q "^ddp-train: rank [01] on n1: waited $(
				)[3-8] s for rank ${victim%,*} on $(
				)${victim#*,}, which did not answer: " why
		result $? "rank ${victim%,*}, which is stopped, is named"
	done
else
	skip 'ddp-train on two nodes' 'ddp-train was not built'
fi

# The templates, unchanged, of what Debian has; the others
# were run by hand.
cluster --nodes 2 --gpus 2 --cpus 4
cp "$templates"/* .
torch=no
! /usr/bin/python3 -c 'import torch.distributed' 2>/dev/null || torch=yes
for template in ddp-train.sbatch pytorch.sbatch steps.sbatch; do
	case $template in
	pytorch*)
		if test $torch = no; then
			skip "sbatch $template" 'no torch for /usr/bin/python3'
			continue
		fi ;;
	*)
		if test -z "$train"; then
			skip "sbatch $template" 'ddp-train was not built'
			continue
		fi ;;
	esac
	# Debian 13's PyTorch has no libuv, and asks for it all the same. Now and
	# then it aborts Python's end, when the training is done.
	for try in 1 2 3 4; do
		rm -f -- *.out
		call login env PATH="$dir/cluster/bin:/usr/bin:$PATH" \
			USE_LIBUV=0 ./sbatch_wait -o output "$template"
		test "$status" -eq 134 && grep -q \
			'terminate called without an active exception' output ||
			break
		echo "# try $try: PyTorch aborted its own end"
	done
	equal "sbatch $template succeeds, and quietly" "0 " \
		"$status $(cat err)"
	! grep slurm-ddp: output >why
	result $? "the steps of $template print nothing of slurm-ddp"
	cp output out
	case $template in
	pytorch*)
		equal "$template trains with each rank" \
			'rank 0 rank 1 rank 2 rank 3' \
			"$(grep -o '^rank [0-9] of 4 done' out | sort |
				cut -d' ' -f1,2 | paste -sd' ')"
		check "the loss of $template falls by step" awk '$1 == "step" {
			last = $4; if (!n++) first = last }
			END { exit !(n > 1 && last < first) }' out ;;
	steps*)
		for file in *.out; do
			cp "$file" out
			equal "two ranks train in $file" 2 \
				"$(table | wc -w)"
			check "the loss in $file falls" falling
		done ;;
	*)
		equal "$template trains with all ranks" 'n1 n1 n2 n2' "$(table)"
		check "the loss of $template falls" falling ;;
	esac
done
mkdir -m 777 alone
cp "$templates/pytorch_requeue.sbatch" alone
call login sh -c 'cd alone && sbatch --wait -o output pytorch_requeue.sbatch'
cp alone/output out
equal 'a job whose script is missing is not queued again' '2 0 1' \
	"$status $(grep -c requeued out) $(grep -c 'all 4 ranks failed' out)"

# With another program in the place of pytorch_ddp.py, which says whose Python it
# got. The nodes of the sandbox share /tmp.
for node in n1 n2; do
	admin $node mount -t tmpfs -o mode=1777 tmpfs /mnt
done
mkdir -m 777 staged
cp "$templates/pytorch_staged.sbatch" sbatch_wait staged
cat >staged/pytorch_ddp.py <<'END'
import os
import sys
print(os.environ["SLURMD_NODENAME"], os.environ["RANK"], sys.prefix, flush=True)
END
call login sh -c 'cd staged && /usr/bin/python3 -m venv --without-pip ours &&
	NODE_DISK=/mnt ./sbatch_wait -o output pytorch_staged.sbatch ours'
sort staged/output >out
equal 'a virtual environment is copied to each node' \
	'0 |n1 0 /mnt/venv n1 1 /mnt/venv n2 2 /mnt/venv n2 3 /mnt/venv' \
	"$status $(cat err)|$(sed 's,\(/mnt/venv\)\..*,\1,' out | paste -sd' ')"
for node in n1 n2; do
	"$sandbox" exec --dir "$dir/cluster" --node "$node" \
		sh -c 'ls -d /mnt/venv.*' 2>/dev/null
done >why
equal 'and removed at the end' 0 "$(wc -l <why)"
call login sh -c 'cd staged && ./sbatch_wait -o output pytorch_staged.sbatch'
equal 'the template asks for its argument' '2 1' \
	"$status $(grep -c 'name a virtual environment' staged/output)"
