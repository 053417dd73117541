# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # the variables are those of ddp-sandbox
# What this machine allows, and the configuration that follows from it and from
# the options of "ddp-sandbox up"; sourced by ddp-sandbox.

net=10.77.0		# inside the sandbox's namespaces, so it cannot collide
etc_files='passwd group hosts nsswitch.conf'	# its own, mounted over /etc's

find_tools()
{
	local t
	if [ -n "$slurm_prefix" ]; then
		[ -x "$slurm_prefix/bin/srun" ] || die "--slurm-prefix: there" \
			"is no '$slurm_prefix/bin/srun': name the folder" \
			"that a Slurm was installed in"
		slurm_prefix=$(readlink -f "$slurm_prefix")
		PATH=$slurm_prefix/bin:$slurm_prefix/sbin:$PATH
	fi
	for t in srun slurmctld slurmd munged ip nsenter unshare setpriv; do
		command -v $t >/dev/null ||
			die "$t is not installed: install the packages of" \
				"the group sandbox in ${self%/*}/packages"
	done
	env --default-signal=INT true 2>/dev/null &&
		setpriv --pdeathsig TERM true 2>/dev/null ||
		die "env or setpriv is too old here: install coreutils 8.31" \
			"and util-linux 2.33 or later"
}

# Slurm's programs, all from one prefix: each uses the plugins, the library and
# the slurmstepd of the prefix that it was built for.
find_slurm()
{
	local t path first=''
	for t in srun sbatch salloc sinfo squeue scancel scontrol slurmctld \
		slurmd
	do
		path=$(type -P $t) || continue
		programs+=("$path")
		path=$(readlink -f "$path")
		: "${first:=$path}"
		[ "${path%/*/*}" = "${first%/*/*}" ] ||
			die "$first and $path are of two Slurms: name one with" \
				"--slurm-prefix, or put its bin and sbin" \
				"first in PATH"
	done
	for t in sacct sacctmgr sattach sbcast sdiag sprio sreport sshare \
		sstat strigger
	do
		[ ! -x "${first%/*}/$t" ] || programs+=("${first%/*}/$t")
	done
}

