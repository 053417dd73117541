# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # the variables are those of ddp-sandbox
# The sandbox's directory, which only root may be able to change, its state, and
# the processes that belong to it; sourced by ddp-sandbox.

# flaw PATH [USER]: put into why what on the way to PATH, links included, somebody
# other than root and USER could replace; nothing if that is nothing. In a sticky
# folder that is what they do not own, and links: others can make hard links to
# root's.
flaw()
{
	local lines line mode owner name open='' user=${2:-root}
	why=''
	mapfile -t lines < <(LC_ALL=C exec namei -mo -- "$1")
	[ ${#lines[@]} -gt 1 ] || why='it needs namei to be checked'
	for line in "${lines[@]:1}"; do
		read -r mode owner _ name _ <<<"$line"
		if [ "$owner" = - ]; then
			why="$mode does not exist"
		elif [ "$owner" != root ] && [ "$owner" != "$user" ]; then
			why="$name belongs to $owner"
		elif [[ $mode = l* ]]; then
			[ -z "$open" ] ||
				why="$name is a link that others can make"
		else
			open=''
			[[ $mode = ?????[!w]??[!w]* ]] || open=yes
			[ -z "$open" ] || [[ $mode = *[tT] ]] ||
				why="$name can be written by others"
		fi
		[ -z "$why" ] || return 0
	done
}

# From here on $dir is absolute and has no links, except perhaps a last one.
set_dir()
{
	local from=--dir name why
	[ "$UID" = 0 ] || die "only root can use a sandbox: run this as root"
	[ -n "${dir+set}" ] ||
		from=DDP_SANDBOX_DIR dir=${DDP_SANDBOX_DIR-$default_dir}
	case $dir in
	'') die "$from is empty: name a folder, or leave $from out to use" \
		"$default_dir" ;;
	*[!A-Za-z0-9._/-]*)
		die "slurm.conf cannot hold the characters in '$dir':" \
			"use letters, digits, '.', '_' and '-'" ;;
	esac
	[[ $dir = /* ]] || dir=$(pwd -P)/$dir
	while [[ $dir = */ ]]; do dir=${dir%/}; done
	name=${dir##*/} dir=${dir%/*}
	case $name in
	''|.|..) die "$from does not end in a name: name the folder itself" ;;
	esac
	flaw "${dir:-/}"
	[ -z "$why" ] || die "$dir/$name: $why: choose a --dir in a folder" \
		"that only root can change"
	dir=$(CDPATH='' cd -P -- "${dir:-/}" && pwd) || exit
	dir=${dir%/}/$name
	conf=$dir/etc/slurm.conf
	[ ${#dir} -le 60 ] || die "$dir is longer than 60 characters, too" \
		"long for the sockets in it: choose a shorter --dir"
}

# The sandbox's name among the machine's cgroups. In another root directory or
# mount namespace the same path is another sandbox.
set_cgroup_name()
{
	cg=ddp-sandbox-$({
		stat -Lc %d-%i "${dir%/*}/"
		echo "${dir##*/}"
	} | cksum | cut -d' ' -f1)
}

dir_exists()
{
	[ -e "$dir" ] || [ -L "$dir" ] || return
	[[ $(stat -c %u%A "$dir") = 0d????[!w]??[!w]? ]] ||
		die "$dir is not a folder that only root can write:" \
			"choose another --dir"
}

save_state()
{
	printf '%s=%s\n' mode "$mode" cgroup "$cgroup" binding "$binding" \
		prefix "$prefix" nodes "$nodes" cpus "$cpus" user "$user" uid "$uid" \
		gid "$gid" end '' >"$dir/etc/state"
}

# A state without an end was cut off.
load_state()
{
	local key value shapes='^(mode=(private|host)|cgroup=(none|v1|v2)'
	shapes+='|binding=(own|wrap|none)|user=(ddp|nobody)'
	shapes+='|prefix=[a-z][a-z0-9-]*|(nodes|cpus|uid|gid)=[0-9]{1,5})$'
	dir_exists && [ -f "$dir/.ddp-sandbox" ] && [ -f "$dir/etc/state" ] ||
		return
	while IFS='=' read -r key value; do
		[ "$key" != end ] || return 0
		[[ $key=$value =~ $shapes ]] || return
		printf -v "$key" %s "$value"
	done <"$dir/etc/state"
	return 1
}

# Whoever can open the file can hold the lock for ever, so only root can. It may
# be gone by the time we have the lock: "down" removes it.
lock()
{
	umask 077
	exec 9>>"$dir/.ddp-sandbox" || exit
	umask 022
	if ! flock -w 5 9 || [ ! "$dir/.ddp-sandbox" -ef /dev/fd/9 ]; then
		die "another ddp-sandbox is working on $dir: try again later"
	fi
}

# process_id PID|self: put into identity pid, start and boot, which no two
# processes share
process_id()
{
	local stat boot
	read -r boot </proc/sys/kernel/random/boot_id
	read -r stat 2>/dev/null <"/proc/$1/stat" || return
	# shellcheck disable=SC2086 # words
	set -- "${stat%% *}" ${stat##*) }
	identity="$1 ${21-} $boot"
}

# running FILE: put into pid the one that FILE in run/ names, of the holder of the
# namespaces or of a node, unless another process, perhaps another user's, has it
# by now
running()
{
	local id identity=''
	read -r id 2>/dev/null <"$dir/run/$1" && pid=${id%% *} &&
		process_id "$pid" && [ "$id" = "$identity" ]
}

# The holder and, where there are no namespaces, what exec started, the daemons
# that have a log of the sandbox open, and their children. Other users can make
# processes look like these, also by setuid programs, so only those that root or
# nobody has started count. In another root directory or mount namespace, the
# same path may be another folder.
# shellcheck disable=SC2016 # for the inner shell
sandbox_pids()
{
	local all pids pid
	mapfile -t all < <(grep -lsE '^Uid:[[:space:]](0|65534)[[:space:]]' \
		/proc/[1-9]*/status)
	all=("${all[@]%/status}")
	pids=$({
		grep -lszx _hold "${all[@]/%//cmdline}" |
			xargs -r grep -lszxF "$dir"
		grep -lszxF "DDP_SANDBOX_IN=$dir" "${all[@]/%//environ}"
		grep -lsE '^(slurm|munged)' "${all[@]/%//comm}" |
			sed 's/comm$/fd/' | xargs -r sh -c \
			'find "$@" -lname "$0" 2>/dev/null' "$dir/log/*"
	} | cut -d/ -f3 | sort -u)
	for pid in $pids; do
		[ "/proc/$pid/root${dir%/*}/" -ef "${dir%/*}/" ] || continue
		echo "$pid"
		cat "/proc/$pid/task/"*/children 2>/dev/null
	done | grep .
}

no_sandbox()
{
	die "no sandbox is up in $dir: start one with:" \
		"$(hint up --dir "$dir")"
}

is_up()
{
	load_state && case $mode in
	private) running holder ;;
	host) sandbox_pids >/dev/null ;;
	esac
}

# Retries, because the kernel takes a moment to release what was killed.
remove_all()
{
	local tries=500 d pids
	set_cgroup_name
	while pids=$(sandbox_pids); do
		# shellcheck disable=SC2086 # several
		kill -9 $pids 2>/dev/null
		[ $((tries--)) -gt 0 ] || die "cannot kill ${pids//$'\n'/ }"
		sleep 0.02
	done
	for d in /sys/fs/cgroup/"$cg" /sys/fs/cgroup/*/"$cg"; do
		until [ ! -d "$d" ] || find "$d" -depth -type d \
			-exec rmdir {} + 2>/dev/null; do
			[ $((tries--)) -gt 0 ] || die "cannot remove $d"
			sleep 0.02
		done
	done
	[ ! -e "$dir/.ddp-sandbox" ] || (cd "$dir" && rm -rf bin etc dev \
		home log man run spool state tmp)
}

remove_dir()
{
	rm -f "$dir/.ddp-sandbox"
	rmdir --ignore-fail-on-non-empty "$dir"
}
