/* What a log that is followed is called, whatever rotation calls its file. See tail_int.h. */
#include "source/tail_int.h"

static const char *const OURS[] = {".gz", ".gzip", ".zst", ".zstd"};
static const char *const FOREIGN[] = {".bz2", ".xz", ".lz4", ".zip", ".Z", ".lzma", ".br"};
#define N(a) (sizeof(a) / sizeof *(a))

static size_t without_packing(const char *path) {
    size_t n = strlen(path);
    for (size_t i = 0; i < N(OURS); i++)
        if (fz_ends(path, OURS[i])) return n - strlen(OURS[i]);
    return n;
}

static bool digit(char c) { return c >= '0' && c <= '9'; }

char *tail_stem(const char *path) {
    const char *p = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *end = path + without_packing(path);
    fz_buf b = {0};
    for (; p < end; p++) {
        const char *d = strchr(".-_", *p) ? p + 1 : p;
        if (d >= end || !digit(*d)) {
            fz_buf_putc(&b, *p);
            continue;
        }
        while (d < end && (digit(*d) || (*d == 'T' && d + 1 < end && digit(d[1])))) d++; /* 20261129T10 */
        p = d - 1;
    }
    fz_buf_putc(&b, 0);
    return fz_buf_steal(&b);
}

bool tail_rotated_name(const char *path) {
    size_t n = without_packing(path), i = n;
    while (i && digit(path[i - 1])) i--;
    return i < n && i && strchr(".-_", path[i - 1]);
}

file_packing tail_packing(const char *path, const uint8_t *head, size_t n, bool *foreign) {
    file_packing p = file_packing_of(head, n);
    *foreign = false;
    for (size_t i = 0; i < N(FOREIGN); i++) *foreign |= fz_ends(path, FOREIGN[i]);
    for (size_t i = 0; i < N(OURS) && p == FILE_PLAIN; i++)
        if (fz_ends(path, OURS[i])) p = i < 2 ? FILE_GZIP : FILE_ZSTD; /* not written yet, or damaged */
    if (*foreign) p = FILE_PLAIN;
    return p;
}
