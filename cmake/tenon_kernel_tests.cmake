# The tests of src/base and src/kernels as one program that needs no other part of Tenon: small enough to be built for
# another processor and to run in an emulator (scripts/test_emulated). GoogleTest is built from the sources that its
# package has, as it is installed for one processor only.
set(TENON_GOOGLETEST /usr/src/googletest CACHE PATH "GoogleTest's sources, for TENON_KERNEL_TESTS")
set(INSTALL_GTEST OFF)
add_subdirectory(${TENON_GOOGLETEST} googletest EXCLUDE_FROM_ALL)

tenon_collect_sources(src/base base_sources)
tenon_collect_sources(src/kernels kernel_sources)
file(GLOB_RECURSE kernel_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/base/*_test.cc ${PROJECT_SOURCE_DIR}/src/kernels/test.cc
     ${PROJECT_SOURCE_DIR}/src/kernels/*_test.cc)
add_executable(test_base_and_kernels EXCLUDE_FROM_ALL ${base_sources} ${kernel_sources} ${kernel_tests})
target_include_directories(test_base_and_kernels PRIVATE src include tests)
target_compile_definitions(test_base_and_kernels PRIVATE TENON_VERSION="${PROJECT_VERSION}")
target_link_libraries(test_base_and_kernels PRIVATE tenon_headers Threads::Threads gtest_main)
