# One test program per folder of src/ (and one for tests/), so that editing one relinks only its own.
find_package(GTest REQUIRED)

add_library(tenon_test_support STATIC tests/op_test.cc)
target_include_directories(tenon_test_support PUBLIC src tests)
target_link_libraries(tenon_test_support PUBLIC tenon tenon_headers GTest::gtest_main)

function(tenon_test_program name folder)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/test.cc ${PROJECT_SOURCE_DIR}/${folder}/*_test.cc)
  if(files)
    add_executable(test_${name} ${files})
    target_link_libraries(test_${name} PRIVATE tenon_test_support)
    target_compile_definitions(test_${name} PRIVATE TENON_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    add_test(NAME ${name} COMMAND test_${name})
  endif()
endfunction()

foreach(layer base tensor kernels ir onnx provider ops passes session tools)
  tenon_test_program(${layer} src/${layer})
endforeach()
tenon_test_program(cpu_provider src/providers/cpu)
