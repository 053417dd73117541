# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # the caller's
# How a level on a real cluster begins. The caller sets here, top, build and
# level, sources this, and is then in $scratch, with lib.sh and cluster.sh.

sandbox=$top/contrib/sandbox/ddp-sandbox
unset RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK \
	GROUP_WORLD_SIZE ROLE_RANK ROLE_WORLD_SIZE MASTER_ADDR MASTER_PORT \
	OMP_NUM_THREADS GLOO_SOCKET_IFNAME NCCL_SOCKET_IFNAME \
	JAX_COORDINATOR_ADDRESS JAX_LOCAL_DEVICE_IDS TF_CONFIG \
	ACCELERATE_USE_CPU DDP_SET PET_NNODES PET_NODE_RANK \
	PET_NPROC_PER_NODE PET_MASTER_ADDR PET_MASTER_PORT \
	PET_RDZV_ENDPOINT PET_RDZV_ID

dir=$(mktemp -d "${DDP_TEST_DIR:-/tmp/ddp}-$level.XXXXXX") || exit 1
scratch=$dir/work
# shellcheck disable=SC2317 # called by trap
stop()
{
	trap '' HUP INT TERM
	"$sandbox" down --dir "$dir/cluster" 2>/dev/null
	rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
trap 'exit 141' PIPE	# tests/cluster/run | head
# Jobs, which run as the cluster's user, write into the same folder. No other
# user may enter it: root runs what lies there.
chgrp 61000 "$dir" 2>/dev/null && chmod 750 "$dir"
mkdir -m 777 "$scratch"
cd "$scratch" || exit 1

# shellcheck source=tests/lib.sh
. "$top/tests/lib.sh"
# shellcheck source=tests/cluster/cluster.sh
. "$top/tests/cluster/cluster.sh"

# install_build: below $dir/root
install_build()
{
	make -s -C "$build" install DESTDIR="$dir/root" >install.out 2>&1 || {
		cat install.out >&2
		echo "tests/$level/run: cannot install from $build" >&2
		exit 1
	}
	plugin=$(find "$dir/root" -name spank_ddp.so)
}
