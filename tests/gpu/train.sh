# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables and functions of run
# ddp-train on a GPU: its operators, and one rank beside one on the CPU.

# The Python whose PyTorch is used
python=${DDP_PYTHON:-python3}

# Twenty steps of tiny, and how far two devices' losses may be apart, as a part
# of the loss. In fp32 each sum of some hundred values is rounded in another
# order, to about 1e-7 of it; steps make that grow, on CPUs of two kinds to less
# than 1e-6, for which there is ten times that room. A 16-bit run's loss is
# within half a unit of the type's last place of an fp32 run's for 40 steps (see
# test_curves of tests/train), and so those of two devices within a whole one.
tiny='--data text --preset tiny --steps 20 --global-batch 8'
types='fp32 bf16 fp16'
apart_fp32=1e-5 apart_bf16=0.00390625 apart_fp16=0.00048828125

# operators_missing, train_missing: print why they cannot be tested here, if so
operators_missing()
{
	if test -z "$gpu"; then
		echo 'no GPU'
	elif test "$(config HAVE_CUDA)$(config HAVE_CUBLASLT)" != yesyes; then
		echo 'configure found not both of CUDA and cuBLASLt'
	fi
}

train_missing()
{
	if test "$(config HAVE_GCRYPT)" != yes ||
		! grep -Eq '^HAVE_(ONEDNN|BLAS) = yes' "$build/config.mak"
	then
		echo 'configure found no libgcrypt, or no oneDNN and no BLAS'
	elif test -n "$prebuilt" && test -n "$(lacks obj/bin/ddp-train)"; then
		echo "this machine lacks $(lacks obj/bin/ddp-train)"
	fi
}

# library_folders: where CUDA's libraries may be: the toolkit's, PyTorch's
library_folders()
{
	config CUDA_LIBS | tr ' ' '\n' | sed -n 's/^-L//p'
	nvcc=$(config NVCC)
	for folder in "${nvcc%/bin/*}/lib64" /usr/local/cuda/lib64 \
		$("$python" -c 'import nvidia; print(*(
			path + "/*/lib" for path in nvidia.__path__))' \
			2>/dev/null)
	do
		echo "$folder"
	done
}

# find_libraries FILE: add to LD_LIBRARY_PATH where those are that it lacks
find_libraries()
{
	for lacking in $(lacks "$1" | tr -d ,); do
		for folder in $(library_folders); do
			test -e "$folder/$lacking" || continue
			LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$(
				)$LD_LIBRARY_PATH}
			export LD_LIBRARY_PATH
			break
		done
	done
	lacking=$(lacks "$1")
	test -n "$lacking" || return 0
	echo "${1##*/} needs $lacking, in no folder where the loader looks:" \
		"export LD_LIBRARY_PATH=FOLDER, that with CUDA's libraries"
	return 1
}

# find_opened: the same for what is opened at run time
find_opened()
{
	for opened in libnccl.so.2 libcudnn.so.9; do
		! ldconfig -p 2>/dev/null | grep -q "^.$opened " || continue
		for folder in $(library_folders); do
			test -e "$folder/$opened" || continue
			LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(
				)$folder
			export LD_LIBRARY_PATH
			break
		done
	done
}

# What is built for them, and what ddp-train learns: our own sources
module=obj/bin/ddp_cuda.so
train=$build/obj/bin/ddp-train
operators=$build/obj/tests/train/operators
operators_build()
{
	made $module obj/tests/train/operators &&
		find_libraries $module
}

train_build()
{
	made obj/bin/ddp-train && cat "$top"/bin/ddp-train/*.[ch] \
		"$top"/bin/ddp-train/*/*.[ch] >text
}

# operators_refused: what the module says of a GPU that is too old for it
operators_refused()
{
	timeout -k 5 "$(limit 300)" "$operators" "$build/$module" spaces 2>/dev/null |
		sed -n 's/^Bail out! .*: \(GPU .* or later\): choose .*/\1/p'
}

# can_operate NAME, can_train NAME: skip the test, and fail, where the operators
# or ddp-train cannot be tested. The first call builds what is needed.
operators_built=unknown train_built=unknown gpu_too_old=
can_operate()
{
	can_why=$(operators_missing)
	if test -z "$can_why" && test $operators_built = unknown; then
		builds "ddp-train's module" operators_build
		operators_built=$built
		gpu_too_old=$(operators_refused)
	fi
	if test -z "$can_why" && test $operators_built = no; then
		can_why='the module could not be built'
	fi
	can_why=${can_why:-$gpu_too_old}
	test -n "$can_why" || return 0
	omit "$1" "$can_why"
	return 1
}

can_train()
{
	can_operate "$1" || return
	can_why=$(train_missing)
	if test -z "$can_why" && test $train_built = unknown; then
		builds ddp-train train_build
		train_built=$built
	fi
	if test -z "$can_why" && test $train_built = no; then
		can_why='ddp-train could not be built'
	fi
	test -n "$can_why" || return 0
	omit "$1" "$can_why"
	return 1
}

