/* What is known of a file without reading it. */
#ifndef TENSORFLOW_C_TF_FILE_STATISTICS_H_
#define TENSORFLOW_C_TF_FILE_STATISTICS_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct TF_FileStatistics {
  int64_t length;     /* bytes */
  int64_t mtime_nsec; /* last change */
  bool is_directory;
} TF_FileStatistics;

#endif /* TENSORFLOW_C_TF_FILE_STATISTICS_H_ */
