# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # variables of run; inner shells expand
# The memory that ranks share: no other user can read or block it, it is
# compared with the limits on memory, and nothing of it stays behind. The tests
# run in a /dev/shm of their own.

victim=61000 attacker=65534

# alone COMMAND...: with a new /dev/shm; the file left lists what stays there
alone()
{
	call unshare --mount sh -c '
		mount -t tmpfs -o mode=1777 none /dev/shm || exit
		"$@"
		status=$?
		ls -ln /dev/shm | sed 1d >left
		exit $status' - "$@"
}

# as UID COMMAND...
cat >as <<'END'
#!/bin/sh
uid=$1
shift
exec setpriv --reuid "$uid" --clear-groups --inh-caps=-all "$@"
END

# guess COMMAND...: a rank that starts only once the attacker has made the
# files. It tells the attacker their names, which he would have to guess. They
# contain the job's number: it is the job's name in Open MPI 4, and Open MPI 5
# computes it from a name such as prterun-host-123@1.
cat >guess <<'END'
#!/usr/bin/python3
import os, sys
name, at, number = os.environ["PMIX_NAMESPACE"].partition("@")
job, hash = int(number if at else name), 0
for byte in name.encode() if at else b"":
    hash = (hash + byte) * 1025 & 0xffffffff
    hash ^= hash >> 6
hash = hash * 9 & 0xffffffff
hash = (hash ^ hash >> 11) * 32769 & 0xffffffff
job |= (hash >> 16 ^ hash & 0xffff) << 16
rank = os.environ["PMIX_RANK"]
with open("guesses", "w") as guesses:
    guesses.write(f"{rank} {job:x} {os.getuid()}\n")
open("answer." + rank).readline()
os.execvp(sys.argv[1], sys.argv[1:])
END

# attack: make the files with mode $MODE
cat >attack <<'END'
#!/bin/sh
umask 0
host=$(uname -n)
for i in 1 2; do
	read -r rank job uid
	cd /dev/shm || exit
	set -- "vader_segment.$host.$uid.$job.$rank" \
		"sm_segment.$host.$uid.$job.$rank"
	for number in 0 1 2 3 4 5 6 7 8 9; do
		set -- "$@" "osc_sm.$host.$job.0.$number"
	done
	touch "$@" 2>/dev/null
	chmod "$MODE" "$@" 2>/dev/null
	cd "$OLDPWD" || exit
	echo made >"answer.$rank"
done <>guesses
END

# attacked MODE COMMAND...: two ranks under attack; run it in a sticky folder
cat >attacked <<'END'
#!/bin/sh
export MODE="$1"
shift
rm -f guesses answer.*
mkfifo -m 666 guesses answer.0 answer.1
../as 65534 timeout 60 ../attack &
attacker=$!
TMPDIR=$PWD HOME=$PWD ../as 61000 timeout -k 5 60 mpirun -n 2 ../guess "$@"
status=$?
kill "$attacker" 2>/dev/null
wait "$attacker"
exit "$status"
END

# withstands NAME MODE COMMAND...: the ranks run as if there were no files, and
# the attacker's files stay empty
withstands()
{
	withstands_name=$1
	shift
	cd attacked.d || exit
	alone ../attacked "$@"
	mv left ..
	cd .. || exit
	{
		echo "status $status"
		cat err left
	} >why
	test "$status" -eq 0 && ! test -s err && test -s left &&
		test "$(awk '{ size += $5 } END { print size }' left)" -eq 0 &&
		! grep -q " $victim " left
	result $? "$withstands_name"
}

# A run that is killed, and what another user can find of it before
cat >look <<'END'
#!/bin/sh
train=$1
mpirun -n 2 "$train" --steps 100000000 --data "$2" >steps 2>steps.err &
mpirun=$!
tries=0
until grep -q '^step' steps || ! kill -0 "$mpirun"; do
	test $((tries += 1)) -lt 600 || break
	sleep .1
done
ranks=$(pgrep -P "$mpirun")
echo ranks $ranks | wc -w
echo files $(find /dev/shm -mindepth 1)
for rank in $ranks; do
	echo shared $(grep -c '/memfd:ddp-train' "/proc/$rank/maps")
	echo descriptors $(ls -l "/proc/$rank/fd" | grep -c memfd)
	span=$(sed -n 's/ .*memfd:ddp-train.*//p' "/proc/$rank/maps")
	./as 65534 cat "/proc/$rank/map_files/$span" >stolen 2>/dev/null ||
		echo refused
	./as 65534 dd if="/proc/$rank/mem" bs=1 count=1 2>/dev/null ||
		echo refused
done
kill -KILL "$mpirun" $ranks
wait "$mpirun" 2>/dev/null
for rank in $ranks; do
	while kill -0 "$rank" 2>/dev/null; do
		test $((tries += 1)) -lt 1200 || break
		sleep .1
	done
done
END

# apart COMMAND...: a rank in a PID namespace of its own, with a PID that no
# other rank has: Open MPI takes a rank with its own PID for itself
cat >apart <<'END'
#!/bin/sh
exec unshare --pid --fork --mount-proc sh -c '
	for i in $(seq $((OMPI_COMM_WORLD_RANK * 3))); do
		true &
	done
	wait
	"$@"
	exit $?' - "$@"
