# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# The operators of the CPU, in a program of their own.

test_operators()
{
	program operators
	call timeout 100 "$program"
	mv "$scratch/out" "$scratch/tap"
	while IFS= read -r line; do
		case $line in
		'ok '* | 'not ok '*)
			test "${line#ok }" != "$line"
			result $? "operators: ${line#*ok * - }"
			: >"$scratch/out"
			;;
		'# '*)
			echo "${line#'# '}" >>"$scratch/out"
			;;
		esac
	done <"$scratch/tap"
	equal 'operators: all of them ran' \
		"0, $(grep -c '^ok ' "$scratch/tap") of them" \
		"$status, $(sed -n 's/^1\.\.//p' "$scratch/tap") of them"
}
