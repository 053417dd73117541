# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2034,SC2016 # see run; the tasks' shells expand
# Which GPUs and CPUs the ranks of a node get, by what they find themselves.
# What is expected was worked out by hand from lib/place/placement.h.

if test "$(nproc --all)" -lt 2 || test "$(nproc)" -lt 2; then
	skip 'tasks on CPUs of their own' 'fewer than 2 CPUs'
	return
fi

pair nvidia 0 81 1 01 10de:2330
pair amd 0 81 1 01 1002:740f

# table_of_places: lines of "what places wants|options"
table_of_places()
{
	while IFS='|' read -r wanted options; do
		# shellcheck disable=SC2086 # several options
		places "$wanted" $options
	done
}

cluster --nodes 1 --gpus 2 --cpus 2
plugstack optional "topology=$scratch/nvidia.xml"
column=5
table_of_places <<END
0 1,0 0 81,1 1,0 1 01|--gres=gpu:2
0-1 0,1 0 01|-n1 -c2 --gres=gpu:2
1 0 0 01|-c2 --gres=gpu:1
0 - - -,1 - - -|-n2
0 1,0 0 81,1 1,0 1 01|--gres=gpu:2 --ddp-cpus=off
1 0,1 0 01,0 0,1 1 81|--gres=gpu:2 --cpu-bind=map_cpu:1,0
0 0,1 - -,1 0,1 - -|--gres=gpu:2 --ddp-gpus=off
0 1,0 0 81,1 1,0 1 01|--gres=gpu:2 --ddp-gpus=share
0 1,0 0 81,1 1,0 1 01|--gres=gpu:2 --ddp-gpus=all
0 1,0 0 81,1 1,0 1 01|--gres=gpu:2 --gpu-bind=closest
END

# -O -c2: each task has both CPUs. In some versions a job that asks for that
# waits for ever, unlike a step in a job that has them.
hold -N1 --exclusive --gres=gpu:2
table_of_places <<END
0 - - -,1 - - -|--jobid=$job -n2 -O -c2 --gres=none
1 0,1 0 01,0 0,1 1 81|--jobid=$job -n2 -O -c2 --gres=gpu:2
0 0,1 0 01,1 0,1 1 81|--jobid=$job -n2 -O -c2 --gres=gpu:2 --ddp-cpus=spread
0-1 0,1 0 01,0-1 0,1 1 81|--jobid=$job -n2 -O -c2 --gres=gpu:2 --ddp-cpus=off
0-1 0,1 0 01,0-1 0,1 1 81|--jobid=$job -n2 -O -c2 --gres=gpu:2 --cpu-bind=none
0-1 0,1 0 01,0 0,1 1 81|--jobid=$job -n2 -O -c2 --gres=gpu:2 --cpu-bind=mask_cpu:3,1
0 0,1 - -,1 0,1 - -|--jobid=$job -n2 -O -c2 --gres=gpu:2 --ddp-gpus=off
0-1 0,1 - -,0-1 0,1 - -|--jobid=$job -n2 -O -c2 --gres=gpu:2 --ddp-gpus=off --ddp-cpus=off
END

# field NUMBER WANTED OPTIONS: another field of see, rank by rank
field()
{
	number=$1 wanted=$2
	shift 2
	call login srun --ddp --gres=gpu:2 "$@" "$see"
	equal "srun --ddp $*: field $number" "$wanted" \
		"$(sort -n out | cut -d' ' -f"$number" | paste -sd' ')"
}
field 8 '2 2' --jobid="$job" -n2 -O -c2 --ddp-cpus=off
release
field 8 '1 1'
field 8 '2' -n1 -c2
field 7 'PCI_BUS_ID PCI_BUS_ID'
field 7 '- -' --ddp-gpus=off
if test -e /proc/self/numa_maps; then
	field 11 'default default' --ddp-cpus=off
	field 11 'default default' --cpu-bind=map_cpu:0,1
	field 11 'default' -n1 -c2
	field 11 'bind:0 bind:0' --mem-bind=map_mem:0,0
	call login srun --ddp --gres=gpu:2 "$see"
	equal 'memory near CPU 0 is preferred there' prefer:0 \
		"$(sort -n out | sed 1q | cut -d' ' -f11)"
else
	skip 'where memory is preferred' 'this kernel has no NUMA'
fi

