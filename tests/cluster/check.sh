# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016,SC2012 # see run; a task's shell expands; the
# names are our own
# --ddp-check on a real cluster: a job whose nodes are fit, and one fault at a
# time. tests/benchtool has more of what ddp-bench --preflight finds.

# A shim for the tasks. ON_NODE=n2 ON_SET=NAME=VALUE sets a variable on this
# node alone (n2,n3: on these two), and ON_NODE=n2 ON_CLOCK=30 has its clock so
# far ahead; ON_NODE=n2 ON_FLOOD=1 has ddp-bench there print 3 MB first.
# ON_SLOW=9 has MPI begin that much later everywhere.
# ON_ARGS=FILE has each srun add its arguments there.
cat >on.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int is_node(void)
{
	const char *here = getenv("SLURMD_NODENAME"), *node = getenv("ON_NODE");

	return here && node && strstr(node, here);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *had)
{
	int (*real)(int *, char ***, int, int *);

	*(void **)&real = dlsym(RTLD_NEXT, "MPI_Init_thread");
	sleep(getenv("ON_SLOW") ? (unsigned)atoi(getenv("ON_SLOW")) : 0);
	return real(argc, argv, required, had);
}

static void add_arguments(const char *path, char **argv)
{
	FILE *out = fopen(path, "a");

	for (; out && *argv; argv++)
		fprintf(out, "%s\n", *argv);
	if (out)
		fclose(out);
}

/* glibc hands the arguments of main over. */
__attribute__((constructor)) static void begin(int argc, char **argv)
{
	char *set = getenv("ON_SET");

	(void)argc;
	if (getenv("ON_ARGS") &&
	    strcmp(program_invocation_short_name, "srun") == 0)
		add_arguments(getenv("ON_ARGS"), argv);
	if (set && is_node())
		putenv(set);
	if (getenv("ON_FLOOD") && is_node() &&
	    strcmp(program_invocation_short_name, "ddp-bench") == 0)
		for (int i = 0; i < 50000; i++)
			printf("%060d\n", i);
	fflush(stdout);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int (*real)(clockid_t, struct timespec *);
	const char *ahead = getenv("ON_CLOCK");
	int result;

	*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	result = real(clock, now);
	if (result == 0 && clock == CLOCK_REALTIME && ahead && is_node())
		now->tv_sec += atoi(ahead);
	return result;
}
END

# checked [NAME=VALUE...] -- OPTION...: a job on three nodes, whose command
# prints "begun"
checked()
{
	checked_set=
	while test "$1" != --; do
		checked_set="$checked_set $1"
		shift
	done
	shift
	# shellcheck disable=SC2086 # several words
	call login env $checked_set salloc -Q -N3 --exclusive ${gpus-} \
		srun --ddp --ddp-check "$@" echo begun
}

# stops NAME WORDS: the command was not started, and a line has WORDS
stops()
{
	test "$status" -eq 1 && ! grep -q begun out && grep -qF -- "$2" err &&
		grep -q -- '--ddp-check: did not pass, and so the command' err
	result $? "$1"
}

# passes NAME COUNT: nothing is wrong, and the command ran so often
passes()
{
	test "$status" -eq 0 && test "$(grep -c begun out)" -eq "$2" &&
		test "$(grep -c 'ddp-bench: preflight passed' err)" -eq 1
	result $? "$1"
}

if test -z "$bench"; then
	skip '--ddp-check' 'ddp-bench was not built'
	return
fi
cluster --nodes 3 --gpus 2
checked -- -n3
passes 'a command on nodes that are fit runs' 3
test "$(grep -vc '^srun: ' err)" -eq 1 && ! grep -q preflight out
result $? 'a check that passes is one line on stderr'
check 'the line of the check says that libddp is not installed' \
	grep -q ', libddp [0-9.]* (libddp.so.0 is not installed), ' err
checked -- -N2 -n4 --label --ddp-show=1,2 --ddp-report=report \
	--ddp-logs=logs -e errors
