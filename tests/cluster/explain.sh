# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# --ddp=explain and --ddp=dry-run print what Slurm says of the step and what the
# tasks find.

# A program for tasks: as see; and rank 0 writes down what Slurm says of the
# step.
cat >witness <<END
#!/bin/sh
test "\$RANK" != 0 || {
	scontrol -o show step "\$SLURM_JOB_ID.\$SLURM_STEP_ID" >step.out
	echo "\$MASTER_ADDR \$MASTER_PORT" >meeting.out
}
exec $see
END
chmod 755 witness
: >step.out
: >meeting.out
: >ran
chmod 666 step.out meeting.out ran

# word NAME: what Slurm says of the step
word()
{
	sed -n "s/.* $1=\([^ ]*\).*/\1/p" step.out
}

# rows FILE: whether the tables in it have exactly one row for each line of see
# in out, with its rank, node, local rank, CPUs and GPU
cat >rows.awk <<'AWK'
FNR == NR {
	split($5, list, ",")
	gpu = $9 == "-" ? "- -" : list[$9 + 1] " " $10
	want[$1] = $1 " " $2 " " $3 " " gpu " " $4
	tasks++
	next
}
/^RANK +NODE +LOCAL +GPU +BUS-ID +NUMA +CPUS +INTERFACE( +WHY)?$/ {
	tables++
	next
}
/^[0-9]/ {
	rows++
	nodes += !node[$2]++
	had = $1 " " $2 " " $3 " " $4 " " $5 " " $7
	if (had != want[$1]) {
		print "row: " had ", task: " want[$1]
		bad = 1
	}
	delete want[$1]
}
END {
	if (!bad && rows == tasks && tables == (single ? 1 : nodes))
		exit 0
	print rows " rows in " tables " tables for " tasks " tasks"
	exit 1
}
AWK
rows()
{
	awk -v single="${2-}" -f rows.awk out "$1" >why
}

below="rank 0's node, which says so below"

# explains MASTER-REASON PORT-REASON TASKS-LINE CMD...: what is printed before
# the program's output, on the same stream, and the tables
explains()
{
	master=$1 port=$2 tasks=$3
	shift 3
	call login sh -c '"$@" 2>&1' sh "$@" ./witness
	mv out both
	grep -v '^srun:\|slurm-ddp:\|^RANK\|^MODEL\|^WHY\|eth0' both >out
	grep '^RANK\|eth0' both >tables
	read -r address number <meeting.out
	cat >wanted <<-END
	slurm-ddp: tasks $tasks
	slurm-ddp: MPI type ${mpi:-pmix: filled in}
	slurm-ddp: master${master:+ $address}: ${master:-$below}
	slurm-ddp: port $number: $port
	slurm-ddp: a rank that fails ends the step: ${kill:-filled in}
	END
	grep -v '^srun: job ' both | head -n 5 | diff wanted - >why &&
		test "$status" -eq 0
	result $? "${name:-$*}: the job, before anything else"
	rows tables
	result $? 'a table for each node, as its tasks find it'
	equal "the node of rank 0 says where the master is" \
		"slurm-ddp: master $address port $number: $port" \
		"$(grep '^slurm-ddp: master .* port ' both)"
	name=
}

topology here <<END
package
numa 0 0 $(nproc --all) 1 1 0
gpu 0000:01:00.0 0302 10de:2330 GH100 [H100 80GB]
gpu 0000:81:00.0 0302 10de:2330 GH100 [H100 80GB]
END
cluster --nodes 3 --gpus 2 --cpus 8
plugstack optional "topology=$scratch/here.xml"
derived="from the job's and the step's number"
set -- srun --ddp=explain
explains "rank 0's node, the first of n[1-2]" "$derived" \
	'4 on 2 nodes: one a GPU, filled in' "$@" -N2 --gres=gpu:2
equal 'the nodes of a step of 4 are n1 and n2' 'n[1-2]' "$(word NodeList)"
explains "rank 0's node, the first of n[2-3]" "$derived" \
	'3 on 2 nodes: as asked for' "$@" -w n2,n3 -n3 -m cyclic
equal 'the nodes of a step of 3 are n2 and n3' 'n[2-3]' "$(word NodeList)"
explains "rank 0's node, the first of n[1-2]" "$derived" \
	'4 on 2 nodes: as asked for' "$@" -n4 --gres=gpu:2
