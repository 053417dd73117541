# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run, which sources this
# What the themes share: the cluster, how to call it, what a right world is.

# missing: print why there can be no cluster of several nodes here; nothing if
# there can be one
missing()
{
	if test "$(id -u)" -ne 0; then
		echo 'starting a cluster needs root'
	elif ! test -f "$build/obj/plugin/spank_ddp.so"; then
		echo 'the plugin was not built'
	else
		for tool in slurmctld slurmd srun munged ip nsenter perl; do
			command -v $tool >/dev/null || {
				echo "$tool is not installed"
				return
			}
		done
		unshare --mount --uts --ipc --net --pid --fork \
			ip link add br0 type bridge 2>/dev/null ||
			echo 'this machine allows no namespaces'
	fi
}

# cluster [OPTION...]: a new cluster, with options of ddp-sandbox up
cluster()
{
	"$sandbox" down --dir "$dir/cluster" 2>/dev/null
	if ! "$sandbox" up --no-plugin --dir "$dir/cluster" "$@" 2>up.err; then
		cat up.err >&2
		exit 1
	fi
	plugstack optional
}

# rank_files: what lies in /dev/shm of any node for the ranks of a step
rank_files()
{
	# shellcheck disable=SC2016 # for the inner shell
	"$sandbox" exec --dir "$dir/cluster" --root sh -c '
		pids=$(pgrep -x munged) || echo "nobody has looked"
		for pid in $pids; do
			find "/proc/$pid/root/dev/shm" -name "slurm-ddp.*"
		done' || echo 'nobody has looked'
}

# plugstack WORD [KEY=VALUE]: how each further step loads the plugin
plugstack()
{
	echo "$1 $plugin ${2-}" >"$dir/cluster/etc/plugstack.conf"
}

# has_pmix: whether srun offers --mpi=pmix here. That of Debian sid does not.
has_pmix()
{
	test -n "${pmix_offered-}" ||
		pmix_offered=$("$sandbox" exec --dir "$dir/cluster" \
			srun --mpi=list 2>&1 </dev/null | grep -c pmix)
	test "$pmix_offered" -gt 0
}

# lacks_pmix NAME: skips this test, and succeeds, where srun does not offer it. By
# PMIx alone the components of a step know each other, and MPI begins.
lacks_pmix()
{
	! has_pmix || return 1
	skip "$1" 'this srun has no --mpi=pmix'
}

# jobs: the numbers of all
jobs()
{
	"$sandbox" exec --dir "$dir/cluster" squeue -h -o %A | sort -u
}

# bounded SECONDS CMD...: on the login node, as the unprivileged user
bounded()
{
	seconds=$1
	shift
	"$sandbox" exec --dir "$dir/cluster" timeout -k 5 "$seconds" "$@"
}

# srun 22.05 can hang when a heterogeneous step has ended, which is its own
# fault: try such commands up to three times, for $patience seconds first.
patience=20
patient()
{
	jobs >jobs.before
	for seconds in $patience $patience $((3 * patience)); do
		bounded "$seconds" "$@" >try.out 2>try.err
		patient_status=$?
		case $patient_status in 124 | 137) ;; *) break ;; esac
		jobs | comm -13 jobs.before - >jobs.left
		xargs -r "$sandbox" exec --dir "$dir/cluster" scancel \
			<jobs.left
	done
	cat try.out
	cat try.err >&2
	return "$patient_status"
}

# For the login node, which takes as long to enter as a small step takes to run: run
# a command when all nodes are done with the end of the job before, or after a minute
cat >settled <<'END'
#!/bin/sh
end=$(($(date +%s) + 60))
until nodes=$(sinfo -h -t completing -o %N 2>/dev/null) && test -z "$nodes" ||
	test "$(date +%s)" -ge "$end"; do
	sleep 0.05
done
exec "$@"
END
chmod 755 settled

# settle: wait until all nodes are done with the end of the job before
settle()
{
	"$sandbox" exec --dir "$dir/cluster" "$scratch/settled"
}

# now: the time, in ms
now()
{
	echo $(($(date +%s%N) / 1000000))
}

# measure OPTION...: how long plain steps take; $slowest is that of the slowest so
# far, in ms
slowest=0
measure()
{
	for _ in 1 2 3; do
		settle
		measure_begin=$(now)
		bounded 60 srun "$@" true </dev/null
		measured=$(($(now) - measure_begin))
		test "$measured" -lt "$slowest" || slowest=$measured
	done
}

