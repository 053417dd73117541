# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# A rank of PyTorch's breaks: those of ranks.sh's columns that it leaves out.

cat >cases <<'END'
torch init KILL 2
torch step limit 3
torch step STOP 2
torch step sleep 2
END
each_ends
