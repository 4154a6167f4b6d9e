/* Zone ids, the cache, offsets at instants and local times (tz.h). Files are read in tzfile.c.
 *
 * Invariants
 *  1. A zone once in the list is never changed or taken out; the head is published under the lock.
 *  2. Ids come from data: none gets out of the zone directory.
 */
#include "col/tz.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "col/tz_int.h"

#define YEAR_1900 (-2208988800LL)
#define FAR_APART (26 * 3600) /* wider than any offset: on both sides of a transition that concerns a local time */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tz_zone *zones;
static tz_zone utc = {.std = {.name = "UTC"}, .has_rule = true};

const tz_zone *tz_utc(void) { return &utc; }

const char *tz_id(const tz_zone *z) { return z->id ? z->id : "UTC"; }

/* ---- ids ---- */

static int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : -1; }

static int pair(const char *p) { return digit(p[0]) < 0 || digit(p[1]) < 0 ? -1 : digit(p[0]) * 10 + digit(p[1]); }

/* ZoneOffset.of: +h, +hh, +hh:mm, +hhmm, +hh:mm:ss, +hhmmss, up to 18 hours. */
static bool parse_offset(fz_sv s, int32_t *out) {
    if (s.n < 2 || (s.p[0] != '+' && s.p[0] != '-')) return false;
    const char *p = s.p + 1;
    size_t n = s.n - 1;
    int h = -1, m = 0, sec = 0;
    if (n == 1) h = digit(p[0]);
    else h = pair(p);
    if (n == 4 || n == 6) m = pair(p + 2);
    if (n == 6) sec = pair(p + 4);
    if (n == 5 || n == 8) m = p[2] == ':' ? pair(p + 3) : -1;
    if (n == 8) sec = p[5] == ':' ? pair(p + 6) : -1;
    if (n > 8 || n == 3 || n == 7 || h < 0 || m < 0 || m > 59 || sec < 0 || sec > 59) return false;
    int32_t total = h * 3600 + m * 60 + sec;
    if (total > 18 * 3600) return false;
    *out = s.p[0] == '-' ? -total : total;
    return true;
}

/* TimeZone's custom ids after "GMT": +h, +hh, +hmm, +hhmm, +h:mm, +hh:mm. */
static bool parse_custom(fz_sv s, int32_t *out) {
    if (s.n < 2 || (s.p[0] != '+' && s.p[0] != '-')) return false;
    int h = 0, m = 0;
    size_t colon = s.n, n = 0;
    for (size_t i = 1; i < s.n; i++) {
        if (s.p[i] == ':' && colon == s.n) colon = i;
        else if (digit(s.p[i]) < 0) return false;
        else n++;
    }
    size_t hours = colon < s.n ? colon - 1 : n <= 2 ? n : n - 2;
    if (hours < 1 || hours > 2 || (colon < s.n && s.n - colon != 3) || n > 4) return false;
    for (size_t i = 1; i <= hours; i++) h = h * 10 + digit(s.p[i]);
    for (size_t i = hours + 1; i < s.n; i++)
        if (s.p[i] != ':') m = m * 10 + digit(s.p[i]);
    if (h > 23 || m > 59) return false;
    *out = (s.p[0] == '-' ? -1 : 1) * (h * 3600 + m * 60);
    return true;
}

static bool starts(fz_sv s, const char *prefix) {
    size_t n = strlen(prefix);
    return s.n >= n && memcmp(s.p, prefix, n) == 0;
}

static bool region_id(fz_sv id) {
    if (id.n < 2 || id.n > 60 || starts(id, "posix/") || starts(id, "right/")) return false;
    for (size_t i = 0; i < id.n; i++) {
        char c = id.p[i];
        bool alpha = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
        if (!alpha && (i == 0 || (digit(c) < 0 && !strchr("/_+-~", c)))) return false;
    }
    static const char *const not_java[] = {"EST", "MST", "HST", "ROC", "localtime", "posixrules", "Factory"};
    for (size_t i = 0; i < sizeof not_java / sizeof *not_java; i++)
        if (fz_sv_eq(id, fz_sv_of(not_java[i]))) return false;
    return true;
}

