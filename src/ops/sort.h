/*
 * sort: what sort.c (meaning, eval) and sort_lower.c (steps) share.
 */
#ifndef BRAID_SORT_H
#define BRAID_SORT_H

#include "ops/row.h"

braid_status top_lower(lowering *);

#endif
