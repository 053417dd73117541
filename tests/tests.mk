# SPDX-License-Identifier: BSD-3-Clause
# unit: tables for the core, one Criterion program. spank: a program that plays
# Slurm to the real plugin. fuzz: a libFuzzer program for each source, with what
# it fuzzes compiled under sanitizers. hostnames: programs that print what
# scontrol should. bench: what tests/bench/run calls, built for it alone. boot:
# ranks, for tests/boot/run alone; threads has all of libddp anew under its
# sanitizer.
UNIT_SRC := $(sort $(wildcard $(srcdir)/tests/unit/*.c))
ifneq ($(HAVE_HWLOC),yes)
UNIT_SRC := $(filter-out %/test_topo.c,$(UNIT_SRC))
endif
ifneq ($(HAVE_GCRYPT),yes)
UNIT_SRC := $(filter-out $(patsubst %.c,$(srcdir)/tests/unit/test_%.c, \
	$(notdir $(WIRE_SRC) $(PURE_SRC))),$(UNIT_SRC))
endif
ifeq ($(HAVE_PMIX),yes)
DDP_LIB := obj/lib/libddp.a
else
UNIT_SRC := $(filter-out $(patsubst %.c,$(srcdir)/tests/unit/test_%.c, \
	$(notdir $(DDP_SRC))),$(UNIT_SRC))
endif
# tests/unit/hooks.c and test_topo.c have functions in place of these.
UNIT_WRAP := malloc calloc realloc free setrlimit pthread_cond_wait \
	pthread_cond_timedwait hwloc_topology_load ddp_topo_has_gpu
UNIT_OBJ := $(UNIT_SRC:$(srcdir)/%.c=obj/%.o)
SPANK_SRC := $(sort $(wildcard $(srcdir)/tests/spank/*.c))
SPANK_OBJ := $(SPANK_SRC:$(srcdir)/%.c=obj/%.o)
obj/tests/unit/%.o: PART_CFLAGS = $(CRITERION_CFLAGS) $(HWLOC_CFLAGS) \
	-I$(srcdir)/bin/ddp-info -I$(srcdir)/plugin
# arm64: the same tables, run by a program of ours.
obj/tests/arm64/%.o: PART_CFLAGS = $(CRITERION_CFLAGS)
obj/tests/arm64/unit: obj/tests/arm64/direct.o
obj/tests/unit/unit obj/tests/arm64/unit: $(UNIT_OBJ) $(INFO_CHECK) \
		$(TOPO_LIB) $(PURE_LIB) $(WIRE_LIB) $(DDP_LIB) $(TOOL_LIB) \
		obj/plugin/node/node.o
	$(call quiet,LD) $(link) $(UNIT_WRAP:%=-Wl,--wrap=%) $(CRITERION_LIBS) $(HWLOC_LIBS) \
		$(GCRYPT_LIBS) $(PMIX_LIBS) -ldl -pthread $(LIBS)

obj/tests/spank/%.o: PART_CFLAGS = $(SLURM_CFLAGS) -DDDP_BINDIR='"$(bindir)"'
obj/tests/spank/spank_host: $(SPANK_OBJ) obj/tests/fakes/idle_threads.o \
		obj/lib/libddp_core.a
	$(call quiet,LD) $(link) -rdynamic -ldl -pthread $(LIBS)

# slurmstepd of one node, with real tasks, over the same fake of spank.h
obj/tests/agent/%.o: PART_CFLAGS = $(SLURM_CFLAGS)
obj/tests/agent/step: obj/tests/agent/step.o obj/tests/spank/fake_spank.o \
		obj/tests/spank/hooks.o
	$(call quiet,LD) $(link) -rdynamic -ldl $(LIBS)

# A fake srun and fake agents, with the real supervisor in the same program: by a
# fast clock of its own, which is linked first, and by the machine's
obj/tests/supervisor/%.o: PART_CFLAGS = -I$(srcdir)/plugin
FAKE_STEP := obj/tests/supervisor/fake_step.o \
	$(filter obj/plugin/supervisor/%,$(PLUGIN_OBJ)) \
	obj/plugin/slurm/scontrol.o $(PURE_LIB) $(WIRE_LIB) \
	obj/lib/libddp_core.a
obj/tests/supervisor/fake_step_real: $(FAKE_STEP)
	$(call quiet,LD) $(link) $(GCRYPT_LIBS) -pthread $(LIBS)
obj/tests/supervisor/fake_step: obj/tests/supervisor/clock.o $(FAKE_STEP)
	$(call quiet,LD) $(link) $(GCRYPT_LIBS) -pthread $(LIBS)

# ddp-info, linked with the leak sanitizer
obj/tests/golden/ddp-info_leaks: $(INFO_OBJ) $(INFO_LIB) \
		obj/lib/libddp_topo.a $(TOOL_LIB)
	$(call quiet,LD) $(link) -fsanitize=leak $(HWLOC_LIBS) $(PMIX_LIBS) \
		-ldl -pthread $(LIBS)

# An srun with threads of its own: preloaded, or part of a fake one
obj/tests/fakes/%.o: PART_CFLAGS = -fPIC
obj/tests/fakes/idle_threads.so: obj/tests/fakes/idle_threads.o
	$(call quiet,LD) $(link) -shared -pthread $(LIBS)

obj/tests/hostnames/hostlist_print: obj/tests/hostnames/hostlist_print.o \
		obj/lib/libddp_core.a
	$(call quiet,LD) $(link) $(LIBS)

obj/tests/hostnames/hosts_print: obj/tests/hostnames/hosts_print.o \
		obj/plugin/srun/cli.o obj/lib/libddp_core.a
	$(call quiet,LD) $(link) -ldl $(LIBS)

obj/tests/bench/core: obj/tests/bench/core.o obj/tests/unit/machines.o \
		obj/lib/libddp_core.a
	$(call quiet,LD) $(link) $(LIBS)

obj/tests/bench/pairs: obj/tests/bench/pairs.o
	$(call quiet,LD) $(link) $(LIBS)

obj/tests/bench/nccl_loop.o: PART_CFLAGS = $(CUDA_CFLAGS:-I%=-isystem %) \
	$(NCCL_CFLAGS)
obj/tests/bench/nccl_loop: obj/tests/bench/nccl_loop.o
	$(call quiet,LD) $(link) $(NCCL_LIBS) $(filter-out -lcudart, \
		$(CUDA_LIBS)) $(patsubst %,%/stubs,$(filter -L%, \
		$(CUDA_LIBS))) -lcuda $(LIBS)

obj/tests/bench/exchange.o: PART_CFLAGS = $(PMIX_CFLAGS)
obj/tests/bench/exchange: obj/tests/bench/exchange.o obj/lib/libddp.a \
		obj/lib/libddp_core.a
	$(call quiet,LD) $(link) $(PMIX_LIBS) -ldl -pthread $(LIBS)

obj/tests/bench/stopwatch.o: PART_CFLAGS = -fPIC $(SLURM_CFLAGS)
obj/tests/bench/stopwatch.so: obj/tests/bench/stopwatch.o
	$(call quiet,LD) $(link) -shared $(LIBS)

obj/tests/boot/job: obj/tests/boot/job.o obj/lib/libddp.a \
		obj/lib/libddp_core.a
	$(call quiet,LD) $(link) $(PMIX_LIBS) -ldl -pthread $(LIBS)

obj/tests/boot/job_mpi.o: PART_CFLAGS = $(MPI_CFLAGS) $(PMIX_CFLAGS) \
	-DDDP_TEST_MPI
obj/tests/boot/job_mpi.o: $(srcdir)/tests/boot/job.c config.mak
	$(call quiet,CC) $(CC) $(compile) $(CFLAGS)
obj/tests/boot/job_mpi: obj/tests/boot/job_mpi.o obj/lib/libddp.a \
		obj/lib/libddp_core.a
	$(call quiet,LD) $(link) $(PMIX_LIBS) $(MPI_LIBS) -ldl -pthread $(LIBS)

TSAN_OBJ := $(patsubst $(srcdir)/%.c,obj/tsan/%.o,$(DDP_SRC) $(CORE_SRC) \
	$(srcdir)/tests/boot/threads.c)
obj/tsan/%.o: PART_CFLAGS = -fsanitize=thread $(PMIX_CFLAGS)
obj/tsan/%.o: $(srcdir)/%.c config.mak
	$(call quiet,CC) $(CC) $(compile) $(CFLAGS)
obj/tests/boot/threads: $(TSAN_OBJ)
	$(call quiet,LD) $(link) -fsanitize=thread $(PMIX_LIBS) -ldl -pthread \
		$(LIBS)

# The trainer's parts, each in a program of its own, for tests/train/run.
TRAIN_PARTS := $(filter-out %/main.o,$(TRAIN_OBJ))
obj/tests/train/%.o obj/tests/bench/allreduce.o \
		obj/tests/bench/checkpoint.o: PART_CFLAGS = \
	-I$(TRAIN_DIR) $(MPI_CFLAGS)
obj/tests/train/%: obj/tests/train/%.o $(TRAIN_PARTS) $(TRAIN_LIB)
	$(call quiet,LD) $(link) $(MATMUL_LIBS) $(TRAIN_LIBS) $(LIBS)
# abi has tables of its own.
obj/tests/train/abi: obj/tests/train/abi.o $(filter-out %/one_process.o \
		obj/bin/train/cpu/%,$(TRAIN_PARTS)) $(TRAIN_LIB)
	$(call quiet,LD) $(link) $(TRAIN_LIBS) $(LIBS)
# The operators need little of the trainer, and for a module no CPU's.
OPERATORS := $(patsubst $(srcdir)/%.c,obj/%.o, \
	$(sort $(wildcard $(srcdir)/tests/train/operators*.c))) \
	$(filter %/sum_tree.o,$(TRAIN_PARTS))
ifneq ($(HAVE_PRODUCTS),)
OPERATORS += $(filter obj/bin/train/cpu/%,$(TRAIN_PARTS))
endif
obj/tests/train/operators: $(OPERATORS) obj/lib/libddp_core.a
	$(call quiet,LD) $(link) $(MATMUL_LIBS) -lm -ldl -pthread $(LIBS)
obj/tests/train/parity: obj/tests/train/parity_test.o
obj/tests/bench/allreduce obj/tests/bench/checkpoint: \
		obj/tests/bench/%: obj/tests/bench/%.o $(TRAIN_PARTS) \
		$(TRAIN_LIB)
	$(call quiet,LD) $(link) $(MATMUL_LIBS) $(TRAIN_LIBS) $(LIBS)

# A fake ddp_cuda.so, of the CPU's operators; what is in it is compiled anew, for
# a shared library.
HOST_MODULE := $(srcdir)/tests/train/host_module.c $(TRAIN_DIR)/step/sum_tree.c \
	$(sort $(wildcard $(TRAIN_DIR)/cpu/*.c))
HOST_MODULE := $(HOST_MODULE:$(srcdir)/%.c=obj/host_module/%.o)
obj/host_module/%.o: PART_CFLAGS = -fPIC $(TRAIN_CFLAGS) $(MATMUL_CFLAGS)
obj/host_module/%.o: $(srcdir)/%.c config.mak
	$(call quiet,CC) $(CC) $(compile) $(CFLAGS)
obj/tests/train/host/ddp_cuda.so: $(HOST_MODULE) obj/lib/libddp_core.a
	$(call quiet,LD) $(link) -shared -Wl,-Bsymbolic $(MATMUL_LIBS) -lm \
		-pthread $(LIBS)

# Programs of tests/gpu, which find libddp also where the build directory is
# moved to; and all that tests/gpu/run needs on a machine that builds nothing.
obj/tests/gpu/%.o obj/contrib/examples/%.o: PART_CFLAGS = -std=gnu11 \
	$(CUDA_CFLAGS:-I%=-isystem %) $(NCCL_CFLAGS)
obj/tests/gpu/ranks: obj/tests/gpu/ranks.o
obj/tests/gpu/hello_allreduce: obj/contrib/examples/hello_allreduce.o
obj/tests/gpu/ranks obj/tests/gpu/hello_allreduce: obj/lib/libddp.so
	$(call quiet,LD) $(link) -Lobj/lib -lddp \
		-Wl,-rpath,'$$ORIGIN/../../lib' $(NCCL_LIBS) $(CUDA_LIBS) \
		$(LIBS)
obj/tests/gpu/versions: obj/tests/gpu/versions.o
	$(call quiet,LD) $(link) $(NCCL_LIBS) $(CUDA_LIBS) $(CUBLASLT_LIBS) \
		$(LIBS)
GPU_TESTS := obj/bin/ddp_cuda.so obj/tests/train/operators
GPU_TESTS += $(if $(filter obj/bin/ddp-train,$(ALL)),obj/bin/ddp-train \
	obj/tests/train/parity)
GPU_TESTS += $(filter obj/plugin/spank_ddp.so obj/bin/ddp-info,$(ALL))
ifeq ($(HAVE_PMIX)$(HAVE_NCCL),yesyes)
GPU_TESTS += obj/tests/gpu/ranks obj/tests/gpu/hello_allreduce \
	obj/tests/gpu/versions obj/bin/ddp-bench obj/tests/bench/nccl_loop
endif
.PHONY: gpu-tests
gpu-tests: $(GPU_TESTS)

# The CUDA device over an emulated CUDA, for tests/cuda/run: fast, and checked,
# in which kernels tell the emulator of each access.
EMU_DIR := $(srcdir)/tests/cuda_on_cpu
EMU_SRC := $(sort $(wildcard $(EMU_DIR)/*.c $(EMU_DIR)/*.cc))
EMU_OBJ := $(addsuffix .o,$(basename $(EMU_SRC:$(srcdir)/%=obj/%)))
EMU_PARTS := $(addsuffix .o,$(basename $(notdir \
	$(CUDA_SRC) $(CUDA_KERNELS))))
EMU_INCLUDE = -I. -I$(TRAIN_DIR) -I$(TRAIN_DIR)/cuda -I$(EMU_DIR) \
	-I$(srcdir)/lib/include -I$(srcdir)/lib \
	$(CUDA_CFLAGS:-I%=-isystem %) $(CUDNN_CFLAGS:-I%=-isystem %)
# With little memory, the classifier of a small case has several blocks too.
EMU_CFLAGS = -fno-strict-aliasing -fPIC -fvisibility=hidden \
	-ffp-contract=off -g -Wall -Wextra $(EMU_INCLUDE) \
	-DCLASSIFIER_BYTES=131072 -MMD -MP -c -o $@
EMU_CXX = $(CXX) -std=c++17 $(EMU_CFLAGS) -Wno-unknown-pragmas
EMU_CHECK = -O1 -fsanitize=thread,alignment -fno-threadsafe-statics
obj/tests/cuda_on_cpu/%.o: $(EMU_DIR)/%.cc config.mak
	$(call quiet,CXX) $(EMU_CXX) -O2 $<
obj/tests/cuda_on_cpu/%.o: $(EMU_DIR)/%.c config.mak
	$(call quiet,CC) $(CC) -std=c11 $(EMU_CFLAGS) -O3 $<
obj/tests/cuda_on_cpu/fast/%.o: $(TRAIN_DIR)/cuda/%.c config.mak
	$(call quiet,CC) $(CC) -std=c11 $(EMU_CFLAGS) -O2 $<
obj/tests/cuda_on_cpu/checked/%.o: $(TRAIN_DIR)/cuda/%.c config.mak
	$(call quiet,CC) $(CC) -std=c11 $(EMU_CFLAGS) -O2 $<
obj/tests/cuda_on_cpu/fast/%.o: $(TRAIN_DIR)/cuda/%.cu config.mak
	$(call quiet,CXX) $(EMU_CXX) -O2 -x c++ $<
obj/tests/cuda_on_cpu/checked/%.o: $(TRAIN_DIR)/cuda/%.cu config.mak
	$(call quiet,CXX) $(EMU_CXX) $(EMU_CHECK) -x c++ $<
EMU_MAP := $(EMU_DIR)/module.map
EMU_LINK = $(call quiet,LD) $(CXX) -o $@ $(filter %.o,$^) $(filter %.a,$^)
obj/tests/cuda_on_cpu/fast/ddp_cuda.so: \
	$(EMU_PARTS:%=obj/tests/cuda_on_cpu/fast/%)
obj/tests/cuda_on_cpu/checked/ddp_cuda.so: \
	$(EMU_PARTS:%=obj/tests/cuda_on_cpu/checked/%)
obj/tests/cuda_on_cpu/fast/ddp_cuda.so \
obj/tests/cuda_on_cpu/checked/ddp_cuda.so: $(EMU_OBJ) \
		obj/lib/libddp_core.a $(EMU_MAP)
	$(EMU_LINK) -shared -Wl,--version-script=$(EMU_MAP) -Wl,-z,defs \
		-Wl,-z,nodelete -ldl -lm -pthread

# Programs of tests/cuda: kernels in the program itself, or parts of the device
obj/tests/cuda/%.o: $(srcdir)/tests/cuda/%.c config.mak
	$(call quiet,CC) $(CC) -std=c11 $(EMU_CFLAGS) -O2 $<
obj/tests/cuda/%.o: $(srcdir)/tests/cuda/%.cu config.mak
	$(call quiet,CXX) $(EMU_CXX) $(EMU_CHECK) -x c++ $<
obj/tests/cuda/bugs obj/tests/cuda/right \
obj/tests/cuda/exchange obj/tests/cuda/products: obj/tests/cuda/%: \
		obj/tests/cuda/%.o $(EMU_OBJ)
	$(EMU_LINK) -ldl -lm -pthread
obj/tests/cuda/refusals: obj/tests/cuda/refusals.o obj/tests/cuda/machine.o \
		obj/lib/libddp_core.a \
		$(addprefix obj/tests/cuda_on_cpu/fast/,cuda.o find.o memory.o \
		no_dnn.o sizes.o)
	$(call quiet,LD) $(link) -pthread

# The real cuDNN, without a GPU
obj/tests/cuda/cudnn: obj/tests/cuda/cudnn.o obj/bin/cuda/dnn_graph.o \
		obj/bin/cuda/dnn_library.o obj/bin/cuda/sizes.o obj/lib/libddp_core.a
	$(call quiet,LD) $(link) -ldl $(LIBS)

# A fuzz target is a source file of tests/fuzz. Here is what it is compiled with
# and which objects it needs besides the core's.
FUZZ_SRC := $(sort $(wildcard $(srcdir)/tests/fuzz/*.c))
ifneq ($(HAVE_SLURM),yes)
FUZZ_SRC := $(filter-out %/plugin.c,$(FUZZ_SRC))
endif
ifneq ($(HAVE_HWLOC),yes)
FUZZ_SRC := $(filter-out %/topology.c,$(FUZZ_SRC))
endif
ifneq ($(HAVE_GCRYPT),yes)
FUZZ_SRC := $(filter-out %/manifest.c %/proof.c,$(FUZZ_SRC))
endif
FUZZ_FLAGS = -g -O2 -fsanitize=fuzzer,address,undefined \
	-fno-sanitize-recover=all
FUZZ_CORE := $(CORE_SRC:$(srcdir)/%.c=obj/fuzz/%.o)

obj/fuzz/%.o: $(srcdir)/%.c config.mak
	$(call quiet,CC) $(FUZZ_CC) $(compile) $(FUZZ_FLAGS)
obj/tests/fuzz/%: obj/fuzz/tests/fuzz/%.o $(FUZZ_CORE)
	$(call quiet,LD) $(FUZZ_CC) $(FUZZ_FLAGS) -o $@ \
		$(filter %.o,$^) $(filter %.a,$^) $(FUZZ_LIBS)

obj/tests/fuzz/record: obj/fuzz/lib/job/record.o
obj/tests/fuzz/launch: obj/fuzz/lib/job/launch.o
obj/tests/fuzz/card: obj/fuzz/lib/nccl/census.o
obj/fuzz/watch.a: $(patsubst $(srcdir)/%.c,obj/fuzz/%.o,$(WIRE_SRC) $(PURE_SRC))
obj/fuzz/lib/wire/proof.o: PART_CFLAGS = $(GCRYPT_CFLAGS)
obj/tests/fuzz/proof: FUZZ_LIBS = $(GCRYPT_LIBS)
obj/fuzz/tests/fuzz/scontrol.o obj/fuzz/plugin/slurm/scontrol.o: PART_CFLAGS = \
	-I$(srcdir)/plugin -Dddp_program_read=fuzz_program_read
obj/tests/fuzz/scontrol: obj/fuzz/plugin/slurm/scontrol.o
FUZZ_WATCH := kernel notice output proof ras sieve step wire
$(FUZZ_WATCH:%=obj/tests/fuzz/%): obj/fuzz/watch.a
$(FUZZ_WATCH:%=obj/fuzz/tests/fuzz/%.o) \
	$(PURE_SRC:$(srcdir)/%.c=obj/fuzz/%.o): PART_CFLAGS = \
	-I$(srcdir)/plugin

obj/fuzz/tests/fuzz/plugin.o obj/fuzz/plugin/options/values.o: PART_CFLAGS = \
	-I$(srcdir)/plugin $(SLURM_CFLAGS)
obj/tests/fuzz/plugin: obj/fuzz/plugin/options/values.o \
	obj/fuzz/plugin/options/notice.o

obj/fuzz/lib/topo/%.o: PART_CFLAGS = $(HWLOC_CFLAGS) \
	-Dsetrlimit=fuzz_setrlimit
obj/fuzz/tests/fuzz/topology.o: PART_CFLAGS = $(HWLOC_CFLAGS)
obj/tests/fuzz/topology: FUZZ_LIBS = $(HWLOC_LIBS)
obj/tests/fuzz/topology: $(TOPO_SRC:$(srcdir)/%.c=obj/fuzz/%.o)

FUZZ_TRAIN := run/train_options run/settle run/predict model/gpt data/rng
FUZZ_OPTION := obj/fuzz/lib/tool/option.o obj/fuzz/lib/tool/tool.o
obj/fuzz/bin/ddp-train/%.o obj/fuzz/tests/fuzz/tokens.o \
	obj/fuzz/tests/fuzz/llmc.o obj/fuzz/tests/fuzz/manifest.o \
	obj/fuzz/tests/fuzz/options_train.o: \
	PART_CFLAGS = -I$(TRAIN_DIR) $(GCRYPT_CFLAGS)
obj/tests/fuzz/manifest: FUZZ_LIBS = $(GCRYPT_LIBS)
obj/tests/fuzz/manifest: obj/fuzz/bin/ddp-train/checkpoint/manifest_text.o
obj/tests/fuzz/tokens: obj/fuzz/bin/ddp-train/data/data.o
obj/tests/fuzz/llmc: obj/fuzz/bin/ddp-train/data/llmc.o
obj/tests/fuzz/options_train: FUZZ_LIBS = -lm
obj/tests/fuzz/options_train: $(FUZZ_TRAIN:%=obj/fuzz/bin/ddp-train/%.o) \
	$(FUZZ_OPTION)
obj/fuzz/tests/fuzz/options_info.o obj/fuzz/tests/fuzz/check.o: \
	PART_CFLAGS = -I$(srcdir)/bin/ddp-info
obj/tests/fuzz/check: $(INFO_CHECK:obj/bin/info/%=obj/fuzz/bin/ddp-info/%)
obj/tests/fuzz/options_info: obj/fuzz/bin/ddp-info/info_options.o \
	$(FUZZ_OPTION)
obj/fuzz/tests/fuzz/options_bench.o: PART_CFLAGS = -I$(srcdir)/bin/ddp-bench
obj/tests/fuzz/options_bench: obj/fuzz/bin/ddp-bench/bench_options.o \
	obj/fuzz/bin/ddp-bench/pattern.o $(FUZZ_OPTION)

ifeq ($(HAVE_CRITERION),yes)
CHECKS += obj/tests/unit/unit
else
CHECKS += without-criterion
endif
ifeq ($(HAVE_PLUGIN),yes)
CHECKS += obj/tests/spank/spank_host
else
CHECKS += without-slurm-hwloc-or-gcrypt
endif
without-%:
	@echo 'check: $* was not found; the tests that need it are left out'

ifeq ($(HAVE_FUZZER),yes)
FUZZERS += $(FUZZ_SRC:$(srcdir)/%.c=obj/%)
else
FUZZERS += without-libfuzzer
endif

# What tests/run builds before levels run side by side: else two of them could
# build the same file at once. The themes of tests/cuda take turns instead, as
# few of them need what takes a minute to compile.
TRAIN_TESTS := allreduce faults mixed operators parity pieces predict progress \
	sampler window buckets abi host/ddp_cuda.so
.PHONY: tests-unit tests-spank tests-agent tests-supervisor tests-boot \
	tests-faults tests-train tests-cuda tests-arm64
tests-unit: $(if $(filter yes,$(HAVE_CRITERION)),obj/tests/unit/unit)
tests-spank: $(if $(filter yes,$(HAVE_PLUGIN)),obj/tests/spank/spank_host \
	obj/plugin/spank_ddp.so)
tests-agent: $(if $(filter yes,$(HAVE_PLUGIN)),obj/tests/agent/step \
	obj/plugin/spank_ddp.so)
tests-supervisor: $(if $(filter yes,$(HAVE_PLUGIN)),obj/tests/supervisor/fake_step \
	obj/tests/supervisor/fake_step_real obj/tests/fakes/idle_threads.so)
tests-boot: $(if $(filter yes,$(HAVE_PMIX)),obj/tests/boot/job obj/tests/boot/threads \
	$(if $(filter yes,$(HAVE_MPI)),obj/tests/boot/job_mpi))
tests-faults: tests-boot
tests-train: $(if $(filter obj/bin/ddp-train,$(ALL)), \
	$(TRAIN_TESTS:%=obj/tests/train/%))
tests-arm64: $(filter obj/bin/ddp-train,$(ALL))
tests-cuda: tests-train