explains "rank 0's node, the first of n3" '--ddp-port' \
	"1 on 1 node: Slurm's default" "$@" -w n3 --ddp-port=20011
mpi='none: as asked for' kill='unless --kill-on-bad-exit says otherwise'
explains "MASTER_ADDR was exported" 'MASTER_PORT was exported' \
	'2 on 2 nodes: as asked for' \
	env MASTER_ADDR=n1 MASTER_PORT=20012 \
	"$@" -N2 -n2 --mpi=none --kill-on-bad-exit=0
mpi='' kill=''
printf '%s\n' n3 n1 n2 n1 n3 n2 >hosts
name='-m arbitrary' explains "rank 0's node, of n[1-3]" "$derived" \
	'6 on 3 nodes: as asked for' \
	env SLURM_HOSTFILE="$scratch/hosts" "$@" -n6 --gres=gpu:2
equal "rank 0 of -m arbitrary is not on the first of the list" 'n3 n[1-3]' \
	"$(cut -d' ' -f1 meeting.out) $(word NodeList)"
name='srun a : b' explains '' "$derived" \
	"of several components: the nodes' tables show them" \
	"$@" -w n2 --gres=gpu:2 ./witness : -w n1,n3 -N2 --gres=gpu:1
equal 'rank 0 of several components is where the first begins' n2 \
	"$(cut -d' ' -f1 meeting.out)"
printf '%s\n' "0-2 $scratch/witness" '3 true' >programs
call login "$@" -N2 --gres=gpu:2 --multi-prog programs
equal '--multi-prog: its table is whole' '0 3 4' \
	"$status $(wc -l <out) $(grep -c eth0 err)"

rm -f plain.err off.err dry.out
batch --ddp=explain -N2 --gres=gpu:2 --ntasks-per-node=2 -c2 <<END
#!/bin/sh
srun ./witness
srun --ddp true 2>plain.err
srun --ddp=off true 2>off.err
srun --ddp=dry-run touch ran.not >dry.out
END
rows err && test "$status" -eq 0
result $? 'sbatch --ddp=explain: each srun of the job explains'
# On a busy machine srun itself says that it waits for the step before.
check 'an srun with --ddp alone, or with --ddp=off, explains nothing' \
	sh -c 'cat plain.err off.err &&
		! grep -qE "slurm-ddp|^RANK" plain.err off.err'
rows dry.out single
result $? 'an srun with --ddp=dry-run has one table of the same'

# dry HOSTS CMD...: one table by rank, of these hosts; nothing runs, nothing
# else is written. slurmstepd of 22.05 cannot verify who connects to it while it
# starts its tasks, because it is the user then: a node whose task is so much
# earlier is rejected, and the fence of all tasks never ends.
dry()
{
	hosts=$1
	shift
	for try in 1 2 3; do
		call login "$@" sh -c 'echo $SLURM_PROCID >>ran'
		if test "$status" -eq 0 || ! grep -q 'Connection reject f' err
		then
			break
		fi
		echo "# try $try: slurmstepd rejected another node's"
	done
	equal "${name:-$*}: a table by rank, and all is well" \
		"0 RANK $(echo "$hosts" | awk '{
			for (i = 1; i <= NF; i++)
				printf "%d,%s%s", i - 1, $i, i < NF ? " " : ""
		}')" "$status $(awk 'NR == 1 { printf "%s", $1; next }
			/^(WHY|MODEL)/ { next }
			{ printf " %s,%s", $1, $2 }' out)"
	test ! -s ran && test "$(grep -c slurm-ddp: err)" = 5 &&
		! unquiet | grep -v slurm-ddp: >why
	result $? "${name:-$*}: nothing runs"
	name=
}
set -- srun --ddp=dry-run
dry 'n1 n1 n2 n2' "$@" -N2 --gres=gpu:2
dry 'n1 n2 n3' "$@" -N3 -n3 -m cyclic
dry 'n3 n1 n2 n1 n3 n2' env SLURM_HOSTFILE="$scratch/hosts" "$@" -n6
name='srun a : b' dry 'n1 n1 n2 n3' \
	"$@" -w n1 --gres=gpu:2 sh -c 'echo 1 >>ran' : -w n2,n3 -N2 --gres=gpu:1
