# bench_load needs only the library; the kernels' benchmarks need Google Benchmark and are left out without it.
add_executable(bench_load bench/load.cc)
target_include_directories(bench_load PRIVATE src)
target_link_libraries(bench_load PRIVATE tenon tenon_headers)

find_package(benchmark QUIET)
file(GLOB_RECURSE files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_bench.cc ${PROJECT_SOURCE_DIR}/src/bench.cc)
list(FILTER files INCLUDE REGEX "(/|_)bench\\.cc$")
if(files AND benchmark_FOUND)
  add_executable(bench_kernels ${files})
  target_include_directories(bench_kernels PRIVATE src)
  target_link_libraries(bench_kernels PRIVATE tenon tenon_headers benchmark::benchmark_main)
endif()
