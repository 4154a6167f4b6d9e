/* The outward header of the lowest room. */
#ifndef FZ_BASE_H
#define FZ_BASE_H
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/hashset.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/option.h"
#include "base/queue.h"
#include "base/record.h"
#include "base/str.h"
#include "base/version.h"
#endif
