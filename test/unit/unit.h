/* What every unit test includes: cmocka and its needs. */
#ifndef UNIT_H
#define UNIT_H
#include <setjmp.h>
#include <stdio.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#endif
