# Everything comes from the distribution (Debian 12 package names in tools/setup/packages.txt).
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CURL REQUIRED)
find_package(hwy REQUIRED)
if(BARY_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# Third-party libraries by floor; PUBLIC only where a public header includes them.
set(BARY_PUBLIC_LIBS_base fmt::fmt Threads::Threads nlohmann_json::nlohmann_json)
set(BARY_LIBS_base tomlplusplus::tomlplusplus)
set(BARY_LIBS_text CURL::libcurl)