equal "options that are the command's leave the check alone" '0 1 2 1' \
	"$status $(grep -c 'preflight passed: 4 ranks on 2 nodes' err) \
$(grep -c begun out) $(ls logs | wc -l)"
checked -- -n3 --ddp-supervise=off
passes 'a check needs no supervisor' 3
checked -- --ddp-restarts=1 --ddp-spares=1
passes 'nodes are kept back from the command' 4
check 'nodes are not kept back from the check' \
	grep -q 'preflight passed: 6 ranks on 3 nodes' err
checked -- -N2 -n2 --ddp-restarts=1 --ddp-spares=1
passes 'a number of tasks is for the nodes of the command' 2
check 'the nodes of the check have as many tasks each' \
	grep -q 'preflight passed: 3 ranks on 3 nodes' err
checked -- -N2 -n3 --ddp-restarts=1 --ddp-spares=1
equal 'a number that is not the same for each is refused' '1 0 1' \
	"$status $(wc -l <out) $(grep -c 'ntasks=3 is not the same for' err)"
call login salloc -Q -N2 sh -c 'echo "$1" | srun --ddp --ddp-check -n1 cat' \
	sh words
equal 'what is piped in is for the command' '0 words' "$status $(cat out)"
call login srun --ddp --ddp-check -N2 echo begun
equal 'a job of its own is refused' '1 0 1' "$status $(wc -l <out) \
$(grep -c 'use it in salloc or sbatch' err)"
echo '* echo begun' >./echo
for option in --pty --multi-prog; do
	checked -- $option
	equal "$option is refused" '1 0 1' "$status $(wc -l <out) \
$(grep -c -- "and $option does not fit it" err)"
done
call login salloc -Q -N1 : -N1 srun --ddp --ddp-check -n1 echo begun : -n1 \
	echo begun
equal 'a heterogeneous step is refused' '1 0 1' "$status $(wc -l <out) \
$(grep -c 'cannot check a heterogeneous step' err)"
call login env PATH="$dir/cluster/bin:/usr/bin:/bin" salloc -Q -N1 srun --ddp \
	--ddp-check echo begun
equal 'a check without ddp-bench is refused' '1 0 1' "$status $(wc -l <out) \
$(grep -c 'finds no ddp-bench on PATH' err)"
mkdir -p -m 755 check_bin
printf '#!/bin/sh\necho "ddp-bench: preflight passed"\nexit 3\n' \
	>check_bin/ddp-bench
chmod 755 check_bin/ddp-bench
call login env PATH="$scratch/check_bin:$PATH" salloc -Q -N1 \
	srun --ddp --ddp-check echo begun
equal 'a check that only says that it passed is refused' '1 0 1' "$status \
$(grep -c begun out) $(grep -c -- '--ddp-check: its step failed' err)"
printf '#!/bin/sh\necho "ddp-bench: has $*"\nexit 1\n' >check_bin/ddp-bench
call login env PATH="$scratch/check_bin:$PATH" salloc -Q -N1 \
	srun --ddp --ddp-check=90 echo begun
stops 'the seconds of the option are for ddp-bench' \
	'ddp-bench: has --preflight --limit 90'
printf '#!/bin/sh\ntouch checking\nexec sleep 60\n' >check_bin/ddp-bench
call login env PATH="$scratch/check_bin:$PATH" salloc -Q -N1 sh -c '
	srun --ddp --ddp-check echo begun &
	until test -e checking; do sleep 0.1; done
	kill $!
	wait $!
	echo $?'
equal 'a signal to the check starts no command' '1 0 1' \
	"$(tail -n 1 out) $(grep -c begun out) \
$(grep -c -- '--ddp-check: signal 15 (Terminated) came' err)"
batch -N3 --ddp --ddp-check <<'END'
#!/bin/sh
srun echo begun
srun --ddp-check=off echo again
END
test "$status" -eq 0 && test "$(grep -c begun out)" -eq 3 &&
	test "$(grep -c again out)" -eq 3 &&
	test "$(grep -c 'preflight passed' err)" -eq 1
