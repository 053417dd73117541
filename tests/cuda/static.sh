# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2317 # variables and functions of run
# What the compiler made of the kernels, for each GPU they are written for: no
# registers in memory, no more of them than leave room for the blocks that
# should run at once, and the instructions that make a kernel fast. Needs nvcc,
# and to read machine code cuobjdump and nvdisasm, of the toolkit or of PyPI
# (nvidia-cuda-cuobjdump, nvidia-cuda-nvdisasm).

# The most registers of each kernel; where the width of heads matters, with it.
# 65,536 are there for the threads of all blocks that run at once: 32 are for
# 2,048 threads, 40 for 1,536, 48 for 1,280, 64 for 1,024, 128 for 512, 168 for
# 3 blocks of 128 threads, 255 for 2.
static_limits='
	adamw_kernel 56
	add_kernel 32
	attention_kernel,16 168
	attention_kernel,32 255
	attention_kernel,64 255
	attention_kernel,128 255
	cast_kernel 32
	cross_entropy_kernel 40
	dkv_kernel,16 168
	dkv_kernel,32 168
	dkv_kernel,64 255
	dkv_kernel,128 255
	dq_kernel,16 168
	dq_kernel,32 168
	dq_kernel,64 255
	dq_kernel,128 255
	embed_kernel 32
	embed_positions_kernel 64
	embed_tokens_kernel 64
	fold_kernel 32
	gelu_kernel 32
	norm_backward_kernel 128
	norm_backward_plain_kernel 40
	norm_kernel 40
	norm_sums_kernel 32
	plain_delta_kernel 64
	plain_dkv_kernel 128
	plain_dq_kernel 128
	plain_kernel 128
	repeat_kernel 32
	round_kernel 32
	sgd_kernel 40
	step_kernel 64
	sum_losses_kernel 40
	sum_rows_kernel 32
	sum_squares_kernel 32
	terms_kernel 32
'

# The instructions that each instance of a kernel has, where "wide" are those of
# 4 or 8 values at once. In 16 bit: products by tensor cores, with sums in fp32,
# of fragments that ldmatrix reads as they are and transposed, from tiles that
# are filled past registers and L1.
static_products='HMMA.16816.F32 LDSM.16.M88.4 LDSM.16.MT88.4
	LDGSTS.E.BYPASS.128 STG.E.128'
static_instructions="
	attention_kernel: $static_products
	dkv_kernel: $static_products
	dq_kernel: $static_products
	terms_kernel: LDG.E.128
	cross_entropy_kernel: LDG.E.128
	gelu_kernel: LDG.E.128 STG.E.128
	adamw_kernel: LDG.E.128
	round_kernel: LDG.E.128
	embed_kernel,wide: LDG.E.128 STG.E.128
	embed_positions_kernel,wide: LDG.E.128
	embed_tokens_kernel,wide: LDG.E.128
	norm_backward_kernel,wide: LDG.E.128 STG.E.128
	norm_kernel,wide: LDG.E.128 STG.E.128
	sum_rows_kernel,wide: LDG.E.128
"

# The rows of the tables in cuda/README.md: their kernels, a block's threads and
# the KB of shared memory that it asks for at a width of 768. Attention's are in
# the table itself.
static_rows='
	norm, with residual|norm_kernel|256|12
	norm, without|norm_kernel|256|12
	norm, backward|norm_backward_kernel|480|1
	embedding|embed_kernel|256|0
	its backward|embed_positions_kernel embed_tokens_kernel|256|0
	AdamW|adamw_kernel|256|0
	SGD with momentum|sgd_kernel|256|0
	sums of squares|sum_squares_kernel|256|0
	add, cast|add_kernel cast_kernel|256|0
	fold of n parts|fold_kernel|128|0
	forward|attention_kernel|128
	dk and dv|dkv_kernel|128
	dq|dq_kernel|128
	terms of queries|terms_kernel|128
'

# For awk: find_kernel() takes _Z16attention_kernelI6__halfLi64EEv12op_attention
# apart, into kernel, type and number (the last one among its parameters).
# shellcheck disable=SC2016
static_awk='
function find_kernel(mangled, length_, parts) {
	match(mangled, /_ZL?[0-9]+/)
	length_ = substr(mangled, RSTART + 2, RLENGTH - 2)
	sub(/L/, "", length_)
	kernel = substr(mangled, RSTART + RLENGTH, length_)
	parts = substr(mangled, RSTART + RLENGTH + length_)
	sub(/Ev.*/, "E", parts)
	number = type = ""
	while (match(parts, /Li[0-9]+E/)) {
		number = substr(parts, RSTART + 2, RLENGTH - 3)
		parts = substr(parts, 1, RSTART - 1) \
			substr(parts, RSTART + RLENGTH)
	}
	type = parts ~ /bfloat16/ ? "bf16" : parts ~ /half/ ? "fp16" : "fp32"
}
'

