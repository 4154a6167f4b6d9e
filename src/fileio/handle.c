/* The handle of the stores: what is known about them (options, credentials), shared by all who reach the same place. See fileio.h. */
#include "fileio/fileio_int.h"
#include "fileio/s3_int.h"

fz_status fio_new(const fz_pair *o, size_t n, fio **out, fz_error *err) {
    fio *io = FZ_NEW(fio);
    fz_pair *copy;
    s3_config checked;
    io->arena = fz_arena_new();
    fz_status rc = s3_config_read(o, n, io->arena, &checked, err); /* wrong options are told at once, not at the first object */
    if (rc != FZ_OK) {
        fz_arena_free(io->arena);
        fz_free(io);
        return rc;
    }
    copy = FZ_ANEWN(io->arena, fz_pair, n);
    for (size_t i = 0; i < n; i++)
        copy[i] = (fz_pair){fz_arena_strdup(io->arena, o[i].key), fz_arena_strdup(io->arena, o[i].value), o[i].line, o[i].column};
    io->options = copy;
    io->n_options = n;
    atomic_init(&io->refs, 1);
    pthread_mutex_init(&io->lock, NULL);
    return *out = io, FZ_OK;
}

fio *fio_ref(fio *io) {
    if (io) atomic_fetch_add(&io->refs, 1);
    return io;
}

void fio_unref(fio *io) {
    if (!io || atomic_fetch_sub(&io->refs, 1) != 1) return;
    s3_store_free(io->s3);
    aws_provider_unref(io->provider);
    aws_session_unref(io->aws);
    pthread_mutex_destroy(&io->lock);
    fz_arena_free(io->arena);
    fz_free(io);
}

fz_status fio_aws(fio *io, aws_session **out, fz_error *err) {
    pthread_mutex_lock(&io->lock);
    fz_status rc = io->aws ? FZ_OK : aws_session_new(io->options, io->n_options, &io->aws, err);
    *out = io->aws;
    pthread_mutex_unlock(&io->lock);
    return rc;
}

const fz_option *fio_options(void) { return s3_options; }

void fio_set_provider(fio *io, aws_provider *p) {
    pthread_mutex_lock(&io->lock);
    aws_provider *before = io->provider;
    io->provider = aws_provider_ref(p);
    pthread_mutex_unlock(&io->lock);
    aws_provider_unref(before);
}

fz_status fio_s3(fio *io, s3_store **out, fz_error *err) {
    aws_session *aws;
    FZ_TRY(fio_aws(io, &aws, err));
    pthread_mutex_lock(&io->lock);
    fz_status rc = io->s3 ? FZ_OK : s3_store_new(io->options, io->n_options, aws, io->provider, &io->s3, err);
    *out = io->s3;
    pthread_mutex_unlock(&io->lock);
    return rc;
}
