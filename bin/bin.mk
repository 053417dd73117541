# SPDX-License-Identifier: BSD-3-Clause
# The tools. ddp-train's objects lie beside it, in obj/bin/train, those of
# ddp-info in obj/bin/info and those of ddp-bench in obj/bin/bench.
TOOL_LIB := obj/lib/libddp_tool.a obj/lib/libddp_core.a
TRAIN_DIR := $(srcdir)/bin/ddp-train
# cuda/ is a module of its own, but for what a plan without it needs as well.
TRAIN_SRC := $(filter-out $(TRAIN_DIR)/cuda/%, \
	$(sort $(wildcard $(TRAIN_DIR)/*.c $(TRAIN_DIR)/*/*.c))) \
	$(wildcard $(TRAIN_DIR)/cuda/sizes.c)
ifneq ($(HAVE_MPI),yes)
TRAIN_SRC := $(filter-out $(TRAIN_DIR)/mpi/%,$(TRAIN_SRC))
endif
# libddp's archive, whose insides it calls too; or what of it needs no PMIx.
ifeq ($(HAVE_PMIX),yes)
TRAIN_LIB := obj/lib/libddp.a $(TOOL_LIB)
else
TRAIN_SRC := $(filter-out $(TRAIN_DIR)/run/meet.c $(TRAIN_DIR)/nccl/%, \
	$(TRAIN_SRC))
TRAIN_LIB := obj/lib/job/heartbeat.o obj/lib/nccl/driver.o $(TOOL_LIB)
endif
TRAIN_OBJ := $(TRAIN_SRC:$(TRAIN_DIR)/%.c=obj/bin/train/%.o)
TRAIN_LIBS = $(MPI_LIBS) $(PMIX_LIBS) $(GCRYPT_LIBS) -lm -ldl -pthread

# oneDNN where it was found, or else a CBLAS.
ifeq ($(HAVE_ONEDNN),yes)
MATMUL_CFLAGS = $(ONEDNN_CFLAGS)
MATMUL_LIBS = $(ONEDNN_LIBS)
else
MATMUL_CFLAGS = $(BLAS_CFLAGS)
MATMUL_LIBS = $(BLAS_LIBS)
endif
TRAIN_CFLAGS = -I$(TRAIN_DIR) $(KERNEL_CFLAGS)
obj/bin/train/%.o: PART_CFLAGS = $(TRAIN_CFLAGS)
obj/bin/train/cpu/matmul.o obj/bin/train/cpu/primitives.o: \
	PART_CFLAGS = $(TRAIN_CFLAGS) $(MATMUL_CFLAGS)
obj/bin/train/checkpoint/manifest_text.o: PART_CFLAGS = $(TRAIN_CFLAGS) $(GCRYPT_CFLAGS)
obj/bin/train/run/module.o: PART_CFLAGS = $(TRAIN_CFLAGS) \
	-DDDP_TRAIN_MODULE_DIR='"$(libdir)/slurm-ddp"'
obj/bin/train/mpi/%.o: PART_CFLAGS = $(TRAIN_CFLAGS) $(MPI_CFLAGS)
obj/bin/train/mpi/mpi.o: PART_CFLAGS = $(TRAIN_CFLAGS) $(MPI_CFLAGS) \
	$(PMIX_CFLAGS)
obj/bin/train/%.o: $(TRAIN_DIR)/%.c config.mak
	$(call quiet,CC) $(CC) $(compile) $(CFLAGS)

obj/bin/ddp-train: $(TRAIN_OBJ) $(TRAIN_LIB)
	$(call quiet,LD) $(link) $(MATMUL_LIBS) $(TRAIN_LIBS) $(LIBS)

