# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# ddp-info --doctor on a real cluster: sound, and with one fault planted at a
# time, on the second node where it can be.

# doctor [COMMAND...]: examine the cluster in a job on both nodes, begun by
# COMMAND
doctor()
{
	call login "$@" salloc -Q -N2 ddp-info --doctor
}

# finds LINE FIX: the only lines that are wrong begin with LINE, which are
# patterns in lines of $found; the last has FIX; the exit status is 1
finds()
{
	printf '%s\n' "$1" | sed 's/^/^/' >patterns
	grep '^WRONG' out >wrong
	test "$status" -eq 1 && ! grep -vf patterns wrong >why &&
		(while read -r pattern; do
			grep -q "$pattern" wrong || exit 1
		done <patterns) && grep -qF -- "$2" wrong
	result $? "the doctor finds: $(printf %s "$1" | sed 1q)"
}

# on_n2 FILE FAKE: FAKE is FILE there, until off_n2 FILE
on_n2()
{
	admin n2 mount --bind "$2" "$1"
}
off_n2()
{
	admin n2 umount -l "$1"
}

# fake_info COMMAND: a fake of ddp-info for n2 alone, which changes by COMMAND
# what the real one prints there
fake_info()
{
	printf '#!/bin/sh\n"%s" "$@" | %s\n' "$scratch/real_info" "$1" >fake
	chmod 755 fake
	on_n2 "$info" "$scratch/fake"
}

cluster --nodes 2 --slurm KillOnBadExit=1 --slurm MpiParams=ports=12000-12999
cp "$info" real_info
version=$("$info" --version | cut -d' ' -f2)

doctor
cp out sound
! grep '^WRONG' out >why && test "$status" -eq 0 && ! test -s err
result $? 'a sound cluster has nothing wrong'
files=$(awk '/^Max open files/ { print $4 }' /proc/self/limits)
release=$(login srun --version | cut -d' ' -f2)
for line in "Slurm: $release, on 2 nodes too" 'KillOnBadExit: 1' \
	'MpiParams: ports=12000-12999' 'srun: has --ddp' \
	"spank_ddp.so: login, n1, n2: $version, in $dir/cluster/etc/plugs" \
	'srun --ddp: n1, n2: gives ranks' 'PMIx: n1, n2: ranks met' \
	"slurm-ddp: $version on login, n1, n2" \
	"limits: login, n1, n2: nofile $files" \
	'clock: n1, n2: as this' 'names: login, n1, n2: resolves 2 other' \
	'SlurmdSpoolDir: n1, n2: each' 'TmpFS: n1, n2: each'; do
	check "the doctor says of a sound cluster: $line" \
		grep -q "^ok      $line" sound
done
equal 'the last line of the doctor counts the others' \
	"0 wrong, $(grep -c ^advice sound) advice, \
$(grep -c ^unknown sound) unknown, $(grep -c ^ok sound) ok" \
	"$(tail -n 1 sound)"

call login ddp-info --doctor
grep -q '^unknown compute nodes: not examined .* salloc -N2 ddp-info' out &&
	test "$status" -eq 0 && ! grep -q 'n[12]:' out
result $? 'outside of a job it says that it examined no compute node'
call login salloc -Q --ddp -N2 ddp-info --doctor
equal 'salloc --ddp changes nothing' "$(cat sound)" "$(cat out)"
printf '#!/bin/sh\nddp-info --doctor\n' | batch -N2
test "$status" -eq 0 && grep -q '^ok .* PMIx: n1, n2: ranks met' out &&
	! grep -q login out
result $? 'a batch script examines the nodes, that of the script too'
call login srun -N1 ddp-info --doctor
test "$status" -eq 1 && grep -q 'run it without srun, as in: salloc' err
result $? 'a doctor in a step is refused, with what to run'
call login ddp-info --doctor --nodes n1
test "$status" -eq 1 && grep -q 'ddp-info: --doctor examines' err
result $? 'a doctor with options of nodes is refused'
call login env SLURM_CONF=/none ddp-info --doctor
finds 'WRONG   Slurm: scontrol show config fails (' 'while slurmctld is up'
call login env PATH="${info%/*}" "$info" --doctor
finds 'WRONG   Slurm: scontrol show config fails (scontrol: No such file' \
	'run this where jobs are submitted'

