# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run, which sources this
# What the themes share: the cluster, how to call it, what a right world is.

# Why there can be no cluster of several nodes here; nothing if there can.
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
	if ! "$sandbox" up --dir "$dir/cluster" "$@" 2>up.err; then
		cat up.err >&2
		exit 1
	fi
	plugstack optional
}

# plugstack WORD [KEY=VALUE]: how each further step loads the plugin
plugstack()
{
	echo "$1 $plugin ${2-}" >"$dir/cluster/etc/plugstack.conf"
}

# login CMD...: on the login node, as the unprivileged user, once no node is
# busy any more with the end of the job before
login()
{
	until test -z "$("$sandbox" exec --dir "$dir/cluster" \
		sinfo -h -t completing -o %N)"; do
		sleep 0.05
	done
	"$sandbox" exec --dir "$dir/cluster" timeout -k 5 60 "$@"
}

# admin NODE CMD...: on a node, as root
admin()
{
	admin_node=$1
	shift
	"$sandbox" exec --dir "$dir/cluster" --root --node "$admin_node" "$@"
}

# batch [ARGUMENT...]: submit the script on stdin and wait for its end; as call
batch()
{
	cat >job.sh
	rm -f job.out job.err
	call login sbatch --wait -o job.out -e job.err "$@" job.sh
	mv job.out out
	sed -i '/^Submitted batch job/d' out
	cat job.err >>err
}

# A program for tasks: a line with what it sees of itself and its variables.
cat >show <<'END'
#!/bin/sh
echo $SLURM_PROCID $(uname -n) ${RANK--} ${LOCAL_RANK--} ${WORLD_SIZE--} \
	${LOCAL_WORLD_SIZE--} ${NODE_RANK--} ${GROUP_RANK--} \
	${GROUP_WORLD_SIZE--} ${ROLE_RANK--} ${ROLE_WORLD_SIZE--} \
	${MASTER_ADDR--} ${OMP_NUM_THREADS--} ${GLOO_SOCKET_IFNAME--} \
	$(env -u OMP_NUM_THREADS nproc) ${MASTER_PORT--}
END
chmod 755 show
show=$scratch/show

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

# Messages other than those of Slurm on the way to an allocation
unquiet()
{
	grep -Ev '^(salloc: (Gra|Rel|Job|Pend|job)|srun: job .* (queu|has been))' \
		err
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

# refuses WORDS CMD...: it fails, runs nothing and says one sentence with WORDS
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

# hold [ARGUMENT...]: an allocation without a process; its number is in $job
hold()
{
	call login salloc --no-shell "$@"
	job=$(sed -n 's/.*Granted job allocation //p' err)
	test -n "$job" || cat err >&2
}

# release: the end of what hold began
release()
{
	login scancel "$job"
}
