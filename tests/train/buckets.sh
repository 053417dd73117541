# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run, which sources this
# The buckets, by obj/tests/train/buckets: a program with a fake collective that
# is slow and a fake device, and TAP of its own; and fake tables of another
# interface, by obj/tests/train/abi.

# runs_tap NAME: each line of a program's TAP as a result
runs_tap()
{
	program "$1"
	call timeout 60 "$program"
	mv out tap
	while read -r line; do
		case $line in
		'ok '*) result 0 "$1: ${line#* - }" ;;
		'not ok '*) result 1 "$1: ${line#* - }" ;;
		esac
	done <tap
	check "$1: to the end" grep '^1\.\.[1-9]' tap
}

test_buckets()
{
	runs_tap buckets
}

test_abi()
{
	runs_tap abi
}
