# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run
# ddp-info --doctor under a fake Slurm, and what its tasks tell of a node.

mkdir slurm
cat >slurm/scontrol <<'END'
#!/bin/sh
case $* in
'show config') cat config ;;
'-o show nodes') cat nodes ;;
'-a -o show partition') cat partitions ;;
*) exit 2 ;;
esac
END
# A step prints the file facts or meet, at once or with a pause of FAKE_PAUSE
# seconds in its first line. The plugin refuses one with --ddp by FAKE_REFUSAL.
cat >slurm/srun <<'END'
#!/bin/sh
case $* in
--help) echo '      --ddp[=off]' ;;
--mpi=list) echo pmix ;;
*)	what=facts
	case $DDP_DOCTOR in *'Doctor = meet'*) what=meet ;; esac
	test $what = facts || test -z "${FAKE_REFUSAL-}" || {
		echo "srun: error: slurm-ddp: $FAKE_REFUSAL" >&2
		exit 1
	}
	echo "$*" >"$what.args"
	sed "s/clock now/clock $(date +%s.%3N)/" "$what" >said
	test -n "${FAKE_PAUSE-}" || exec cat said
	head -c 15 said
	sleep "$FAKE_PAUSE"
	tail -c +16 said ;;
esac
END
chmod 755 slurm/*
version=$("$info" --version | cut -d' ' -f2)
cat >config <<END
KillOnBadExit           = 1
MpiParams               = ports=12000-12999
SLURM_VERSION           = 26.05.5
PlugStackConfig         = $PWD/plugstack.conf
PluginDir               = $PWD/plugins
END
echo 'NodeName=n1 CPUTot=4 Version=26.05.5' >nodes
echo 'PartitionName=main Default=YES State=UP' >partitions
mkdir plugins
printf 'slurm-ddp plugin %s\0' "$version" >plugins/spank_ddp.so
echo 'optional spank_ddp.so' >plugstack.conf

# tell NODE NOFILE: what a sound node tells, with this limit
tell()
{
	while read -r fact; do
		echo "ddp-doctor $1 $fact"
	done <<-END
	clock now
	stack /etc/plugstack.conf
	plugin_lines 1
	plugin /usr/lib/spank_ddp.so
	plugin_version $version
	ddp $version
	nofile $2
	memlock unlimited
	shm 1073741824
	names 1
	spool $1-1
	tmp $1-2
	END
}

# doctor NODES [NAME=VALUE...]: in a job on these nodes, as its script on n1; the
# ranks of those meet that have told facts
doctor()
{
	doctor_nodes=$1
	shift
	sed -n 's/clock now/rank 0/p; s/rank 0/met yes/p' facts >meet
	call env PATH="$PWD/slurm:$PATH" SLURM_JOB_NODELIST="$doctor_nodes" \
		SLURMD_NODENAME=n1 "$@" "$info" --doctor
}

# wrong: what is wrong, up to the fault
wrong()
{
	sed -n 's/^WRONG *\(.*: nofile is [0-9]*\).*/\1/p; t
		s/^WRONG *\([^:]*: [^:]*\).*/\1/p' out | paste -sd,
}

# One node's facts are not those of another whose name begins like it.
for nodes in n1,n10 n10,n1; do
	for bad in n1 n10; do
		for node in n1 n10; do
			tell "$node" "$(test $node = $bad && echo 1024 ||
				echo 65536)"
		done >facts
		doctor $nodes
		equal "of $nodes the fault of $bad is told of $bad alone" \
			"1 limits: $bad: nofile is 1024" "$status $(wrong)"
	done
done
for node in n1 n10; do
	tell $node 65536
done >facts
doctor n1,n10
equal 'nothing is wrong with nodes that are sound' '0 ' "$status $(wrong)"
grep -q '^ok *limits: n1, n10: nofile 65536$' out
result $? 'nodes that are alike have one line'
test -s facts.args && grep -q -- '--nodes=2 --ntasks=2' facts.args &&
	! grep -q -- ' --ddp' facts.args && grep -q -- ' --ddp ' meet.args
result $? 'the nodes are asked by two steps, the second with --ddp'
cp out whole
doctor n1,n10 FAKE_PAUSE=.3
check 'a line that comes in two pieces is read whole' diff whole out
doctor n1,n10 FAKE_REFUSAL='--ddp-port: not a port'
equal 'the doctor calls wrong what the plugin refuses' '1 srun --ddp: n1, n10' \
	"$status $(wrong)"
doctor n1,n10 FAKE_REFUSAL='--ddp: this site does not allow it (deny=main)'
equal 'the doctor does not call wrong what the site denies' '0 ' \
	"$status $(wrong)"
tell n1 65536 >facts
doctor n1,n10
equal 'a node that tells nothing is named' '1 answer: n10' "$status $(wrong)"
equal 'the last line counts what is wrong' '1 wrong' \
	"$(tail -n 1 out | cut -d, -f1)"

# login ARGUMENT...: of a machine outside of a job, with these in plugstack.conf
login()
{
	echo "optional spank_ddp.so $*" >plugstack.conf
	call env PATH="$PWD/slurm:$PATH" "$info" --doctor
	sed "s/ $(uname -n): / login: /" out >login.out
}

