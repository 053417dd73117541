# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# The lines of etc/sites as they are, on nodes that have such interfaces and names:
# what the tasks see is what the file says.

# site NAME PREFIX VARIABLE=VALUE...: on two nodes of these names a step of two ranks is
# quiet, and each has these
site()
{
	site=$1 prefix=$2
	shift 2
	cluster --nodes 2 --gpus 2 --name "$prefix"
	sed "s/^\\(.*\\) \\(${prefix}[12]\\)\$/&\\n\\1 \\2i/" \
		"$dir/cluster/etc/hosts" >hosts.sites
	for node in 1 2; do
		admin "$prefix$node" mount --bind "$scratch/hosts.sites" /etc/hosts
		at=1
		for name in ib0 hsn0 hsn1 hsn2 hsn3; do
			admin "$prefix$node" sh -e -c '
				ip link add $1 type veth peer name peer-$1
				ip address add 10.78.$2.$3/24 dev $1
				ip link set peer-$1 up
				ip link set $1 up' sh $name $at $node
			at=$((at + 1))
		done
	done
	sed "s,^optional spank_ddp.so,optional $plugin," \
		"$top/etc/sites/$site.conf" >"$dir/cluster/etc/plugstack.conf"
	call login srun --ddp -N2 --ntasks-per-node=1 env
	job=$(sed -n 's/^SLURM_JOB_ID=//p' out | uniq)
	sort out | uniq -c | sed 's/^ *//' >counted
	unquiet >why
	quiet=$(wc -c <why)
	for variable in "$@"; do
		grep -xF "2 $(echo "$variable" |
			sed "s/%j/$job/")" counted >/dev/null ||
			echo "not twice: $variable" >>why
	done
	test "$status $quiet" = '0 0' && ! test -s why
	result $? "the ranks have what $site.conf says"
}

site jsc jwb000 MASTER_ADDR=jwb0001i GLOO_SOCKET_IFNAME=ib0 NCCL_SOCKET_IFNAME==ib0
site lumi nid00500 NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3 NCCL_NET_GDR_LEVEL=PHB \
	MIOPEN_USER_DB_PATH=/tmp/miopen-61000-%j \
	MIOPEN_CUSTOM_CACHE_DIR=/tmp/miopen-61000-%j
site alps nid00123 NCCL_NET_GDR_LEVEL=PHB NCCL_CROSS_NIC=1 'NCCL_PROTO=^LL128' \
	FI_CXI_DEFAULT_CQ_SIZE=131072 FI_CXI_DEFAULT_TX_SIZE=32768 \
	FI_CXI_DISABLE_HOST_REGISTER=1 FI_CXI_RX_MATCH_MODE=software \
	FI_MR_CACHE_MONITOR=userfaultfd