# in_goal TOOK GOAL OPTION...: whether what took so many ms needed no more than the
# goal. On a busy machine srun itself takes time: what a plain step needs is added,
# and measured again before anything is called late.
in_goal()
{
	in_goal_took=$1 in_goal_goal=$2
	shift 2
	test "$in_goal_took" -gt $((in_goal_goal + slowest)) || return 0
	measure "$@"
	echo "$in_goal_took ms, not $in_goal_goal; a plain srun takes $slowest ms"
	test "$in_goal_took" -le $((in_goal_goal + slowest))
}

# login CMD...: on the login node, as the unprivileged user, when all nodes are
# done
login()
{
	case " $* " in
	*' : '*)
		settle
		patient "$@" ;;
	*)
		"$sandbox" exec --dir "$dir/cluster" "$scratch/settled" \
			timeout -k 5 $((3 * patience)) "$@" ;;
	esac
}

# admin NODE CMD...: on a node, as root
admin()
{
	admin_node=$1
	shift
	"$sandbox" exec --dir "$dir/cluster" --root --node "$admin_node" "$@"
}

# sbatch --wait that sees the end of the job at once: Slurm's own looks for it
# after 2 s, and then every 10 s at most. It prints nothing.
cat >sbatch_wait <<'END'
#!/bin/sh
job=$(sbatch --parsable "$@") || exit
# Either fails if slurmctld does not answer within 10 s.
until queued=$(squeue -h -j "$job" -o %T 2>/dev/null) && test -z "$queued"; do
	sleep 0.1
done
until ended=$(scontrol -o show job "$job" 2>/dev/null); do
	sleep 0.1
done
ended=$(echo "$ended" | sed -n 's/.* ExitCode=\([0-9]*:[0-9]*\) .*/\1/p')
test "${ended#*:}" = 0 || exit 1
exit "${ended%:*}"
END
chmod 755 sbatch_wait

# batch [ARGUMENT...]: submit the script on stdin and wait for its end; as call
batch()
{
	cat >job.sh
	rm -f job.out job.err
	call login "$scratch/sbatch_wait" -o job.out -e job.err "$@" job.sh
	mv job.out out
	cat job.err >>err
}

# A program for tasks: it prints a line with its host and its variables.
cat >show <<'END'
#!/bin/sh
# What OpenMP counts where it is told no number
threads=-
test -z "${RANK-}" || threads=$(nproc)
echo $SLURM_PROCID $(uname -n) ${RANK--} ${LOCAL_RANK--} ${WORLD_SIZE--} \
	${LOCAL_WORLD_SIZE--} ${NODE_RANK--} ${GROUP_RANK--} \
	${GROUP_WORLD_SIZE--} ${ROLE_RANK--} ${ROLE_WORLD_SIZE--} \
	${MASTER_ADDR--} ${OMP_NUM_THREADS-$threads} ${GLOO_SOCKET_IFNAME--} \
	$(env -u OMP_NUM_THREADS nproc) ${MASTER_PORT--}
END
chmod 755 show
show=$scratch/show

# A program for tasks: it prints a line with where it really runs, which GPUs it
# sees, and what ddp-info says of that: the device, its bus, and its status.
cat >see <<'END'
#!/bin/sh
cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
memory=$(cut -d' ' -f2 /proc/self/numa_maps 2>/dev/null | sed 1q)
info=$(ddp-info 2>&1)
status=$?
case $info in *DIFFERS*) status=differs ;; esac
device=$(echo "$info" | sed -n 's/^ *device \([0-9]*\) .* \(.*\)$/\1 \2/p')
echo $SLURM_PROCID $(uname -n) ${LOCAL_RANK:--} $cpus \
	${CUDA_VISIBLE_DEVICES:--} ${ROCR_VISIBLE_DEVICES:--} \
	${CUDA_DEVICE_ORDER:--} ${OMP_NUM_THREADS:-$(nproc)} ${device:-- -} \
	${memory:--} $status
END
chmod 755 see
# shellcheck disable=SC2034 # for the themes
see=$scratch/see

# topology NAME: $scratch/NAME.xml of the lines on stdin, as in tests/golden
topology()
{
	awk -f "$top/tests/golden/topology.awk" >"$scratch/$1.xml"
}