END

window_privacy()
{
	mkdir -m 1777 attacked.d
	cp "$train" "$build/obj/bin/ddp-bench" .
	chmod 755 . ddp-train ddp-bench
	for mode in 666 600; do
		withstands "ddp-train: files of another user, mode $mode" \
			$mode ../ddp-train --data "$text" --steps 2
		withstands "ddp-bench: files of another user, mode $mode" \
			$mode ../ddp-bench --backend mpi -b 4K -e 4M -f 32
	done
	alone ./look "$train" "$text"
	equal 'what others find of two ranks that train' "$(
		echo 3
		echo files
		set -- 'shared 1' 'descriptors 0' refused refused
		printf '%s\n' "$@" "$@")" "$(cat out)"
	equal 'ranks that were killed leave nothing' '' "$(cat left)"
}

# The folder for Open MPI's files: with a /dev/shm that is read-only, and with a
# folder that the user has set
window_folder()
{
	call unshare --mount sh -c 'mount -t tmpfs -o ro none /dev/shm &&
		"$@"' - timeout 60 mpirun -n 2 "$train" --steps 1
	equal 'two ranks train without a /dev/shm' '0 ' "$status $(cat err)"
	OMPI_MCA_btl_vader_backing_directory=/nonexistent
	export OMPI_MCA_btl_vader_backing_directory
	alone timeout 60 mpirun -n 2 "$train" --steps 1
	unset OMPI_MCA_btl_vader_backing_directory
	grep -q /nonexistent err
	result $? "the user's folder for Open MPI's files is used"
}

# Folders in which Open MPI's files were, some of ranks that were killed, with
# their agents; COMMAND runs beside them
cat >beside <<'END'
#!/bin/sh
for name in empty files 3.0.1.AAAAAA used others theirs young; do
	mkdir -m 700 "/dev/shm/slurm-ddp.$name"
done
touch /dev/shm/slurm-ddp.files/vader_segment.n1.0.1.0 \
	/dev/shm/slurm-ddp.files/sm_segment.n1.0.1.0 \
	/dev/shm/slurm-ddp.used/vader_segment.n1.0.1.0 \
	/dev/shm/slurm-ddp.others/notes
chown 65534 /dev/shm/slurm-ddp.theirs
find /dev/shm ! -name '*.young' -exec touch -d '2 minutes ago' {} +
rm -f locked
flock -F -s /dev/shm/slurm-ddp.used sh -c 'echo >locked; exec sleep 120' &
tries=0
until test -s locked; do
	test $((tries += 1)) -lt 600 || exit 99
	sleep .1
done
"$@"
status=$?
kill $!
exit $status
END
chmod 755 beside

window_left()
{
	alone ./beside timeout 60 mpirun -n 2 "$train" --steps 1
	equal 'what ranks that were killed have left is removed, and no more' \
		'0 others theirs used young' "$status $(sed 's/.*ddp[.]//' left |
			sort | paste -sd' ')"
}

window_apart()
{
	alone timeout -k 5 60 mpirun -n 3 ./apart \
		"$build/obj/tests/train/allreduce" mpi plain real 4 2
	equal 'ranks in PID namespaces of their own share memory too' '0 ' \
		"$status $(cat out err left)"
	call "$program" handover "$attacker"
	equal 'a descriptor is handed to this user and no other' '0 ' \
		"$status $(cat out err)"
}

# room NAME WANTED: what room_find() reads below the folder fake
room()
{
	call "$program" room fake
	equal "$1" "$2" "$(paste -sd ' ' out)"
}

# fake_cgroup FOLDER LIMIT-FILE LIMIT USAGE-FILE USAGE STAT
fake_cgroup()
{
	mkdir -p "$1"
	echo "$3" >"$1/$2"
	echo "$5" >"$1/$4"
	printf %b "$6" >"$1/memory.stat"
}

window_rooms()
{
	mkdir -p fake/self
	echo 'MemAvailable:   1000 kB' >fake/meminfo
	room 'without cgroups there is the machine' 1024000
	echo '4:cpu,memory:/slurm/job_1/step_0' >fake/self/cgroup
	echo "9 8 0:7 / $PWD/v1 rw - cgroup cgroup rw,cpu,memory" \
		>fake/self/mountinfo
	set -- memory.limit_in_bytes 9223372036854771712 memory.usage_in_bytes
	fake_cgroup v1 "$@" 5 ''
	fake_cgroup v1/slurm "$@" 5 ''
	set -- memory.limit_in_bytes 600 memory.usage_in_bytes
	fake_cgroup v1/slurm/job_1 "$@" 500 \
		'inactive_file 1\ntotal_inactive_file 100\ntotal_active_file 50\n'
	fake_cgroup v1/slurm/job_1/step_0 "$@" 700 ''
	room 'version 1: the step and the job' '1024000 0 250'
	echo '4:cpu,memory:/docker/abc' >fake/self/cgroup
	echo "9 8 0:7 /docker/abc $PWD/v1/slurm/job_1 rw - cgroup c memory" \
		>fake/self/mountinfo
	room 'version 1: a container' '1024000 250'
	echo '0::/job_2' >fake/self/cgroup
	echo "9 8 0:7 / $PWD/v2 rw shared:1 - cgroup2 c rw" \
		>fake/self/mountinfo
	fake_cgroup v2 none '' memory.current 5 ''
	fake_cgroup v2/job_2 memory.max 600 memory.current 500 \
		'inactive_file 100\nactive_file 50\n'
	room 'version 2' '1024000 250'
	echo max >v2/job_2/memory.max
	room 'version 2 without a limit' 1024000
}

