# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # the variables of run and lib.sh
# Which rank failed first, and what is told of it.

two='n1:0-1:w100,K,done'
step 4 $two n2:2-3:w100,e2=3,K,done srun:all,x143
said 'a rank that fails is named, and its code is the step'\''s' 3 \
	"$(first 2 'n2 (pid 1002)' 1 'exit code 3'; others '3 other ranks')"
check 'agents end the other ranks, so that Slurm need not' test ! -e "$ASKED"
# n2 has no time for 700 ms, in which its rank fails before that of n1.
step 2 n1:0-0:w300,e0=1,K,done n2:1-1:w100,b700,a640,e1=3,K,done srun:all
said 'an earlier failure of which a busy agent tells late is the first' 3 \
	"$(first 1 'n2 (pid 1001)' 2 'exit code 3'; others '1 other rank')"
step 2 n1:0-0:w300,e0=1,K,done n2:1-1:w100,deaf,K,done srun:all,x1
said 'an agent that does not answer is not waited for without end' 1 \
	"$(silent n2)"
step 2 n1:0-0:w300,k0=11,K,done n2:1-1:w100,deaf,K,done srun:all
said 'a rank that failed by itself is named beside an agent that does not answer' \
	139 "$(first 0 'n1 (GPU 0, pid 1000)' 3 'killed by signal 11 (SIGSEGV)'
	others '1 other rank')"
step 3 n1:0-0:w400,k0=9,K,done n2:1-1:w1300,K,done n3:2-2:w300,b1800,K,done \
	"srun:w1400,pslurmstepd: error: *** STEP 12.3 ON n1 CANCELLED AT 1 ***/,w2000,x137"
head -n 1 err | grep -q '^slurm-ddp: rank 0 failed first ' && test "$status" = 137
result $? 'that Slurm cancels the step a second after a failure does not explain it'
step 2 n1:0-0:w300,e0=3,K,done n2:1-1:w200,deaf,w9000 \
	'srun:w500,psrun: error: n1: task 0: Exited with exit code 3/,w4000,x3'
head -n 1 err | grep -q '^slurm-ddp: which rank failed first is not known: '
result $? 'lines of Slurm come after the verdict that waits for an agent'
step 2 n1:0-1:w100,k0=11,K,done srun:all
said 'a failed rank is told with its GPU and its signal in words' 139 "$(
	first 0 'n1 (GPU 0, pid 1000)' 1 'killed by signal 11 (SIGSEGV)'
	others '1 other rank')"
step 1 n1:0-0:w100,k0=34,done srun:all
said 'a signal without a name is told by its number' 162 \
	"$(first 0 'n1 (GPU 0, pid 1000)' 1 'killed by signal 34')"
step 1 'n1:0-0:w100,k0=9=out of memory,done' srun:all
said 'the cause of a signal is told before it' \
	137 "$(first 0 'n1 (GPU 0, pid 1000)' 1 \
	'out of memory, killed by signal 9 (SIGKILL)')"
step report=r.json 1 'n1:0-0:w100,k0=9=perhaps out of memory,done' srun:all
said 'a cause that is not certain is told as such' \
	137 "$(first 0 'n1 (GPU 0, pid 1000)' 1 \
	'perhaps out of memory, killed by signal 9 (SIGKILL)')"
equal 'the report has a cause that is not certain' \
	'"cause": "perhaps out of memory"' "$(grep -o '"cause": [^,]*' r.json)"
step 1 'n1:0-0:w100,e0=1=ValueError: bad batch,done' srun:all
said 'the message of a failed rank is told behind its exit code' \
	1 "$(first 0 'n1 (GPU 0, pid 1000)' 1 \
	'exit code 1: ValueError: bad batch')"
for locale in C en_US.UTF-8; do
	call env LC_ALL=$locale ./srun report=r.json 1 \
		'n1:0-0:w100,t0=größer als 5 – 失敗/,e0=1=ValueError: größer,done' srun:all
	said "the words of a failed rank are told in its language in locale $locale" 1 \
		"$(first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 1: ValueError: größer')
slurm-ddp: rank 0: | größer als 5 – 失敗"
	"$python" -c 'import json
