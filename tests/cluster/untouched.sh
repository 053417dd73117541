# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# A step without --ddp is byte for byte the same as where the plugin is not
# loaded at all: environment, affinity, signals, open files, messages.

# A program for tasks: it writes what it was given into a file named by the
# step.
cat >given <<'END'
#!/usr/bin/perl
my $step = $ENV{SLURM_STEP_ID} // 'none';
open(my $to, '>', "$ENV{INTO}/$ENV{RUN}.$step.$ENV{SLURM_PROCID}") or die;
open(my $from, '<', '/proc/self/environ') or die;
print $to join("\n", split(/\0/, do { local $/; <$from> })), "\n";
open($from, '<', '/proc/self/status') or die;
print $to grep { /^(Sig[^Q]|Shd|Cpus_allowed|Mems_allowed|Groups|NoNewPrivs)/ }
	<$from>;
close $from;
close $to;
exec 'sh', '-c', 'ls -l /proc/self/fd | sed "s/.*:[0-9]* //; s/[0-9]*\]//" |
	grep -v /proc/ >>"$0"; ulimit -a >>"$0"; umask >>"$0"; pwd >>"$0"',
	"$ENV{INTO}/$ENV{RUN}.$step.$ENV{SLURM_PROCID}";
END
chmod 755 given

# What differs from run to run, with or without the plugin; and what this Slurm
# alone varies
: >noise
different='^(INTO|SLURM_SRUN_COMM_PORT|SLURM_STEP_LAUNCHER_PORT|SLURM_TASK_PID|SLURM_PMIXP_ABORT_AGENT_PORT|PMIX_[A-Z0-9_]*|SLURM_JOB_(START|END)_TIME)='

# steps INTO: the same steps on a new cluster, so that job ids are the same too
steps()
{
	rm -rf "$1"
	mkdir -m 777 "$1"
	run=10
	while read -r command; do
		run=$((run + 1))
		has_pmix || command=$(echo "$command" | sed 's/ --mpi=pmix//')
		# shellcheck disable=SC2086 # several words
		call login env INTO="$scratch/$1" RUN=$run $command
		unquiet | sort >"$1/$run.err"
		echo "$status" >"$1/$run.status"
	done <<-'END'
	srun ./given
	srun -N2 --gres=gpu:2 ./given
	srun -N2 -n4 --gres=gpu:2 --mpi=pmix -K ./given
	srun -n2 -c1 --cpu-bind=rank ./given
	srun -N2 --cpu-bind=none --export=INTO,RUN ./given
	srun -N2 -n1 ./given
	srun -N2 -n2 sh -c ./given;exit${IFS}$SLURM_PROCID
	salloc -N2 --gres=gpu:2 --ntasks-per-node=2 srun ./given
	salloc -N1 srun --pty ./given
	./sbatch_wait -N1 --gres=gpu:2 -o /dev/null given
	srun --bogus ./given
	srun -n1 ./given : -n1 ./given
	END
	# login may have run the last one twice, so that it had another job.
	sed -i 's/^\(SLURM_[A-Z_]*JOB_*ID[A-Z_0-9]*\)=[0-9]*$/\1=/' "$1/$run".*
}

# same INTO: whether these steps wrote the same as those without the plugin
same()
{
	(cd without && ls) >ls.without
	(cd "$1" && ls) | diff ls.without - >why || return
	for file in without/*; do
		grep -Ev "$different" "$file" | grep -Evf noise >a
		grep -Ev "$different" "$1/${file#*/}" | grep -Evf noise |
			diff a - >>why ||
			echo "${file#*/}" >>why
	done
	test ! -s why
}

cluster --nodes 2 --gpus 2
: >"$dir/cluster/etc/plugstack.conf"
steps without
equal 'tasks that have been compared' 22 "$(find without -name '*.*.?' | wc -l)"
cluster --nodes 2 --gpus 2
: >"$dir/cluster/etc/plugstack.conf"
steps again
for file in without/*; do
	noise "$file" "again/${file#*/}"
done | grep SLURM_ | sort -u >noise
same again
result $? 'tasks without the plugin are the same each time'
for word in optional required; do
	cluster --nodes 2 --gpus 2
	plugstack $word 'interface=eth0 port-range=30000-31000'
	steps loaded
	same loaded
	result $? "tasks with the plugin ($word) are the same"
	cluster --nodes 2 --gpus 2
	plugstack $word bogus=1
	steps loaded
	same loaded
	result $? "tasks with an unknown key ($word) are the same"
done
cp "$dir/cluster/etc/plugstack.conf" twice
cluster --nodes 2 --gpus 2
cat twice twice >"$dir/cluster/etc/plugstack.conf"
steps loaded
same loaded
result $? 'tasks with the plugin loaded twice are the same'
