/* INSERTs whose plan is no chain over a connector table: VALUES, aggregates, UNION ALL, reads of Iceberg tables. They run once, before the workers
 * start, and have no positions: their commit is recognised by its id. See job_int.h. */
#include "job/job_int.h"

static void count(job_sink *s, uint32_t n, uint32_t rejected) {
    const job_counts c = {.read = n, .added = n - rejected, .rejected = rejected};
    const job_taken taken = {.n = c, .paths = 1, .arrival_ms = fz_now_ms()};
    job_tally_take(&s->tally, &taken, NULL, NULL, n, 0);
    s->oneshot.read += c.read;
    s->oneshot.added += c.added;
    s->oneshot.rejected += c.rejected;
}

fz_status job_run_oneshot(job *j, job_path *p, fz_error *err) {
    ex_query *q = NULL;
    FZ_TRY(ex_query_open(p->insert->plan, j->spec->sql, j->spec->feed, j->on_row_error == ROW_DROP, &q, err));
    fz_status rc = FZ_OK;
    for (;;) {
        col_batch *b = NULL;
        if (job_stop_requested()) break;
        rc = ex_query_next(q, &b, err);
        if (rc != FZ_OK || !b) break;
        fz_rejects rejects = {0};
        uint32_t added;
        if (p->sink->delivery) job_hand_to_courier(p->sink, b, b->cols, b->n_rows, NULL, 0, 0);
        else rc = job_hand_over(j, p->sink, b, b->cols, b->n_rows, &rejects, &added, err);
        if (rc == FZ_OK && rejects.n && j->on_null != ROW_DROP) rc = fz_fail(err, FZ_DATA, rejects.v[0].code, "%s", rejects.v[0].message);
        fz_metric_add(FZ_M_ROWS_REJECTED, rejects.n);
        if (rc == FZ_OK) count(p->sink, b->n_rows, rejects.n);
        fz_free(rejects.v);
        col_batch_release(b);
        if (rc != FZ_OK) break;
    }
    ex_query_close(q);
    return rc;
}