# ddp-train's device of GPUs: a module, so that one package trains without.
CUDA_SRC := $(sort $(wildcard $(TRAIN_DIR)/cuda/*.c))
ifeq ($(HAVE_CUDNN),yes)
CUDA_SRC := $(filter-out %/no_dnn.c,$(CUDA_SRC))
else
CUDA_SRC := $(filter-out $(TRAIN_DIR)/cuda/dnn%,$(CUDA_SRC))
endif
CUDA_KERNELS := $(sort $(wildcard $(TRAIN_DIR)/cuda/*.cu))
CUDA_OBJ := $(CUDA_SRC:$(TRAIN_DIR)/cuda/%.c=obj/bin/cuda/%.o) \
	$(CUDA_KERNELS:$(TRAIN_DIR)/cuda/%.cu=obj/bin/cuda/%.cu.o)
obj/bin/cuda/%.o: PART_CFLAGS = -fPIC -fvisibility=hidden -I$(TRAIN_DIR) \
	$(CUDA_CFLAGS) $(CUDNN_CFLAGS)
obj/bin/cuda/%.o: $(TRAIN_DIR)/cuda/%.c config.mak
	$(call quiet,CC) $(CC) $(compile) $(CFLAGS)
obj/bin/cuda/%.cu.o: $(TRAIN_DIR)/cuda/%.cu config.mak
	$(call quiet,NVCC) $(NVCC) -std=c++17 -O3 $(NVCCFLAGS) -Xcompiler \
		-fPIC,-fvisibility=hidden,-Wall,-Wextra -Werror \
		all-warnings -I. -I$(TRAIN_DIR) -I$(srcdir)/lib/include \
		-I$(srcdir)/lib -MMD -MP -c -o $@ $<
obj/bin/ddp_cuda.so: $(CUDA_OBJ) obj/lib/libddp_core.a
	$(call quiet,NVLD) $(NVCC) $(NVCCFLAGS) -shared -cudart static \
		-Xlinker --exclude-libs,ALL,-z,defs -o $@ $(filter \
		%.o %.a,$^) $(CUBLASLT_LIBS)

INFO_SRC := $(sort $(wildcard $(srcdir)/bin/ddp-info/*.c))
ifeq ($(HAVE_PMIX),yes)
INFO_SRC := $(filter-out %/no_gather.c,$(INFO_SRC))
INFO_LIB := obj/lib/libddp.a
else
INFO_SRC := $(filter-out %/gather.c,$(INFO_SRC))
endif
INFO_OBJ := $(sort $(INFO_SRC:$(srcdir)/bin/ddp-info/%.c=obj/bin/info/%.o))
# The plugin's own parser of plugstack.conf, for --doctor, compiled anew: where no
# plugin is built, and without Slurm's headers
INFO_OBJ += $(addprefix obj/bin/info/,notice.o site.o values.o)

# What is pure in it, for tests/unit
INFO_CHECK := $(sort $(wildcard $(srcdir)/bin/ddp-info/check*.c))
INFO_CHECK := $(INFO_CHECK:$(srcdir)/bin/ddp-info/%.c=obj/bin/info/%.o)

obj/bin/info/%.o: PART_CFLAGS = -I$(srcdir)/plugin
obj/bin/info/%.o: $(srcdir)/bin/ddp-info/%.c config.mak
	$(call quiet,CC) $(CC) $(compile) $(CFLAGS)
obj/bin/info/%.o: $(srcdir)/plugin/options/%.c config.mak
	$(call quiet,CC) $(CC) $(compile) $(CFLAGS)

obj/bin/ddp-info: $(INFO_OBJ) $(INFO_LIB) obj/lib/libddp_topo.a $(TOOL_LIB)
	$(call quiet,LD) $(link) $(HWLOC_LIBS) $(PMIX_LIBS) -ldl -pthread \
		$(LIBS)

BENCH_SRC := $(sort $(wildcard $(srcdir)/bin/ddp-bench/*.c))
ifeq ($(HAVE_MPI),yes)
BENCH_SRC := $(filter-out %/no_mpi.c,$(BENCH_SRC))
else
BENCH_SRC := $(filter-out %/mpi.c,$(BENCH_SRC)) \
	$(srcdir)/bin/ddp-bench/no_mpi.c
endif
ifeq ($(HAVE_PMIX),yes)
BENCH_SRC := $(filter-out %/no_nccl.c,$(BENCH_SRC))
BENCH_LIB := obj/lib/libddp.a
else
BENCH_SRC := $(filter-out %/nccl.c \
	$(srcdir)/bin/ddp-bench/preflight% \
	$(srcdir)/bin/ddp-bench/verdict%,$(BENCH_SRC)) \
	$(srcdir)/bin/ddp-bench/no_nccl.c
endif
BENCH_OBJ := $(sort $(BENCH_SRC:$(srcdir)/bin/ddp-bench/%.c=obj/bin/bench/%.o))

obj/bin/bench/mpi.o: PART_CFLAGS = $(MPI_CFLAGS)
obj/bin/bench/%.o: $(srcdir)/bin/ddp-bench/%.c config.mak
	$(call quiet,CC) $(CC) $(compile) $(CFLAGS)

# With libddp's archive, whose insides it calls too.
obj/bin/ddp-bench: $(BENCH_OBJ) $(BENCH_LIB) $(TOOL_LIB)
	$(call quiet,LD) $(link) $(MPI_LIBS) $(PMIX_LIBS) -ldl -pthread $(LIBS)

man1dir = $(mandir)/man1
HAVE_PRODUCTS := $(filter yes,$(HAVE_ONEDNN) $(HAVE_BLAS))
ifeq ($(firstword $(HAVE_PRODUCTS))$(HAVE_GCRYPT),yesyes)
ALL += obj/bin/ddp-train
INSTALLED += bindir:obj/bin/ddp-train
INSTALLED += man1dir:$(srcdir)/bin/ddp-train/ddp-train.1
endif
moduledir = $(libdir)/slurm-ddp
ifeq ($(HAVE_CUDA)$(HAVE_CUBLASLT),yesyes)
ALL += obj/bin/ddp_cuda.so
INSTALLED += moduledir:obj/bin/ddp_cuda.so
endif
ifeq ($(HAVE_HWLOC),yes)
ALL += obj/bin/ddp-info
INSTALLED += bindir:obj/bin/ddp-info
INSTALLED += man1dir:$(srcdir)/bin/ddp-info/ddp-info.1
endif
ifneq ($(filter yes,$(HAVE_MPI) $(HAVE_PMIX)),)
ALL += obj/bin/ddp-bench
INSTALLED += bindir:obj/bin/ddp-bench
INSTALLED += man1dir:$(srcdir)/bin/ddp-bench/ddp-bench.1
endif

# The shells' completions, of srun's options too
bashcompdir = $(sysconfdir)/bash_completion.d
zshcompdir = $(datadir)/zsh/site-functions
ifneq ($(filter bindir:%,$(INSTALLED)),)
INSTALLED += bashcompdir:$(srcdir)/contrib/completions/slurm-ddp
INSTALLED += zshcompdir:$(srcdir)/contrib/completions/_slurm-ddp
endif