# The plugin and the programs beside it, as files that only root and the owner
# of this script can have made, and their manuals. Installed, the script lies
# beside "paths": where it, the plugin, the programs and the manuals were meant to
# be, perhaps below a DESTDIR.
find_plugin()
{
	local here=${self%/*} top=${self%/*/*/*} file why paths=()
	[ -n "$no_plugin" ] || [ ${#plugstack[@]} -gt 0 ] ||
		plugstack=('optional @PLUGIN@')
	case ${plugstack[*]-} in *@PLUGIN@*) ;; *) return ;; esac
	if [ -f "$here/paths" ]; then
		mapfile -t paths <"$here/paths"
		here=${here%"${paths[0]}"}
		set -- "$here${paths[1]}" "$here${paths[2]}"
		manuals=("$here${paths[3]}"/man[1378]/{ddp,slurm-ddp,spank_ddp}*)
	else
		here=$(cd "${DDP_BUILD:-$top}" && pwd -P) || exit
		set -- "$here/obj/plugin" "$here/obj/bin" \
			"$top"/contrib/{plot/ddp-plot,tokens/ddp-tokens}
		manuals=("$top"/{plugin,bin/*,lib}/*.[1378] "$here"/obj/man/*)
	fi
	for file in "$1/spank_ddp.so" "$2"/ddp-{bench,info,train} "${@:3}"; do
		[ -f "$file" ] || continue
		flaw "$file" "$(stat -c %U "$self")"
		[ -z "$why" ] || die "$file: $why: let only its owner write it"
		built+=("$file")
	done
	[ -f "$1/spank_ddp.so" ] || die "there is no $1/spank_ddp.so: build it," \
		"name the build directory in DDP_BUILD, or say --no-plugin"
}

find_mode()
{
	local f
	mode=private user=ddp uid=61000 gid=61000
	unshare --mount --uts --ipc --net --pid --cgroup --fork sh -c '
		hostname ddp && mount -t proc proc /proc &&
		mount -t sysfs sysfs /sys && ip link add br0 type bridge &&
		ip link add v0 type veth peer name v1' 2>/dev/null && {
		for f in $etc_files; do
			[ -e "/etc/$f" ] || die "/etc/$f is missing, over" \
				"which the sandbox mounts its own: make it" \
				"with: touch /etc/$f"
		done
		return
	}
	mode=host user=nobody uid=65534 gid=$(id -g nobody)
	say "this machine allows no namespaces: one node, the host itself," \
		"and jobs run as nobody"
	[ "$nodes" = 1 ] || say "starting 1 node instead of $nodes"
	nodes=1
}

find_cgroup()
{
	local c root=/sys/fs/cgroup
	cgroup=none
	[ "$mode" = private ] || return
	if [ -e $root/cgroup.controllers ]; then
		mkdir "$root/$cg" && enable_v2 $root && enable_v2 "$root/$cg" &&
			cgroup=v2
		return
	fi
	for c in freezer cpuset memory devices cpuacct; do
		[ -e "$root/$c/tasks" ] && mkdir -p "$root/$c/$cg" || return
	done
	for c in cpuset.cpus cpuset.mems; do
		cat $root/cpuset/$c >"$root/cpuset/$cg/$c" || return
	done
	echo 1 >"$root/cpuset/$cg/cgroup.clone_children" && cgroup=v1
}

# pids comes last because Slurm overlooks the last controller of a list.
enable_v2()
{
	echo '+cpuset +cpu +memory +pids' >"$1/cgroup.subtree_control"
}

# ---- configuration

# Copies stdin without the lines whose keys are given, then adds the given ones.
override()
{
	local keys='^$' line
	for line in "$@"; do
		keys="$keys|^${line%%=*}="
	done
	grep -Eiv "$keys"
	[ $# -eq 0 ] || printf '%s\n' "$@"
}

expand()
{
	SLURM_CONF=$conf scontrol show hostnames "$1"
}

# Gres= of a node: what the lines of gres.conf add up to
node_gres()
{
	local line word name type count
	while read -r line; do
		name='' type='' count=1
		for word in $line; do
			case ${word,,} in
			nodename=*)
				expand "${word#*=}" | grep -qx "$1" ||
					continue 2 ;;
			name=*) name=${word#*=} ;;
			type=*) type=:${word#*=} ;;
			file=*) count=$(expand "${word#*=}" | wc -l) ;;
			count=*) count=${word#*=} ;;
			esac
		done
		[ -z "$name" ] || echo "$name$type:$count"
	done <"$dir/etc/gres.conf" | paste -sd,
}

# How tasks are bound. "own": no two nodes share a CPU. "wrap": together, the
# nodes claim more CPUs than there are. "none": one node does, or some of the
# machine's CPUs are withheld from us.
find_binding()
{
	local have
	have=$(nproc --all)
	if [ "$cpus" -gt "$have" ] || [ "$(env -i nproc)" -lt "$have" ]; then
		binding=none
	elif [ $((nodes * cpus)) -gt "$have" ]; then
		binding=wrap
	else
		binding=own
	fi
}

# The first of node i's CPUs on the machine (i from 0), and how many are its own
node_share()
{
	local have share
	have=$(nproc --all)
	share=$((have > nodes ? have / nodes : 1))
	echo $((nodes > have ? $1 % have : $1 * have / nodes)) \
		$((cpus < share ? cpus : share))
}

# Slurm binds from CPU 0 upwards and wraps at the machine's last CPU. Reserving
# the CPUs before a node's share keeps nodes off each other's CPUs.
node_lines()
{
	local i first=0 gres each
	gres=$(node_gres "${prefix}1")
	each=$(grep -i nodename= "$dir/etc/gres.conf")
	for ((i = 0; i < nodes; i++)); do
		[ "$binding" = none ] ||
			read -r first _ <<<"$(node_share "$i")"
		[ -z "$each" ] || gres=$(node_gres "$prefix$((i + 1))")
		echo "NodeName=$prefix$((i + 1)) NodeAddr=$net.$((i + 1))" \
			"CPUs=$((first + cpus))${gres:+ Gres=$gres}" \
			"$( ((first)) && echo "CpuSpecList=0-$((first - 1))")"
	done
}

host_lines()
{
	local port gres name
	name=$(hostname -s)
	gres=$(node_gres "$name")
	port=$((10000 + ${cg##*-} % 10000))
	while (: <>"/dev/tcp/127.0.0.1/$port" ||
		: <>"/dev/tcp/127.0.0.1/$((port + 1))") 2>/dev/null; do
		port=$((port + 2))
	done
	echo "SlurmctldPort=$port"
	echo "SlurmdPort=$((port + 1))"
	echo "NodeName=$name NodeAddr=127.0.0.1 CPUs=$cpus${gres:+ Gres=$gres}"
}

# The plugins that this machine's cgroups and CPUs allow. SlurmdOffSpec makes
# slurmd, and so an unbound task, run on the node's own CPUs. autobind replaces
# Slurm's implicit binding, which miscounts CPUs that wrap and would give a task
# all of them.
plugin_lines()
{
	local tasks=()
	[ "$binding" = none ] || tasks+=(task/affinity)
	[ "$cgroup" = none ] || tasks+=(task/cgroup)
	echo "TaskPlugin=$(IFS=,; echo "${tasks[*]:-task/none}")"
	case $binding in
	own) echo TaskPluginParam=SlurmdOffSpec ;;
	wrap) echo TaskPluginParam=SlurmdOffSpec,autobind=cores ;;
	esac
	case $cgroup in
	none) echo ProctrackType=proctrack/linuxproc ;;
	*) echo ProctrackType=proctrack/cgroup ;;
	esac
	case ${topology[*]-} in
	*BlockName=*) echo TopologyPlugin=topology/block ;;
	*SwitchName=*) echo TopologyPlugin=topology/tree ;;
	esac
	[ ! -s "$dir/etc/gres.conf" ] || echo "GresTypes=$(
		grep -oi '\bname=[^ ]*' "$dir/etc/gres.conf" |
		cut -d= -f2 | sort -u | paste -sd,)"
}

# Each node's share of the machine's memory, in MB
memory()
{
	awk -v n="$nodes" '$1 == "MemTotal:" {print int($2 / 1024 / n)}' \
		/proc/meminfo
}

slurm_conf()
{
	local ctl=login
	[ "$mode" = private ] || ctl="$(hostname -s)(127.0.0.1)"
	cat <<END
ClusterName=sandbox
SlurmctldHost=$ctl
SlurmUser=root
AuthInfo=socket=$dir/run/munge/munge.sock
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
TmpFS=$dir/tmp/%n
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/slurmd.%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd.%n.log
PlugStackConfig=$dir/etc/plugstack.conf
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=1,batch_sched_delay=0
MpiDefault=none
ReturnToService=2
KillWait=5
MailProg=/bin/true
NodeName=DEFAULT RealMemory=$(memory)
PartitionName=main Nodes=ALL Default=YES State=UP
END
}

cgroup_conf()
{
	case $cgroup in
	v2) printf '%s\n' CgroupPlugin=cgroup/v2 IgnoreSystemd=yes ;;
	*) echo CgroupPlugin=cgroup/v1 ;;
	esac
}

make_devices()
{
	local i n=$((gpus > 16 ? gpus : 16))
	for ((i = 0; i < n; i++)); do
		! mknod -m 660 "$dir/dev/nvidia$i" c 195 "$i" 2>/dev/null ||
			continue
		[ "$i" -gt 0 ] || say "this machine allows no device nodes:" \
			"the GPUs are links to /dev/null"
		ln -s /dev/null "$dir/dev/nvidia$i"
	done
	chown -h ":$gid" "$dir/dev"/nvidia*
}

# No account or name is made on the machine: these files are mounted over those
# of /etc inside the sandbox.
write_names()
{
	local i
	cp /etc/passwd /etc/group "$dir/etc"
	echo "$user:x:$uid:$gid::$dir/home:/bin/bash" >>"$dir/etc/passwd"
	echo "$user:x:$gid:" >>"$dir/etc/group"
	printf '%s: files\n' passwd group shadow hosts services protocols \
		>"$dir/etc/nsswitch.conf"
	{
		echo "127.0.0.1 localhost"
		echo "::1 localhost"
		echo "$net.254 login ctl"
		for ((i = 1; i <= nodes; i++)); do
			echo "$net.$i $prefix$i"
		done
	} >"$dir/etc/hosts"
}

# The pages lie by section, as man looks for them.
copy_manuals()
{
	local section file pages
	for section in 1 3 7 8; do
		pages=()
		for file in "${manuals[@]}"; do
			[[ $file = *."$section"?(.gz) && -f $file ]] &&
				pages+=("$file")
		done
		[ ${#pages[@]} -eq 0 ] || install -D -m 644 \
			-t "$dir/man/man$section" "${pages[@]}" || return
	done
}

write_config()
{
	local i names=() lines etc=$dir/etc
	for ((i = 1; i <= nodes; i++)); do names+=("$prefix$i"); done
	[ "$mode" = private ] || names=("$(hostname -s)")
	(cd "$dir" && mkdir -p bin etc dev home log run/munge spool state tmp &&
		mkdir "${names[@]/#/spool/}" "${names[@]/#/tmp/}" &&
		chmod 1777 "${names[@]/#/tmp/}" tmp) || exit
	chmod 700 "$dir/state"
	chown "$uid:$gid" "$dir/home"
	make_devices
	find_binding
	if [ ${#gres[@]} -eq 0 ] && [ "$gpus" -gt 0 ]; then
		gres=("Name=gpu File=@DIR@/nvidia[0-$((gpus - 1))]")
	fi
	[ ${#gres[@]} -eq 0 ] || printf '%s\n' "${gres[@]}" |
		sed "s|@DIR@|$dir/dev|g" >"$etc/gres.conf"
	[ -e "$etc/gres.conf" ] || : >"$etc/gres.conf"
	ln -s -t "$dir/bin" "${programs[@]}" || exit
	[ ${#built[@]} -eq 0 ] || install -t "$dir/bin" "${built[@]}" || exit
	copy_manuals || exit
	printf '%s\n' "${plugstack[@]//@PLUGIN@/$dir/bin/spank_ddp.so}" \
		>"$etc/plugstack.conf"
	[ ${#topology[@]} -eq 0 ] ||
		printf '%s\n' "${topology[@]}" >"$etc/topology.conf"
	cgroup_conf | override "${cgconf[@]}" >"$etc/cgroup.conf"
	slurm_conf >"$conf"		# enough for scontrol in expand
	case $mode in
	private) lines=$(node_lines) ;;
	host) lines=$(host_lines) ;;
	esac
	{ slurm_conf; plugin_lines; echo "$lines"; } |
		override "${slurm[@]}" >"$conf.new"
	mv "$conf.new" "$conf"
	(umask 077; head -c 128 /dev/urandom >"$etc/munge.key")
	write_names
}
