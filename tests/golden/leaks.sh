# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run
# ddp-info gives all memory back when it has placed ranks on nodes.

place()
{
	call "$info" --topology "$xml" "$@"
}

frees 'a table' 0 place --nodes 'n[1-3]'
frees 'a table of nodes with other numbers of tasks' 0 \
	place --nodes 'n[1-3]' --tasks-per-node '2(x2),1'
frees 'more rows than are in memory at once' 0 place --nodes 'n[1-300]'
frees 'JSON' 0 place --nodes 'n[1-3]' --format json
frees 'variables' 0 place --nodes 'n[1-3]' --format env
frees 'a drawing' 0 place --nodes n1 --draw leaks.xml
frees 'masks and GPUs of each task' 0 place --nodes n1 --tasks-per-node 2 \
	--mask 0-1 --mask 2-3 --visible 0 --visible 1
frees 'an error in the nodes' 1 place --nodes 'n[1-'
frees 'an error in the tasks' 1 place --nodes n1 --tasks-per-node 9
