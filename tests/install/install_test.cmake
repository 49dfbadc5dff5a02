# Run by CTest with -P; see CMakeLists.txt beside it for the variables.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    string(REPLACE ";" " " command "${ARGV}")
    message(FATAL_ERROR "install: failed (${result}): ${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)

# What is laid down is the library, not its tests and not the front doors' headers.
file(GLOB_RECURSE headers RELATIVE ${WORK}/prefix ${WORK}/prefix/include/*)
if(NOT headers MATCHES "include/bary/base/error.h")
  message(FATAL_ERROR "install: include/bary/base/error.h is missing; found: ${headers}")
endif()
if(headers MATCHES "_test\\.|-inl\\.h|bary/cli/|\\.cc")
  message(FATAL_ERROR "install: headers that should not be installed: ${headers}")
endif()
# A prefix that is moved must still work: no path of the build may be written into the files.
file(RENAME ${WORK}/prefix ${WORK}/moved)

run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/consumer -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${WORK}/moved
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_BUILD_TYPE=${CONFIG})
run(${CMAKE_COMMAND} --build ${WORK}/consumer)
run(${WORK}/consumer/consumer)
if(NOT output MATCHES "^e = 2\\.71828182845905.*\n4 tokens\n.*n_embd 16 is not divisible by n_head 3")
  message(FATAL_ERROR "install: the consumer printed \"${output}\"")
endif()
message(STATUS "consumer: ${output}")

# As a subfolder of a project with files and a build type of its own: configured only.
run(${CMAKE_COMMAND} -S ${CONSUMER}/../subfolder -B ${WORK}/subfolder -G ${GENERATOR} -DBARY=${SOURCE}
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS})

if(COMMAND_BUILT)
  run(${WORK}/moved/bin/bary --version)
  if(NOT output MATCHES "${VERSION}")
    message(FATAL_ERROR "install: bary --version printed \"${output}\", expected ${VERSION} in it")
  endif()
endif()
