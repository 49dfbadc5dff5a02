# bary_module(NAME [INTERNAL] [DEPS module...] [LIBS target...])
# One folder of src/bary is one static library, bary_NAME, that links only the floors below it. Sources and tests are
# found by glob (x.cc, and x_test.cc beside it), so neither can be forgotten in a list. A main.cc is an
# executable's and is left out. INTERNAL: part of the command, not of what is installed as bary::bary.
add_library(bary INTERFACE)
add_library(bary::bary ALIAS bary)
set_property(GLOBAL PROPERTY BARY_MODULES "")
set_property(GLOBAL PROPERTY BARY_INTERNAL_MODULES "")

function(bary_module name)
  cmake_parse_arguments(M "INTERNAL" "" "DEPS;LIBS" ${ARGN})
  set(dir ${PROJECT_SOURCE_DIR}/src/bary/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cc ${dir}/*.h)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.(cc|h)$")
  set(units ${sources})
  list(FILTER units INCLUDE REGEX "\\.cc$")
  if(NOT units)
    return()
  endif()

  set(lib bary_${name})
  add_library(${lib} STATIC ${sources})
  add_library(bary::${name} ALIAS ${lib})
  set_target_properties(${lib} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_compile_features(${lib} PUBLIC cxx_std_20)
  target_include_directories(${lib} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # Part of the promise of same bits: a multiply and an add become one FMA only where the code says so. PUBLIC because
  # an inline function of a header compiled elsewhere may be the copy that the linker keeps.
  target_compile_options(${lib} PUBLIC -ffp-contract=off)
  target_compile_definitions(${lib} PRIVATE BARY_VERSION="${PROJECT_VERSION}")
  bary_warnings(${lib})
  if(name STREQUAL "kernel" AND CMAKE_CXX_FLAGS MATCHES "undefined")
    # Unrolled tiles take minutes a file under UBSan; AddressSanitizer watches their memory, the tests their numbers.
    target_compile_options(${lib} PRIVATE -fno-sanitize=undefined)
  endif()
  if(name STREQUAL "kernel" AND CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Highway's NEON functions are compiled with the AES extension; g++ does not inline them into code without it.
    target_compile_options(${lib} PRIVATE -march=armv8-a+crypto)
  endif()
  foreach(dep ${M_DEPS})
    if(TARGET bary_${dep})
      target_link_libraries(${lib} PUBLIC bary_${dep})
    endif()
  endforeach()
  target_link_libraries(${lib} PRIVATE ${M_LIBS} ${BARY_LIBS_${name}} PUBLIC ${BARY_PUBLIC_LIBS_${name}})
  if(M_INTERNAL)
    set_property(GLOBAL APPEND PROPERTY BARY_INTERNAL_MODULES ${lib})
  else()
    target_link_libraries(bary INTERFACE ${lib})
    set_property(GLOBAL APPEND PROPERTY BARY_MODULES ${lib})
  endif()

  if(BARY_TESTS AND tests)
    bary_test(${name} LABEL unit SOURCES ${tests} LIBS ${lib} ${M_LIBS} ${BARY_LIBS_${name}})
  endif()
endfunction()

# bary_test(NAME LABEL label SOURCES file... LIBS target...)
# A GoogleTest program bary_NAME_test, each TEST a CTest of its own called NAME.Suite.Case. A test with "Slow" in its
# suite or case name gets the label slow instead, which the sanitizer runs leave out.
function(bary_test name)
  cmake_parse_arguments(M "" "LABEL" "SOURCES;LIBS" ${ARGN})
  set(program bary_${name}_test)
  add_executable(${program} ${M_SOURCES})
  bary_warnings(${program})
  target_link_libraries(${program} PRIVATE ${M_LIBS} GTest::gtest GTest::gtest_main)
  target_compile_features(${program} PRIVATE cxx_std_20)
  # What is tested is the library, built as users get it; the tests themselves are compiled quickly. A sanitizer's
  # checks make -O1 three times as slow to compile as -O0.
  target_compile_options(${program} PRIVATE $<$<CONFIG:Release>:-O1> $<$<CONFIG:RelWithDebInfo>:-O0>)
  target_compile_definitions(${program} PRIVATE BARY_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                                BARY_BUILD_DIR="${PROJECT_BINARY_DIR}")
  gtest_discover_tests(${program} TEST_PREFIX ${name}. TEST_FILTER "-*Slow*"
                       PROPERTIES LABELS ${M_LABEL} TIMEOUT 300 DISCOVERY_TIMEOUT 60)
  gtest_discover_tests(${program} TEST_PREFIX ${name}. TEST_FILTER "*Slow*"
                       PROPERTIES LABELS slow TIMEOUT 1200 DISCOVERY_TIMEOUT 60)
endfunction()
