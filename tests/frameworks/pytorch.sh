# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh

for layout in even uneven hostfile heterogeneous two; do
	world $layout python3 pytorch_ddp.py
done
