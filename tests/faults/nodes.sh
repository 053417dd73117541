# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# What a node is made of breaks: slurmd, slurmstepd, the agent, the link.

# healthy NAME: whether the step has ended well, without a line of ours
healthy()
{
	echo "code $status" >why
	test "$status" -eq 0 && ! grep '^slurm-ddp: ' err >>why &&
		left >>why && ! test -s left.out
	result $? "$1"
}

# lost NODE REASON NAME: whether the step has ended because of that node, and
# nothing was left there.
lost()
{
	{
		says "node $1 was lost first, after [0-9.]+ s: $2" 1 10000 &&
			! test -s left.out
	} >>why 2>&1
	result $? "$3"
	ended "$limit" "$3"
}

# of_root NODE: what slurmstepd makes as root: files and folders of Slurm's, and
# cgroups of steps
of_root()
{
	# shellcheck disable=SC2016 # for the inner shell
	admin "$1" sh -c 'find "$0/spool/$1" "$0/tmp/$1" -mindepth 1 \
			-maxdepth 1 ! -name "cred_state*"
		find /sys/fs/cgroup -type d -name "step_*"' \
		"$dir/cluster" "$1" | sort
}

FAULT_SECONDS=4
export FAULT_SECONDS
begin_step sh none none 0
kill_on n2 slurmd
end_step
healthy 'a step goes on without slurmd, and ends well'
ready n2

begin_step sh none none 0
kill_on n2 ddp-agent
end_step
test "$status" -eq 0 && test "$(grep -c '^slurm-ddp: ' err)" = 1 &&
	grep -q '^slurm-ddp: .*n2' err && left >why && ! test -s left.out
result $? 'a step goes on without an agent, is warned, and ends well'

FAULT_SECONDS=60
of_root n2 >root.before
begin_step sh none none 0
id=$(bounded 9 squeue -hs -o %i | grep '\.0$')
kill_on n2 slurmstepd
end_step
left >why 2>&1
lost n2 'its slurmstepd has ended' 'slurmstepd is killed'

# stays: what is on n2 that was not there before
stays()
{
	of_root n2 | comm -13 root.before -
}
# shellcheck disable=SC2016 # for the inner shell
remove='for path in "$@"; do
	case $path in
	/sys/*) find "$path" -depth -type d -exec rmdir {} + ;;
	*) rm -r "$path" ;;
	esac
done'
stays >stays.out
sed 's/^/# stays: /' stays.out
{ ! has_pmix || grep -q "/stepd\.slurm\.pmix\.$id\$" stays.out; } && ! grep -vE \
	"/(n2_$id|(stepd\.slurm\.)?pmix\.$id|hwloc_topo_$id\.xml|spmix_appdir_61000_$id|job_${id%.*}/step_${id#*.})\$" \
	stays.out >why
result $? 'the node keeps only what spank_ddp(8) lists'
# shellcheck disable=SC2046 # paths without blanks
admin n2 sh -c "$remove" sh $(cat stays.out) 2>why && test -z "$(stays)"
result $? 'root can remove what the node keeps'

begin_step sh none none 0
begin_fault
admin n3 ip link set eth0 down
end_step
# While Slurm cannot reach it; and a plain step that is late because of the node
# excuses nothing.
left >why 2>&1
admin n3 ip link set eth0 up
ready n3
lost n3 'it has not answered for [0-9]+ s' 'a link is cut'

if ! admin n3 tc qdisc add dev eth0 root tbf rate 1mbit burst 16kb \
	latency 400ms 2>why
then
	skip 'a slow link' 'tc has no tbf here'
else
	tidy
	# shellcheck disable=SC2016 # for the tasks' shells
	call bounded 60 srun --ddp -N3 --gres=gpu:2 sh -c 'case $SLURM_PROCID in
		4) head -c 1200000 /dev/zero | tr "\\0" "x" ;;
		*) sleep 10 ;;
		esac'
	admin n3 tc qdisc del dev eth0 root
	healthy 'a link that is full for 10 s is no loss'
fi