# ---- the plugin
stack=$dir/cluster/etc/plugstack.conf
on_n2 "$stack" /dev/null
doctor
finds "WRONG   spank_ddp.so: n2: no line of $stack
WRONG   srun --ddp: n2: the plugin did nothing" \
	'add "optional spank_ddp.so" to it'
off_n2 "$stack"
(umask 077 && : >null)	# no agent can run there
on_n2 /dev/null "$scratch/null"
doctor
finds 'WRONG   srun --ddp: n2: gives ranks, but nobody can watch them' \
	'run srun --ddp there, which says why'
off_n2 /dev/null
sed "s/slurm-ddp plugin $version/slurm-ddp plugin 0.0.9/" "$plugin" >old.so
on_n2 "$plugin" "$scratch/old.so"
doctor
finds "WRONG   spank_ddp.so: n2: $plugin is of slurm-ddp 0.0.9, and this" \
	'install one version on all nodes'
off_n2 "$plugin"
cp "$stack" stack.before
echo "include $dir/cluster/etc/more.d/*.conf" >>"$stack"
mkdir "$dir/cluster/etc/more.d"
cp stack.before "$dir/cluster/etc/more.d/ddp.conf"
doctor
! grep WRONG out >why
result $? 'settings may be on several lines'
plugstack required
doctor
grep -q '^advice  spank_ddp.so: login, n1, n2: .*"required": .*"optional"' out
result $? 'the doctor advises against "required"'
: >"$stack"
doctor
finds "WRONG   srun: has no --ddp
WRONG   spank_ddp.so: login, n1, n2: no line" 'add "optional spank_ddp.so"'
grep -q '^unknown PMIx: ranks could not' out
result $? 'the doctor says that it did not try PMIx without --ddp'
echo "optional $dir/none/spank_ddp.so" >"$stack"
doctor
finds "WRONG   srun: has no --ddp
WRONG   spank_ddp.so: login, n1, n2: $stack names $dir/none/spank_ddp.so: No" \
	'install slurm-ddp there'
plugstack optional deny=main
doctor
test "$status" -eq 0 && grep -q '^unknown PMIx: n1, n2: .*slurm-ddp: ' out
result $? "the doctor does not call wrong what the site denies"

# ---- what plugstack.conf says to the plugin
all='login, n1, n2'
plugstack optional intrface=lo
doctor
finds "WRONG   srun --ddp: $all: refuses every step: .* intrface=lo: key
WRONG   srun --ddp: n1, n2: refuses a step: .* intrface=lo: key" \
	'did you mean interface'
call login ddp-info --doctor
finds 'WRONG   srun --ddp: login: refuses every step: .* intrface=lo: key' \
	'did you mean interface'
plugstack optional 'allow=gone,@ddp-gone partition=never:mpi=keep deny=main'
doctor
finds "WRONG   plugstack.conf: $all: allow=gone, partition=never: Slurm has no
WRONG   plugstack.conf: $all: allow=@ddp-gone: there is no such group" \
	'correct the name'
admin n1 scontrol create PartitionName=secret Nodes=ALL Hidden=YES
# The login node alone has br0, and the nodes alone eth0.
plugstack optional "partition=secret:mpi=keep deny=@$(id -gn) interface=eth0"
doctor
grep -q "^ok      srun --ddp: $all: knows its keys and values" out &&
	! grep '^WRONG' out >why && test "$status" -eq 0
result $? "a hidden partition and the nodes' own interface are not wrong"
plugstack optional interface=br0
doctor
finds 'WRONG   plugstack.conf: n1, n2: interface=br0: there is no such network
WRONG   srun --ddp: n1, n2: refuses a step: .* interface=br0: ' \
	'partition=NAME:interface=...'
plugstack optional topology=/none.xml
doctor
finds 'WRONG   srun --ddp: n1, n2: refuses a step: .*/none.xml' none.xml
plugstack optional

# ---- nodes
grep -v 'n1$' "$dir/cluster/etc/hosts" >hosts
on_n2 /etc/hosts "$scratch/hosts"
doctor
finds 'WRONG   names: n2: cannot resolve n1: 
WRONG   PMIx: n1, n2: ranks did not meet: .* name n1 does not resolve' \
	'/etc/hosts there'
off_n2 /etc/hosts
echo '127.0.1.1 n1' >>hosts
on_n2 /etc/hosts "$scratch/hosts"
doctor
finds 'WRONG   names: n2: takes n1 for itself
WRONG   PMIx: n1, n2: ranks did not meet: .* name n1 resolves to loopback' \
	'correct /etc/hosts there'