static bool load_region(fz_sv id, tz_zone *z) {
    if (!region_id(id)) return false;
    const char *dir = getenv("TZDIR");
    char path[512];
    if (snprintf(path, sizeof path, "%s/%.*s", dir && *dir ? dir : "/usr/share/zoneinfo", (int)id.n, id.p) >= (int)sizeof path) return false;
    return tz_file_read(path, z);
}

static void fixed(tz_zone *z, int32_t offset, const char *name) {
    z->std = (tz_type){.offset = offset};
    if (name) memcpy(z->std.name, name, strlen(name) + 1);
    z->has_rule = true;
}

static bool load_strict(fz_sv id, tz_zone *z) {
    static const char *const zero[] = {"UTC", "GMT", "UT"};
    int32_t off;
    if (fz_sv_eq(id, FZ_SV("Z"))) return fixed(z, 0, "UTC"), true;
    if (id.n && (id.p[0] == '+' || id.p[0] == '-')) return parse_offset(id, &off) && (fixed(z, off, NULL), true);
    for (int i = 0; i < 3; i++) {
        if (!starts(id, zero[i])) continue;
        size_t n = strlen(zero[i]);
        if (id.n == n) return fixed(z, 0, zero[i]), true;
        if (id.p[n] == '+' || id.p[n] == '-') return parse_offset((fz_sv){id.p + n, id.n - n}, &off) && (fixed(z, off, NULL), true);
    }
    return load_region(id, z);
}

static const struct { const char *id, *region; } short_ids[] = {
    {"ACT", "Australia/Darwin"}, {"AET", "Australia/Sydney"}, {"AGT", "America/Argentina/Buenos_Aires"}, {"ART", "Africa/Cairo"},
    {"AST", "America/Anchorage"}, {"BET", "America/Sao_Paulo"}, {"BST", "Asia/Dhaka"}, {"CAT", "Africa/Harare"}, {"CNT", "America/St_Johns"},
    {"CST", "America/Chicago"}, {"CTT", "Asia/Shanghai"}, {"EAT", "Africa/Addis_Ababa"}, {"ECT", "Europe/Paris"},
    {"IET", "America/Indiana/Indianapolis"}, {"IST", "Asia/Kolkata"}, {"JST", "Asia/Tokyo"}, {"MIT", "Pacific/Apia"}, {"NET", "Asia/Yerevan"},
    {"NST", "Pacific/Auckland"}, {"PLT", "Asia/Karachi"}, {"PNT", "America/Phoenix"}, {"PRT", "America/Puerto_Rico"},
    {"PST", "America/Los_Angeles"}, {"SST", "Pacific/Guadalcanal"}, {"VST", "Asia/Ho_Chi_Minh"}};

static bool load_lenient(fz_sv id, tz_zone *z) {
    int32_t off;
    if (fz_sv_eq(id, FZ_SV("UTC")) || fz_sv_eq(id, FZ_SV("GMT"))) return load_strict(id, z);
    if (fz_sv_eq(id, FZ_SV("EST"))) return fixed(z, -5 * 3600, "EST"), true;
    if (fz_sv_eq(id, FZ_SV("MST"))) return fixed(z, -7 * 3600, "MST"), true;
    if (fz_sv_eq(id, FZ_SV("HST"))) return fixed(z, -10 * 3600, "HST"), true;
    for (size_t i = 0; i < sizeof short_ids / sizeof *short_ids; i++)
        if (fz_sv_eq(id, fz_sv_of(short_ids[i].id))) return load_region(fz_sv_of(short_ids[i].region), z);
    if (starts(id, "GMT") && parse_custom((fz_sv){id.p + 3, id.n - 3}, &off)) return fixed(z, off, NULL), true;
    return load_region(id, z);
}

