# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# A rank breaks: all combinations of ranks.sh's columns.

combinations >cases
each_ends
