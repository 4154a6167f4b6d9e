/* Names of files and directories of a table, as the Java implementation gives them (LocationProviders, OutputFileFactory, SnapshotProducer,
 * BaseMetastoreTableOperations). See iceberg.h. */
#include "iceberg/iceberg_int.h"

char *ice_location_trim(fz_arena *a, const char *location) {
    size_t n = strlen(location);
    while (n > 0 && location[n - 1] == '/' && !(n >= 3 && memcmp(location + n - 3, "://", 3) == 0)) n--;
    return fz_arena_strndup(a, location, n);
}

/* Property as a location, or <table location>/<name>. */
static char *dir_of(fz_arena *a, const ice_metadata *m, const char *const *keys, const char *name) {
    for (; *keys; keys++) {
        const char *v = ice_property(m, *keys, NULL);
        if (v && *v) return ice_location_trim(a, v);
    }
    return fz_arena_printf(a, "%s/%s", m->location, name);
}

static bool object_storage(const ice_metadata *m) { return ice_property_bool(m, "write.object-storage.enabled", false); }

char *ice_data_location(fz_arena *a, const ice_metadata *m) {
    static const char *const plain[] = {"write.data.path", "write.folder-storage.path", NULL};
    static const char *const hashed[] = {"write.data.path", "write.object-storage.path", "write.folder-storage.path", NULL};
    return dir_of(a, m, object_storage(m) ? hashed : plain, "data");
}

char *ice_metadata_dir(fz_arena *a, const ice_metadata *m) {
    static const char *const keys[] = {"write.metadata.path", NULL};
    return dir_of(a, m, keys, "metadata");
}

char *ice_manifest_location(fz_arena *a, const ice_metadata *m, const char *uuid, uint32_t n) {
    return fz_arena_printf(a, "%s/%s-m%u.avro", ice_metadata_dir(a, m), uuid, n);
}

char *ice_manifest_list_location(fz_arena *a, const ice_metadata *m, int64_t snapshot_id, uint32_t attempt, const char *uuid) {
    return fz_arena_printf(a, "%s/snap-%lld-%u-%s.avro", ice_metadata_dir(a, m), (long long)snapshot_id, attempt, uuid);
}

char *ice_metadata_location(fz_arena *a, const ice_metadata *m, int32_t version, const char *uuid) {
    bool gzip = fz_ieq(ice_property(m, "write.metadata.compression-codec", "none"), "gzip");
    return fz_arena_printf(a, "%s/%05d-%s%s.metadata.json", ice_metadata_dir(a, m), version, uuid, gzip ? ".gz" : "");
}

int32_t ice_metadata_version_of(const char *location) {
    const char *slash = strrchr(location, '/'), *name = slash ? slash + 1 : location;
    bool hadoop = *name == 'v';
    const char *from = hadoop ? name + 1 : name, *end = from;
    while (*end >= '0' && *end <= '9') end++;
    int64_t v;
    if (*end != (hadoop ? '.' : '-') || !fz_parse_i64((fz_sv){from, (size_t)(end - from)}, &v) || v > INT32_MAX) return -1;
    return fz_ends(name, ".metadata.json") || fz_ends(name, ".metadata.json.gz") ? (int32_t)v : -1;
}

char *ice_data_file_name(fz_arena *a, uint32_t partition_id, uint32_t task_id, const char *operation, uint32_t n, const char *extension) {
    return fz_arena_printf(a, "%05u-%u-%s-%05u.%s", partition_id, task_id, operation, n, extension);
}

/* 20 bits of the hash of the name as directories of 4, 4, 4 and 8 binary digits. */
static void hash_dirs(const char *name, char out[24]) {
    uint32_t h = ice_murmur3(name, strlen(name));
    char *p = out;
    for (int bit = 19; bit >= 0; bit--) {
        if (bit == 15 || bit == 11 || bit == 7) *p++ = '/';
        *p++ = (h >> bit & 1) ? '1' : '0';
    }
    *p = 0;
}

/* Last two parts of a location's path ("db/t"). */
static const char *path_context(fz_arena *a, const char *location) {
    const char *scheme = strstr(location, "://"), *path = location;
    if (scheme) {
        path = strchr(scheme + 3, '/');
        if (!path) return "";
    }
    const char *last = strrchr(path, '/'), *parent = last;
    if (!last || last == path) return fz_arena_strdup(a, last ? last + 1 : path);
    while (parent > path && parent[-1] != '/') parent--;
    return fz_arena_strdup(a, parent);
}

char *ice_data_file_location(fz_arena *a, const ice_metadata *m, const char *path, const char *name) {
    const char *data = ice_data_location(a, m);
    if (!object_storage(m)) return *path ? fz_arena_printf(a, "%s/%s/%s", data, path, name) : fz_arena_printf(a, "%s/%s", data, name);
    bool partitioned = ice_property_bool(m, "write.object-storage.partitioned-paths", true);
    const char *full = *path && partitioned ? fz_arena_printf(a, "%s/%s", path, name) : name;
    char dirs[24];
    hash_dirs(full, dirs);
    if (!fz_starts(data, m->location)) return fz_arena_printf(a, "%s/%s/%s/%s", data, dirs, path_context(a, m->location), full);
    return fz_arena_printf(a, partitioned ? "%s/%s/%s" : "%s/%s-%s", data, dirs, full);
}