# count_cases TYPE ok|"not ok": of operators in that type, in the file tap
count_cases()
{
	awk -v type="$1" -v how="$2" '
		index($0, how " ") != 1 { next }
		{ had = "fp32" }
		/, bf16$/ { had = "bf16" }
		/, fp16$/ { had = "fp16" }
		had == type { n++ }
		END { print n + 0 }' tap
}

# show_cases: a result for each case that failed, with what it says
show_cases()
{
	rm -f failed.*
	awk '/^#/ { notes = notes $0 "\n"; next }
		/^not ok / {
			sub(/^not ok [0-9]* - /, "")
			printf "%s\n%s", $0, notes >("failed." ++n)
		}
		{ notes = "" }' tap
	for file in failed.*; do
		test -e "$file" || return 0
		sed 1d "$file" >why
		result 1 "operators: $(head -n 1 "$file")"
	done
}

gpu_operators()
{
	can_operate operators || return 0
	call timeout -k 5 "$(limit 900)" "$operators" "$build/$module"
	mv out tap
	show_cases
	planned=$(sed -n 's/^1\.\.//p' tap)
	counted=$(grep -c '^ok \|^not ok ' tap)
	for type in $types; do
		good=$(count_cases $type ok)
		bad=$(count_cases $type 'not ok')
		: >why
		test "$good" -gt 0 && test "$bad" -eq 0
		result $? "operators: $good of $((good + bad)) cases in $type"
	done
	tail -n 3 tap >why
	test "$status" -eq 0 && test "$planned" = "$counted"
	result $? "operators: all ${planned:-of the} cases were computed"
	sed -n 's/^# worst/# operators: worst/p' tap
}

# train NAME ARGUMENT...: a run, whose log is NAME.log
train()
{
	train_name=$1
	shift
	rm -f "$train_name.log"
	call env DDP_MODULE_DIR="$build/obj/bin" timeout -k 5 "$(limit 400)" "$train" \
		"$@" --log "$train_name.log"
}

# trained STEPS WORDS: the last run did; WORDS are in its output
trained()
{
	echo "exit status $status, and wanted: $2" >why
	test "$status" -eq 0 && grep -q -- "$2" out &&
		grep -q "^ *$1/$1 " out
}

losses()
{
	sed -n 's/.*"loss":\([^,]*\),.*/\1/p' "$1.log"
}

# bits NAME: all that a log has but times
bits()
{
	sed 's/,"seconds":.*//' "$1.log" 2>why
}

# close NAME OTHER COUNT MOST: two logs have COUNT losses, and each pair is at
# most MOST of the loss apart; sets worst to how far
close()
{
	losses "$1" >one.losses
	losses "$2" | paste one.losses - | awk -v most="$4" -v count="$3" '
		NF != 2 { bad = 1; next }
		{ apart = ($1 - $2) / $1; apart = apart < 0 ? -apart : apart }
		!(apart <= most) { bad = 1 }
		apart > worst { worst = apart }
		{ pairs++ }
		END { printf "%.1e of at most %.1e, in %d steps\n", worst,
				most, pairs
			exit bad || pairs != count }' >why
	close_status=$?
	worst=$(cat why)
	return $close_status
}

# same NAME OTHER: two logs have the same 20 steps but for times
same()
{
	bits "$1" >one.bits
	bits "$2" >two.bits
	diff one.bits two.bits >why && test "$(wc -l <one.bits)" -eq 20
}

# rank_type TYPE: beside the CPU, and again
rank_type()
{
	eval "most=\$apart_$1"
	# shellcheck disable=SC2086 # several arguments
	train cpu $tiny --dtype "$1" --device cpu
	# shellcheck disable=SC2086
	train gpu $tiny --dtype "$1" --device cuda
	trained 20 '^backend self, device cuda ('
	result $? "a rank trains in $1"
	close cpu gpu 20 "$most"
	result $? "a rank in $1 has the CPU's losses: apart by $worst"
	# shellcheck disable=SC2086
	train again $tiny --dtype "$1"
	same gpu again
	result $? "a rank in $1 by --device auto has the same bits"
	# shellcheck disable=SC2086
	train recompute $tiny --dtype "$1" --recompute on
	case $1 in
	fp32)	same gpu recompute
		result $? "a rank in $1 with --recompute on has the same bits"
		;;
	*)	# cuBLASLt's GELU, where it is used, is not computed again
		close gpu recompute 20 "$most"
		result $? "a rank in $1 with --recompute on: apart by $worst"
		;;
	esac
}

# rank_cudnn TYPE: attention by cuDNN, beside the last run by our own kernels
rank_cudnn()
{
	if test "$(config HAVE_CUDNN)" != yes; then
		omit "attention by cuDNN in $1" 'configure found no cuDNN'
		return
	fi
	# shellcheck disable=SC2086 # several arguments
	train cudnn $tiny --dtype "$1" --attention cudnn
	if grep -q ': no cuDNN: \|, and needed is \|no deterministic attention' err
	then
		omit "attention by cuDNN in $1" "$(sed 's/^.*cudnn: //' err)"
		return
	fi
	trained 20 'attention by cuDNN '
	result $? "attention by $(sed -n 's/.*attention by //p' out) in $1"
	close gpu cudnn 20 "$most"
	result $? "attention by cuDNN in $1 has our own losses: apart by $worst"
	# shellcheck disable=SC2086
	train again $tiny --dtype "$1" --attention cudnn
	same cudnn again
	result $? "attention by cuDNN in $1 has the same bits again"
}

