# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run
# The order of nodes along the network, by --topology-conf.

find_topology server8
cat >switches <<'END'
SwitchName=s1 Nodes=n[1,3,5]
SwitchName=s2 Nodes=n[2,4]
SwitchName=top Switches=s[1-2]
END

# planned OPTION...: each rank's node, and what is said of the network
planned()
{
	call "$info" --topology "$xml" --topology-conf switches "$@"
	echo "$status $(awk '$2 ~ /^n[0-9]/ { print $2 }' out | paste -sd' ')"
	sed -n 's/^NETWORK: //p' out
}

# n1 n3 | n2 n4: up once from s1 and once back. By name each of four hops goes up.
# n5 is on s1, and no node of the job.
equal 'nodes of a switch stand together, each with its own tasks' \
	'0 n1 n1 n3 n2 n4 n4 n4
a ring through the nodes leaves a switch 2 times in this order, 4 times in the one given
switches or blocks of these nodes: 2, of others, too: 1' \
	"$(planned --nodes 'n[1-4]' --tasks-per-node 2,1,1,3)"
equal 'on one switch nothing changes' \
	'0 n3 n1
a ring through the nodes leaves a switch 0 times in this order, 0 times in the one given
switches or blocks of these nodes: 1, of others, too: 1' \
	"$(planned --nodes n3,n1 --tasks-per-node 1)"
# n7 and n8 meet n2, which is two switches below the top, and each other there: 3 + 3
# + 2 links, each half a way up. Three nodes have but one ring.
equal 'nodes that the file lacks are told, and stand last' \
	'0 n2 n7 n8
a ring through the nodes leaves a switch 4 times in this order, 4 times in the one given
switches or blocks of these nodes: 3, of others, too: 1
nodes that the file does not have, and that stand last: 2, the first of them n7' \
	"$(planned --nodes n7,n2,n8 --tasks-per-node 1)"
call "$info" --topology "$xml" --topology-conf switches --nodes n2,n1,n4 \
	--tasks-per-node 1 --format env
equal 'the variables follow' 'n1 n2 n4' \
	"$(sed -n 's/^# rank [0-9] on //p' out | paste -sd' ')"

mkfifo pipe
echo 'RingName=r Nodes=n[1-4]' >ring
echo 'SwitchName=s1 Nodes=n[1-' >broken
while IFS='|' read -r file words; do
	call timeout 20 "$info" --topology "$xml" --nodes n1 \
		--topology-conf "$file"
	test "$status" -eq 1 && test "$(wc -l <err)" -eq 1 &&
		grep -qF "ddp-info: $words" err && ! test -s out
	result $? "--topology-conf $file is refused: $words"
done <<'END'
pipe|--topology-conf pipe is not a regular file
none|cannot open --topology-conf none: No such file
ring|the topology has no SwitchName= and no BlockName=
broken|node list 'n[1-', byte 5
END
