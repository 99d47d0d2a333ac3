#pragma once
// Pages of 2 MiB for a program that keeps a large state, where it takes its memory from mimalloc: what a cycle looks at
// lies all over the memory, and fewer addresses have to be looked up. Needs a kernel that gives them to who asks
// (transparent huge pages `madvise` or `always`); elsewhere nothing changes. See docs/decisions/0012.

#ifdef BERTH_MIMALLOC
#include <mimalloc.h>
#endif

namespace berth {

// From now on; to be called before the state is loaded.
inline void take_large_pages() {
#ifdef BERTH_MIMALLOC
  mi_option_enable(mi_option_large_os_pages);
#endif
}

}  // namespace berth