verdict = json.load(open("r.json", encoding="utf-8"))["verdict"]
assert verdict["message"] == "ValueError: gr\u00f6\u00dfer", verdict
assert verdict["stderr"] == ["gr\u00f6\u00dfer als 5 \u2013 \u5931\u6557"]' >why 2>&1
	result $? "the report has these words in locale $locale"
done
step 1 "n1:0-0:w100,t0=1/2/3/4/5/6/7/8/9/10/$(printf 'e\033[31m')/12,e0=1,done" \
	srun:all
said 'the last ten lines of a failed rank are told, safe to print' 1 "$(
	first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 1'
	for line in 3 4 5 6 7 8 9 10 'e?[31m' 12; do
		echo "slurm-ddp: rank 0: | $line"
	done)"

# The summary of torchrun, whose task has the ranks 2 and 3 of its own world
step launcher=torchrun report=report.json 2 n1:0-0:w100,K,done \
	'n2:1-1:w100,t1=[0]:/  rank      : 2 (local_rank: 0)/[1]:/  rank      : 3 (local_rank: 1),e1=1,K,done' \
	srun:all
said 'under torchrun its task is named, and the rank that it names last' 1 "$(
	echo 'slurm-ddp: torchrun task 1 failed first, as far as is known, on n2' \
		'(its rank 3, pid 1001) after 0.1 s: exit code 1'
	printf 'slurm-ddp: torchrun task 1: | %s\n' '[0]:' \
		'  rank      : 2 (local_rank: 0)' '[1]:' \
		'  rank      : 3 (local_rank: 1)'
	echo 'slurm-ddp: a rank of another task may have failed before, as torchrun' \
		"checks its ranks now and then; PyTorch's @record tells more"
	others '1 other torchrun task')"
equal 'the report has both numbers' '1 torchrun 3' "$("$python" -c '
import json
verdict = json.load(open("report.json"))["verdict"]
print(verdict["rank"], verdict["launcher"], verdict["launcher_rank"])')"
# Its summaries tell the order, where the times are further apart than its checks
summary='t%s=  time      : 2026-11-28_16:58:4%s/  rank      : %s (local_rank: 1)/===='
# shellcheck disable=SC2059 # a format
step launcher=torchrun 2 "n1:0-0:w100,$(printf "$summary" 0 9 0),e0=1,K,done" \
	"n2:1-1:w150,$(printf "$summary" 1 2 3),e1=1,K,done" srun:all
said 'of two torchruns the one whose rank failed earlier is named' 1 "$(
	echo 'slurm-ddp: torchrun task 1 failed first on n2 (its rank 3, pid 1001)' \
		'after 0.2 s: exit code 1'
	printf 'slurm-ddp: torchrun task 1: | %s\n' \
		'  time      : 2026-11-28_16:58:42' \
		'  rank      : 3 (local_rank: 1)' ====
	others '1 other torchrun task')"
# shellcheck disable=SC2059 # a format
step launcher=torchrun report=report.json 2 \
	"n1:0-0:w100,$(printf "$summary" 0 8 1),e0=1,K,done" \
	"n2:1-1:w150,$(printf "$summary" 1 4 3),e1=1,K,done" srun:all
said 'of two torchruns whose ranks failed within 6 s none is first' 1 "$(
	echo 'slurm-ddp: all 2 torchrun tasks failed within seconds of each' \
		'other (torchrun names ranks 1,3), after 0.1 s: exit code 1'
	for task in 0 1; do
		printf "slurm-ddp: torchrun task $task: | %s\n" \
			"  time      : 2026-11-28_16:58:4$((8 - 4 * task))" \
			"  rank      : $((2 * task + 1)) (local_rank: 1)" ====
	done)"
equal 'the report says so' '0 [1]' "$("$python" -c '
import json
verdict = json.load(open("report.json"))["verdict"]
print(verdict["rank"], verdict["alike"])')"

step launcher=torchrun 2 'n1:0-0:w100,t0=  rank : 1 (local_rank: 1),e0=1,K,done' \
	'n2:1-1:w150,t1=  rank : 3 (local_rank: 1),e1=1,K,done' srun:all
