/* EXTRACT, FLOOR, CEIL, months (datetime.h), with Flink's arithmetic.
 *
 * Invariants
 *  1. Flink holds a timestamp as milliseconds (rounded down) and nanoseconds within them; divisions of milliseconds go towards zero, so that
 *     times before 1970 come out as Flink has them.
 *  2. FLOOR and CEIL look at the milliseconds only; what is below them is dropped.
 */
#include "col/datetime.h"

#include "col/dt_int.h"

#define EPOCH_JULIAN 2440588

static const struct { const char *name; dt_unit unit; } units[] = {
    {"MILLENNIUM", DT_U_MILLENNIUM}, {"CENTURY", DT_U_CENTURY}, {"DECADE", DT_U_DECADE}, {"YEAR", DT_U_YEAR}, {"ISOYEAR", DT_U_ISOYEAR},
    {"QUARTER", DT_U_QUARTER}, {"MONTH", DT_U_MONTH}, {"WEEK", DT_U_WEEK}, {"DOY", DT_U_DOY}, {"DOW", DT_U_DOW}, {"ISODOW", DT_U_ISODOW},
    {"DAY", DT_U_DAY}, {"HOUR", DT_U_HOUR}, {"MINUTE", DT_U_MINUTE}, {"SECOND", DT_U_SECOND}, {"MILLISECOND", DT_U_MILLISECOND},
    {"MICROSECOND", DT_U_MICROSECOND}, {"NANOSECOND", DT_U_NANOSECOND}, {"EPOCH", DT_U_EPOCH}, {"FRAC_SECOND", DT_U_MICROSECOND}};

dt_unit dt_unit_of(fz_sv name) {
    if (name.n > 8 && fz_sv_ieq((fz_sv){name.p, 8}, FZ_SV("SQL_TSI_"))) name.p += 8, name.n -= 8;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (fz_sv_ieq(name, fz_sv_of(units[i].name))) return units[i].unit;
    return DT_U_NONE;
}

static int32_t wrap32(int64_t v) { return (int32_t)(uint32_t)(uint64_t)v; }

int32_t dt_java_days(int32_t year, int32_t month, int32_t day) {
    int32_t a = (14 - month) / 12, y = wrap32((int64_t)year + 4800 - a), m = month + 12 * a - 3;
    return wrap32((int64_t)day + (153 * m + 2) / 5 + wrap32(365LL * y) + y / 4 - y / 100 + y / 400 - 32045 - EPOCH_JULIAN);
}

static int64_t iso_week(int64_t days, int32_t *iso_year) {
    int32_t y, m, d;
    int64_t thursday = days - dt_floor_mod(days + 3, 7) + 3;
    dt_date_of(thursday, &y, &m, &d);
    *iso_year = y;
    return (thursday - dt_days_of(y, 1, 1)) / 7 + 1;
}

bool dt_extract_date(dt_unit u, int32_t days, int64_t *out) {
    int32_t y, m, d, iso_y;
    dt_date_of(days, &y, &m, &d);
    switch (u) {
    case DT_U_MILLENNIUM: *out = y > 0 ? (y + 999) / 1000 : (y - 999) / 1000; return true;
    case DT_U_CENTURY: *out = y > 0 ? (y + 99) / 100 : (y - 99) / 100; return true;
    case DT_U_DECADE: *out = y / 10; return true;
    case DT_U_YEAR: *out = y; return true;
    case DT_U_ISOYEAR: iso_week(days, &iso_y); *out = iso_y; return true;
    case DT_U_QUARTER: *out = (m + 2) / 3; return true;
    case DT_U_MONTH: *out = m; return true;
    case DT_U_WEEK: *out = iso_week(days, &iso_y); return true;
    case DT_U_DOY: *out = days - dt_days_of(y, 1, 1) + 1; return true;
    case DT_U_DOW: *out = dt_floor_mod((int64_t)days + 4, 7) + 1; return true;
    case DT_U_ISODOW: *out = dt_floor_mod((int64_t)days + 3, 7) + 1; return true;
    case DT_U_DAY: *out = d; return true;
    case DT_U_EPOCH: *out = days * 86400LL; return true;
    case DT_U_HOUR: case DT_U_MINUTE: case DT_U_SECOND: case DT_U_MILLISECOND: case DT_U_MICROSECOND: case DT_U_NANOSECOND: *out = 0; return true;
    case DT_U_NONE: break;
    }
    return false;
}

