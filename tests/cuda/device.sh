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

# epilogues VARIABLE...: those of the products, by type; in cublasLt.h's numbers
epilogues()
{
	call env EMU_PRODUCTS=1 "$@" timeout 300 "$operators" \
		"$build/obj/tests/cuda_on_cpu/fast/ddp_cuda.so" matmul
	for type in fp32 bf16 fp16; do
		echo "$type:" "$(sed -n "s/.* products of $type with$(
			) epilogue //p" err | tr '\n' ' ')"
	done | tr -s ' \n' ' '
}

# 1 none, 4 a bias, 160 and 164 GELU without and with bias, 192 its slope.
test_epilogues()
{
	fused='1 4 160 164 192'
	equal 'epilogues on an H100: in 16 bit' \
		"fp32: 1 4 bf16: $fused fp16: $fused " \
		"$(epilogues EMU_CC=9.0)"
	equal 'on an A100 for a bias alone' 'fp32: 1 4 bf16: 1 4 fp16: 1 4 ' \
		"$(epilogues EMU_CC=8.0)"
	equal 'nowhere where none is offered' 'fp32: 1 bf16: 1 fp16: 1 ' \
		"$(epilogues EMU_EPILOGUES=no)"
}

# A product that cuBLASLt does not offer: its cases fail, and no others.
test_refused()
{
	call env EMU_REFUSED_K=63 timeout 300 "$operators" \
		"$build/obj/tests/cuda_on_cpu/fast/ddp_cuda.so" matmul step
	equal 'where a product is not offered, all other cases go on' \
		"1, 0 others failed, $(grep -c '^ok \|^not ok ' out) of them" \
		"$status, $(grep '^not ok ' out | grep -vc ', 63 to 300'
			) others failed, $(sed -n 's/^1\.\.//p' out) of them"
}

# attention_rows <TAP: what ldmatrix reads of tiles in the theme's cases, which
# run twice each. A warp reads its own rows, and in steps those that they meet:
# for each 16 x 16 values 32 rows of 16 bytes.
attention_rows()
{
	awk '
	/attention: .*, (bf16|fp16)$/ {
		split($0, word, /[^0-9]+/)
		n = word[4]; d = word[6] + 0; own = d > 64 ? 16 : 32; all = 0
		if (d != 16 && d != 32 && d != 64 && d != 128)
			next
		for (row = 0; row < n || row % (4 * own); row += own) {
			block = row - row % (4 * own)
			last = row + own < n ? row + own : n
			all += 3 * own / 16
			for (key = 0; key < last; key += 64)
				all += 4 + 4
			for (key = 0; key < last; key += 32)
				all += 2 + 2 + 2
			for (query = block; query < n; query += 32)
				if (query + 32 > row)
					all += 2 * (own / 16 + 2) + 2 + 2
		}
		rows += 2 * 32 * word[3] * word[5] * d / 16 * all
	}
	END { print rows }'
}

test_banks()
{
	call env EMU_BANKS=1 timeout 300 "$operators" \
		"$build/obj/tests/cuda_on_cpu/fast/ddp_cuda.so" attention
	wanted="ldmatrix read $(attention_rows <out) rows"
	equal 'attention reads no tile beyond the diagonal, and no busy bank' \
		"0 cuda_on_cpu: $wanted, 0 in a bank that was busy" \
		"$status $(cat err)"
}

test_operators()
{
	if ! test -x "$build/obj/bin/ddp-train"; then
		skip 'operators' 'ddp-train was not built: no oneDNN, no BLAS'
		return
	fi
	built train/operators cuda_on_cpu/fast/ddp_cuda.so \
		cuda_on_cpu/checked/ddp_cuda.so
	# Other values each time. (With 2, a row of 8 has a mean so near 0 that
	# its relative error is large.)
	apart=
	all_operators 'operators' fast EMU_ORDER=eager --
	apart=--apart
	all_operators 'operators, each access checked, work as late as can be' \
		checked EMU_ORDER=lazy OPERATORS_SEED=1 --
	all_operators 'operators, checked, in an order by chance, on an A100' \
		checked EMU_ORDER=1 EMU_CC=8.0 OPERATORS_SEED=3 --
	apart=
	all_operators 'operators in 99 KiB of shared memory, as of an L40S' \
		fast EMU_CC=8.9 -- attention norm
	apart=--apart
	all_operators 'products without epilogues' checked EMU_EPILOGUES=no \
		-- matmul special
	test_epilogues
	test_refused
	test_banks
	call timeout 60 "$operators" "$build/obj/tests/cuda_on_cpu/fast" none
	equal 'a theme that there is not' "1 Bail out! there is no theme 'none'" \
		"$status $(cat out)"
}

