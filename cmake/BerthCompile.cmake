# Language level, warnings, sanitizers, ccache and mold: everything that is the same for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(BERTH_CCACHE ccache)
if(BERTH_CCACHE)
  # What one checkout compiled serves every other, wherever it lies: paths below the checkout count from where it begins.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${BERTH_CCACHE})
endif()
find_program(BERTH_MOLD mold)
if(BERTH_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# What is released is hardened; tests/e2e/hardened_test.py reads the binaries.
if(CMAKE_BUILD_TYPE STREQUAL Release AND NOT BERTH_SANITIZE)
  add_compile_options(-fPIE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
    add_compile_options(-fcf-protection=full)
  endif()
  add_link_options(-pie -Wl,-z,relro -Wl,-z,now -Wl,--as-needed)
endif()

add_library(berth_options INTERFACE)
target_include_directories(berth_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(berth_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wsuggest-override -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping copies in plain std::string code once it optimises (GCC bug 105651).
  target_compile_options(berth_options INTERFACE $<$<CONFIG:Release>:-Wno-restrict>)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # g++ is the reference for warnings; what clang alone dislikes is the business of clang-tidy (tools/lint).
  target_compile_options(berth_options INTERFACE -Wno-suggest-override -Wno-unknown-warning-option -Wno-error)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping copies in string concatenation at -O2 that are not there (GCC bug 105651).
  target_compile_options(berth_options INTERFACE -Wno-restrict)
endif()
if(BERTH_FUZZ)
  # Coverage feedback for every library that a fuzz target links.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
target_compile_definitions(berth_options INTERFACE
  BOOST_ALL_NO_LIB $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS> $<$<NOT:$<BOOL:${BERTH_PLANTABLE_BUGS}>>:BERTH_NO_PLANTABLE_BUGS=1>)
if(BERTH_SANITIZE)
  add_compile_options(-fsanitize=${BERTH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BERTH_SANITIZE})
endif()