# warns WORDS COUNT OPTIONS: that many lines are printed, with the words
warns()
{
	words=$1 count=$2
	shift 2
	call login srun --ddp "$@" "$see"
	test "$status" -eq 0 && test "$(unquiet | wc -l)" = "$count" &&
		test "$(grep -c "slurm-ddp: .*$words.*LOCAL_RANK is not a" \
			err)" = "$count" && ! grep -qv ' 0$' out
	result $? "srun --ddp $*: lines said of $words: $count"
	had=$(sort -n out | cut -d' ' -f4,5,9,10 |
		sed 's/0000:\(..\):00.0/\1/' | paste -sd,)
}
warns ddp-gpus=own 1 --gres=gpu:2 --ddp-gpus=own
equal 'a task with --ddp-gpus=own sees its own GPU alone' \
	'0 1 0 81,1 0 0 01' "$had"
warns ddp-gpus=own 0 -n1 -c2 --gres=gpu:2 --ddp-gpus=own
equal 'a lone task with --ddp-gpus=own sees all GPUs' '0-1 0,1 0 01' "$had"
warns gpus-per-task 1 -n2 --gpus-per-task=1
equal "what Slurm has cut stays cut" '0 0 0 01,1 1 0 81' "$had"
hold -N1 --exclusive --gres=gpu:2
warns gpus-per-task 1 --jobid="$job" -n2 -O -c2 --gres=gpu:2 \
	--gpu-bind=map_gpu:1,0
release
equal 'the CPUs are near the GPU that Slurm has cut' '0 1 0 81,1 0 0 01' "$had"

# one_unnamed: two tasks on one GPU of two under --gpu-bind=none. Versions of
# Slurm that do not name it leave open which it is; here no device file tells.
one_unnamed()
{
	call login srun --jobid="$job" -n2 --gpu-bind=none "$see"
	named=$(cut -d' ' -f5 out | sort -u)
	call login srun --ddp --jobid="$job" -n2 --gpu-bind=none \
		--ddp-gpus=share "$see"
	if test "$named" = -; then
		equal "${where}--gpu-bind=none: one of two is refused" '1 0 1' \
			"$status $(wc -l <out) $(grep -c 'slurm-ddp: .*: it has 1, and 2 are in sight; leave --gpu-bind out' err)"
	else
		equal "${where}--gpu-bind=none: one of two" \
			"$(printf '%s\n' "0 $named 0" "0 $named 0")" \
			"$(cut -d' ' -f"3,5,9" out | sed 's/^1/0/')"
	fi
}

# A step on one GPU of two, and on both, whatever numbers Slurm gives them
# step_runs STEP
step_runs()
{
	bounded 20 scontrol show step "$1" | grep -q RUNNING
}

for constrain in no yes; do
	cluster --nodes 1 --gpus 2 --cpus 2 \
		--cgroup "ConstrainDevices=$constrain"
	plugstack optional "topology=$scratch/nvidia.xml"
	where="ConstrainDevices=$constrain: "
	test $constrain = yes && number=0 || number=1
	places '0 1,0 0 81,1 1,0 1 01' --gres=gpu:2
	hold -n1 --gres=gpu:1
	places "0 $number 0 81" --gres=gpu:1
	release
	hold -n2 --gres=gpu:2
	login srun --jobid="$job" --exact -n1 --gres=gpu:1 sleep 50 2>first &
	wait_until step_runs "$job.0"
	places "1 $number 0 81" --jobid="$job" --exact -n1 --gres=gpu:1
	release
	wait
	warns gpus-per-task 1 -n2 --gpus-per-task=1
	test $constrain = yes && wanted='0 0 0,1 0 0' || wanted='0 0 0,1 1 0'
	equal "${where}--gpus-per-task: each has a device 0" "$wanted" \
		"$(echo "$had" | sed 's/ [^ ,]*\(,\|$\)/\1/g')"
	places '0 1,0 0 81,1 1,0 1 01' --gres=gpu:2 --gpu-bind=none
	places '0 1,0 0 81,1 1,0 1 01' -n2 --gpus-per-task=1 --gpu-bind=none
	hold -n2 --gres=gpu:1
	one_unnamed
	release
done
where=

# A step within a step whose GPUs ddp has named sees nothing of that.
cat >outer <<END
#!/bin/sh
test \$RANK != 0 || exec srun --overlap -n2 $see
END
chmod 755 outer
batch -n2 --gres=gpu:2 --gpu-bind=none <<END
#!/bin/sh
srun $see >elsewhere.out
srun --ddp ./outer >inner.out
srun --ddp $see
END
equal 'sbatch --gpu-bind=none: all GPUs' '1,0 0 0000:81:00.0 0,1,0 1 0000:01:00.0 0' \
	"$(sort -n out | cut -d' ' -f5,9,10,12 | paste -sd,)"