off_n2 /etc/hosts
admin n2 mount -o remount,size=32m /dev/shm
doctor
finds 'WRONG   shared memory: n2: /dev/shm has 32 MiB' \
	'mount -o remount,size=50% /dev/shm'
admin n2 mount -o remount,size=2g /dev/shm
doctor sh -c 'ulimit -S -n 256; exec "$@"' sh
finds 'WRONG   limits: login, n1, n2: nofile is 256' \
	'raise it to 65536 where jobs are submitted'
doctor env NCCL_SOCKET_IFNAME=eth9
finds 'WRONG   interface: n1, n2: there is no network interface for your NCCL_SOCKET_IFNAME=eth9' \
	'unset that, or name one that all nodes have'
# A fake of InfiniBand: the folder that its driver makes.
mkdir class
cp -a /sys/class/. class 2>/dev/null
mkdir -p class/infiniband/mlx5_0
on_n2 /sys/class "$scratch/class"
doctor sh -c 'ulimit -l 64; exec "$@"' sh
finds 'WRONG   limits: n2: memlock is 0 MiB' \
	'make it unlimited where jobs are submitted'
off_n2 /sys/class
fake_info 'awk "\$3 == \"clock\" { \$4 = sprintf(\"%.3f\", \$4 + 3000) } 1"'
doctor
# The doctor subtracts what the answer takes to come.
finds 'WRONG   clock: n2: its clock is \(29[0-9][0-9]\|3000\) s ahead' \
	'start chronyd'
off_n2 "$info"
fake_info 'sed "s/ ddp .*/ ddp 0.0.9/; s/ pmix [0-9].*/ pmix 2.1.1/;
	\$a ddp-doctor n2 driver 550.1"'
doctor
finds "WRONG   slurm-ddp: $version on login, n1; 0.0.9 on n2; 
WRONG   PMIx: .* on login, n1; 2.1.1 on n2; 
WRONG   NVIDIA driver: .* on n1; 550.1 on n2; " 'install one version'
off_n2 "$info"
on_n2 "$info" /dev/null
doctor
finds "WRONG   answer: n2: .*execve(): $info: Permission denied
WRONG   PMIx: n1: ranks did not meet" "look into slurmd's log"
off_n2 "$info"
mpi=$(login scontrol show config | sed -n 's/^PluginDir *= //p')
on_n2 "$mpi/mpi_pmix.so" /dev/null
doctor
finds 'WRONG   PMIx: n1, n2: ranks did not meet: ' "look into slurmd's log"
off_n2 "$mpi/mpi_pmix.so"
doctor
equal 'a cluster with all of it undone has nothing wrong' \
	"$(cat sound)" "$(cat out)"

# ---- slurm.conf
cluster --nodes 2 --cpus 2 --slurm KillOnBadExit=0 --slurm TmpFS=/tmp \
	--slurm MpiParams=ports=12000-12001
# Ranks that do not meet wait for half a minute, and so may srun.
# shellcheck disable=SC2034 # of login
patience=60
doctor
# shellcheck disable=SC2034
patience=20
grep -q '^advice  KillOnBadExit: 0: .*KillOnBadExit=1 in slurm.conf' out
result $? 'the doctor advises to set KillOnBadExit'
# With Slurm 24.11 ranks meet in a shared folder all the same, with 26.11 mpi/pmix
# starts no task there.
unmet='
WRONG   PMIx: '
case $release in
22.* | 23.*) ;;
*) ! login srun -N2 --mpi=pmix true >begun.out 2>&1 || unmet= ;;
esac
finds "WRONG   MpiParams: ports=12000-12001 are 2 ports, and a step with a task
WRONG   TmpFS: n1, n2: nodes share this folder$unmet" 'MpiParams=ports=12000-12999'
call login srun -w n2 -n1 true
equal 'a step starts for which that range is large enough' 0 "$status"
call login srun -w n2 -n2 true
! test "$status" -eq 0
result $? 'indeed a step with too many tasks for that range does not start'
cluster --nodes 2 --slurm SrunPortRange=60001-60004 \
	--slurm MpiParams=ports=32000-40000
call login ddp-info --doctor
finds 'WRONG   SrunPortRange: 60001-60004 are 4 ports' \
	'SrunPortRange=60001-63000'
