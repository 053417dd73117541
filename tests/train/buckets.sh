# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run, which sources this
# The buckets, by obj/tests/train/buckets: a program with a fake collective that
# is slow and a fake device, and TAP of its own.

test_buckets()
{
	program buckets
	call timeout 20 "$program"
	mv out buckets.tap
	while read -r line; do
		case $line in
		'ok '*) result 0 "buckets: ${line#* - }" ;;
		'not ok '*) result 1 "buckets: ${line#* - }" ;;
		esac
	done <buckets.tap
	check 'buckets: to the end' grep '^1\.\.[1-9]' buckets.tap
}