# A checkpoint of the GPU goes on on the CPU, and that on the GPU again. On the
# GPU alone, a run that was saved has the bits of one that was not.
rank_resume()
{
	# shellcheck disable=SC2086 # several arguments
	set -- $tiny --schedule constant --warmup 0
	train cpu "$@" --device cpu
	train gpu "$@" --device cuda
	rm -rf saved
	train mixed "$@" --steps 7 --device cuda --checkpoint saved
	rm -rf alone
	cp -r saved alone
	for device in cpu cuda; do
		case $device in cpu) steps=14 ;; *) steps=20 ;; esac
		call env DDP_MODULE_DIR="$build/obj/bin" timeout -k 5 "$(limit 400)" \
			"$train" --data text --steps $steps --device $device \
			--checkpoint saved --resume --log mixed.log
		trained $steps "^resumed from saved/step-"
		result $? "$device goes on where the other one was"
	done
	close cpu mixed 20 $apart_fp32
	result $? "GPU, CPU and GPU in turn lose as one CPU: apart by $worst"
	mv mixed.log other.log
	# The log of a run that goes on is that of its begin, made longer.
	sed 7q other.log >mixed.log
	call env DDP_MODULE_DIR="$build/obj/bin" timeout -k 5 "$(limit 400)" "$train" \
		--data text --steps 20 --device cuda --checkpoint alone \
		--resume --log mixed.log
	same gpu mixed
	result $? 'a GPU that goes on has the bits of one that never stopped'
}

# By bytes of C a model learns in its first steps which of them are frequent:
# that alone takes the loss from log 256, 5.5, to below 4.
rank_larger()
{
	for type in $types; do
		train larger --data text --preset 10M --steps 20 \
			--dtype "$type" --device cuda
		trained 20 'device cuda ('
		result $? "20 steps of 10M in $type"
		losses larger >larger.losses
		awk 'NR == 1 { first = $1 } { last = $1 }
			END { print "the first loss", first, "the last", last
				exit !(first > 5.3 && first < 5.8 &&
					last > 0 && last < 4) }' \
			larger.losses >why
		result $? "the loss of 10M in $type falls: $(cat why)"
	done
}

# TF32 keeps fp16's digits of what is multiplied, and stochastic rounding those
# of bf16 of each parameter.
rank_rounding()
{
	# shellcheck disable=SC2086 # several arguments
	train gpu $tiny --device cuda
	# shellcheck disable=SC2086
	train tf32 $tiny --device cuda --tf32 on
	trained 20 '^computing on .*, fp32 products by TF32$'
	result $? 'a rank trains by TF32'
	close gpu tf32 20 $apart_fp16
	result $? "a rank by TF32 has near losses: apart by $worst"
	# shellcheck disable=SC2086
	set -- $tiny --dtype bf16 --rounding stochastic
	train cpu "$@" --device cpu
	train gpu "$@" --device cuda
	trained 20 '^backend self, device cuda ('
	result $? 'a rank trains with stochastic rounding'
	close cpu gpu 20 $apart_bf16
	result $? "stochastic rounding has the CPU's losses: apart by $worst"
	train again "$@" --device cuda
	same gpu again
	result $? 'stochastic rounding has the same bits again'
}

# pairs: a token file of our sources: pairs of bytes are tokens below 32768
pairs()
{
	LC_ALL=C tr -d '\200-\377' <text >pairs.text
	pairs=$(($(wc -c <pairs.text) / 2))
	printf '\210\330\064\001\001\000\000\000'
	for shift in 0 8 16 24; do
		# shellcheck disable=SC2059 # an octal number
		printf "\\$(printf %03o $((pairs >> shift & 255)))"
	done
	head -c 1012 /dev/zero
	head -c $((pairs * 2)) pairs.text
}

# GPT-2's vocabulary, an odd number, and its context: 4096 rows of logits, which
# are two blocks of the classifier
rank_wide()
{
	pairs >tokens
	for type in $types; do
		eval "most=\$apart_$type"
		set -- --tokens tokens --vocab 50257 --context 1024 --layers 2 \
			--heads 2 --width 128 --batch 4 --steps 3 --warmup 0 \
			--dtype "$type"
		train cpu "$@" --device cpu
		train gpu "$@" --device cuda
		trained 3 '^backend self, device cuda ('
		result $? "a vocabulary of 50257 and a context of 1024 in $type"
		close cpu gpu 3 "$most"
		result $? "50257 words lose as the CPU: $type, apart by $worst"
	done
}

gpu_rank()
{
	can_train 'one rank' || return 0
	for type in $types; do
		rank_type "$type"
		test "$type" = fp32 || rank_cudnn "$type"
	done
	rank_rounding
	rank_wide
	rank_resume
	rank_larger
}