static const tz_zone *find(fz_sv id, bool lenient) {
    pthread_mutex_lock(&lock);
    const tz_zone *found = NULL;
    for (tz_zone *z = zones; z && !found; z = z->next)
        if (z->lenient == lenient && fz_sv_eq(fz_sv_of(z->id), id)) found = z;
    if (!found && id.n < 256) {
        tz_zone *z = FZ_NEW(tz_zone);
        if (lenient ? load_lenient(id, z) : load_strict(id, z)) {
            z->id = fz_strndup(id.p, id.n);
            z->lenient = lenient;
            z->next = zones;
            found = zones = z;
        } else {
            tz_zone_clear(z);
            fz_free(z);
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

const tz_zone *tz_find(fz_sv id) { return find(id, false); }

const tz_zone *tz_find_lenient(fz_sv id) {
    const tz_zone *z = find(id, true);
    return z ? z : find(FZ_SV("GMT"), true);
}

/* ---- offsets ---- */

bool tz_is_fixed(const tz_zone *z, int32_t *offset) {
    if (z->n || z->has_dst) return false;
    *offset = z->has_rule ? z->std.offset : z->first.offset;
    return true;
}

static const tz_type *type_at(const tz_zone *z, int64_t t) {
    if (z->n == 0) return z->has_rule ? tz_rule_type(z, t) : &z->first;
    if (t < z->at[0]) return &z->first;
    if (t >= z->at[z->n - 1]) return z->has_rule ? tz_rule_type(z, t) : &z->type[z->n - 1];
    uint32_t lo = 0, hi = z->n - 1; /* at[lo] <= t < at[hi] */
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (z->at[mid] <= t) lo = mid;
        else hi = mid;
    }
    return &z->type[lo];
}

int32_t tz_offset_at(const tz_zone *z, int64_t utc_s) { return type_at(z, utc_s)->offset; }

int32_t tz_offset_at_legacy(const tz_zone *z, int64_t utc_s) {
    if (utc_s >= YEAR_1900 || z->n == 0) return tz_offset_at(z, utc_s);
    if (!z->has_rule) return z->type[z->n - 1].offset;
    return z->has_dst && z->dst.offset < z->std.offset ? z->dst.offset : z->std.offset; /* "negative" summer time: Java's data has none */
}

typedef int32_t (*offset_fn)(const tz_zone *, int64_t);

/* The offsets on both sides of a transition nearby; those that lead back to the local time are valid: none in a gap, two in an overlap. */
static int32_t of_local(const tz_zone *z, int64_t local_s, offset_fn at, bool later) {
    int32_t off;
    if (tz_is_fixed(z, &off)) return off;
    int32_t before = at(z, local_s - FAR_APART), after = at(z, local_s + FAR_APART);
    if (before == after) return before;
    bool b = at(z, local_s - before) == before, a = at(z, local_s - after) == after;
    if (a && b) return (before > after) == later ? after : before;
    return a ? after : before;
}

int32_t tz_offset_of_local(const tz_zone *z, int64_t local_s) { return of_local(z, local_s, tz_offset_at, false); }

int32_t tz_offset_of_local_legacy(const tz_zone *z, int64_t local_s) { return of_local(z, local_s, tz_offset_at_legacy, true); }

static int64_t floor_s(int64_t us) { return us >= 0 ? us / 1000000 : -((-us + 999999) / 1000000); }

int64_t tz_to_local(const tz_zone *z, int64_t utc_us) { return utc_us + tz_offset_at(z, floor_s(utc_us)) * 1000000LL; }

int64_t tz_to_utc(const tz_zone *z, int64_t local_us) { return local_us - tz_offset_of_local(z, floor_s(local_us)) * 1000000LL; }

size_t tz_abbreviation(const tz_zone *z, int64_t utc_s, char out[16]) {
    const tz_type *t = type_at(z, utc_s);
    if (t->name[0]) return (size_t)snprintf(out, 16, "%s", t->name);
    int32_t a = t->offset < 0 ? -t->offset : t->offset;
    return (size_t)snprintf(out, 16, "GMT%c%02d:%02d", t->offset < 0 ? '-' : '+', a / 3600, a / 60 % 60);
}

bool tz_is_abbreviation(fz_sv s) {
    static const char *const known[] = {"EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT", "HST", "JST", "KST", "IST", "BST", "WET", "WEST", "CET",
                                        "CEST", "EET", "EEST", "MSK", "AEST", "AEDT", "ACST", "ACDT", "AWST", "NZST", "NZDT", "SAST", "PKT", "HKT", "SGT"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (fz_sv_eq(s, fz_sv_of(known[i]))) return true;
    return false;
}
