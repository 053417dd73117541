# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# A rank breaks: all combinations of ranks.sh's columns.

combinations >cases
while read -r program point way rank <&3; do
	ends "$program" "$point" "$way" "$rank"
done 3<cases
