# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # variables of run; sed and sh expand
# ddp-bench --preflight on a real cluster, healthy and with planted faults: each
# must be named, and nothing else.

# names NAME FINDINGS COMMAND...: it fails and finds "NODE CHECK, NODE CHECK", in
# 15 s with the command's own time to start; "": it exits with 0. Where Slurm has
# to kill a rank, srun's exit code is that signal's.
names()
{
	names_name=$1 names_want=$2
	shift 2
	names_status=$((${#names_want} > 0))
	begin=$(date +%s)
	call timeout 60 "$@" --json
	took=$(($(date +%s) - begin))
	equal "$names_name" "$names_status $names_want" \
		"$((status > 0)) $(tr -d '"' \
		<out | sed -n 's/^{node:\([^,]*\),check:\([^,]*\),.*/\1 \2/p' |
		sort | paste -sd, | sed 's/,/, /g')"
	equal "$names_name: the list of bad nodes names the same nodes" \
		"$(echo "$names_want" | tr ',' '\n' | awk '{ print $1 }' |
			sort -u | paste -sd,)" \
		"$(sed -n 's/.*"bad_nodes":\[\(.*\)\]}$/\1/p' out | tr -d '"')"
	echo "after $took s" >why
	test $took -le 15
	in_time $? "$names_name: the preflight ends within 15 s"
}

# Wrappers of what a task runs
make_wrappers()
{
	# on NODE NAME=VALUE COMMAND...: with the variable on this node
	cat >on <<-'END'
	#!/bin/sh
	node=$1 set=$2
	shift 2
	test "$SLURMD_NODENAME" != "$node" || export "$set"
	exec "$@"
	END
	# stopped RANK COMMAND...: the rank is stopped before it begins
	cat >stopped <<-'END'
	#!/bin/sh
	rank=$1
	shift
	test "$SLURM_PROCID" != "$rank" || kill -STOP $$
	exec "$@"
	END
	chmod 755 on stopped
}

# A clock that is 30 s ahead; not a real one: time namespaces do not have the
# date
make_shims()
{
	cat >clock.c <<-'END'
	#define _GNU_SOURCE
	#include <dlfcn.h>
	#include <time.h>
	int clock_gettime(clockid_t clock, struct timespec *now)
	{
		int (*real)(clockid_t, struct timespec *);
		int result;

		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
		result = real(clock, now);
		if (result == 0 && clock == CLOCK_REALTIME)
			now->tv_sec += 30;
		return result;
	}
	END
	# A rank that is stopped, with its worker, as that begins MPI
	cat >stop.c <<-'END'
	#include <signal.h>
	#include <unistd.h>
	int MPI_Init_thread(int *argc, char ***argv, int required, int *had)
	{
		(void)argc, (void)argv, (void)required, (void)had;
		kill(getppid(), SIGSTOP);
		return raise(SIGSTOP);
	}
	END
	# A driver that hangs for longer than the limit
	mkdir -p -m 755 hang
	cat >hang.c <<-'END'
	#include <stdlib.h>
	#include <unistd.h>
	__attribute__((constructor)) static void hang(void)
	{
		sleep(getenv("FAKE_SLOW") ? 8 : 20);
	}
	END
	"$cc" -shared -fPIC -o clock.so clock.c -ldl &&
		"$cc" -shared -fPIC -o stop.so stop.c &&
		"$cc" -shared -fPIC -o hang/libcuda.so.1 hang.c
}

# on_node NODE COMMAND...: as the administrator
on_node()
{
	on_node=$1
	shift
	"$sandbox" exec --dir "$dir/cluster" --root --node "$on_node" "$@"
}

preflight_cpus()
{
	call timeout 60 ./step -N3 -n6 "$bench" --preflight
	test "$status" -eq 0 && test "$(wc -l <out)" -eq 1 &&
		grep -q 'preflight passed: 6 ranks on 3 nodes .*no node slow$' \
			out && grep -q 'clocks within ' out && ! test -s err
	result $? '--preflight passes with one line'
	call timeout 60 ./step -N3 -n6 env ROCR_VISIBLE_DEVICES=0,1 \
		"$bench" --preflight
	test "$status" -eq 0 && grep -q \
		', 6 GPUs by AMD not tried, ' out
	result $? '--preflight passes with GPUs by AMD, and says that it has not tried them'
	names 'as JSON, too' '' ./step -N3 -n6 "$bench" --preflight
	names 'a rank that is stopped before it begins' 'n2 rank' \
		./step -K -N3 -n6 ./stopped 3 "$bench" --preflight
	call timeout 60 ./step -K -N3 -n6 ./stopped 0 "$bench" --preflight \
		--limit 3
	test "$status" -gt 0 && grep -q "n2: nobody listens at .* n1:29400" err
	result $? 'rank 0 as well'
	names 'a rank that is stopped while data moves' 'n2 rank' \
		./step -K -N3 -n3 ./on n2 LD_PRELOAD="$scratch/stop.so" "$bench" \
		--preflight --limit 3
	check 'a rank that stops is told from one that never came' \
		grep -q 'answers no more' out
	names 'a wrong clock' 'n2 clock' ./step -N3 -n6 \
		./on n2 LD_PRELOAD="$scratch/clock.so" "$bench" --preflight
	check 'the finding of a wrong clock has how far it is off' \
		grep -q '30\.0 s ahead of' out
	names "a wrong clock of rank 0's node" 'n1 clock' ./step -N3 -n6 \
		./on n1 LD_PRELOAD="$scratch/clock.so" "$bench" --preflight
	grep -v ' n1$' "$dir/cluster/etc/hosts" >hosts
	on_node n2 mount --bind "$scratch/hosts" /etc/hosts
	names "a node that does not know the master's name" 'n2 rank' \
		./step -N3 -n6 "$bench" --preflight --limit 3
	on_node n2 umount -l /etc/hosts
	check "a node that does not know the master's name says why" \
		grep -q 'n2: cannot resolve .* n1: ' err
	sed 's/^.* n1$/10.77.0.99 n1/' "$dir/cluster/etc/hosts" >other
	on_node n3 mount --bind "$scratch/other" /etc/hosts
	names 'a node that does not reach the master' 'n3 rank' \
		./step -N3 -n6 "$bench" --preflight --limit 3
	on_node n3 umount -l /etc/hosts
	check 'a node that does not reach the master says its address' \
		grep -q 'n1:29400 (10.77.0.99): ' err
	if on_node n2 tc qdisc add dev eth0 root tbf rate 50mbit burst 16k \
		latency 200ms 2>err; then
		names 'a slow link' 'n2 slow' \
			./step -N3 -n3 "$bench" --preflight
		names 'two faults at once' 'n2 slow, n3 clock' ./step -N3 -n3 \
			./on n3 LD_PRELOAD="$scratch/clock.so" "$bench" \
			--preflight
		on_node n2 tc qdisc del dev eth0 root
	else
		skip 'a slow link' "no tc: $(cat err)"
	fi
	on_node n1 "$python" -c 'import os, socket, time
s = socket.create_server(("", 29400))
while not os.path.exists("checked"): time.sleep(0.1)' &
	wait_until on_node n1 "$python" -c 'import socket
socket.create_connection(("n1", 29400))' 2>/dev/null
	in_time $? 'a program listens at the port within a minute'
	call timeout 60 ./step -N3 -n3 "$bench" --preflight
	test "$status" -eq 1 && grep -q 'n1: cannot listen at .* 29400: ' err
	result $? 'a port that another program has is told'
	touch checked
	wait $!
}

# On the fakes of make_fakes
preflight_gpus()
{
	export LD_LIBRARY_PATH="$scratch" FAKE_NCCL_DIR="$scratch/ids"
	export FAKE_GPUS=2
	set -- ./step -N3 -n6 --gres=gpu:2
	call timeout 60 "$@" "$bench" --preflight
	test "$status" -eq 0 && grep -q ', 6 GPUs, .*by nccl right' out
	result $? '--preflight passes with GPUs'
	# 2, 1 and 1 ranks: the second of n1 has no peer on another node
	call timeout 60 ./step -N3 -n4 --gres=gpu:2 "$bench" --preflight
	test "$status" -eq 0 && grep -q '4 ranks on 3 .*by nccl right' out
	result $? '--preflight passes if a rank has nobody to exchange with'
	names 'a GPU that is missing' 'n3 gpu' \
		"$@" ./on n3 FAKE_GPUS=1 "$bench" --preflight
	check 'the finding of a missing GPU has how many there are' \
		grep -q 'has 2 GPUs .* CUDA finds 1' out
	names 'a node without any' 'n2 gpu' \
		"$@" ./on n2 FAKE_GPUS=0 "$bench" --preflight
	names 'a driver that hangs' 'n2 gpu' \
		"$@" ./on n2 LD_LIBRARY_PATH="$scratch/hang:$scratch" \
		"$bench" --preflight --limit 3
	check 'the finding of a driver that hangs has the cause' \
		grep -q 'CUDA or NCCL has not answered' out
	names 'a driver that is slow, and fails' 'n2 gpu' "$@" env FAKE_SLOW=1 \
		./on n2 LD_LIBRARY_PATH="$scratch/hang:$scratch" \
		"$bench" --preflight
	! grep -q 'has not answered' out
	result $? 'a driver that is slow, and fails, is waited for'
	names 'a rank that does not begin, for which nobody waits as long' \
		'n2 rank' "$@" -K ./stopped 3 "$bench" --preflight
	names 'a driver that hangs on every node' 'n1 gpu, n2 gpu, n3 gpu' \
		"$@" env LD_LIBRARY_PATH="$scratch/hang:$scratch" \
		"$bench" --preflight --limit 3
	names 'another NCCL' 'n2 nccl' \
		"$@" ./on n2 FAKE_NCCL_VERSION=21805 "$bench" --preflight
	check 'the finding of another NCCL has both versions' \
		grep -q '2\.18\.5, but 2\.28\.9 on 4 of 6' \
		out
	names 'a sum that is wrong on one rank' 'n3 sum' \
		env FAKE_NCCL_WRONG=4 "$@" "$bench" --preflight
	names 'a clock and a GPU' 'n1 clock, n3 gpu' \
		"$@" ./on n3 FAKE_GPUS=1 \
		./on n1 LD_PRELOAD="$scratch/clock.so" "$bench" --preflight
	preflight_links "$@"
	unset LD_LIBRARY_PATH FAKE_NCCL_DIR FAKE_GPUS
}

# Fake GPUs, 0000:00:00.0 and 0000:01:00.0 of each node; n2's second is narrow.
preflight_links()
{
	for node in n1 n2 n3; do
		on_node $node mount -t tmpfs none /sys/bus/pci/devices
		on_node $node sh -c 'cd /sys/bus/pci/devices &&
			mkdir 0000:00:00.0 0000:01:00.0 &&
			for gpu in *; do
				echo "32.0 GT/s PCIe" >$gpu/max_link_speed
				echo "32.0 GT/s PCIe" >$gpu/current_link_speed
				echo 16 >$gpu/max_link_width
				echo 16 >$gpu/current_link_width
			done'
	done
	call timeout 60 "$@" "$bench" --preflight
	test "$status" -eq 0 && grep -q 'links 32\.0 GT/s x16' out
	result $? 'links of one speed pass'
	on_node n2 sh -c 'echo 8 \
		>/sys/bus/pci/devices/0000:01:00.0/current_link_width'
	names 'a narrow link' 'n2 link' "$@" "$bench" --preflight
	check 'the finding of a narrow link has the GPU' \
		grep -q 'GPU 0000:01:00.0 is 32.0 GT/s x8, those of 5' out
	for node in n1 n2 n3; do
		on_node $node umount -l /sys/bus/pci/devices
	done
}

# find_port: one that nobody has here, and that the kernel gives to nobody
find_port()
{
	"$python" -c 'import random, socket
while True:
    port = random.randrange(20000, 30000)
    try:
        socket.create_server(("", port)).close()
    except OSError:
        continue
    print(port)
    break'
}

# ranks RANK...: of three, each on a node of its own, without a cluster; rank 0
# in the foreground, the others write err.RANK. None of them may be too late.
ranks()
{
	for rank; do
		env RANK="$rank" WORLD_SIZE=3 SLURMD_NODENAME="n$rank" \
			MASTER_ADDR=localhost MASTER_PORT="$port" timeout 60 \
			"$bench" --preflight --limit 12 2>"err.$rank" &
	done
	call env RANK=0 WORLD_SIZE=3 SLURMD_NODENAME=n0 MASTER_ADDR=localhost \
		MASTER_PORT="$port" timeout 60 "$bench" --preflight --limit 12
	wait
}

preflight_names()
{
	ranks 1
	grep -q 'the node of rank 2: rank 2 has not come' err &&
		! grep -q 'exclude' err
	result $? 'a node whose name is not known is not one to leave out'
	export SLURM_STEP_NODELIST='n[0-2]' SLURM_STEP_TASKS_PER_NODE='1(x3)'
	ranks 1
	check 'a node that Slurm names is one to leave out' \
		grep -q 'leave out 1 of 3 nodes: --exclude=n2$' err
	# Ranks 0 to 2 are on the second, third and first node of this list.
	export SLURM_STEP_NODELIST='n[2,0-1]' SLURM_STEP_TASKS_PER_NODE='1(x3)'
	ranks 1
	grep -q 'the node of rank 2: rank 2 has not come' err &&
		! grep -q exclude err
	result $? 'no node is named where the list does not fit those that came'
	export SLURM_PMIX_MAPPING_SERV='(vector,(1,2,1),(0,1,1))'
	ranks 1
	unset SLURM_PMIX_MAPPING_SERV
	check 'the node is named that the mapping of the ranks has' \
		grep -q 'leave out 1 of 3 nodes: --exclude=n2$' err
	export SLURM_STEP_NODELIST='n[0-2]'
	export CUDA_VISIBLE_DEVICES=99
	ranks 1 2
	unset CUDA_VISIBLE_DEVICES SLURM_STEP_NODELIST SLURM_STEP_TASKS_PER_NODE
	test "$(grep -c '^ddp-bench: n[0-2]: the step has 1 GPU here' err)" = 3 &&
		! grep -q exclude err
	result $? 'no node is to be left out if no node is fit'
}

# Nobody listens; then a resolver that hangs while the rank tries on: it has the
# rest of 24 s, and not 24 s more. Then 2 s are for others to speak.
preflight_late()
{
	call env RANK=1 WORLD_SIZE=2 SLURMD_NODENAME=n1 MASTER_ADDR=localhost \
		MASTER_PORT="$port" timeout 60 "$bench" --preflight --limit 2
	check 'a rank that does not reach the master says so, and tries on' \
		grep -q 'n1: nobody listens .*; trying on for 2 s$' err
	# No machine has the address; what the kernel says of it depends.
	call env RANK=1 WORLD_SIZE=2 SLURMD_NODENAME=n1 MASTER_PORT="$port" \
		MASTER_ADDR=2001:0db8:1111:2222:3333:4444:5555:6666 \
		timeout 60 "$bench" --preflight --limit 2
	check 'however long address and reason are, the sentence is whole' \
		grep -q '5555:6666): .*; let .* pass it; trying on for 2 s$' err
	cat >resolve.c <<-'END'
	/* A fake resolver, which hangs once 11.5 s are over. */
	#define _GNU_SOURCE
	#include <netdb.h>
	#include <time.h>
	#include <unistd.h>
	int getaddrinfo(const char *node, const char *service,
			const struct addrinfo *hints, struct addrinfo **list)
	{
		static struct timespec begin;
		struct timespec now;

		(void)node, (void)service, (void)hints, (void)list;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (begin.tv_sec == 0)
			begin = now;
		if ((now.tv_sec - begin.tv_sec) * 1000 +
		    (now.tv_nsec - begin.tv_nsec) / 1000000 > 11500)
			sleep(60);
		return EAI_AGAIN;
	}
	END
	"$cc" -shared -fPIC -o resolve.so resolve.c
	begin=$(date +%s)
	call env LD_PRELOAD="$scratch/resolve.so" RANK=1 WORLD_SIZE=2 \
		SLURMD_NODENAME=n1 MASTER_ADDR=m MASTER_PORT="$port" \
		timeout 60 "$bench" --preflight --limit 12
	took=$(($(date +%s) - begin))
	tail -n 1 err | grep -q "cannot resolve the master's address m in time"
	result $? 'a resolver that hangs late is named'
	echo "after $took s" >why
	test "$took" -le 28
	in_time $? 'a resolver that hangs late does not get more time'
}

# What is said of ranks that do not come; no cluster is needed.
test_absent()
{
	needs_pmix '--preflight of ranks that do not come' || return 0
	port=$(find_port)
	preflight_names
	preflight_late
}

test_preflight()
{
	needs_pmix '--preflight' || return 0
	needs_mpi '--preflight of ranks that MPI connects' || return 0
	make_wrappers
	if ! make_shims; then
		skip '--preflight with planted faults' "no $cc"
		return
	fi
	needs_cluster '--preflight on a real cluster' 3 || return 0
	export MASTER_ADDR=n1 MASTER_PORT=29400
	preflight_cpus
	! make_fakes '--preflight of GPUs' || preflight_gpus
	unset MASTER_ADDR MASTER_PORT
}
