# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # the caller has top, arch, sysroot and scratch
# What tests/arm64/run and tests/arm64/boot share.

# cross_build TARGET...: all, and these, in the working directory
cross_build()
{
	"$top/configure" --build="$(cc -dumpmachine)" --host="$arch" \
		CC="$arch-gcc --sysroot=$sysroot" --enable-werror \
		--with-slurm --with-pmix --with-hwloc --with-gcrypt \
		--with-mpi --with-onednn --with-criterion --without-cuda \
		PKG_CONFIG_SYSROOT_DIR="$sysroot" PKG_CONFIG_LIBDIR="$sysroot$(
		)/usr/lib/$arch/pkgconfig:$sysroot/usr/share/pkgconfig" &&
		make -s -j"$(nproc)" all "$@"
}

# adopt LEVEL COMMAND...: its checks are ours, too. $scratch/cannot edits them.
adopt()
{
	level=$1
	shift
	call "$@"
	sed -n "s,^\(not \)*ok [0-9]*[ -]* ,\1ok - $level: ,p; /^# /p" \
		"$scratch/out" | sed -f "$scratch/cannot" | tee "$scratch/tap"
	count=$(grep -cE '^(not )?ok ' "$scratch/tap")
	tap_count=$((tap_count + count))
	tap_failed=$((tap_failed + $(grep -c '^not ok ' "$scratch/tap")))
	equal "$level: it runs to its end" "1..$count" \
		"$(grep '^1\.\.' "$scratch/out")"
}
