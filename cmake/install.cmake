# What `cmake --install` lays down: the library with its headers, the command, and the files that let another project
# say find_package(bary) and link bary::bary. tests/install proves it on a consumer.
include(CMakePackageConfigHelpers)

get_property(modules GLOBAL PROPERTY BARY_MODULES)
install(TARGETS bary ${modules} EXPORT bary-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT bary-targets NAMESPACE bary:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/bary)

# Headers of the library only: not those of the front doors, of tests, or of a kernel's insides.
foreach(module ${modules})
  string(REGEX REPLACE "^bary_" "" folder ${module})
  install(DIRECTORY src/bary/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/bary
          FILES_MATCHING PATTERN "*.h" PATTERN "*_test.h" EXCLUDE PATTERN "*-inl.h" EXCLUDE)
endforeach()

configure_package_config_file(cmake/bary-config.cmake.in ${PROJECT_BINARY_DIR}/bary-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/bary)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/bary-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/bary-config.cmake ${PROJECT_BINARY_DIR}/bary-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/bary)

if(TARGET bary_command)
  install(TARGETS bary_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