result $? 'a batch job hands it on, and a step can take it back'

grep -v ' n1$' "$dir/cluster/etc/hosts" >hosts
admin n2 mount --bind "$scratch/hosts" /etc/hosts
checked -- --ddp-restarts=3
stops 'a check that fails is not started again' \
	"ddp-bench: n2: cannot resolve the master's address n1: "
! grep -q 'restart' err
result $? 'a check that fails says nothing of restarts'
check "a node that cannot resolve the master's name is to be left out" \
	grep -q 'leave out 1 of 3 nodes: --exclude=n2$' err
checked -- --ddp-restarts=1 --ddp-spares=1
admin n2 umount -l /etc/hosts
passes 'a spare takes the place of a node that is left out' 4
check 'the user is told that a spare takes its place' \
	grep -qx 'slurm-ddp: --ddp-check: n3 in '\
'place of n2, which is not fit; no spare is left' err

admin n2 mount --bind /dev/null "$dir/cluster/etc/plugstack.conf"
checked --
stops 'a node without the plugin is named' \
	"ddp-bench: n2: slurm-ddp's plugin is not loaded there; install slurm-ddp"
check 'a node without the plugin is to be left out' \
	grep -q 'leave out 1 of 3 nodes: --exclude=n2$' err
checked -- --ddp-check=5
stops 'so it is where the check may take 5 s only' \
	'leave out 1 of 3 nodes: --exclude=n2'
checked -- --ddp-restarts=1 --ddp-spares=1
admin n2 umount -l "$dir/cluster/etc/plugstack.conf"
passes 'a spare takes the place of a node without the plugin' 4

# A shim: ddp-bench begins, or with ON_END=1 ends, once the link is cut.
mkdir -p -m 777 gate
cat >check_bin/ddp-bench <<END
#!/bin/sh
pass()
{
	touch "$scratch/gate/\$SLURM_PROCID"
	until test -e "$scratch/gate/cut"; do sleep 0.1; done
}
test -n "\${ON_END-}" || pass
"$bench" "\$@"
status=\$?
test -z "\${ON_END-}" || pass
exit \$status
END

# at_gate: whether all ranks are there, or the check is over
at_gate()
{
	test -e gate/done || test "$(ls gate | wc -l)" -eq 6
}

