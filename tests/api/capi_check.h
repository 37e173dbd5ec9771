/* Checks of the C tests: a failed check is counted in `failures`, and the test goes on. */
#ifndef TRIVELET_TESTS_API_CAPI_CHECK_H
#define TRIVELET_TESTS_API_CAPI_CHECK_H

#include <stdio.h>

static int failures = 0;

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      ++failures;                                                               \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                           \
  } while (0)

#endif
