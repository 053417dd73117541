# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# A rank breaks: some of all combinations, drawn at random.

FAULTS_SEED=${FAULTS_SEED:-$(date +%s)}
echo "# FAULTS_SEED=$FAULTS_SEED"
combinations | awk -v seed="$FAULTS_SEED" '
	BEGIN { srand(seed) }
	{ print rand(), $0 }' | sort -g | head -n "${FAULTS_DRAWS:-100}" |
	cut -d ' ' -f 2- >cases
drawn=0 wrong=0
while read -r program point way rank <&3; do
	drawn=$((drawn + 1))
	breaks "$program" "$point" "$way" "$rank" || {
		wrong=$((wrong + 1))
		echo "# $program $point $way $rank" && sed 's/^/# /' why
	}
	ended "$limit" "$program: rank $rank breaks: $point, $way"
done 3<cases
: >why
test "$drawn" -gt 0 && test $((wrong * 100)) -le "$drawn"
result $? "$drawn faults are drawn at random, $wrong are told wrong"
