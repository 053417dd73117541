# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# A rank breaks: each way, at each point, in each program, though not every
# combination. The columns: program, point, way, rank.

cases='sh start KILL 0
sh step SEGV 2
sh step TERM 3
sh step exit3 2
sh step oom 2
sh start limit 2
torch init KILL 2
torch after error 2
torch collective SEGV 0
torch step limit 3
train start TERM 2
train init KILL 0
train after SEGV 2
train collective exit3 3
train step KILL 0
train step oom 2
train step limit 3
job start exit3 2
job init KILL 0
job collective SEGV 3'

echo "$cases" >cases
while read -r program point way rank <&3; do
	case " $have " in
	*" $program "*) ends "$program" "$point" "$way" "$rank" ;;
	*) skip "$program: $point, $way" "$program is not here" ;;
	esac
done 3<cases