printf '%s\n' "0 touch ran.not" '1-3 sh -c "echo 1 >>ran"' >programs
name=--multi-prog dry 'n1 n1 n2 n2' "$@" -N2 --gres=gpu:2 --multi-prog programs
name='--export' dry 'n1 n2' "$@" -N2 --export=PATH
call login srun --ddp=dry-run,explain -N2 --gres=gpu:2 true
equal 'the nodes speak, too, with --ddp=dry-run,explain' '0 2 4' \
	"$status $(grep -c ^RANK err) $(grep -c eth0 err)"
call login env GLOO_SOCKET_IFNAME=eth9 NCCL_SOCKET_IFNAME=eth \
	srun --ddp=dry-run,explain -N2 --gres=gpu:2 true
equal 'each node says which exported interface it lacks' \
	'slurm-ddp: on n1: there is no network interface for your GLOO_SOCKET_IFNAME=eth9
slurm-ddp: on n2: there is no network interface for your GLOO_SOCKET_IFNAME=eth9' \
	"$(sed -n 's/: unset that, or name one that all nodes have$//p' err |
		sort)"
call login "$@" -N1 -n3 --gres=gpu:2 sh -c 'echo 1 >>ran'
equal 'what would be refused is refused' '1 1 0' \
	"$status $(grep -c 'ranks have 2 GPUs' err) $(cat out ran | wc -l)"
# Options of a step that runs something are checked, and are not used.
call login "$@" -n1 --ddp-report=dry.json --ddp-logs=dry.logs/ \
	--ddp-watchdog=60 true
equal 'options that it does not use are named' "0 --ddp-logs, --ddp-report, \
--ddp-watchdog: checked only; a dry run writes no report and no logs, and \
watches over nothing" "$status $(sed -n 's/^slurm-ddp: \(--.*\)/\1/p' err)"
check 'a dry run writes no report and no logs' \
	test ! -e dry.json -a ! -e dry.logs
refuses '--ddp-report=none/a: cannot write it: No such file' \
	"$@" -n1 --ddp-report=none/a true
refuses '--ddp-watchdog=1: not a time' "$@" -n1 --ddp-watchdog=1 true
call login "$@" -n1 --ddp-logs=none/a true
equal 'logs that no node could write are refused there' '1 0 1' "$status \
$(wc -l <out) $(grep -c 'rank 0 on n1: --ddp-logs: cannot write none/a: No' err)"
# The command itself is not run, but whether it could be is known.
printf '#!/no/sh\n' >no_sh
printf '#!/bin/sh\r\necho >ran.not\r\n' >no_unix
echo 'echo >ran.not' >no_line
printf '#!/bin/sh\necho >ran.not\n' >no_right
chmod 755 no_sh no_unix no_line
while IFS='|' read -r command why; do
	call login "$@" -n1 "$command"
	equal "a dry run of $command says why it could not be executed" \
		"1 $command: $why" "$status $(sed -n \
		's/.*dry-run: the command could not be executed: //p' err |
		head -n 1)"
done <<'END'
./no_such|No such file or directory; correct its name, or install it on this node
no_such|No such file or directory; correct its name, or install it on this node
./no_sh|/no/sh, which would run it, is missing; install it, or change the first line
./no_unix|its lines end as on Windows, with carriage returns; remove these, as with dos2unix
./no_line|Exec format error; a script needs a first line such as #!/bin/sh
./no_right|Permission denied; make it executable with chmod +x, or name its interpreter
END
# Where that may be another file it is no error.
mkdir -m 755 more
printf '#!/bin/sh\necho >ran.not\n' >more/of_prolog
printf '#!/bin/sh\necho export PATH=%s:$PATH\n' "$scratch/more" >prolog
chmod 755 more/of_prolog prolog
call login "$@" -N2 --task-prolog="$scratch/prolog" of_prolog
equal 'before a task prolog has run, rank 0 says what is missing' '0 1 3' \
	"$status $(grep -c 'rank 0 on n1: --ddp=dry-run: without the task '\
'prolog, .*: of_prolog: No such file' err) $(grep -vc '^WHY\|^MODEL' out)"
# Slurm 24.11's mpi/pmix needs a container that a site has set up.
call login srun --mpi=pmix -N1 --container="$scratch" true
if test "$status" = 0; then
	call login "$@" -N2 --container="$scratch" no_such
	equal 'a dry run knows nothing of a container' '0 0 3' \
		"$status $(grep -c 'no_such' err) $(grep -vc '^WHY\|^MODEL' out)"
