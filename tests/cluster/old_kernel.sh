# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# Supervision where the kernel of all machines is Linux 4.18, as RHEL 8's, by its
# system calls: it has neither pidfd_open nor close_range.

cc=$(sed -n 's/^CC = //p' "$build/config.mak")
${cc:-cc} -o old_kernel "$top/tests/fakes/old_kernel.c" || exit 1
if ! ./old_kernel 424 true 2>why; then
	skip 'an old kernel' "$(cat why)"
	return
fi
cat >old_sandbox <<END
#!/bin/sh
exec "$scratch/old_kernel" 424 "$sandbox" "\$@"
END
chmod 755 old_sandbox
new_sandbox=$sandbox sandbox=$scratch/old_sandbox
cluster --nodes 2 --gpus 2 --cpus 8

# ours: what the supervisor has said, without what varies
ours()
{
	grep '^slurm-ddp: ' err | sed 's/pid [0-9]*/pid P/; s/[0-9]*\.[0-9] s/T s/'
}

call login srun -n1 sed -n 's/^Seccomp:.//p' /proc/self/status
equal 'tasks run under the filter' 2 "$(cat out)"

mkdir -m 777 begun
call login srun --ddp -N2 --gres=gpu:2 --ddp-report=report.json sh -c '
	trap "" TERM
	touch "begun/$RANK"
	until test "$(ls begun | wc -l)" = 4; do sleep 0.02; done
	test $RANK != 2 || { echo why >&2; exit 7; }
	sleep 1000'
equal 'the rank that fails is named, and its exit code is that of srun' \
	'7
slurm-ddp: rank 2 failed first on n2 (GPU 0, pid P) after T s: exit code 7
slurm-ddp: rank 2: | why
slurm-ddp: 3 other ranks ended because of it' "$status
$(ours)"
cat >report.py <<'END'
import json
report = json.load(open("report.json"))
assert report["exit_code"] == 7, report
assert report["verdict"]["kind"] == "rank", report
assert report["verdict"]["rank"] == 2, report
assert report["ranks"][2]["exit_code"] == 7, report
END
check 'the report says it, too' python3 report.py

call login srun --ddp -N2 --ntasks-per-node=2 --ddp-watchdog=5 sh -c '
	test $RANK = 1 && kill -STOP $$
	sleep 1000'
ours | sed -n 's/.*step ends; //p' >why
equal 'the watchdog ends a step and names the rank that is stopped' \
	'124 rank 1 holds the others up: stopped' "$status $(cat why)"

call login salloc -Q -N2 --ntasks-per-node=2 srun --ddp --ddp-restarts=1 sh -c '
	test $RANK = 3 && test $RESTART_COUNT = 0 && exit 5
	test $RESTART_COUNT = 1 || exec sleep 1000
	echo $RANK'
equal 'a step that failed starts again' '0 0 1 2 3' \
	"$status $(sort out | paste -sd' ')"

# The step may begin before the mirror has its name, and has closed its files.
call login srun --ddp -n1 sh -c '
	until pid=$(ps -C ddp-mirror -o pid=) && fds=$(ls /proc/$((pid))/fd) &&
		test -z "$fds"; do sleep 0.1; done
	ls /proc/$((pid))/fd'
equal "the supervisor's mirror has no descriptor" '0 ' "$status $(cat out)"

settle
equal 'nothing is left of these steps' '' \
	"$("$sandbox" exec --dir "$dir/cluster" ps -u 61000 -o pid=,args= |
		grep -v -e ' ps -u' -e timeout -e '<defunct>')"
sandbox=$new_sandbox