cut -d' ' -f5-7 elsewhere.out | sort >elsewhere
check 'a step within sees the GPUs that it sees elsewhere' \
	sh -c 'cut -d" " -f5-7 inner.out | sort | diff elsewhere -'

# Each GPU is near one of the CPUs that the sandbox gives a node: with as few
# CPUs as here, they are the same for both nodes.
have=$(nproc --all)
first=$((have / 2))
cluster --nodes 2 --gpus 2 --cpus 2 \
	--gres "NodeName=n1 Name=gpu AutoDetect=off File=@DIR@/nvidia0 Cores=0" \
	--gres "NodeName=n1 Name=gpu AutoDetect=off File=@DIR@/nvidia1 Cores=1" \
	--gres "NodeName=n2 Name=gpu AutoDetect=off File=@DIR@/nvidia0 Cores=$((first % have))" \
	--gres "NodeName=n2 Name=gpu AutoDetect=off File=@DIR@/nvidia1 Cores=$(((first + 1) % have))"
for vendor in nvidia amd; do
	test $vendor = amd && column=6 || column=5
	plugstack optional "topology=$scratch/$vendor.xml"
	warns gpu-bind 1 -N2 --ntasks-per-node=2 --gpus-per-task=1 \
		--gpu-bind=closest
	equal "$vendor: a world of 4, each with its closest GPU as device 0" \
		'0 n1 0 0,1 n1 1 0,2 n2 0 0,3 n2 1 0; n1 0,n1 1,n2 0,n2 1' \
		"$(sort -n out | cut -d' ' -f1,2,3,9 | paste -sd,); $(
			cut -d' ' -f2,$column out | sort | paste -sd,)"
done

# GPUs by AMD, with and without the variable that HIP obeys as well
column=6
for gres in '' ' Flags=amd_gpu_env'; do
	cluster --nodes 1 --gpus 2 --cpus 2 \
		--gres "Name=gpu AutoDetect=off$gres File=@DIR@/nvidia[0-1]"
	plugstack optional "topology=$scratch/amd.xml"
	where="AMD$gres: "
	places '0 1,0 0 81,1 1,0 1 01' --gres=gpu:2
	places '0 1,0 0 81,1 1,0 1 01' --gres=gpu:2 --gpu-bind=none
	hold -N1 --exclusive --gres=gpu:2
	places '1 0,1 0 01,0 0,1 1 81' --jobid="$job" -n2 -O -c2 --gres=gpu:2
	release
	login srun --gres=gpu:2 -n2 "$see" | cut -d' ' -f5,7 | sort >plain.out
	call login srun --ddp --gres=gpu:2 "$see"
	check "${where}CUDA's variables are left alone" \
		sh -c 'cut -d" " -f5,7 out | sort | cmp - plain.out'
	call login srun --ddp --ddp-gpus=own --gres=gpu:2 "$see"
	equal "${where}own" '1 0 0' "$(sort -n out | cut -d' ' -f6,9 |
		paste -sd' ' | cut -d' ' -f1,2,4)"
done
where='' column=5

# shared: as had, without CPUs, of which there are too few
shared()
{
	echo "$had" | sed 's/\(^\|,\)[^ ]* /\1/g'
}

# More ranks than GPUs: the nodes claim 8 CPUs, and tasks are not bound
cluster --nodes 1 --gpus 2 --cpus 8
plugstack optional "topology=$scratch/nvidia.xml"
call login srun --ddp -N1 -n3 --gres=gpu:2 echo ran
equal '3 ranks on 2 GPUs: one line' '1 1 0' \
	"$status $(grep -c slurm-ddp err) $(wc -l <out)"
check 'the line about 3 ranks on 2 GPUs says what can be done' grep -q \
	'3 ranks have 2 GPUs a node on 1 node; ask .*gpu:3, start 2 tasks .* --ddp-gpus=share' err
warns ddp-gpus=share 1 -N1 -n4 --gres=gpu:2 --ddp-gpus=share
equal 'two and two share one' '0 0 01,0 0 01,1 0 81,1 0 81' "$(shared)"
warns ddp-gpus=share 1 -N1 -n3 --gres=gpu:2 --ddp-gpus=share
equal 'the first has one rank more' '0 0 01,0 0 01,1 0 81' "$(shared)"
