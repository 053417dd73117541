# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# What is started by srun, but is no rank: MPI launchers' helpers, salloc's
# shell, batch scripts; and launchers that start the ranks of a node themselves.

cluster --nodes 2 --gpus 2 --cpus 8

call login srun -n1 "$show"
cp out plain.out
for helper in orted prted hydra_pmi_proxy hydra_bstrap_proxy; do
	cp show $helper
	call login srun --ddp -N2 -n2 --gres=gpu:2 ./$helper
	equal "srun --ddp $helper is left alone" \
		"0 $(cut -d' ' -f3-14 plain.out)" \
		"$status $(cut -d' ' -f3-14 out | sort -u)"
	rm $helper
done

if command -v mpirun >/dev/null; then
	# An mpirun of Open MPI 5 that outlives its srun asks sinfo for Slurm's
	# version, and complains, as it cannot read Debian's "slurm-wlm 24.11.5".
	mkdir -p own
	cat >own/sinfo <<-'END'
	#!/bin/sh
	PATH=${PATH#*/own:}
	words=$(sinfo "$@") || exit
	echo "$words" | sed 's/^slurm-wlm /slurm /'
	END
	chmod 755 own/sinfo
	cat >mpirun.sh <<-'END'
	#!/bin/sh
	PATH=$PWD/own:$PATH
	mpirun -n 4 sh -c 'echo "$OMPI_COMM_WORLD_RANK of \
		$OMPI_COMM_WORLD_SIZE on $(uname -n), RANK ${RANK-unset}"'
	END
	printf '%s, RANK unset\n' '0 of 4 on n1' '1 of 4 on n1' \
		'2 of 4 on n2' '3 of 4 on n2' >wanted
	set -- -N2 --gres=gpu:2 --ntasks-per-node=2 -c2
	batch --ddp "$@" <mpirun.sh
	equal 'mpirun in sbatch --ddp starts its own ranks' \
		"$(cat wanted)" "$(sort out)"
	check 'mpirun in sbatch --ddp says nothing' test ! -s err
	call login salloc -Q --ddp "$@" sh mpirun.sh
	equal 'mpirun in salloc --ddp starts its own ranks' \
		"$(cat wanted)" "$(sort out)"
	check 'mpirun in salloc --ddp says nothing' test ! -s err
else
	skip 'mpirun in sbatch --ddp' 'no mpirun'
fi

# Fakes of torchrun and its like: a task's node, its number, how many there are,
# its GPUs, its CPUs as Slurm has them, and its arguments
cat >torchrun <<-'END'
#!/bin/sh
echo $(uname -n) $SLURM_PROCID of $SLURM_NTASKS ${CUDA_VISIBLE_DEVICES:--} \
	${SLURM_CPUS_PER_TASK:--} "$@"
END
chmod 755 torchrun
cp torchrun deepspeed
mkdir -p package/torch/distributed
: >package/torch/__init__.py
: >package/torch/distributed/__init__.py
printf '%s\n' 'import os, sys' \
	'os.execv("./torchrun", ["torchrun"] + sys.argv[1:])' \
	>package/torch/distributed/run.py

# one_a_node CPUS GPUS ARGUMENTS CMD...: CMD starts one task on each of two
# nodes, which see all GPUs, and is quiet
one_a_node()
{
	printf '%s\n' "n1 0 of 2 $2 $1 $3" "n2 1 of 2 $2 $1 $3" >wanted
	shift 3
	call login "$@"
	# From 24.11 on srun warns of a -c above the job's, which works.
	sort out | diff wanted - >why && test "$status" -eq 0 &&
		! unquiet | grep -v 'Job step may never run' >>why
	result $? "${name:-$*}: one task a node"
	name=
}
ddp='srun --ddp -N2 --gres=gpu:2'
mkdir fails
cat >fails/torchrun <<-'END'
#!/bin/sh
test "$SLURM_PROCID" = 1 || exec sleep 1000
echo '  rank      : 3 (local_rank: 1)' >&2
exit 1
END
chmod 755 fails/torchrun
# shellcheck disable=SC2086 # several words
call login $ddp fails/torchrun
grep -q '^slurm-ddp: torchrun task 1 failed first, as far as is known, on n2 (its rank 3, ' err &&
	grep -qx 'slurm-ddp: 1 other torchrun task ended because of it' err
result $? 'a torchrun that fails is named as that, with its rank'
# One that srun cannot see, as the shell has its name in a variable: it runs until
# the user has read the advice.
mkdir hidden
cat >hidden/torchrun <<-'END'
#!/usr/bin/env python3
import os, sys, time
while not os.path.exists(sys.argv[-1]):
    time.sleep(0.2)
END
chmod 755 hidden/torchrun
# tells OPTIONS COMMAND: the step runs until a line has come, which is all
tells()
{
	rm -f seen
	: >err		# the last one's has the word that is waited for
	# shellcheck disable=SC2086 # several words
	LAUNCH='hidden/torchrun --nnodes' login $ddp $1 sh -c "$2" >out 2>err &
	wait_until grep -q torchrun err
	: >seen
	wait $!
	equal "${1:-a step}: a torchrun that srun could not see is told" \
		"slurm-ddp: tasks on n1 each run torchrun for 3 nodes, and the \
step has 4 tasks: several worlds form on the same GPUs; use --ddp=torchrun, or \
--ddp=srun if that is meant" "$(cat err)"
}
# Launchers of one node, or of as many as there are tasks, are no mistake.
tells '' '$LAUNCH=1 seen & $LAUNCH=4 seen & $LAUNCH=3 seen; wait'
tells --ddp-supervise=off '$LAUNCH=3 seen; exit'
# quiet OPTIONS COMMAND: the agent looks once, after a second
quiet()
{
	rm -f seen
	: >err		# the last one's has the word that is waited for
	# shellcheck disable=SC2086 # several words
	LAUNCH='hidden/torchrun --nnodes' call login srun -N2 --gres=gpu:2 $1 \
		sh -c "(sleep 2; : >seen) & $2"
	equal "$1: '$2' is no mistake" '0 0' "$status $(wc -l <err)"
}
quiet --ddp=srun '$LAUNCH=2 seen; wait'
quiet --ddp 'test $SLURM_LOCALID = 1 || $LAUNCH=2 seen; wait'
printf '%s\n' n2 n1 >n2n1
# shellcheck disable=SC2086 # several words
{
	one_a_node 2 0,1 a $ddp ./torchrun a
	one_a_node 2 0,1 a $ddp env A=b ./torchrun a
	one_a_node 2 0,1 a $ddp bash -c 'cd . && exec ./torchrun a'
	one_a_node 2 0,1 a $ddp env PYTHONPATH=package \
		/usr/bin/python3 -m torch.distributed.run a
	one_a_node 2 0,1 '--nnodes=1:4 a' $ddp ./torchrun --nnodes=1:4 a
	one_a_node 4 0,1 a $ddp -c4 ./torchrun a
	one_a_node 2 0,1 a $ddp -n2 ./torchrun a
	one_a_node - - a srun --ddp -N2 ./torchrun a
	one_a_node 2 0,1 a srun --ddp=torchrun -N2 --gpus=4 sh -c './$0 a' \
		torchrun
	one_a_node 2 0,1 a env SLURM_SPANK__SLURM_SPANK_OPTION_ddp_ddp=torchrun \
		srun -N2 --gres=gpu:2 sh -c './$0 a' torchrun
	set -- -N2 --gres=gpu:2 --ntasks-per-node=2 -c2
	one_a_node 4 0,1 a salloc "$@" --ddp srun ./torchrun a
	one_a_node 4 0,1 a salloc "$@" srun --ddp=torchrun sh -c './$0 a' \
		torchrun
	one_a_node 3 0,1 a salloc "$@" srun --ddp -c3 ./torchrun a
	one_a_node 8 0,1 a salloc -N2 --gres=gpu:2 --exclusive srun --ddp \
		./torchrun a
	one_a_node 2 0,1 a srun --ddp --gres=gpu:2 -N1 ./torchrun a : \
		--gres=gpu:2 -N1 ./torchrun a
	batch --ddp "$@" <<-END
	#!/bin/sh
	srun ./torchrun a
	srun --ddp=off -n1 -N1 ./torchrun --nnodes=7
	END
	equal 'srun torchrun in sbatch --ddp: one task a node' \
		'n1 0 of 1 0,1 2 --nnodes=7,n1 0 of 2 0,1 4 a,n2 1 of 2 0,1 4 a' \
		"$(sort out | paste -sd,)"
	batch --ddp=torchrun "$@" <<-END
	#!/bin/sh
	srun sh -c './\$0 a' torchrun
	END
	equal "a script's torchrun in sbatch --ddp=torchrun: one task a node" \
		'n1 0 of 2 0,1 4 a,n2 1 of 2 0,1 4 a' \
		"$(sort out | paste -sd,)"
	call login $ddp echo torchrun
	equal 'an argument of that name starts nothing' 4 "$(wc -l <out)"

	# Without a GPU Accelerate's would make worlds of one.
	cp torchrun accelerate
	if ls /dev/nvidia[0-9]* /dev/dri/renderD* >/dev/null 2>&1; then
		skip 'accelerate launch without a GPU' 'this machine has one'
	else
		call login $ddp ./accelerate launch a
		test "$status" -ne 0 && ! test -s out &&
			grep -q 'slurm-ddp: .*: accelerate launch finds no GPU' \
				err
		result $? 'accelerate launch without a GPU is refused'
	fi
	one_a_node 2 0,1 'launch --multi_gpu a' \
		$ddp ./accelerate launch --multi_gpu a

	# Another program has the port that Accelerate's looks at.
	admin n2 sh -c 'perl -MIO::Socket::INET -e "
		my \$s = IO::Socket::INET->new(Listen => 1,
			LocalPort => 29500) or die;
		print qq(listening\n); close STDOUT; sleep 300" >listens &
		echo $! >listener'
	wait_until test -s listens
	call login $ddp ./accelerate launch --multi_gpu a
	grep -q 'slurm-ddp: rank 1 on n2: .* 29500 .*--main_process_port 0$' err &&
		test "$status" -ne 0
	result $? 'accelerate launch whose port is taken is refused'
	one_a_node 2 0,1 'launch --multi_gpu --main_process_port 0 a' \
		$ddp ./accelerate launch --multi_gpu --main_process_port 0 a
	admin n2 sh -c 'kill $(cat listener)'

	# What torchrun takes for its arguments: one world of its agents
	cat >agent <<-'END'
	#!/bin/sh
	test "$PET_MASTER_PORT" = "$MASTER_PORT" || MASTER_PORT=other
	test "$PET_RDZV_ID" = "$SLURM_JOB_ID.$SLURM_STEP_ID" || PET_RDZV_ID=other
	echo $(uname -n) ${PET_NNODES--} ${PET_NODE_RANK--} \
		${PET_NPROC_PER_NODE--} ${PET_MASTER_ADDR--} \
		${PET_RDZV_ENDPOINT--} $MASTER_PORT $PET_RDZV_ID |
		sed "s/ $MASTER_PORT\$/ port/; s/:$MASTER_PORT /:port /" |
		sed "s/ $MASTER_PORT / port /; s/ $PET_RDZV_ID\$/ id/"
	END
	chmod 755 agent
	while IFS='|' read -r wanted command; do
		call login $command ./agent
		equal "$command: torchrun's arguments" "$wanted" \
			"$(sort -u out | paste -sd,)"
	done <<-END
	n1 2 0 2 n1 n1:port port id,n2 2 1 2 n1 n1:port port id|srun --ddp=torchrun -N2 --gres=gpu:2
	n1 2 0 1 n1 n1:port port id,n2 2 1 1 n1 n1:port port id|srun --ddp -N2 -n2 --gres=gpu:1
	n1 2 0 - n1 n1:port port id,n2 2 1 - n1 n1:port port id|srun --ddp -N2
	n1 1 0 2 n1 n1:port port id|srun --ddp=torchrun --gres=gpu:2
	n1 2 1 2 n2 n2:port port id,n2 2 0 2 n2 n2:port port id|env SLURM_HOSTFILE=$PWD/n2n1 srun --ddp=torchrun -n2 --gres=gpu:2
	END
	call login $ddp sh -c 'env | grep ^PET_'
	equal 'where a node has several tasks torchrun stops' \
		PET_NNODES=torchrun-needs-srun---ddp=torchrun \
		"$(sort -u out)"

	# The usual script of a user's: nothing in the command says torchrun.
	cat >usual.sh <<-'END'
	#!/bin/bash
	cd . || exit
	./torchrun --nnodes=2 --nproc_per_node=2 --rdzv_backend=c10d \
		--rdzv_endpoint=$MASTER_ADDR:29400 train.py
	END
	chmod 755 usual.sh
	for command in ./usual.sh 'bash usual.sh' 'env A=b ./usual.sh'; do
		call login $ddp $command
		equal "$command calls torchrun: one task a node" \
			'n1 0 of 2 0,1 2,n2 1 of 2 0,1 2' \
			"$(sort out | cut -d' ' -f1-6 | paste -sd,)"
		check 'srun says where it found torchrun' \
			grep -q 'slurm-ddp: .*usual.sh line 3 calls torchrun' err
	done
	call login $ddp --ddp=srun ./usual.sh
	equal 'a script by --ddp=srun has one task a GPU' 4 "$(wc -l <out)"
	mkdir away && mv usual.sh away
	call login $ddp -D away bash usual.sh
	equal 'a script is where --chdir says' 0 "$(wc -l <out)"
	mv away/usual.sh .
	rmdir away

	# One srun a node, each with its node's number
	call login sh -c 'for i in 0 1; do
		srun --ddp -N1 -n1 -w n$((i + 1)) --gres=gpu:2 sh -c \
			"./torchrun --nnodes=2 --node_rank=$i; env | grep ^PET_" &
	done; wait'
	equal 'a torchrun in a step of its own on each node' \
		'n1 0 of 1 0,1 2 --nnodes=2 --node_rank=0,'\
'n2 0 of 1 0,1 2 --nnodes=2 --node_rank=1' "$(sort out | paste -sd,)"

	several='torchrun starts the ranks of a node itself, and the step has'
	refuses "$several" $ddp -n4 ./torchrun a
	refuses "$several" $ddp --ntasks-per-node=2 ./torchrun a
	refuses "$several" srun --ddp=torchrun -N2 -n4 sh -c ./torchrun
	refuses 'torchrun --standalone makes a world of its own on each of 2' \
		$ddp ./torchrun --standalone a
	refuses '--nnodes says 1, and the step has 2 nodes; leave it out' \
		$ddp bash -c './torchrun --nnodes=1 a'
	refuses '--nnodes says 2, and the step has 1 node; start one srun' \
		srun --ddp ./torchrun --nnodes 2 a
	refuses 'start the program itself, one rank a GPU: srun --ddp python3' \
		$ddp ./deepspeed a
	refuses 'did you mean torchrun' srun --ddp=torchrum -N2 ./torchrun a
}
call login srun --ddp -N1 --gres=gpu:2 ./torchrun --standalone a
equal '--standalone on one node' 'n1 0 of 1 0,1 2 --standalone a' "$(cat out)"
call login srun --ddp=explain,torchrun -N2 sh -c ./torchrun
check 'explain says that the command starts the ranks' grep -q \
	'tasks 2 on 2 nodes: one a node, whose ranks its command starts; fill' err
rm torchrun deepspeed

# The environments of the batch scripts themselves
cat >environment.sh <<-'END'
#!/bin/sh
env | sort
END
set -- -N2 --gres=gpu:2 --ntasks-per-node=2 -c2
batch "$@" <environment.sh
cp out plain.out
batch --ddp "$@" <environment.sh
cp out ddp.out
sleep 1
batch "$@" <environment.sh
noise plain.out out >noise
equal 'a batch script sees nothing but the option' \
	'> SLURM_SPANK__SLURM_SPANK_OPTION_ddp_ddp=(null)' \
	"$(diff plain.out ddp.out | grep '^[<>]' | grep -Evf noise)"

# salloc's shell as a step of its own, on the first node
cluster --nodes 2 --gpus 2 --cpus 8 \
	--slurm LaunchParameters=use_interactive_step
call login sh -c 'echo "echo shell \${RANK-unset} on \$(uname -n)
	srun $0; exit" | SHELL=/bin/sh script -qec \
	"salloc -Q --ddp -N2 --gres=gpu:2 --ntasks-per-node=2 -c2" /dev/null' \
	"$show"
check "salloc --ddp's shell on a node is left alone" \
	grep -q 'shell unset on n1' out
tr -d '\r' <out | grep -oE '[0-9] n[12] [0-9].*' >world
cp world out
right 'n1 n1 n2 n2'
result $? "an srun in salloc --ddp's shell on a node makes a world"