# one_gpu NAME: what whole runs of $train on one emulated GPU need; else skips
one_gpu()
{
	train=$build/obj/bin/ddp-train
	if ! test -x "$train"; then
		skip "$1" 'ddp-train was not built: no oneDNN, no BLAS'
		return 1
	fi
	built cuda_on_cpu/fast/ddp_cuda.so
	mkdir -p drivers
	ranks_library drivers/libcuda.so.1 "$top/tests/fakes/fake_cuda.c"
}

# A run by TF32, on one emulated GPU: inputs of products have fp16's digits, and
# so losses are as near to fp32's as those of fp16. On a CPU it goes on in fp32.
test_tf32()
{
	one_gpu 'TF32' || return 0
	text=/usr/share/common-licenses/GPL-3
	for how in off on; do
		tf32_run $how --data $text --context 32 --batch 4 \
			--tf32 $how --checkpoint saved.$how
	done
	ranks_losses tf32.off >off.losses
	ranks_losses tf32.on >on.losses
	# shellcheck disable=SC2016 # awk's own variables
	check 'losses by TF32 are near, and others' awk '
		NR == FNR { off[NR] = $1; next }
		{ n++; d = $1 / off[FNR] - 1; d = d < 0 ? -d : d }
		d > most { most = d }
		END { print "worst relative difference " most " of " n
			exit !(n == 10 && most > 2e-7 && most < 5e-4) }' \
		off.losses on.losses
	call timeout 60 "$train" --data $text --checkpoint saved.on --resume \
		--device cpu --steps 12
	equal 'a CPU goes on without it' '0 --tf32 is off, was on' \
		"$status $(grep '^--tf32' out)"
}

# A vocabulary that is no multiple of 64: a GPU computes rows of zeros behind the
# token table too, which are no parameters. It loses as a CPU does, and either
# goes on where the other was. Without the epilogues that cuBLASLt may have.
test_vocabulary()
{
	one_gpu 'a vocabulary of 300' || return 0
	make_tokens >squares
	vocabulary_module=fast
	for type in fp32 bf16; do
		vocabulary_run cpu 4
		vocabulary_run cuda 4
		# Half a unit of the type's last place, or what sums in another
		# order differ by
		paste cpu.losses cuda.losses >losses
		check "4 steps of 300 tokens on a GPU lose as on a CPU: $type" \
			awk -v most=$(test $type = fp32 && echo 1e-5 ||
				echo 4e-3) '
			{ d = $1 / $2 - 1; d = d < 0 ? -d : d; n++ }
			d > most { print $1, $2; bad = 1 }
			END { exit bad || n != 4 }' losses
		vocabulary_run cpu 6 --resume --checkpoint saved.cuda.$type
		equal "a CPU goes on where a GPU was: $type" '0 2' \
			"$status $(wc -l <cpu.losses)"
	done
	# Three levels of gradients, of which the last ends the memory
	built cuda_on_cpu/checked/ddp_cuda.so
	vocabulary_module=checked
	vocabulary_run cuda 1 --vocab 300 --context 8 --layers 1 \
		--global-batch 4 --granule 1 --deterministic
	equal 'no access is beside the memory' '0 0' "$status $(wc -l <err)"
}

