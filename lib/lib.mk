# SPDX-License-Identifier: BSD-3-Clause
# The pure core: one archive that the plugin, the tools and the tests link; and
# what knows hwloc, whose users link HWLOC_LIBS.
LAYOUT_SRC := $(sort $(wildcard $(srcdir)/lib/layout/*.c))
LAYOUT_OBJ := $(LAYOUT_SRC:$(srcdir)/%.c=obj/%.o)

ALL += obj/lib/libddp_layout.a
obj/lib/%.o: PART_CFLAGS = -fPIC -fvisibility=hidden
obj/lib/libddp_layout.a: $(LAYOUT_OBJ)

TOPO_SRC := $(sort $(wildcard $(srcdir)/lib/topo/*.c))
TOPO_OBJ := $(TOPO_SRC:$(srcdir)/%.c=obj/%.o)
ifeq ($(HAVE_HWLOC),yes)
ALL += obj/lib/libddp_topo.a
TOPO_LIB := obj/lib/libddp_topo.a
endif
obj/lib/topo/%.o: PART_CFLAGS = -fPIC -fvisibility=hidden $(HWLOC_CFLAGS)
obj/lib/libddp_topo.a: $(TOPO_OBJ)

man3dir = $(mandir)/man3
INSTALLED += $(patsubst %,docdir:%,$(srcdir)/README.md $(srcdir)/LICENSE)
INSTALLED += $(patsubst %,includedir:%,$(wildcard $(srcdir)/lib/include/*.h))
INSTALLED += $(patsubst %,man3dir:%,$(wildcard $(srcdir)/lib/*.3))
