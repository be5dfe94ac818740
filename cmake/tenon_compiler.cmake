# Compiler settings that hold for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
# What is executed once per node, and what runs once per element. Sanitizers look at every access, so code built with them
# is slow whatever the level; the lower one halves the build.
if(TENON_SANITIZE)
  set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")
  set(tenon_kernel_optimization -O1)
else()
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
  set(tenon_kernel_optimization -O3)
endif()

find_package(Threads REQUIRED)

find_program(CCACHE ccache)
if(CCACHE)
  # Without the first two, ccache does not cache files that use a precompiled header. The others let a clone in another
  # folder, or a shell with another language, find what was compiled before.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,locale
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true ${CCACHE})
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()

# Loops over floats vectorise only when the compiler need not keep errno and trap state; both leave results unchanged.
# Contraction is off so that a fused multiply-add appears only where the source asks for one.
add_compile_options(-fno-math-errno -fno-trapping-math -ffp-contract=off)
add_compile_options(-Wall -Wextra -Wshadow=local -Wnon-virtual-dtor)
# GCC 12 and 13 report overlapping copies inside std::string, unset members of empty std::optionals and accesses past
# single elements that cannot happen.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-restrict -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
if(TENON_WERROR)
  add_compile_options(-Werror)
endif()
if(TENON_SANITIZE)
  add_compile_options(-fsanitize=${TENON_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${TENON_SANITIZE})
endif()