said 'summaries that have lost their time tell no order' 1 "$(
	echo 'slurm-ddp: torchrun task 0 failed first on n1 (its rank 1,' \
		'GPU 0, pid 1000) after 0.1 s: exit code 1'
	echo 'slurm-ddp: torchrun task 0: |   rank : 1 (local_rank: 1)'
	others '1 other torchrun task')"
step launcher=torchrun 2 n1:0-0:w50,e0=0,done \
	"n2:1-1:w150,$(printf "$summary" 1 4 3),e1=1,K,done" srun:all
said 'a torchrun that ended well has no rank that failed' 1 "$(
	echo 'slurm-ddp: torchrun task 1 failed first on n2 (its rank 3, pid 1001)' \
		'after 0.2 s: exit code 1'
	echo 'slurm-ddp: torchrun task 0 had ended with exit code 0, 0.1 s before;' \
		'did torchrun task 1 wait for it?'
	printf 'slurm-ddp: torchrun task 1: | %s\n' \
		'  time      : 2026-11-28_16:58:44' \
		'  rank      : 3 (local_rank: 1)' ====)"

# Python takes a while to end, and Slurm may end it before.
step launcher=torchrun 2 "n1:0-0:w100,t0= rank : 1 (local_rank: 1),k0=15,K,done" \
	n2:1-1:w300,e1=1,K,done srun:all
said 'a torchrun that was killed as it ended by its summary ends the step with 1' 1 "$(
	echo 'slurm-ddp: torchrun task 0 failed first, as far as is known, on n1' \
		'(its rank 1, GPU 0, pid 1000) after 0.1 s: it was still' \
		'ending when it was killed'
	echo 'slurm-ddp: torchrun task 0: |  rank : 1 (local_rank: 1)'
	echo 'slurm-ddp: a rank of another task may have failed before, as torchrun' \
		"checks its ranks now and then; PyTorch's @record tells more"
	others '1 other torchrun task')"

step 2 'n1:0-1:w100,t0=ValueError: torchrun-needs-srun---ddp=torchrun,e0=1,K,done' \
	srun:all
said 'a rank that has started torchrun is told what to do' 1 "$(
	first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 1'
	echo 'slurm-ddp: each rank started a launcher, such as torchrun; with' \
		'--ddp=torchrun srun starts one a node'
	echo 'slurm-ddp: rank 0: | ValueError: torchrun-needs-srun---ddp=torchrun'
	others '1 other rank')"
step launcher=torchrun 1 "n1:0-0:w100,t0=  in start_processes/AttributeError:\
 'NoneType' object has no attribute 'get',e0=1,K,done" srun:all
said "Debian 12's torchrun needs two options" 1 "$(
	echo 'slurm-ddp: torchrun task 0 failed first on n1 (GPU 0, pid 1000)' \
		'after 0.1 s: exit code 1'
	echo 'slurm-ddp: this torchrun needs the options --redirects=1 --tee=1'
	printf 'slurm-ddp: torchrun task 0: | %s\n' '  in start_processes' \
		"AttributeError: 'NoneType' object has no attribute 'get'")"
# Of n2's ranks torchrun takes the one for the cause that it looked at first.
killed=' time : 2026-11-28_16:58:43/ rank : 3 (local_rank: 1)/ exitcode : -9 (pid: 7)'
killed="$killed/Root Cause/ time : 2026-11-28_16:58:43/ rank : 2 (local_rank: 0)"
step launcher=torchrun 2 "n1:0-0:w100,$(printf "$summary" 0 2 0),e0=1,K,done" \
	"n2:1-1:w150,t1=$killed/ exitcode : 1 (pid: 6),e1=1,K,done" srun:all
said 'a rank that was killed is named, though torchrun names others' 1 "$(
	echo 'slurm-ddp: torchrun task 1 failed first on n2 (its rank 3, pid 1001)' \
		'after 0.2 s: exit code 1'
	echo "$killed/ exitcode : 1 (pid: 6)" | tr / '\n' |
		sed 's/^/slurm-ddp: torchrun task 1: | /'
	others '1 other torchrun task')"