static_config()
{
	sed -n "s/^$1 = //p" "$build/config.mak"
}

# static_find TOOL: beside nvcc, on PATH, or in a package of PyPI
static_find()
{
	for static_at in "${static_nvcc%/*}/$1" "$(command -v "$1")" \
		"$scratch"/tools/nvidia/*/bin/"$1" \
		"${VIRTUAL_ENV-}"/lib/python3*/site-packages/nvidia/*/bin/"$1" \
		/usr/lib/python3*/*-packages/nvidia/*/bin/"$1" \
		/usr/local/lib/python3*/*-packages/nvidia/*/bin/"$1" \
		"$HOME"/.local/lib/python3*/site-packages/nvidia/*/bin/"$1"
	do
		if test -f "$static_at" && test -x "$static_at"; then
			echo "$static_at"
			return
		fi
	done
	return 1
}

# static_tools: sets where both tools are, which PyPI may have to give
static_tools()
{
	if ! static_find cuobjdump || ! static_find nvdisasm; then
		timeout 200 /usr/bin/python3 -m pip install --quiet --no-deps \
			--root-user-action ignore --target "$scratch/tools" \
			nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm 2>&1
	fi >/dev/null
	static_cuobjdump=$(static_find cuobjdump) &&
		static_nvdisasm=$(static_find nvdisasm)
}

# static_compile FILE: its kernels for all GPUs, as the module is built
static_compile()
{
	static_object=$scratch/static/$(basename "$1").o
	# shellcheck disable=SC2086 # a list of words
	"$static_nvcc" -std=c++17 -O3 $static_codes -Xptxas -v \
		-Werror all-warnings -Xcompiler -fPIC,-Wall,-Wextra -I"$build" \
		-I"$top/bin/ddp-train" -I"$top/lib/include" -I"$top/lib" \
		-c -o "$static_object" "$1" >"$static_object.log" 2>&1 ||
		{ cat "$static_object.log"; return 1; }
}

# static_registers: KERNEL TYPE NUMBER ARCH REGISTERS SPILLED of each instance
static_registers()
{
	cat "$scratch"/static/*.log | awk "$static_awk"'
	/Compiling entry function/ {
		find_kernel($0)
		arch = $NF
		gsub(/[^0-9a-z]|sm_/, "", arch)
	}
	/bytes stack frame/ { spilled = $5 + $9 }
	/Used [0-9]+ registers/ {
		sub(/.*Used /, "")
		print kernel, type, number == "" ? "-" : number, arch, $1 + 0,
			spilled
	}'
}

# static_exceed ARCH: instances that spill or have more registers than stated
static_exceed()
{
	{ echo "$static_limits"; echo; static_registers; } | awk -v arch="$1" '
	NF == 2 { limit[$1] = $2 }
	NF == 6 && $4 == arch {
		kernel = $1 "," $3 in limit ? $1 "," $3 : $1
		name = $1 "<" $2 ", " $3 ">"
		seen++
		if ($6 > 0)
			print name " keeps " $6 " bytes of registers in memory"
		if (!(kernel in limit))
			print name ": static.sh states no limit of registers"
		else if ($5 > limit[kernel])
			print name " has " $5 " registers, not at most " \
				limit[kernel]
	}
	END { if (!seen) print "no kernel for sm_" arch }'
}

# static_occupancy: where the tables of cuda/README.md do not say what ptxas
# does, or other blocks than fit a multiprocessor of an A100 and of an H100. It
# computes as cuda_occupancy.h of the toolkit does: a warp has its registers by
# 256, of 16,384 in its quarter; a block has its shared memory and 1 KB.
static_occupancy()
{
	{ echo "$static_rows"; static_registers
	  cat "$top/bin/ddp-train/cuda/README.md"; } | awk '
	function trim(text) {
		gsub(/^[ \t]+|[ \t]+$/, "", text)
		return text
	}
	function least(a, b) { return a < b ? a : b }
	function blocks(registers, threads, kb,   warps, fit) {
		warps = threads / 32
		registers = int((registers + 7) / 8) * 256
		fit = int(4 * int(16384 / registers) / warps)
		fit = least(fit, least(32, int(64 / warps)))
		return least(fit, int(164 / (kb + 1)))
	}
	function complain(text) { print name ": " text }
	function has(registers,   i, n, each) {
		n = split(kernels[name], each, " ")
		for (i = 1; i <= n; i++)
			if ((each[i], registers) in had)
				return 1
		return 0
	}
	function check_memory(   i, n, each, worst) {
		n = split($4, each, ",")
		for (i = 1; i <= n; i++) {
			if (!has(each[i] + 0))
				complain(each[i] + 0 " registers has none")
			if (each[i] + 0 > worst)
				worst = each[i] + 0
		}
		n = blocks(worst, threads[name], shared[name])
		n *= threads[name] / 32
		if (n != $5 + 0)
			complain(n " warps, not " $5 + 0)
	}
	function check_attention(   i, n, each, kb, fit, sizes, most) {
		split("16 32 64 128", sizes, " ")
		n = split($4, each, ",")
		split($5, kb, ",")
		split($6, fit, ",")
		for (i = 1; i <= n; i++) {
			most = top[kernels[name], n > 1 ? sizes[i] : ""]
			if (each[i] + 0 != most)
				complain(most " registers, not " each[i] + 0)
			most = blocks(each[i], threads[name], kb[i])
			if (most != fit[i] + 0)
				complain(most " blocks, not " fit[i] + 0)
		}
	}
	BEGIN { FS = "|" }
	/^\t/ {
		name = trim($1)
		kernels[name] = $2
		threads[name] = $3
		shared[name] = $4
	}
	/^[a-z_]*_kernel / {
		split($0, part, " ")
		if (part[4] > 90)
			next
		if (part[2] != "fp16")
			had[part[1], part[5] + 0] = 1
		for (i = 0; i < 2; i++)
			if (part[5] + 0 > top[part[1], i ? part[3] : ""])
				top[part[1], i ? part[3] : ""] = part[5] + 0
	}
	/^\|/ {
		name = trim($2)
		if (name == "kernel")
			table = $6 ~ /blocks/ ? "attention" : $5 ~ /warps/ ? \
				"memory" : ""
		else if (table == "" || name ~ /^-*$/)
			next
		else if (!(name in kernels))
			complain("no row of static.sh")
		else if (table == "memory")
			check_memory()
		else
			check_attention()
		rows += name in kernels
	}
	/^## / { table = "" }
	END { if (rows != 14) print "14 rows wanted, " rows + 0 " found" }'
}

# static_lack ARCH: instances without an instruction that they should have, or
# with one of local memory
static_lack()
{
	for static_object in "$scratch"/static/*.o; do
		PATH=${static_nvdisasm%/*}:$PATH "$static_cuobjdump" -sass \
			-arch "sm_$1" "$static_object"
	done >"$scratch/static/sass" || return
	{ echo "$static_instructions"; echo 'the code:'
	  cat "$scratch/static/sass"; } | awk "$static_awk"'
	function check(   key, words, count) {
		key = number >= 4 && kernel ",wide" in wanted ? \
			kernel ",wide" : kernel
		count = split(wanted[key], words, " ")
		for (i = 1; i <= count; i++) {
			if (type == "bf16")
				sub(/^HMMA.*/, "&.BF16", words[i])
			if (index(code, " " words[i]) == 0)
				print name " lacks " words[i]
		}
		if (code ~ / (LDL|STL)[. ]/)
			print name " keeps registers in memory"
	}
	/^the code:/ { table_ended = 1 }
	!table_ended {
		if (sub(/:$/, "", $1))
			key = $1
		for (i = 1; i <= NF; i++)
			if ($i != key)
				wanted[key] = wanted[key] " " $i
	}
	/Function : / {
		if (name)
			check()
		find_kernel($3)
		name = kernel "<" type ", " number ">"
		code = ""
		seen++
	}
	/^[ \t]+\/\*[0-9a-f]+\*\/ / {
		code = code " " ($2 ~ /^@/ ? $3 : $2) " "
	}
	END {
		if (name)
			check()
		if (!seen)
			print "no machine code"
	}'
}