# login_wrong ARGUMENT LINE: there that argument is wrong, and LINE says so
login_wrong()
{
	login "mpi=keep $1"
	grep '^WRONG' login.out >why
	test "$status" -eq 1 && test "$(grep -c "^WRONG   $2" why)" -eq 1 &&
		test "$(wc -l <why)" -eq 1
	result $? "the login node alone finds that $1 is wrong"
}
login_wrong intrface=ib0 "srun --ddp: login: refuses every step: \
plugstack.conf: spank_ddp.so: intrface=ib0: .*; did you mean interface\$"
login_wrong ddp-port=29500 'srun --ddp: login: refuses every step: .* steps on'
login_wrong partition=slow:interface=lo \
	'plugstack.conf: login: partition=slow: Slurm has no such partition'
login_wrong allow=main,slow 'plugstack.conf: login: allow=slow: Slurm has no'
login_wrong deny=@root,@ddp-none \
	'plugstack.conf: login: deny=@ddp-none: there is no such group'
login allow=main,@root deny=--ddp-port partition=main:env=A=1 interface=ddp9 \
	topology=/none
equal 'the doctor leaves to compute nodes what only they have' '0 ' \
	"$status $(wrong)"
grep -q '^ok *srun --ddp: login: knows its keys and values in plugstack.conf$' login.out
result $? 'the doctor says that the keys and values are known'
login
! grep 'knows its keys' login.out >why
result $? 'the doctor says nothing of keys if plugstack.conf has none'

# facts [NAME=VALUE...]: what a task on n1 tells of this machine
facts()
{
	call env SLURM_STEP_ID=0 SLURMD_NODENAME=n1 "DDP_DOCTOR=Doctor = facts
$settings" "$@" "$info" --doctor
	grep '^ddp-doctor n1 ' out | sed 's/^ddp-doctor n1 //' >told
}

# told FACT: its value
told()
{
	sed -n "s/^$1 //p" told | paste -sd,
}

settings=$(cat config)
facts
equal 'a task finds the plugin that plugstack.conf names' \
	"0 1 $PWD/plugins/spank_ddp.so $version" \
	"$status $(told plugin_lines) $(told plugin) $(told plugin_version)"
equal 'a plugin that is optional is not told as required' '' \
	"$(told plugin_required)"
mkdir more.d
printf 'required spank_ddp.so\n' >more.d/ddp.conf
printf '# include none\n\n\tinclude more.d/*.conf\n' >plugstack.conf
facts
equal "a file's includes are those beside it" '1 yes' \
	"$(told plugin_lines) $(told plugin_required)"
(cd / && SLURM_STEP_ID=0 SLURMD_NODENAME=n1 DDP_DOCTOR="Doctor = facts
$settings" "$info" --doctor) | grep -c 'plugin_lines 1$' >out
equal 'includes are read for a task in another folder, too' 1 "$(cat out)"
echo 'optional spank_ddp.so' >>plugstack.conf
facts
equal 'the plugin is counted in all files, and the first line is told' \
	'2 yes' "$(told plugin_lines) $(told plugin_required)"
printf 'include plugstack.conf\noptional spank_ddp.so\n' >plugstack.conf
facts
test "$status" -eq 0 && test "$(told plugin_lines)" -gt 1
result $? 'a file that includes itself is not read for ever'
rm plugins/spank_ddp.so
echo 'optional spank_ddp.so' >plugstack.conf
facts
equal 'a plugin that is not there is told' 'No such file or directory' \
	"$(told plugin_flaw)"
equal 'without arguments the ports are those of the plugin' ' 21000-28999' \
	"$(told arguments) $(told port_range)"
cat >plugstack.conf <<'END'
optional spank_ddp.so port-range=30000-30099 interface=ddp9 # x=y
optional spank_ddp.so partition=a,b:allow=c,@ddp-none deny=c,@root
optional spank_ddp.so partition=a:port-range=31000-31099 partition=a:interface=lo
optional spank_ddp.so partition=a:allow=c,@ddp-none
END
facts
equal 'the arguments of all lines are counted' 7 "$(told arguments)"
equal 'partitions are told, each once for its key' \
	'partition=a partition=b allow=c deny=c' "$(told partitions)"
equal 'groups that the machine lacks are told' allow=@ddp-none \
	"$(told groups_lacking)"
equal 'what a task needs is told' '30000-30099 ddp9' \
	"$(told port_range) $(told interface_lacking)"
facts SLURM_JOB_PARTITION=a
equal "the facts of a task are told by the job's partition" '31000-31099 ' \
	"$(told port_range) $(told interface_lacking)"
echo 'optional spank_ddp.so mpi=keep mpi=pmi' >plugstack.conf
facts
equal 'an argument that is wrong is told as the plugin says it' \
	"plugstack.conf: spank_ddp.so: mpi=pmi: mpi 'pmi' is not one of pmix, \
keep; did you mean pmix" "$(told argument_flaw)"
mkdir spool.n1 spool.n2 spool
settings="SlurmdSpoolDir = $PWD/spool.%n
TmpFS = $PWD/spool"
facts
cp told first
sed -n 's/^spool //p' told >spool.first
facts SLURMD_NODENAME=n2
sed -n 's/^ddp-doctor n2 spool //p' out >spool.second
test -s spool.first && test -s spool.second &&
	! cmp -s spool.first spool.second
result $? 'a folder with %n in its name is each node'"'"'s own'
equal 'a folder without %n is the same for both' \
	"$(sed -n 's/^tmp //p' first)" "$(sed -n 's/^ddp-doctor n2 tmp //p' out)"
settings="TmpFS = $PWD/none"
facts
equal 'a folder that is not there is told' \
	"$PWD/none: No such file or directory" "$(told tmp_flaw)"

frees '--doctor' 1 doctor n1,n10
frees "a task of --doctor's" 0 facts
