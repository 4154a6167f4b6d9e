# frazil: one non-recursive Makefile. `make` builds build/frazil; `make test` the fast layers; see ./run for the rest.
#
# ROOMS lists the rooms of src/ from the lowest to the highest; DEPS_x what room x may include. The include check
# (test/check_includes.py) reads the same lines, so that the picture and the build cannot drift apart.

ROOMS := base spool col conf net aws fileio parquet iceberg catalog source decode sql exec sink delivery job ops session cli

DEPS_base    :=
DEPS_spool   := base
DEPS_col     := base
DEPS_conf    := base
DEPS_net     := base
DEPS_aws     := base net
DEPS_fileio  := base net aws
DEPS_parquet := base col
DEPS_iceberg := base col
DEPS_catalog := base col net aws fileio iceberg
DEPS_source  := base spool net aws
DEPS_decode  := base col
DEPS_sql     := base col
DEPS_exec    := base col sql
DEPS_sink    := base col net aws fileio parquet iceberg catalog
DEPS_delivery := base col net aws fileio sql exec
DEPS_job     := base spool col conf net aws fileio parquet iceberg catalog source decode sql exec sink delivery
DEPS_ops     := base spool col conf net aws fileio parquet iceberg catalog source decode sql exec sink delivery job
DEPS_session := base spool col conf net aws fileio parquet iceberg catalog source decode sql exec sink delivery job ops
DEPS_cli     := base spool col conf net aws fileio parquet iceberg catalog source decode sql exec sink delivery job ops session

CC      := gcc
# V=1 shows the commands.
Q       := $(if $(V),,@)
B       ?= build
WARN    := -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wno-format-truncation -Werror
OPT     ?= -O2 -g
# SAN=address builds under ASan and UBSan into build-address, SAN=thread under ThreadSanitizer.
ifeq ($(SAN),address)
B       := build-address
OPT     := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -DFZ_POISON
else ifeq ($(SAN),thread)
B       := build-thread
OPT     := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
endif
CFLAGS  := -std=c17 -D_GNU_SOURCE -Isrc -isystem $(shell pg_config --includedir 2>/dev/null || echo /usr/include/postgresql) $(OPT) $(WARN) -pthread
LIBS    := -lrdkafka -lcurl -levent_openssl -levent_pthreads -levent -lnghttp2 -lisal -lssl -lcrypto -lzstd -llz4 -lsnappy -ldeflate -ljansson -lyaml -lsqlite3 -lpq -lm -pthread

objs_of  = $(patsubst src/%.c,$(B)/%.o,$(wildcard src/$(1)/*.c))
lib_of   = $(B)/lib/$(1).a
# A room's archive and those of all rooms that it may use, highest first (link order).
reverse  = $(if $(1),$(call reverse,$(wordlist 2,99,$(1))) $(firstword $(1)))
libs_for = $(foreach r,$(call reverse,$(DEPS_$(1)) $(1)),$(if $(wildcard src/$(r)/*.c),$(call lib_of,$(r))))

.PHONY: all tests test unit clean bench-tools
all: $(B)/frazil

define room_rule
$(call lib_of,$(1)): $(call objs_of,$(1))
	@mkdir -p $$(dir $$@)
	@rm -f $$@
	@ar rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(if $(wildcard src/$(r)/*.c),$(eval $(call room_rule,$(r)))))

$(B)/%.o: src/%.c Makefile
	@mkdir -p $(dir $@)
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/frazil: $(call libs_for,cli)
	$(Q)$(CC) $(CFLAGS) -o $@ -Wl,--start-group $^ -Wl,--end-group $(LIBS)

# Unit tests: test/unit/<room>/test_x.c, linked with that room and those below it only.
TESTS := $(patsubst test/unit/%.c,$(B)/unit/%,$(wildcard test/unit/*/test_*.c))
define test_rule
$(B)/unit/$(1)/%: test/unit/$(1)/%.c $(call libs_for,$(1)) Makefile
	@mkdir -p $$(dir $$@)
	$$(Q)$$(CC) $$(CFLAGS) -Wno-missing-prototypes -Itest/unit -MMD -MP -o $$@ $$< -Wl,--start-group $(call libs_for,$(1)) -Wl,--end-group -lcmocka $$(LIBS)
endef
$(foreach r,$(ROOMS),$(eval $(call test_rule,$(r))))

tests: $(TESTS)
unit: $(TESTS)
	@failed=; for t in $(TESTS); do echo "== $$t"; $$t || failed="$$failed $$t"; done; echo "unit: failed:$${failed:- none}"; [ -z "$$failed" ]
test: unit

# Programs beside the product: bench/*.c, test/tools/*.c, test/fault/*.c, linked with everything below cli.
TOOLS := $(patsubst %.c,$(B)/%,$(wildcard bench/*.c test/tools/*.c test/fault/*.c))
$(B)/bench/% $(B)/test/%: CFLAGS += -Wno-missing-prototypes -Wno-conversion
$(TOOLS): $(B)/%: %.c $(call libs_for,session) Makefile
	@mkdir -p $(dir $@)
	$(Q)$(CC) $(CFLAGS) -Itest/unit -MMD -MP -o $@ $< -Wl,--start-group $(call libs_for,session) -Wl,--end-group -lcmocka $(LIBS)
tools: $(TOOLS)
clean:
	rm -rf build build-address build-thread

-include $(wildcard $(B)/*/*.d $(B)/unit/*/*.d)

# Speed and memory: of the listening inputs; ./run bench has the one with a broker too.
.PHONY: bench
BENCH_DIR ?= $(B)/bench-inputs
bench: $(B)/frazil $(B)/bench/load $(B)/bench/floor_inputs
	@FRAZIL_BUILD=$(B) python3 bench/bench_inputs.py --dir $(abspath $(BENCH_DIR)) $(BENCH_ARGS)

# Reference pages come from the tables in the program; test/e2e compares them.
.PHONY: docs
TOPICS := settings connectors formats catalogs tables functions metrics doctor
docs: $(B)/frazil
	@for t in $(TOPICS); do $(B)/frazil options $$t > docs/reference/$$t.md || exit 1; done
