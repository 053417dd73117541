# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# What the site says in plugstack.conf, on a Slurm with two partitions: main,
# which is the default, and slow.

cluster --nodes 2 --gpus 2 --cpus 8
admin n1 scontrol create PartitionName=slow Nodes=ALL State=UP

# A program for tasks: what the site can set
cat >site <<'END'
#!/bin/sh
echo ${SLURM_JOB_PARTITION-} ${CUDA_VISIBLE_DEVICES-} ${GLOO_SOCKET_IFNAME-} \
	${NCCL_SOCKET_IFNAME--} ${A--} ${B--} ${RANK--}
END
chmod 755 site

# sees WANTED CMD...: each task prints WANTED and its rank, and all is quiet but
# for the line that warns about --ddp-gpus=own
sees()
{
	wanted=$1
	shift
	call login "$@" ./site
	had=$(sed 's/ [^ ]*$//' out | sort -u)
	printf 'wanted: %s\nhad:    %s\n' "$wanted" "$had" >why
	test "$status" -eq 0 && test "$had" = "$wanted" &&
		! unquiet | grep -v 'LOCAL_RANK is not a device' >>why
	result $? "${name:-$*}: $wanted"
	name=
}

slow='partition=slow:interface=lo partition=slow:ddp-gpus=off'
plugstack optional "ddp-gpus=all env=A=1 env=B=2 partition=slow:env=A=3 $slow \
partition=slow:mpi=keep"
sees 'main 0,1 eth0 - 1 2' srun --ddp -N2 --gres=gpu:2
sees 'main 0,1 eth0 - 1 2' srun --ddp -p main -N2 --gres=gpu:2
sees 'slow 0,1 lo =lo 3 2' srun --ddp -p slow -N1 --gres=gpu:2
sees 'slow 0,1 lo =lo 3 2' env SLURM_PARTITION=slow \
	srun --ddp -N1 --gres=gpu:2
sees 'slow 0,1 lo =lo 7 2' env A=7 srun --ddp -p slow -N1 --gres=gpu:2
sees 'slow 0,1 lo =lo 7 2' srun --ddp -p slow -N1 --gres=gpu:2 \
	--export=ALL,A=7
sees 'slow 0,1 lo =lo 3 2' env A=7 srun --ddp -p slow -N1 --gres=gpu:2 \
	--export=NONE
sees 'slow 0,1 lo =lo 3 2' salloc -p slow -N1 -n2 --gres=gpu:2 srun --ddp
name='a step without --ddp sees nothing of it' \
	sees 'slow 0,1 - - -' srun -p slow -N1 --gres=gpu:2
name='nor does one within a --ddp step' \
	sees 'slow 0,1 - - -' srun --ddp -p slow -n1 --gres=gpu:2 \
	srun --overlap -n1
call login srun --ddp -p slow -n1 sh -c 'echo ${PMIX_RANK-none}'
equal 'mpi=keep in slow' 'none 0' "$(cat out) $status"
if ! lacks_pmix 'mpi=pmix in main'; then
	call login srun --ddp -p main -n1 sh -c 'echo ${PMIX_RANK-none}'
	equal 'mpi=keep is not in main' '0 0' "$(cat out) $status"
fi
batch -p slow -n2 --gres=gpu:2 --ddp <<END
#!/bin/sh
srun ./site | sed 's/ [^ ]*$//'
srun -p main ./site | sed 's/ [^ ]*$//'
END
equal "sbatch: the job's partition counts" \
	"$(yes 'slow 0,1 lo =lo 3 2' | head -n 4)" "$(cat out)"

# explains_site WANTED CMD...: the lines that name the site as the reason
explains_site()
{
	wanted=$1
	shift
	call login "$@" true
	equal "$*: the site's defaults" "$wanted" \
		"$(sed -n "s/^slurm-ddp: \([^ ]*=[^ ]*\): this site's default.*/\1/p" \
			err | paste -sd' ')"
}

# A job that may run in either goes by where it runs: SLURM_JOB_PARTITION can
# then be a list, in tasks and in srun.
admin n1 scontrol update PartitionName=main State=DOWN
while read -r start; do
	# shellcheck disable=SC2086 # several words
	call login $start ./site
	equal "$start: it runs in slow" '0,1 lo =lo 3 2 0' \
		"$(cut -d' ' -f2-6 out) $status"
