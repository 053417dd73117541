# SPDX-License-Identifier: BSD-3-Clause
# The tools. ddp-train's objects lie beside it, in obj/bin/train.
TRAIN_SRC := $(sort $(wildcard $(srcdir)/bin/ddp-train/*.c))
ifneq ($(HAVE_MPI),yes)
TRAIN_SRC := $(filter-out %/mpi.c,$(TRAIN_SRC))
endif
TRAIN_OBJ := $(TRAIN_SRC:$(srcdir)/bin/ddp-train/%.c=obj/bin/train/%.o)

obj/bin/train/%.o: PART_CFLAGS = $(BLAS_CFLAGS)
obj/bin/train/mpi.o: PART_CFLAGS = $(MPI_CFLAGS)
obj/bin/train/%.o: $(srcdir)/bin/ddp-train/%.c config.mak
	$(call quiet,CC) $(CC) $(compile) $(CFLAGS)

obj/bin/ddp-train: $(TRAIN_OBJ) obj/lib/libddp_layout.a
	$(call quiet,LD) $(link) $(BLAS_LIBS) $(MPI_LIBS) -lm $(LIBS)

man1dir = $(mandir)/man1
ifeq ($(HAVE_BLAS),yes)
ALL += obj/bin/ddp-train
INSTALLED += bindir:obj/bin/ddp-train
INSTALLED += man1dir:$(srcdir)/bin/ddp-train/ddp-train.1
endif