# pair NAME CPU BUS CPU BUS VENDOR:DEVICE: a node with two CPUs, each with
# memory and a GPU of its own. By bus, 01 is GPU 0 and 81 is GPU 1.
pair()
{
	topology "$1" <<-END
	package
	numa 0 $2 1 1 1 0
	gpu 0000:$3:00.0 0302 $6 a
	package
	numa 1 $4 1 1 1 0
	gpu 0000:$5:00.0 0302 $6 b
	END
}
# places WANTED OPTIONS: for each rank the CPUs, the variable that orders what
# it sees, its device and the device's bus; ddp-info agrees, and nothing else is
# printed
places()
{
	wanted=$1
	shift
	call login srun --ddp "$@" "$see"
	had=$(sort -n out | cut -d' ' -f"4,$column,9,10" |
		sed 's/0000:\(..\):00.0/\1/' | paste -sd,)
	test "$had" = "$wanted" && test "$status" -eq 0 && ! unquiet >why &&
		! grep -qv ' 0$' out
	status=$?
	test "$status" -eq 0 || echo "wanted $wanted, had $had" >>why
	result "$status" "${where:-}srun --ddp $*"
}

# right HOSTS: whether the lines of show in out are those of a world whose rank
# 0, 1, ... ran on these hosts, by what each task saw of itself. Every variable
# follows from who is where.
right()
{
	sort -n out | awk -v hosts="$1" '
	{ host[NR - 1] = $2; count[$2]++; line[NR - 1] = $0; cpus[NR - 1] = $15 }
	NR == 1 { port = $16 }
	END {
		if (NR != split(hosts, wanted) || port < 1024 || port > 65535)
			bad = 1
		for (p = 0; p < NR; p++) {
			h = host[p]
			bad = bad || h != wanted[p + 1]
			if (!(h in node))
				node[h] = nodes++
		}
		for (p = 0; p < NR; p++) {
			h = host[p]
			want = p " " h " " p " " 0 + seen[h]++ " " NR " " \
				count[h] " " node[h] " " node[h] " " nodes \
				" " p " " NR " " host[0] " " cpus[p] " eth0 " \
				cpus[p] " " port
			if (line[p] != want) {
				bad = 1
				print "have " line[p] ", want " want
			}
		}
		exit bad
	}' >why
}

# unquiet: print the messages that are not Slurm's own news of an allocation,
# whose words change from version to version, nor of a step that waits for the
# end of the one before, nor of a connection between nodes that 22.05 cannot
# verify on a busy machine, and makes again; succeeds if there are any
unquiet()
{
	awk '/^slurmstepd-[^ ]*: error: (Munge decode failed|slurm_receive_msgs:)/ {
			next }
		/^salloc: / && !/error|fatal|warning|slurm-ddp/ { next }
		/^srun: job [0-9]+ / { next }
		/^srun: .* step creation .* disabled, retrying/ { next }
		/^srun: Step created for / { next }
		{ print; any = 1 }
		END { exit !any }' err
}

# messages FILE: print them sorted, without the number of the step, and without
# the time that slurmstepd of some versions begins a line with
messages()
{
	sed 's/StepId=.*//; s/^\[[-0-9T:.]*\] //' "$1" | sort
}

# noise FROM TO: print an expression for each variable that differs between two
# environments of plain jobs, such as their numbers and when they began
noise()
{
	diff "$1" "$2" | sed -n 's/^[<>] \([A-Za-z_0-9]*\)=.*/^([<>] )?\1=/p'
}

# world HOSTS CMD...: CMD with show at its end makes a right world, and is quiet
world()
{
	world_hosts=$1
	shift
	call login "$@" "$show"
	test "$status" -eq 0 && right "$world_hosts" && ! unquiet >why
	result $? "${name:-$*}: $world_hosts"
	name=
}

# refuses WORDS CMD...: it fails, runs nothing and prints one sentence with
# WORDS
refuses()
{
	refuses_words=$1
	shift
	call login "$@"
	test "$status" -eq 1 && ! test -s out && test "$(unquiet | wc -l)" = 1 &&
		grep "slurm-ddp: " err | grep -qF -- "$refuses_words"
	result $? "${name:-$*} is refused: $refuses_words"
	name=
}

# hold [ARGUMENT...]: get an allocation without a process; its number is in $job
hold()
{
	call login salloc --no-shell "$@"
	job=$(sed -n 's/.*Granted job allocation //p' err)
	test -n "$job" || cat err >&2
}

# release: end that allocation
release()
{
	login scancel "$job"
}