# limited COMMAND...: in a memory cgroup of 64 MiB
limited()
{
	call sh -c 'echo $$ >"$0/cgroup.procs" && exec timeout 60 "$@"' \
		"$cgroup" "$@"
}

window_limit()
{
	cgroup=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
	cgroup=/sys/fs/cgroup/memory$cgroup/ddp-train.$$
	limit=$cgroup/memory.limit_in_bytes
	if ! test -d /sys/fs/cgroup/memory; then
		cgroup=/sys/fs/cgroup/ddp-train.$$
		limit=$cgroup/memory.max
	fi
	if ! { mkdir "$cgroup" && echo 67108864 >"$limit"; } 2>/dev/null; then
		rmdir "$cgroup" 2>/dev/null
		skip "a cgroup's limit" 'no cgroup can be made here'
		return
	fi
	cp "$build/obj/tests/train/allreduce" .
	limited mpirun -n 2 ./allreduce room 33554432
	sort -u out >sentences
	test "$status" -eq 3 && test "$(wc -l <out)" -eq 2 &&
		grep -q "^memory on .*: 2 ranks need 85 MiB, of which $(
			)gradients and parameters are 65 MiB, but the limit $(
			)of their cgroup leaves [1-6][0-9] MiB; ask for $(
			)more (srun --mem), " sentences && test "$(wc -l <sentences)" -eq 1
	result $? 'a cgroup that is too small is one sentence on each rank'
	limited mpirun -n 2 ./allreduce room 4194304
	equal 'a cgroup that suffices is taken' '0 ' "$status $(cat out)"
	rmdir "$cgroup"
}

window_address_space()
{
	# Enough for a rank's own 300 MiB, but not for what ranks share
	alone sh -c 'ulimit -v 720000; exec timeout 60 "$@"' - \
		mpirun -n 2 "$train" --preset 10M --steps 1 --data "$text"
	test "$status" -eq 1 && test "$(grep -c '^ddp-train: ' err)" -eq 1 &&
		grep -q '^ddp-train: cannot map memory, .*ulimit -v' err
	result $? 'too little address space is one sentence'
	equal 'too little address space leaves nothing' '' "$(cat left)"
	# 2 ranks' gradients and parameters are 8 bytes of each of 10844160.
	said=$(sed -n "s/^ddp-train: cannot map memory, 166 MiB of the $(
		)\([0-9]*\) MiB of 2 ranks on .*/\1/p" err)
	call timeout 60 mpirun -n 2 "$train" --preset 10M --steps 1 \
		--data "$text" --plan
	echo "said: $said" >why
	awk -v said="$said" '/^  in all, on a node/ { need = $(NF - 1) }
		END { exit need == 0 || said < need || said > need + 2 }' out
	result $? 'the refusal says what --plan says of the node'
	call sh -c 'ulimit -v 600000; exec timeout 60 "$@"' - \
		"$train" --preset 774M --steps 1 --data "$text"
	test "$status" -eq 1 && grep -q "^ddp-train: [0-9]* MiB of memory for $(
		)the model cannot be had: Cannot allocate memory; choose a $(
		)smaller --batch or model$" err
	result $? 'a model of its own is refused for want of memory'
}

# A rank whose memory another process shrinks would die of a signal. Only root can
# open a memory that no descriptor is left of.
test_seals()
{
	needs_worlds 'memory that cannot be shrunk' || return 0
	begin_ranks 2 trains "$train" --steps 1000000000
	for rank in 0 1; do
		seals=/proc/$(cat pid.$rank)
		span=$(sed -n 's/ .*memfd:ddp-train.*//p' "$seals/maps")
		if ! test -w "$seals/map_files/$span"; then
			skip 'memory that cannot be shrunk' 'only root can try'
			continue
		fi
		! truncate -s 4096 "$seals/map_files/$span" 2>why
		result $? "the memory that rank $rank shares cannot be shrunk"
		! truncate -s 1G "$seals/map_files/$span" 2>why
		result $? "the memory of rank $rank cannot grow"
	done
	kill "$run"
	reap "$run"
}

test_window()
{
	needs_worlds 'the memory that ranks share' || return 0
	program window
	window_rooms
	program allreduce
	program window
	if ! unshare --mount mount -t tmpfs none /dev/shm 2>/dev/null; then
		skip 'what others find of it' 'mounting /dev/shm needs root'
		return
	fi
	chmod 755 as guess attack attacked look apart
	window_privacy
	window_folder
	window_left
	window_apart
	window_limit
	window_address_space
}