# cut_in_check NODE [ON_END]: its link is cut when all 6 ranks of the check
# are at the gate. slurmctld tells a node once that a job has ended, and again after
# one to three minutes, unless it was down in between.
cut_in_check()
{
	rm -f gate/*
	{
		wait_until at_gate
		admin "$1" ip link set eth0 down
		touch gate/cut
	} >later.out 2>&1 &
	checked "PATH=$scratch/check_bin:$PATH" "ON_END=${2-}" -- \
		--ddp-restarts=1 --ddp-spares=1
	touch gate/done
	wait $!
	admin "$1" ip link set eth0 up
	admin n3 scontrol update nodename="$1" state=down reason=link
	admin n3 scontrol update nodename="$1" state=resume
	wait_until is_idle "$1"
}
is_idle() { test "$(login sinfo -hN -n "$1" -o %t)" = idle; }

# replaced NODE WHEN COUNT: a spare has taken its place, and of the checks so
# many passed
replaced()
{
	equal "a spare takes the place of $1, which is lost $2" "0 4 $3" \
		"$status $(grep -c begun out) $(
		grep -c 'ddp-bench: preflight passed' err)"
	check "$1, which is lost $2, is named" \
		grep -q "^slurm-ddp: node $1 was lost first, " err
	check "$1, which is lost $2, is replaced" \
		grep -q "n3 in place of $1, which is not fit" err
}
# without NODE [ON_END]: cut_in_check, again where Slurm hangs: on two nodes
# that are not the first of a job, mpi/pmix compares a node's number within the
# job with one within the step, and neither connects to the other if both send
# their first message at once. Plain srun --mpi=pmix hangs there, too.
without()
{
	for try in 1 2 3 4; do
		cut_in_check "$@"
		if test "$1" = n2 || test "$status" -ne 1 ||
			! grep -q '4 of 4 ranks do not get through MPI_I' err
		then
			return 0
		fi
		echo "# try $try: mpi/pmix hung on n2 and n3"
	done
	skip "a spare in place of $1" "this Slurm's mpi/pmix hangs without it"
	return 1
}
for node in n2 n1; do
	! without $node || replaced $node 'in the check' 1
	! without $node 1 || replaced $node 'when it has passed' 2
done
sed 's/^.* n1$/10.77.0.99 n1/' "$dir/cluster/etc/hosts" >hosts
admin n3 mount --bind "$scratch/hosts" /etc/hosts
checked --
admin n3 umount -l /etc/hosts
stops 'a node that does not reach the master is named' \
	'ddp-bench: n3: cannot reach the master at n1:'
if admin n2 tc qdisc add dev eth0 root tbf rate 50mbit burst 16k \
	latency 200ms 2>why; then
	checked -- -n3
	admin n2 tc qdisc del dev eth0 root
	stops 'a node with a slow link is named' \
		'ddp-bench: n2: an exchange of rank '
	equal 'no node but that with the slow link is named' \
		1 "$(grep -c 'ddp-bench: n' err)"
	check 'a node with a slow link is to be left out' \
		grep -q 'leave out 1 of 3 nodes: --exclude=n2$' err
else
	skip 'a slow link' "no tc: $(cat why)"
fi
if ! "${CC:-cc}" -shared -fPIC -o on.so on.c -ldl 2>why; then
	skip 'faults of clocks and GPUs' 'no compiler'
	return
fi
preload="LD_PRELOAD=$scratch/on.so"
spares='--ddp-restarts=1 --ddp-spares=1'
mkdir -p -m 755 fakes
cat >fakes/ddp-bench <<'END'
#!/bin/sh
# A fake, which names a node of no job
echo 'ddp-bench: preflight failed: leave out 1 of 3 nodes: --exclude=n9' >&2
exit 1
END
chmod 755 fakes/ddp-bench
# shellcheck disable=SC2086 # several words
checked "PATH=$scratch/fakes:$PATH" -- $spares -n2
test "$status" -eq 1 && ! grep -q begun out && ! grep -q 'no spare' err &&
	grep -q "names n9, which is none of the step's nodes, and so the" err
result $? 'a node that the step has not is not one without a spare'
checked "$preload" ON_NODE=n2 ON_CLOCK=30 --
stops 'a node with a wrong clock is named' \
	"ddp-bench: n2: its clock is 30.0 s ahead of the others'"
checked "$preload" ON_SLOW=9 -- -n3
passes 'nodes that are all slow are no reason to refuse' 3
# shellcheck disable=SC2086 # several words
call login env "$preload" ON_NODE=n2 ON_CLOCK=30 salloc -Q -N3 --exclusive \
	srun --ddp --ddp-check -n2 $spares printenv SLURMD_NODENAME
equal 'a spare takes the place of a node that is not fit' '0 n1 n3 1' \
	"$status $(sort out | paste -sd' ') \
$(grep -cx "slurm-ddp: --ddp-check: n3 in place of n2, which is not fit; \
no spare is left" err)"
check 'why is told' grep -q "ddp-bench: n2: its clock is 30.0 s ahead" err
check 'the nodes that are left are checked again' \
	grep -q 'preflight passed: 2 ranks on 2 nodes' err
# shellcheck disable=SC2086
call login env "$preload" ON_NODE=n3 ON_CLOCK=30 salloc -Q -N3 --exclusive \
	srun --ddp --ddp-check -n2 $spares sh -c 'echo $SLURMD_NODENAME
		case $SLURM_PROCID$DDP_RESTART_COUNT in 1*) exit 3; esac'
equal 'a spare that is not fit is left out' '3 1' "$status \
$(grep -cx "slurm-ddp: --ddp-check: spare n3 left out, which is not fit; \
no spare is left" err)"
equal 'a spare that is not fit is left out of a restart, too' \
	'n1 n1 n2 n2' "$(sort out | paste -sd' ')"
for name in cuda:libcuda.so.1 nccl:libnccl.so.2; do
	"${CC:-cc}" -shared -fPIC -pthread -Wl,-soname,"${name#*:}" \
		-o "${name#*:}" "$top/tests/fakes/fake_${name%:*}"*.c
done
checked "$preload" ON_NODE=n1 ON_FLOOD=1 -- -n3
passes 'the verdict is read after megabytes of other output' 3
printf '%s\n' '/* A fake. */' '#include <stdlib.h>' \
	'const char *ddp_version(void);' 'const char *ddp_version(void)' '{' \
	'	const char *fake = getenv("FAKE_DDP_VERSION");' \
	'	return fake ? fake : "0.1.0";' '}' >fake_ddp.c
"${CC:-cc}" -shared -fPIC -Wl,-soname,libddp.so.0 -o libddp.so.0 fake_ddp.c
mkdir -p -m 777 ids
gpus=--gres=gpu:2
preload="$preload LD_LIBRARY_PATH=$scratch FAKE_NCCL_DIR=$scratch/ids \
DDP_NCCL_LIBRARY=$scratch/libnccl.so.2 FAKE_GPUS=2"
# shellcheck disable=SC2086 # several words
{
	checked $preload --
	passes 'a command on GPUs that are fit runs' 6
	checked $preload ON_NODE=n3 ON_SET=FAKE_GPUS=1 --
	stops 'a node that lacks a GPU is named' \
		'ddp-bench: n3: the step has 2 GPUs here and CUDA finds 1'
	checked $preload ON_NODE=n2 ON_SET=FAKE_NCCL_VERSION=21805 --
	stops 'a node with another NCCL is named' \
		'ddp-bench: n2: NCCL is 2.18.5, but 2.28.9 on 4 of 6 ranks'
	for node in n1:550.54.15 n2:535.104.5 n3:550.54.15; do
		admin "${node%:*}" sh -c 'mount -t tmpfs tmpfs /sys/module &&
			mkdir /sys/module/nvidia &&
			echo "$0" >/sys/module/nvidia/version' "${node#*:}"
	done
	checked $preload --
	for node in n1 n2 n3; do
		admin $node umount -l /sys/module
	done
	stops 'a node with another driver is named' \
		'ddp-bench: n2: the NVIDIA '\
'driver is 535.104.5, but 550.54.15 on 4 of 6 ranks: have the same'
	equal 'no node but that with the other driver is named' \
		1 "$(grep -c '^ddp-bench: n[0-9]: ' err)"
	checked $preload ON_NODE=n3 ON_SET=FAKE_DDP_VERSION=9.9.9 --
	stops 'a node with another libddp is named' 'ddp-bench: n3: libddp is '
	check 'the finding of another libddp has both versions' grep -q \
		'(libddp.so.0 9.9.9), but .*(libddp.so.0 0.1.0) on 4 of 6' err
	checked $preload ON_NODE=n2,n3 ON_SET=FAKE_GPUS=1 -- $spares
	test "$status" -eq 1 && ! grep -q begun out &&
		grep -q 'no spare node is left for n2, and so' err
	result $? 'the command is not started if no spare is fit'
	checked $preload ON_NODE=n2,n3 ON_SET=FAKE_GPUS=1 \
		ON_ARGS="$scratch/args" -- -N1 --ddp-restarts=1 --ddp-spares=2
	equal 'spares that are not fit are all left out' '0 1' "$status \
$(grep -c 'spare n2 .*, spare n3 left out, which is not fit; no spare' err)"
	check 'the list of spares left out is as short as can be' \
		grep -qxF -e '--exclude=n[2-3]' args
}
unset gpus
