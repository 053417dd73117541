# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of ./run
# Attention by cuDNN: what the real one says of our graphs without a GPU, and
# runs over a fake one.

# What ddp-train learns, and the files of fakes; called once
cudnn_begin()
{
	train=$build/obj/bin/ddp-train
	text=/usr/share/common-licenses/GPL-3
	mkdir cudnn
	ranks_library cudnn/libcuda.so.1 "$top/tests/fakes/fake_cuda.c"
	# shellcheck disable=SC2046 # several flags
	ranks_library cudnn/libcudnn.so.9 -std=gnu11 $(
		config CUDA_CFLAGS) $(config CUDNN_CFLAGS) \
		"$top/tests/fakes/fake_cudnn.c" -lm
}

# cudnn_run FAKE ARGUMENT...: on an emulated GPU
cudnn_run()
{
	cudnn_fake=$1
	shift
	call env FAKE_CUDNN="$cudnn_fake" LD_LIBRARY_PATH="$PWD/cudnn" \
		DDP_CUDNN_LIBRARY="$cudnn_named" \
		DDP_MODULE_DIR="$build/obj/tests/cuda_on_cpu/$module" \
		timeout 300 "$train" --data "$text" --context 33 --batch 4 "$@"
}

# cudnn_trains TYPE: ten steps, and as by our own kernels but for rounding
cudnn_trains()
{
	for how in own cudnn; do
		cudnn_run '' --steps 10 --dtype "$1" --attention $how \
			--log "$1.$how" --eval-every 10 --sample 3 \
			--checkpoint "saved.$1.$how"
		ranks_losses "$1.$how" >"$1.$how.losses"
	done
	equal "attention by cuDNN in $1" '0, cuDNN 9.19.0, 0 lines of stderr' \
		"$status, $(sed -n 's/.*attention by //p' out), $(
		wc -l <err) lines of stderr"
	# shellcheck disable=SC2016 # awk's own variables
	check "losses by cuDNN in $1 are near, and others" awk '
		NR == FNR { own[NR] = $1; next }
		{ n++; d = $1 / own[FNR] - 1; d = d < 0 ? -d : d }
		d > most { most = d }
		END { print "worst relative difference " most " of " n
			exit !(n == 10 && most > 1e-8 && most < 5e-4) }' \
		"$1.own.losses" "$1.cudnn.losses"
}

# cudnn_refuses FAKE WORDS: in one line
cudnn_refuses()
{
	cudnn_words=$2
	cudnn_run "$1" --steps 1 --dtype bf16 --attention cudnn
	equal "$cudnn_words" "1 ddp-train: --attention cudnn: $cudnn_words" \
		"$status $(sed 's/in sequence .* of cuDNN/in ... of cuDNN/
			s/differs by [0-9.]*/differs by X/' err)"
}

cudnn_refusals()
{
	none='no deterministic attention'
	shape='2 heads of 32 values, --context 33 and bf16 on this GPU'
	cudnn_refuses old 'libcudnn.so.9 is cuDNN 9.7.1, and needed is 9.18'`
		`' or a later one of 9: install that, or choose --attention own'
	cudnn_refuses broken 'cuDNN 9.19.0 does not start on this GPU:'`
		`' CUDNN_STATUS_NOT_INITIALIZED; is it built for this'`
		`" driver's CUDA? Choose --attention own"
	cudnn_refuses atomic "cuDNN 9.19.0 has $none for $shape:"`
		`' CUDNN_STATUS_NOT_SUPPORTED; choose --attention own'
	cudnn_refuses forward "cuDNN 9.19.0 has $none backward for $shape:"`
		`' CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN; choose'`
		`' --attention own'
	cudnn_refuses wrong 'in ... of cuDNN 9.19.0 differs by X of its size'`
		`" from that of ddp-train's own kernels, and rounding to bf16"`
		`' explains 0.014: choose --attention own'
	cudnn_refuses loose 'the gradient of k of cuDNN 9.19.0 has other bits'`
		`' when it is computed again: choose --attention own'
	cudnn_named=/none.so
	cudnn_refuses '' 'no cuDNN: /none.so: cannot open shared object file:'`
		`' No such file or directory; set DDP_CUDNN_LIBRARY to the'`
		`' right path, or choose --attention own'
	cudnn_named=libm.so.6
	cudnn_refuses '' 'libm.so.6 is no cuDNN of release 9: it has no'`
		`' cudnnGetVersion; set DDP_CUDNN_LIBRARY to the right path,'`
		`' or choose --attention own'
	cudnn_named=
}

# 16 sequences of 512 with 2 heads, of whose scores 16 bit are 16 MiB
cudnn_plans()
{
	for how in own cudnn; do
		cudnn_run '' --plan --context 512 --batch 16 --dtype bf16 \
			--attention $how
		sed -n 's/^ *activations and workspace *\([0-9]*\).*/\1/p' out
	done >planned
	equal 'a plan counts all scores' 'yes' "$(paste -s planned | awk '
		{ more = $2 - $1
			print (more >= 15 && more <= 17 ? "yes" : $0) }')"
}

# cudnn_supports: the real library, and kernels that it compiles
cudnn_supports()
{
	library=${DDP_CUDNN_LIBRARY-}
	for dir in $(config CUDNN_LIBS) $(config CUDA_LIBS); do
		dir=${dir#-L}
		test -n "$library" || ! test -e "$dir/libcudnn.so.9" ||
			library=$dir/libcudnn.so.9
	done
	mkdir loader
	ranks_library loader/libcuda.so.1 "$top/tests/fakes/fake_loader.c"
	built cuda/cudnn
	call env LD_LIBRARY_PATH="$PWD/loader" \
		DDP_CUDNN_LIBRARY="$library" timeout 300 \
		"$build/obj/tests/cuda/cudnn"
	if grep -q '^Bail out! .*: no cuDNN: \|^Bail out! .*, and needed is ' out
	then
		skip 'the real cuDNN supports our graphs' \
			'there is no libcudnn that will do: name one by DDP_CUDNN_LIBRARY'
		return
	fi
	grep '^not ok\|^# CUDNN\|^Bail' out >why
	equal "the real cuDNN supports our graphs ($(sed -n 's/^# cu/cu/p' \
		out))" '0, 32 of 1..32' \
		"$status, $(grep -c '^ok ' out) of $(grep '^1\.\.' out)"
}

test_cudnn()
{
	if test "$(config HAVE_CUDNN)" != yes; then
		skip "cuDNN's attention" 'configure found no cuDNN'
		return
	fi
	cudnn_supports
	if ! test -x "$build/obj/bin/ddp-train"; then
		skip 'training by cuDNN' \
			'ddp-train was not built: no oneDNN, no BLAS'
		return
	fi
	built cuda_on_cpu/fast/ddp_cuda.so cuda_on_cpu/checked/ddp_cuda.so
	cudnn_begin
	cudnn_named='' module=fast
	cudnn_plans
	cudnn_trains bf16
	cudnn_trains fp16
	call timeout 60 "$train" --data "$text" --checkpoint saved.bf16.cudnn \
		--resume --device cpu --steps 11
	equal 'a CPU goes on without it' '0 --attention is own, was cudnn' \
		"$status $(grep '^--attention' out)"
	cudnn_refusals
	module=checked
	export EMU_ORDER=lazy
	cudnn_run '' --steps 2 --dtype bf16 --attention cudnn
	unset EMU_ORDER
	equal 'cuDNN passes with all access checked, work as late as can be' \
		'0, 0 lines of stderr' "$status, $(wc -l <err) lines of stderr"
}
