# bary_warnings(TARGET): strict warnings for bary's own sources. They are errors with the compilers that CI runs;
# another compiler's new warnings must not stop a user's build.
if(BARY_TOP_LEVEL AND ((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
                       OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^14\\.")))
  set(werror_default ON)
else()
  set(werror_default OFF)
endif()
option(BARY_WERROR "Treat warnings as errors" ${werror_default})

function(bary_warnings target)
  if(BARY_TOP_LEVEL)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      # GCC 12 invents overlapping copies in `"literal" + string` once it is inlined (GCC bug 105651, fixed in 13).
      target_compile_options(${target} PRIVATE -Wno-restrict)
    endif()
    if(BARY_WERROR)
      target_compile_options(${target} PRIVATE -Werror)
    endif()
  endif()
endfunction()

# A build type's own flags count too: -Ofast in CMAKE_CXX_FLAGS_RELEASE is as harmful as in CMAKE_CXX_FLAGS.
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
if("${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}" MATCHES
   "-Ofast|-ffast-math|-funsafe-math-optimizations|-ffinite-math-only|-fassociative-math|-freciprocal-math")
  message(FATAL_ERROR "bary: fast-math flags in the compiler flags would break its promise of same bits and delete "
                      "its checks for NaN; remove ${CMAKE_MATCH_0}")
endif()