done <<END
srun --ddp -p main,slow -n1 --gres=gpu:2
salloc -p main,slow -n1 --gres=gpu:2 srun --ddp
END
batch --ddp -p main,slow -n1 --gres=gpu:2 <<END
#!/bin/sh
srun ./site
END
equal "sbatch -p main,slow: it runs in slow" '0,1 lo =lo 3 2 0' \
	"$(cut -d' ' -f2- out)"
explains_site 'env=B=2 env=A=3 interface=lo ddp-gpus=off mpi=keep' \
	srun --ddp=explain -p main,slow -n1
admin n1 scontrol update PartitionName=main State=UP

explains_site 'ddp-gpus=all env=A=1 env=B=2' srun --ddp=explain -n1
explains_site 'env=B=2 env=A=3 interface=lo mpi=keep' \
	srun --ddp=explain --ddp-gpus=all -p slow -n1
lacks_pmix 'srun --ddp=dry-run, which works by PMIx' ||
	explains_site 'ddp-gpus=all env=A=1 env=B=2' srun --ddp=dry-run -n1

plugstack optional 'ddp=explain ddp-gpus=own ddp-cpus=off'
explains_site 'ddp=explain ddp-gpus=own ddp-cpus=off' srun --ddp -n1
call login srun --ddp --gres=gpu:2 ./site
equal 'ddp-gpus=own: a task sees its own' '0 1' \
	"$(cut -d' ' -f2 out | sort | paste -sd' ')"
sees 'main 0,1 eth0 - - -' srun --ddp=on --ddp-gpus=all --gres=gpu:2

plugstack optional 'allow=slow,@nobody-of-all deny=--ddp-port,--ddp-gpus=off'
refuses 'allow it in partition main (allow=slow,@nobody-of-all in' \
	srun --ddp true
refuses 'allow it in partition main' sbatch --ddp --wrap true
refuses 'allow it in partition main' salloc --ddp true
refuses 'allow it in partition main' salloc srun --ddp true
name='in the partition that may' sees 'slow 0,1 eth0 - - -' \
	srun --ddp -p slow --gres=gpu:2
refuses '--ddp-port: this site does not allow it in partition slow' \
	srun --ddp -p slow --ddp-port=20000 true
refuses '--ddp-gpus=off: this site does' \
	srun --ddp -p slow --ddp-gpus=off true
call login srun echo ran
equal 'a step without --ddp is allowed everywhere' 'ran 0' \
	"$(cat out err) $status"

# The group of the cluster's user
group=$(login id -gn)
plugstack optional "allow=@$group"
call login srun --ddp echo ran
equal 'allow=@GROUP: its users may' 'ran 0' "$(cat out err) $status"
plugstack optional "deny=slow partition=main:deny=@$group"
refuses "(deny=@$group in plugstack.conf)" srun --ddp true
refuses '(deny=slow in plugstack.conf)' srun --ddp -p slow true
hold -p slow -n1
refuses '(deny=slow in plugstack.conf)' srun --ddp --jobid="$job" -N1 -n1 true
release

# The name of a job looks like what scontrol says of it.
plugstack optional deny=slow
newline='
'
for looks in 'a Partition=main' "a$newline Partition=main"; do
	hold -p slow -n1 -J "$looks"
	name="a job that is called '$looks'" refuses '(deny=slow in plugstack.conf)' \
		srun --ddp --jobid="$job" -N1 -n1 true
	release
done
plugstack optional
hold -N2 --ntasks-per-node=2 --gres=gpu:2 -J 'a Nodes=1 GRES=gpu:8 TotalCPUs=1'
call login srun --ddp --jobid="$job" -N2 sh -c 'echo $WORLD_SIZE'
equal 'the GPUs of a job are not counted in its name' '4 4 4 4 0' \
	"$(paste -sd' ' out) $status"
release
call login salloc -Q -t 1 -n1 -J 'a JobState=SUSPENDED EndTime=5' \
	srun --ddp --ddp-signal=USR1@57 \
	sh -c 'trap "echo saved; exit 0" USR1; while :; do sleep 0.1; done'
had="$(cat out) $status"
# Where the step began late, the signal ends its rank before that handles it.
test "$had" != ' 138' || had='saved 0'
equal 'the end of a job is not read in its name' 'saved 0' "$had"

# One bad argument for another partition is told all the same.
plugstack optional 'partition=slow:interfce=ib0'
refuses "key 'interfce' is not one of ddp, ddp-gpus," srun --ddp true
check 'an unknown key is told with the key that was meant' \
	grep -q 'did you mean interface$' err
call login srun echo ran
equal 'a step without --ddp runs' 'ran 0' "$(cat out err) $status"