# vocabulary_run DEVICE STEPS ARGUMENT...: its losses, in DEVICE.losses
vocabulary_run()
{
	vocabulary_log=$1.log
	rm -f "$vocabulary_log"
	vocabulary_device=$1 vocabulary_steps=$2
	shift 2
	test $# -gt 0 || set -- --vocab 300 --context 32 --batch 4 --layers 2 \
		--dtype $type --checkpoint saved.$vocabulary_device.$type
	call env LD_LIBRARY_PATH="$PWD/drivers" EMU_EPILOGUES=no \
		DDP_MODULE_DIR="$build/obj/tests/cuda_on_cpu/$(
		)$vocabulary_module" timeout 200 "$train" --tokens squares \
		--device $vocabulary_device --steps $vocabulary_steps "$@" \
		--log "$vocabulary_log"
	ranks_losses "$vocabulary_log" >$vocabulary_device.losses
}

# tf32_run NAME ARGUMENT...: 10 steps on an emulated GPU, tf32.NAME the log
tf32_run()
{
	tf32_log=tf32.$1
	shift
	call env LD_LIBRARY_PATH="$PWD/drivers" DDP_MODULE_DIR="$build/obj/$(
		)tests/cuda_on_cpu/fast" timeout 200 "$train" --steps 10 \
		--log "$tf32_log" "$@"
	equal "10 steps on a GPU: $*" "0 $(test "$tf32_log" = tf32.off ||
		echo ', fp32 products by TF32')" "$status $(
		sed -n 's/^computing on [^,]*, [0-9]* MiB//p' out)"
}

# waits STEPS ARGUMENT...: what the emulator counts of the host's waits in a run
waits()
{
	waits_steps=$1
	shift
	call env EMU_WAITS=1 LD_LIBRARY_PATH="$PWD/drivers" DDP_MODULE_DIR="$(
		)$build/obj/tests/cuda_on_cpu/fast" timeout 200 "$train" \
		--data /usr/share/common-licenses/GPL-3 --context 32 \
		--batch 4 --steps "$waits_steps" "$@"
	sed -n 's/^cuda_on_cpu: the host waited/waits/p' err
}

# planned [--gpu NAME] ARGUMENT...: memory in a plan for GPUs, for one that is
# emulated or for one by name where there is none
planned()
{
	planned_drivers=$PWD/drivers
	test "$1" != --gpu || planned_drivers=
	call env LD_LIBRARY_PATH="$planned_drivers" DDP_MODULE_DIR="$build/obj/$(
		)tests/cuda_on_cpu/fast" timeout 60 "$train" --plan "$@"
	sed -n '/^memory/,/in all/p' out
}

test_plan()
{
	one_gpu 'a plan' || return 0
	# 128 logits of 256 values are one block in the emulated module as well.
	while read -r arguments; do
		# shellcheck disable=SC2086 # several words
		planned --context 16 --batch 8 $arguments >here
		# shellcheck disable=SC2086
		planned --gpu H100 --context 16 --batch 8 $arguments >named
		equal "the module counts what ddp-train does without: $arguments" \
			"$(cat here)" "$(grep -v 'H100\|^that is enough' named)"
	done <<-END
	--preset 124M --dtype bf16
	--preset 124M --dtype bf16 --attention cudnn
	--preset tiny --dtype fp32
	END
	# 774,030,080 parameters less 50001 x 1280 of the vocabulary, 2 bytes each
	planned --preset 774M --dtype bf16 >here
	equal 'gradients in a plan for a GPU' 1354.3 \
		"$(sed -n 's/^  gradients *\([0-9.]*\) MiB$/\1/p' here)"
}

# However many steps there are, as many waits and allocations: those to begin and
# to end
test_waits()
{
	one_gpu 'waits' || return 0
	while read -r arguments; do
		# shellcheck disable=SC2086 # several words
		few=$(waits 3 $arguments)
		# shellcheck disable=SC2086
		equal "a step waits for nothing, takes no memory: $arguments" \
			"${few:-nothing counted}" "$(waits 9 $arguments)"
		equal "a step has nothing in the default stream: $arguments" \
			0 "${few##*: }"
	done <<-END
	--dtype fp32
	--dtype bf16
	--dtype fp16
	--dtype bf16 --recompute on
	END
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
