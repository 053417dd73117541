# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of ./run
# The CUDA device: its operators, what it says where it cannot compute, and the
# module as nvcc builds it.

operators=$build/obj/tests/train/operators

# all_operators NAME BUILD VARIABLE... -- ARGUMENT...: with --apart or not in
# $apart; all tests pass, and the emulator tells of nothing
all_operators()
{
	name=$1 module=$build/obj/tests/cuda_on_cpu/$2/ddp_cuda.so variables=
	shift 2
	while test "$1" != --; do
		variables="$variables $1"
		shift
	done
	shift
	# shellcheck disable=SC2086 # words
	call env $variables timeout 500 "$operators" $apart "$module" "$@"
	count=$(grep -c '^ok ' out)
	sed -i '/^ok /d' out
	equal "$name" "0, $count of them, 0 lines of stderr" \
		"$status, $(sed -n 's/^1\.\.//p' out) of them, $(
		wc -l <err) lines of stderr"
}

test_operators()
{
	if ! test -x "$build/obj/bin/ddp-train"; then
		skip 'operators' 'ddp-train was not built: no oneDNN, no BLAS'
		return
	fi
	built train/operators cuda_on_cpu/fast/ddp_cuda.so \
		cuda_on_cpu/checked/ddp_cuda.so
	apart=
	all_operators 'operators' fast EMU_ORDER=eager --
	apart=--apart
	all_operators 'operators, each access checked, work as late as can be' \
		checked EMU_ORDER=lazy --
	all_operators 'operators, checked, in an order by chance, on an A100' \
		checked EMU_ORDER=1 EMU_CC=8.0 --
	all_operators 'products without epilogues' checked EMU_EPILOGUES=no \
		-- matmul special
	call timeout 20 "$operators" "$build/obj/tests/cuda_on_cpu/fast" none
	equal 'a theme that there is not' "1 Bail out! there is no theme 'none'" \
		"$status $(cat out)"
}

# Each line of the program's TAP as a result
test_refusals()
{
	built cuda/refusals
	call timeout 60 "$build/obj/tests/cuda/refusals"
	mv out tap
	while IFS= read -r line; do
		case $line in
		'ok '* | 'not ok '*)
			test "${line#ok }" != "$line"
			result $? "${line#*ok * - }"
			;;
		esac
	done <tap
	equal 'all of them ran' "0, $(grep -c '^ok ' tap)" \
		"$status, $(sed -n 's/^1\.\.//p' tap)"
}

# The module of the real libraries, on a machine that has no driver
test_module()
{
	module=$build/obj/bin/ddp_cuda.so
	if ! test -f "$module"; then
		skip 'the module' 'ddp_cuda.so was not built: no nvcc'
		return
	fi
	equal 'the module has one symbol' 'ddp_device_table' \
		"$(nm -D --defined-only "$module" | sed 's/.* //')"
	check 'the runtime is in it' test "$(
		readelf -d "$module" | grep -c 'NEEDED.*libcudart')" -eq 0
	if test -e /dev/nvidiactl; then
		skip 'a machine without a driver' 'this machine has one'
		return
	fi
	built train/operators
	call timeout 60 "$operators" "$module" spaces
	equal 'a machine without a driver' '1 Bail out! the device does not'`
		`' open: this node has no NVIDIA driver (libcuda.so.1), which'`
		`' --device cuda needs: install one, or choose --device cpu' \
		"$status $(cat out)"
}