# static_none NAME COMMAND...: a test that passes if COMMAND prints nothing
static_none()
{
	static_name=$1
	shift
	"$@" >"$scratch/why" 2>&1 && ! test -s "$scratch/why"
	result $? "$static_name"
}

test_static()
{
	static_nvcc=$(static_config NVCC)
	if ! test "$(static_config HAVE_CUDA)" = yes; then
		skip 'the kernels as compiled' 'configure found no CUDA toolkit'
		return
	fi
	mkdir "$scratch/static"
	static_known=$("$static_nvcc" --list-gpu-code)
	static_codes='' static_archs=''
	for static_arch in 80 90 100; do
		echo "$static_known" | grep -qx "sm_$static_arch" || continue
		static_archs="$static_archs $static_arch"
		static_codes="$static_codes -gencode=arch=compute_$static_arch"
		static_codes=$static_codes,code=sm_$static_arch
	done
	for static_file in "$top"/bin/ddp-train/cuda/*.cu; do
		check "no warning of $(basename "$static_file")" \
			static_compile "$static_file"
	done
	for static_arch in $static_archs; do
		static_none "registers on sm_$static_arch" \
			static_exceed "$static_arch"
	done
	static_none 'registers, warps and blocks as cuda/README.md has them' \
		static_occupancy
	if ! static_tools; then
		skip 'instructions' "the toolkit has no cuobjdump and \
nvdisasm, and PyPI cannot be reached here"
		return
	fi
	for static_arch in $static_archs; do
		static_none "instructions on sm_$static_arch" \
			static_lack "$static_arch"
	done
}
