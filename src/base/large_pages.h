#pragma once
// Memory pages of 2 MiB for a program with a large state that takes its memory from mimalloc. A cycle reads memory all
// over the state, and with large pages the CPU has fewer addresses to translate. It needs a kernel with transparent
// huge pages set to `madvise` or `always`; elsewhere it changes nothing. See docs/decisions/0012.

#ifdef BERTH_MIMALLOC
#include <mimalloc.h>
#endif

namespace berth {

// Requests large pages from now on. Call it before the state is loaded.
inline void take_large_pages() {
#ifdef BERTH_MIMALLOC
  mi_option_enable(mi_option_large_os_pages);
#endif
}

}  // namespace berth