fi
check 'a dry run has not run the command' test ! -e ran.not
mkdir -m 755 full
call login "$@" -n1 --ddp-logs=full true
equal 'logs in a folder of another user are refused' '1 1' \
	"$status $(grep -c 'cannot write full: Permission denied' err)"
if test -x /usr/local/bin/ddp-info; then
	skip 'without ddp-info' '/usr/local/bin has one'
else
	call login env PATH="$dir/cluster/bin:/usr/bin:/bin" "$@" -n2 true
	equal 'without ddp-info: one line says so' '1 1' "$status $(grep -c \
		'slurm-ddp: .* --ddp=dry-run: there is no ddp-info in PATH ' err)"
fi

# What ddp-info --gather prints where it cannot work
# Each task must be left the time to say it.
while IFS='|' read -r words command; do
	# shellcheck disable=SC2086 # several words
	call login $command ddp-info --gather
	equal "$command ddp-info --gather: $words" '1 2 0' \
		"$status $(grep -c "^ddp-info: .*$words" err) $(wc -l <out)"
done <<END
no launcher offers PMIx to this process: start it with srun --mpi=pmix|srun --ddp --mpi=none --kill-on-bad-exit=0 -N2
no placement is in DDP_PLACEMENT|srun --mpi=pmix -N2
no placement is in DDP_PLACEMENT|srun --mpi=none -n2
END

# Ports from Slurm; and a node whose tasks start late
printf '%s\n' '#!/bin/sh' 'test "$SLURMD_NODENAME" != n2 || sleep 2' >late
chmod 755 late
cluster --nodes 2 --gpus 2 --cpus 8 --slurm MpiParams=ports=13000-13099 \
	--slurm "Prolog=$scratch/late" --slurm "TaskProlog=$scratch/prolog"
plugstack optional "topology=$scratch/here.xml"
explains "rank 0's node, the first of n[1-2]" 'reserved by Slurm for this step' \
	'4 on 2 nodes: one a GPU, filled in' srun --ddp=explain -N2 --gres=gpu:2
equal 'the first of ResvPorts' "$(cut -d' ' -f2 meeting.out)" \
	"$(word ResvPorts | sed 's/[-,].*//')"
call login srun --ddp=explain -w n2 ./witness : -w n1 ./witness
port=$(cut -d' ' -f2 meeting.out)
equal 'in a heterogeneous step rank 0 tells its port' '0 1 1' "$status $(
	grep -c '^slurm-ddp: port: reserved by Slurm; rank 0.s node' err) $(
	grep -c "^slurm-ddp: master n2 port $port: reserved" err)"
name='n2 begins late' dry 'n1 n1 n2 n2' srun --ddp=dry-run -N2 --gres=gpu:2
call login srun --ddp=dry-run -n1 of_prolog
equal 'the TaskProlog of slurm.conf, too, may make a command' '0 1' \
	"$status $(grep -c 'without the task prolog, .*: of_prolog: No' err)"

# Tables that reach srun in several pieces: no line of them is cut
{
	printf '%s\n' package "numa 0 0 $(nproc --all) 1 1 0"
	seq -f 'gpu 0000:%02g:00.0 0302 10de:2330 GH100 [H100 80GB]' 10 25
} | topology many
cluster --nodes 2 --gpus 16 --cpus 16
plugstack optional "topology=$scratch/many.xml"
for tasks in 16 1; do
	call login srun --ddp=explain --ntasks-per-node=$tasks -N2 --gres=gpu:16 \
		"$see"
	rows err
	result $? "$tasks ranks of 16 GPUs on 2 nodes: all rows are whole"
	equal "$tasks ranks: there is a line for each other GPU of a rank" \
		"$(((16 / tasks - 1) * tasks * 2))" \
		"$(grep -cx ' * [0-9]*  *0000:[1-9][0-9]:00.0' err)"
done