/* The parts of a time within its day, in milliseconds, by Java's remainder. */
static bool extract_clock(dt_unit u, int64_t ms, int64_t nano_of_ms, int64_t *out) {
    switch (u) {
    case DT_U_HOUR: *out = ms % DT_MS_PER_DAY / 3600000; return true;
    case DT_U_MINUTE: *out = ms % 3600000 / 60000; return true;
    case DT_U_SECOND: *out = ms % 60000 / 1000; return true;
    case DT_U_MILLISECOND: *out = ms % 1000; return true;
    case DT_U_MICROSECOND: *out = ms % 1000 * 1000 + nano_of_ms / 1000; return true;
    case DT_U_NANOSECOND: *out = ms % 1000 * 1000000 + nano_of_ms; return true;
    case DT_U_EPOCH: *out = ms / 1000; return true;
    default: return false;
    }
}

bool dt_extract_timestamp(dt_unit u, int64_t us, int64_t *out) {
    int64_t ms = dt_floor_div(us, 1000);
    if (extract_clock(u, ms, (us - ms * 1000) * 1000, out)) return true;
    return dt_extract_date(u, (int32_t)(ms / DT_MS_PER_DAY), out);
}

bool dt_extract_time(dt_unit u, int32_t ms, int64_t *out) { return u != DT_U_EPOCH && extract_clock(u, ms, 0, out); }

bool dt_extract_interval_month(dt_unit u, int32_t months, int64_t *out) {
    switch (u) {
    case DT_U_MILLENNIUM: *out = months / 12000; return true;
    case DT_U_CENTURY: *out = months / 1200; return true;
    case DT_U_DECADE: *out = months / 120; return true;
    case DT_U_YEAR: *out = months / 12; return true;
    case DT_U_QUARTER: *out = months % 12 / 3 + 1; return true;
    case DT_U_MONTH: *out = months % 12; return true;
    default: return false;
    }
}

bool dt_extract_interval_day(dt_unit u, int64_t ms, int64_t *out) {
    if (u == DT_U_DAY) return *out = ms / DT_MS_PER_DAY, true;
    return extract_clock(u, ms, 0, out);
}

/* Year, month and day of a julian day number; before 2299161 (1582-10-15) in the Julian calendar, as Flink's rounding has it. */
static void julian_date(int32_t julian, int32_t *year, int32_t *month, int32_t *day) {
    int32_t b = 0, c = wrap32((int64_t)julian + 32082); /* Java's int arithmetic wraps */
    if (julian > 2299160) {
        int32_t a = wrap32((int64_t)julian + 32044);
        b = wrap32(4LL * a + 3) / 146097;
        c = wrap32(a - (int64_t)b * 146097 / 4);
    }
    int32_t d = wrap32(4LL * c + 3) / 1461, e = wrap32(c - 1461LL * d / 4), m = wrap32(5LL * e + 2) / 153;
    *day = e - (153 * m + 2) / 5 + 1;
    *month = m + 3 - 12 * (m / 10);
    *year = b * 100 + d - 4800 + m / 10;
}

static bool round_days(dt_unit u, bool up, int32_t days, int32_t *out) {
    int32_t y, m, d, julian = wrap32((int64_t)days + EPOCH_JULIAN);
    julian_date(julian, &y, &m, &d);
    bool inside = m > 1 || d > 1;
    switch (u) {
    case DT_U_MILLENNIUM: *out = dt_java_days(1000 * ((y + 999) / 1000) + (up ? 1 : -999), 1, 1); return true;
    case DT_U_CENTURY: *out = dt_java_days(100 * ((y + 99) / 100) + (up ? 1 : -99), 1, 1); return true;
    case DT_U_DECADE: *out = dt_java_days(10 * (y / 10 + up), 1, 1); return true;
    case DT_U_YEAR: *out = dt_java_days(y + (up && inside), 1, 1); return true;
    case DT_U_MONTH: *out = dt_java_days(y, m + (up && d > 1), 1); return true;
    case DT_U_QUARTER: *out = dt_java_days(y, ((m + 2) / 3 + (up && inside)) * 3 - 2, 1); return true;
    case DT_U_WEEK: {
        int32_t dow = (int32_t)dt_floor_mod((int64_t)julian + 1, 7);
        *out = dt_java_days(y, m, d) - (up && dow > 0 ? dow - 7 : dow);
        return true;
    }
    default: return false;
    }
}

