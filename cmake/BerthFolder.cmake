# Sources of one subfolder are compiled eight at a time, as one text: reading the headers costs more than what most sources say
# themselves. So a name in an anonymous namespace is used once in a folder. Which go together follows from their names alone,
# and is the same in every preset. BERTH_TOGETHER=1 compiles each by itself (tools/lint reads them so).
#
# The texts include by a path that is the same in every checkout, so that ccache knows them again; CMake's own UNITY_BUILD
# writes absolute ones.
set(BERTH_TOGETHER 8 CACHE STRING "How many sources are compiled as one")
function(berth_together name result)
  if(BERTH_TOGETHER LESS 2)
    set(${result} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(groups "")
  set(texts "")
  foreach(source ${ARGN})
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    if(NOT DEFINED count_${folder})
      set(count_${folder} 0)
    endif()
    math(EXPR number "${count_${folder}} / ${BERTH_TOGETHER}")
    math(EXPR count_${folder} "${count_${folder}} + 1")
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/src)
    string(APPEND includes_of_${folder}_${number} "#include \"${source}\"\n")
    list(APPEND groups ${folder}_${number})
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group ${groups})
    set(text ${CMAKE_CURRENT_BINARY_DIR}/together/${name}_${group}.cc)
    file(CONFIGURE OUTPUT ${text} CONTENT "${includes_of_${group}}" @ONLY)  # left alone where it says so already
    list(APPEND texts ${text})
  endforeach()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # g++ takes a source that another includes for a header, in which a member of an anonymous type would be a fault.
    set_source_files_properties(${texts} PROPERTIES COMPILE_OPTIONS -Wno-subobject-linkage)
  endif()
  set(${result} ${texts} PARENT_SCOPE)
endfunction()

# A release is optimised fully (-O2) where its time goes: what decides, what is folded, stored, billed and asked of each request.
# The rest waits for the network, the disk or a person, and -O1 compiles it in three quarters of the time.
set(BERTH_HOT base model state sched control billing store policy)
# Of an inline function that both have, mold takes the copy of the archive that comes first: so a program links these first.
list(TRANSFORM BERTH_HOT PREPEND berth_ OUTPUT_VARIABLE BERTH_HOT_LIBRARIES)

# One folder of src/ is one static library `berth_<folder>`, and the *_test.cc files beside its sources are one
# test program `<folder>_test`; the *_property_test.cc among them are `<folder>_property_test`. `LINK` names what the folder
# links: other folders and external libraries; `ALONE` the sources that have compile options of their own.
function(berth_folder name)
  cmake_parse_arguments(ARG "" "" "LINK;TEST_LINK;ALONE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/*/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|_main)\\.cc$")
  if(sources)
    list(TRANSFORM ARG_ALONE PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    if(ARG_ALONE)
      list(REMOVE_ITEM sources ${ARG_ALONE})
    endif()
    berth_together(berth_${name} sources ${sources})
    add_library(berth_${name} STATIC ${sources} ${ARG_ALONE})
    target_link_libraries(berth_${name} PUBLIC berth_options ${ARG_LINK})
    if(CMAKE_BUILD_TYPE STREQUAL Release AND NOT name IN_LIST BERTH_HOT)
      target_compile_options(berth_${name} PRIVATE -O1)
    endif()
  else()
    add_library(berth_${name} INTERFACE)
    target_link_libraries(berth_${name} INTERFACE berth_options ${ARG_LINK})
  endif()
  set(properties ${tests})
  list(FILTER properties INCLUDE REGEX "_property_test\\.cc$")
  list(FILTER tests EXCLUDE REGEX "_property_test\\.cc$")
  if(tests)
    berth_together(${name}_test tests ${tests})
    berth_test(${name}_test SOURCES ${tests} LINK berth_${name} ${ARG_TEST_LINK})
  endif()
  if(properties)
    berth_together(${name}_property_test properties ${properties})
    berth_test(${name}_property_test SOURCES ${properties} LINK berth_${name} ${ARG_TEST_LINK})
  endif()
endfunction()

# A doctest program registered with ctest. One main for all of them: compiling doctest's runner is dear.
function(berth_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;ARGS" ${ARGN})
  if(NOT TARGET berth_doctest_main)
    add_library(berth_doctest_main STATIC ${CMAKE_SOURCE_DIR}/cmake/doctest_main.cc)
    target_link_libraries(berth_doctest_main PUBLIC doctest::doctest)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)  # for tests/support
  target_link_libraries(${name} PRIVATE berth_options berth_doctest_main ${ARG_LINK})
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()
