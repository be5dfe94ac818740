# One test program per folder of src/ (and one for tests/), so that editing one relinks only its own.
find_package(GTest REQUIRED)

add_library(tenon_test_support STATIC tests/op_test.cc tests/model_builder.cc tests/pass_test.cc)
target_include_directories(tenon_test_support PUBLIC src tests)
target_link_libraries(tenon_test_support PUBLIC tenon tenon_headers GTest::gtest_main)
# Tests are compiled more often than they run, but those of kernels, whose references compute for minutes.
target_compile_options(tenon_test_support PUBLIC $<$<CONFIG:Release>:$<IF:$<BOOL:$<TARGET_PROPERTY:COMPUTES_FOR_LONG>>,-O1,-O0>>)
# A precompiled header fits only code of the same kind: that of programs, which the tests are.
set_target_properties(tenon_test_support PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_compile_options(tenon_test_support PRIVATE -fPIE)
# Only for those that need it: ccache finds the others in another clone.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/providers/cpu/registry_test.cc ${PROJECT_SOURCE_DIR}/src/tools/health_test.cc
  ${PROJECT_SOURCE_DIR}/src/session/custom_operator_library_test.cc PROPERTIES COMPILE_DEFINITIONS TENON_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
target_precompile_headers(tenon_test_support PRIVATE ${tenon_common_headers} <gtest/gtest.h>)

function(tenon_test_program name folder)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/test.cc ${PROJECT_SOURCE_DIR}/${folder}/*_test.cc)
  if(files)
    add_executable(test_${name} ${files})
    target_link_libraries(test_${name} PRIVATE tenon_test_support)
    if(name STREQUAL kernels)
      set_target_properties(test_${name} PROPERTIES COMPUTES_FOR_LONG ON)
      target_precompile_headers(test_${name} PRIVATE ${tenon_common_headers} <gtest/gtest.h>)
    else()
      target_precompile_headers(test_${name} REUSE_FROM tenon_test_support)
    endif()
    add_test(NAME ${name} COMMAND test_${name})
  endif()
endfunction()

foreach(layer base tensor kernels ir onnx provider ops passes session tools)
  tenon_test_program(${layer} src/${layer})
endforeach()
tenon_test_program(cpu_provider src/providers/cpu)
tenon_test_program(cuda_provider src/providers/cuda)
target_compile_definitions(test_cuda_provider PRIVATE TENON_EMULATED_CUDA="${PROJECT_BINARY_DIR}/cuda_emulated")

add_executable(rewrite tests/rewrite.cc)
target_link_libraries(rewrite PRIVATE tenon_test_support)
target_precompile_headers(rewrite REUSE_FROM tenon_test_support)

if(TARGET read_digits)
  add_test(NAME read_digits COMMAND read_digits ${PROJECT_SOURCE_DIR}/examples/digits/digits.onnx
                                                ${PROJECT_SOURCE_DIR}/examples/digits/picture.pgm)
  set_tests_properties(read_digits PROPERTIES PASS_REGULAR_EXPRESSION "3 1 4 1 5 9 2 6 5 3")
  add_test(NAME run_custom_operators COMMAND run_custom_operators ${PROJECT_SOURCE_DIR}/examples/custom_operator/model.onnx)
  set_tests_properties(run_custom_operators PROPERTIES PASS_REGULAR_EXPRESSION "0 0 0 2 -1.75 0.375")
endif()

# The fuzzers run for a minute each on the models of the repository and of the ONNX suite (tests/onnx_suite.py). The reader's is always built with sanitizers;
# the other one takes those of the whole build.
if(TENON_FUZZERS)
  set(TENON_FUZZ_SECONDS 60 CACHE STRING "How long each fuzzer runs in the tests")
  set(fuzz_corpus ${PROJECT_SOURCE_DIR}/tests/models ${PROJECT_SOURCE_DIR}/examples ${PROJECT_SOURCE_DIR}/build/suite/node)

  file(GLOB_RECURSE reader_sources CONFIGURE_DEPENDS src/base/*.cc src/tensor/*.cc src/ir/*.cc src/onnx/*.cc)
  list(FILTER reader_sources EXCLUDE REGEX "_test\\.cc$")
  add_executable(fuzz_reader tests/fuzz/fuzz_reader.cc tests/fuzz/driver.cc ${reader_sources})
  target_include_directories(fuzz_reader PRIVATE src include)
  target_link_libraries(fuzz_reader PRIVATE tenon_headers Threads::Threads)
  target_compile_definitions(fuzz_reader PRIVATE TENON_VERSION="${PROJECT_VERSION}")
  target_precompile_headers(fuzz_reader PRIVATE ${tenon_common_headers})
  target_compile_options(fuzz_reader PRIVATE -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all)
  target_link_options(fuzz_reader PRIVATE -fsanitize=address,undefined)

  add_executable(fuzz_load tests/fuzz/fuzz_load.cc tests/fuzz/driver.cc)
  target_link_libraries(fuzz_load PRIVATE tenon)

  add_executable(fuzz_compiled tests/fuzz/fuzz_compiled.cc tests/fuzz/driver.cc)
  target_include_directories(fuzz_compiled PRIVATE src)
  target_link_libraries(fuzz_compiled PRIVATE tenon tenon_headers)
  target_compile_definitions(fuzz_compiled PRIVATE TENON_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME fuzz_compiled COMMAND fuzz_compiled --seconds ${TENON_FUZZ_SECONDS})

  foreach(name fuzz_reader fuzz_load)
    add_test(NAME ${name} COMMAND ${name} --seconds ${TENON_FUZZ_SECONDS} ${fuzz_corpus})
  endforeach()
endif()

# Libraries of custom operators that src/session/custom_operator_library_test.cc loads, good and bad ones.
file(GLOB libraries CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/custom_operators/*.cc)
foreach(file IN LISTS libraries)
  get_filename_component(name ${file} NAME_WE)
  add_library(custom_${name} MODULE ${file})
  if(name STREQUAL unlinked)
    target_include_directories(custom_${name} PRIVATE include)
  else()
    target_link_libraries(custom_${name} PRIVATE tenon)
  endif()
  # As projects that do not hide their symbols build them.
  set_target_properties(custom_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/custom_operators
                                                  CXX_VISIBILITY_PRESET default)
  add_dependencies(test_session custom_${name})
endforeach()
set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/session/custom_operator_library_test.cc APPEND PROPERTY
  COMPILE_DEFINITIONS TENON_TEST_LIBRARIES="${PROJECT_BINARY_DIR}/custom_operators")

# A stand-in for NVIDIA's libraries under the names that src/cuda/libraries.cc looks for: TENON_CUDA_PATH=build/cuda_emulated
# runs the CUDA provider without a GPU.
add_library(emulated_cuda SHARED tests/cuda/emulated_compiler.cc tests/cuda/emulated_driver.cc)
target_include_directories(emulated_cuda PRIVATE src)
# What every kernel is compiled with is compiled ahead.
set(emulated_kernels ${PROJECT_BINARY_DIR}/cuda_emulated/emulated_kernels.h)
set(emulated_compiler "${CMAKE_CXX_COMPILER} -std=c++20 -O1 -w -fPIC -ffp-contract=off")
separate_arguments(emulated_command UNIX_COMMAND "${emulated_compiler}")
add_custom_command(OUTPUT ${emulated_kernels}.gch
  COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_SOURCE_DIR}/tests/cuda/emulated_kernels.h ${emulated_kernels}
  COMMAND ${emulated_command} -x c++-header ${emulated_kernels} -o ${emulated_kernels}.gch
  DEPENDS tests/cuda/emulated_kernels.h)
target_sources(emulated_cuda PRIVATE ${emulated_kernels}.gch)
target_compile_definitions(emulated_cuda PRIVATE TENON_EMULATED_COMMAND="${emulated_compiler} -include ${emulated_kernels}"
  TENON_EMULATED_KERNELS="${emulated_kernels}")
target_compile_options(emulated_cuda PRIVATE -O2 -Wno-psabi)
target_link_libraries(emulated_cuda PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(emulated_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/cuda_emulated CXX_VISIBILITY_PRESET default)
foreach(name libcuda.so.1 libnvrtc.so.13 libcublasLt.so.13 libcudnn.so.9)
  add_custom_command(TARGET emulated_cuda POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE_NAME:emulated_cuda> ${PROJECT_BINARY_DIR}/cuda_emulated/${name})
endforeach()
add_dependencies(test_cuda_provider emulated_cuda)
