# tenon_headers: the header-only dependencies, from the system's packages or from the folder TENON_HEADERS.
add_library(tenon_headers INTERFACE)
if(TENON_HEADERS)
  target_include_directories(tenon_headers SYSTEM INTERFACE ${TENON_HEADERS})
endif()

# fmt comes as a library on most systems, which compiles faster; its headers alone do too.
if(NOT TENON_HEADERS)
  find_package(fmt QUIET)
endif()
if(TARGET fmt::fmt)
  target_link_libraries(tenon_headers INTERFACE fmt::fmt)
else()
  target_compile_definitions(tenon_headers INTERFACE FMT_HEADER_ONLY=1)
endif()
