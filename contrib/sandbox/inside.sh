# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # the variables are those of ddp-sandbox
# What runs inside the sandbox's namespaces: the login node, which holds them
# all, and the compute nodes; sourced by ddp-sandbox.

# A shell ignores SIGINT and SIGQUIT for what it starts in the background. From
# Slurm 26.05 on tasks inherit that of slurmd, and ^C would not end them.
start_slurmd()
{
	env --default-signal=INT,QUIT slurmd
}

# start_munged [NODE]: each node has its own, at the same path, as each decodes
# what is sent to all. One munged for all of them would take that for a replay,
# which only a Slurm built with --enable-multiple-slurmd lets pass.
start_munged()
{
	local run=$dir/run/munge
	[ $# -eq 0 ] || mount -t tmpfs -o mode=755 tmpfs "$run" || return
	munged --force --key-file="$dir/etc/munge.key" \
		--socket="$run/munge.sock" --pid-file="$run/munged.pid" \
		--seed-file="$run/seed" --log-file="$dir/log/munged${1:+.$1}.log"
}

# GPUs are device files alone here: no program may find the driver of real ones,
# which all nodes would share. An empty file is no library.
hide_driver()
{
	local f
	[ ! -e "$dir/etc/gpu_driver" ] || return 0
	for f in $(/sbin/ldconfig -p |
		sed -n 's/.* => \(.*libcuda\.so\.1\)$/\1/p'); do
		[ ! -e "$f" ] || mount --bind /dev/null "$f" || return
	done
}

# For the same reason a node has no PCI devices. Besides, PMIx reads the
# configuration of each of them in each step that it serves, which takes a virtual
# machine a millisecond a device.
hide_devices()
{
	[ ! -e "$dir/etc/gpu_driver" ] && [ -d /sys/bus/pci/devices ] || return 0
	mount -t tmpfs tmpfs /sys/bus/pci/devices
}

# pid 1 of the sandbox and its login node: when it ends, everything in the
# sandbox ends. /proc is the machine's until all nodes have read their pids on
# the machine from it.
cmd_hold()
{
	local i f
	enter_dir "$1"
	process_id self && echo "$identity" >"$dir/run/holder" || exit
	hostname login
	for f in $etc_files; do
		mount --bind "$dir/etc/$f" "/etc/$f" || exit
	done
	mount -t tmpfs -o mode=1777 tmpfs /dev/shm && hide_driver || exit
	ip -batch - <<-END || exit
	link set lo up
	link add br0 type bridge
	addr add $net.254/24 dev br0
	link set br0 up
	END
	start_munged && slurmctld -c || exit
	for ((i = 1; i <= nodes; i++)); do
		start_node "$i" &
	done
	until set -- "$dir/run/$prefix"*.pid && [ -e "$1" ] && [ $# -eq "$nodes" ]
	do
		sleep 0.02
	done
	mount -t proc proc /proc && mount -t sysfs sysfs /sys || exit
	while :; do
		sleep 3600 &
		wait $!
	done
}

enter_dir()
{
	dir=$1
	conf=$dir/etc/slurm.conf
	set_cgroup_name
	trap 'touch "$dir/run/failed"' EXIT
	export SLURM_CONF=$conf
	load_state || exit
}

start_node()
{
	local d
	for d in /sys/fs/cgroup/"$cg" /sys/fs/cgroup/*/"$cg"; do
		[ -d "$d" ] || continue
		mkdir -p "$d/$prefix$1"
		echo 0 >"$d/$prefix$1/cgroup.procs"
	done
	exec unshare --mount --uts --ipc --net --cgroup \
		"$self" _node "$dir" "$1"
}

# A node sees its own part of the machine's cgroups as if that were all.
mount_cgroups()
{
	local root=/sys/fs/cgroup list c
	case $cgroup in
	v1)	mount -t tmpfs tmpfs $root
		while IFS=: read -r _ list _; do
			case $list in ''|name=*) continue ;; esac
			for c in ${list//,/ }; do
				mkdir "$root/$c"
				mount -t cgroup -o "$list" "$c" "$root/$c"
			done
		done </proc/self/cgroup ;;
	v2)	mount -t cgroup2 cgroup2 $root
		mkdir -p $root/system.slice/slurmd
		echo 0 >$root/system.slice/slurmd/cgroup.procs
		enable_v2 $root && enable_v2 $root/system.slice ;;
	esac
}

cmd_node()
{
	local n first width
	enter_dir "$1"
	n=$prefix$2
	read -r first width <<<"$(node_share $(($2 - 1)))"
	process_id self && echo "$identity" >"$dir/run/$n" || exit
	hostname "$n"
	umount -R -l /sys	# Slurm takes its cgroups from the first mount
	mount -t proc proc /proc && mount -t sysfs sysfs /sys &&
		hide_devices || exit
	mv "$dir/run/$n" "$dir/run/$n.pid"
	mount_cgroups
	mount -t tmpfs -o mode=1777 tmpfs /dev/shm || exit
	ip -batch - <<-END || exit
	link set lo up
	link add eth0 type veth peer name $n netns 1
	addr add $net.$2/24 dev eth0
	link set eth0 up
	END
	nsenter --target 1 --net ip link set "$n" master br0 up || exit
	taskset -cp "$first-$((first + width - 1))" $$ >/dev/null 2>&1
	start_munged "$n" && start_slurmd || exit
	exec sleep infinity
}

# The only node where there are no namespaces
cmd_host()
{
	enter_dir "$1"
	start_munged && slurmctld -c && start_slurmd && trap - EXIT
}