step launcher=torchrun 1 "n1:0-0:w100,t0=Traceback/E: bad/ERROR:torch.distributed.\
elastic.multiprocessing.api:failed/Traceback/=====/ rank : 0 (local_rank: 0),e0=1,K,done" srun:all
said 'of a torchrun the last lines of its ranks are shown' 1 "$(
	echo 'slurm-ddp: torchrun task 0 failed first on n1 (its rank 0, GPU 0,' \
		'pid 1000) after 0.1 s: exit code 1'
	printf 'slurm-ddp: torchrun task 0: | %s\n' Traceback 'E: bad')"

step 4 "$two" n2:2-3:w110,a60,e3=4,a50,e2=5,K,done \
	n3:9-9:forge srun:all
said 'of two ranks that fail the earlier is named, not the one heard of first' \
	4 \
	"$(first 3 'n2 (pid 1003)' 1 'exit code 4'; others '3 other ranks')"
# Clocks differ by seconds, either way. Rank 1 fails 100 ms before rank 0.
for ahead in 5000 -5000; do
	step 2 n1:0-0:c$ahead,w200,e0=1,K,done n2:1-1:w100,e1=2,K,done srun:all
	said "the earlier rank is named on nodes whose clocks differ by $ahead ms" 2 "$(
		first 1 'n2 (pid 1001)' 1 'exit code 2'; others '1 other rank')"
	step 2 n1:0-0:c$ahead,w300,a200,e0=1,K,done \
		n2:1-1:w200,e1=2,K,done srun:all
	said "the earlier rank is named though heard of later, clocks $ahead ms apart" 1 "$(
		first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 1'
		others '1 other rank')"
done

step 3 n1:0-0:w100,k0=15,done n2:1-2:w120,k1=15,k2=15,done srun:all,x143
said 'nobody is named where one signal kills all ranks at once' 143 ''
step 3 n1:0-0:w100,k0=11,done n2:1-2:w120,k1=11,k2=11,done srun:all,x3
said 'a rank is named where all end at once by a signal of their own fault' \
	139 "$(
	first 0 'n1 (GPU 0, pid 1000)' 1 'killed by signal 11 (SIGSEGV)'
	alike '2 other ranks')"
step 4 'n1:0-1:w100,t0=E: 0,e0=1,t1=E: 1,e1=1,K,done' \
	n2:2-3:w300,e2=1,K,done srun:all
said 'ranks that fail by the same error are told apart from the others' 1 "$(
	first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 1'
	echo 'slurm-ddp: rank 0: | E: 0'
	alike '1 other rank'; others '2 other ranks')"
step 2 'n1:0-0:w900,a600,e0=1=E: reset,done' 'n2:1-1:w900,e1=1=E: reset,done' \
	srun:all
said 'of ranks with the same error the earlier is named, though heard of later' \
	1 "$(
	first 0 'n1 (GPU 0, pid 1000)' 3 'exit code 1: E: reset'
	alike '1 other rank')"
why='cannot execute a: No such file or directory'
step 2 "n1:0-0:w100,t0=slurmstepd-n1: error: execve(): ${why#* * },e0=2,K,done" \
	n2:1-1:w200,K,done srun:all
said 'a command that cannot be executed is the cause, and that is said once' \
	2 "$(first 0 'n1 (GPU 0, pid 1000)' 1 "$why, exit code 2"
	others '1 other rank')"

# A rank leaves its error, and ends later: to end takes Python some time.
step 2 n1:0-0:w500,e0=1,K,done \
	n2:1-1:w200,E1=boom,w1300,a1300,e1=2=boom,done srun:all
said 'a rank that had an error before another failed is waited for, and named' 2 \
	"$(first 1 'n2 (pid 1001)' 2 'exit code 2: boom'; others '1 other rank')"
step 2 n1:0-0:w500,e0=1,K,done n2:1-1:w200,E1=boom,K,done srun:all
said 'a rank that had an error before another failed, and does not end, is told' 1 \
	"$(first 0 'n1 (GPU 0, pid 1000)' 5 'exit code 1')
slurm-ddp: rank 1, which still ran, had an error 0.3 s before: boom
$(others '1 other rank')"
step 2 n1:0-1:w100,e1=3,e0=4,K,done srun:all
said 'of ranks that fail at the same time the lowest is named' 4 \
	"$(first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 4'; others '1 other rank')"
