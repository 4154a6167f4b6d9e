/* A source whose records come from elsewhere: error objects that are run through a script again. It has splits, so that topic and partition can be columns, and reads nothing. See source.h. */
#include "source/source_int.h"

static void replayed_close(src_source *s) {
    src_base_free(s);
    fz_free(s);
}

static const src_ops replayed_ops = {.name = "replay", .doc = "", .close = replayed_close};

src_source *src_replayed_new(const src_context *cx) {
    src_source *s = FZ_NEW(src_source);
    src_base_init(s, &replayed_ops, cx);
    return s;
}

uint32_t src_replayed_split(src_source *s, const char *topic, int32_t partition) {
    for (uint32_t i = 0; i < s->n_splits; i++)
        if (s->splits[i]->partition == partition && strcmp(s->splits[i]->topic, topic) == 0) return i;
    char *name = fz_asprintf("%s/%d", topic, partition);
    src_split *p = src_add_split(s, name, topic, partition);
    fz_free(name);
    return p ? s->n_splits - 1 : 0;
}