bool dt_round_date(dt_unit u, bool up, int32_t days, int32_t *out) {
    if (u == DT_U_DAY) return *out = days + up, true; /* Flink's CEIL takes the next day in any case */
    return round_days(u, up, days, out);
}

static int64_t unit_ms(dt_unit u) {
    switch (u) {
    case DT_U_DAY: return DT_MS_PER_DAY;
    case DT_U_HOUR: return 3600000;
    case DT_U_MINUTE: return 60000;
    case DT_U_SECOND: return 1000;
    case DT_U_MILLISECOND: return 1;
    default: return 0;
    }
}

static int64_t round_ms(int64_t v, int64_t unit, bool up) {
    int64_t r = v % unit;
    if (up) return v - r + (r > 0 ? unit : 0);
    return v - r - (r < 0 ? unit : 0);
}

bool dt_round_timestamp(dt_unit u, bool up, int64_t us, int64_t *out) {
    int64_t ms = dt_floor_div(us, 1000), unit = unit_ms(u);
    if (unit) return *out = round_ms(ms, unit, up) * 1000, true;
    int32_t days;
    if (!round_days(u, up, (int32_t)(ms / DT_MS_PER_DAY), &days)) return false;
    *out = days * DT_US_PER_DAY;
    return true;
}

bool dt_round_time(dt_unit u, bool up, int32_t ms, int32_t *out) {
    int64_t unit = unit_ms(u);
    if (!unit || unit == DT_MS_PER_DAY) return false;
    *out = (int32_t)round_ms(ms, unit, up);
    return true;
}

int32_t dt_add_months_date(int32_t days, int32_t months) {
    int32_t y, m, d;
    dt_date_of(days, &y, &m, &d);
    int64_t total = (int64_t)y * 12 + (m - 1) + months, ny = dt_floor_div(total, 12);
    int nm = (int)(total - ny * 12) + 1, last = dt_month_length(ny, nm);
    return wrap32(dt_days_of(ny, nm, d > last ? last : d));
}

int64_t dt_add_months(int64_t us, int32_t months) {
    int64_t rest = dt_floor_mod(us, DT_US_PER_DAY);
    return dt_add_months_date((int32_t)((us - rest) / DT_US_PER_DAY), months) * DT_US_PER_DAY + rest;
}

int32_t dt_months_between_dates(int32_t a, int32_t b) {
    if (a < b) return -dt_months_between_dates(b, a);
    int32_t ya, ma, da, yb, mb, db;
    dt_date_of(a, &ya, &ma, &da);
    dt_date_of(b, &yb, &mb, &db);
    int32_t m = (ya - yb) * 12 + ma - mb;
    return m > 0 && dt_add_months_date(b, m) > a ? m - 1 : m;
}

int32_t dt_months_between(int64_t a_us, int64_t b_us) {
    int64_t a = dt_floor_div(a_us, 1000), b = dt_floor_div(b_us, 1000);
    int32_t da = (int32_t)dt_floor_div(a, DT_MS_PER_DAY), db = (int32_t)dt_floor_div(b, DT_MS_PER_DAY);
    int32_t m = dt_months_between_dates(da, db);
    return dt_add_months_date(db, m) == da && dt_floor_mod(a, DT_MS_PER_DAY) < dt_floor_mod(b, DT_MS_PER_DAY) ? m - 1 : m;
}

int32_t dt_timestamp_to_date(int64_t us) { return (int32_t)(dt_floor_div(us, 1000) / DT_MS_PER_DAY); }

/* The last second before midnight of days before 1970 is 00:00:00, as Flink's planner folds it. */
int32_t dt_timestamp_to_time(int64_t us) {
    int32_t r = (int32_t)(dt_floor_div(us, 1000) % DT_MS_PER_DAY);
    return r >= 0 ? r : r > -1000 ? 0 : r + (int32_t)DT_MS_PER_DAY;
}
