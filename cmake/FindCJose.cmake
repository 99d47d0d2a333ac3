# libcjose (Debian: libcjose-dev), which brings no file for CMake: CJose::cjose.
find_path(CJOSE_INCLUDE_DIR cjose/cjose.h)
find_library(CJOSE_LIBRARY cjose)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CJose REQUIRED_VARS CJOSE_LIBRARY CJOSE_INCLUDE_DIR)
if(CJose_FOUND AND NOT TARGET CJose::cjose)
  add_library(CJose::cjose UNKNOWN IMPORTED)
  set_target_properties(CJose::cjose PROPERTIES IMPORTED_LOCATION "${CJOSE_LIBRARY}"
                        INTERFACE_INCLUDE_DIRECTORIES "${CJOSE_INCLUDE_DIR}")
endif()
