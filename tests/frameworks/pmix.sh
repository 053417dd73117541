# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # see run; for the other level's theme
# pmix:// with this PyTorch, as tests/boot has it with Debian's.

python=$env/bin/python
# shellcheck source=tests/boot/pytorch.sh
. "$top/tests/boot/pytorch.sh"
